"""Cohorts that several tests of audits share."""

import pytest
from simulated_cohorts import make_cohort


@pytest.fixture(scope="session")
def cohort():
    return make_cohort((300, 200, 60), images=2)


@pytest.fixture(scope="session")
def singles():
    return make_cohort((400, 250, 80))


@pytest.fixture(scope="session")
def unfair():
    return make_cohort((400, 300), drop=1.1)

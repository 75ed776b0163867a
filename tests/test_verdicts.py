import numpy as np
import pandas as pd
import pytest

import frame
from frame.verdicts import probability, reading, short_verdict, verdict_sentence


def audited(values, counts, measure="tpr", **arguments):
    table = pd.DataFrame(
        {
            "claim_id": "a",
            "metric": measure,
            "subgroup": [f"s{i}" for i in range(len(values))],
            "value": values,
            "n_positive": counts,
            "n_negative": counts,
        }
    )
    return frame.audit_claims(table, **arguments).iloc[0]


def test_exceeding():
    row = audited(["0.9", "0.5"], [200, 200])
    start = (
        "Exceeds (q <0.001 after correction): an exactly fair model shows 0.400 or more less than once in "
    )
    assert verdict_sentence(row).startswith(
        start + "1,000 times at these counts (0.037 on average, 95 % between 0.000 and"
    )
    assert short_verdict(row) == "exceeds"


def test_not_exceeding_names_what_the_counts_could_have_shown():
    row = audited(["0.80", "0.79"], [200, 200])
    words = f"One subgroup truly {row['detectable_80']:.3f} lower would be found with 80 % power"
    assert f"{words} before correction." in verdict_sentence(row)
    assert verdict_sentence(row).startswith(f"Does not exceed (q {row['q']:.3f} after correction)")
    assert short_verdict(row) == f"does not exceed; {row['detectable_80']:.3f} detectable"


def test_nothing_detectable():
    row = audited(["0.5", "0.5"], [2, 2])
    assert "These counts could not show every shift of a single subgroup" in verdict_sentence(row)
    assert short_verdict(row) == "does not exceed; none detectable"


def test_margin_is_named():
    assert "a model with subgroups 0.025 below or above the common value shows" in verdict_sentence(
        audited(["0.9", "0.5"], [200, 200], margin=0.05)
    )


def test_dependence_is_said():
    row = audited(["0.80", "0.67"], [100, 100])
    assert row["depends_on_rounding"]
    assert verdict_sentence(row).endswith("The verdict depends on how the values were rounded.")
    assert short_verdict(row).endswith("depends on how the values were rounded")


def test_not_estimable_gives_the_reason():
    row = {"status": "not estimable", "reason": "not auditable: no counts"}
    assert verdict_sentence(row) == "Not estimable: no counts."
    assert short_verdict(row) == "not estimable: no counts"


@pytest.mark.parametrize(
    ("direction", "exceeds", "detectable", "expected"),
    [
        ("disparity", True, np.nan, "supports"),
        ("disparity", False, 0.05, "weakens"),
        ("disparity", False, 0.1, "weakens"),
        ("disparity", False, 0.11, "undecided"),
        ("disparity", False, np.nan, "undecided"),
        ("caution", True, np.nan, "weakens"),
        ("caution", False, 0.05, "supports"),
        ("caution", False, 0.11, "undecided"),
        ("", True, np.nan, "undecided"),
        ("", False, 0.05, "undecided"),
        ("disparity", pd.NA, np.nan, "undecided"),
        ("disparity", None, np.nan, "undecided"),
        ("disparity", np.bool_(True), np.nan, "supports"),
    ],
)
def test_reading(direction, exceeds, detectable, expected):
    assert reading(direction, exceeds, detectable, 0.1) == expected


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "<0.001"), (0.00099, "<0.001"), (0.001, "0.001"), (0.9990001, ">0.999"), (0.5, "0.500")],
)
def test_probability(p, text):
    assert probability(p) == text

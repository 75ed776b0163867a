import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from frame.errors import InputError
from frame.inference.exchangeability import (
    EXCHANGEABILITY,
    PERMUTED_MEASURES,
    permutation_reference,
    permuted_memberships,
)

THRESHOLD = 0.45


def _cohort(seed, n_patients=60, n_levels=3, decimals=1, images=3):
    """Fair by construction: scores do not read the subgroup; several images a patient, tied scores."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n_patients)
    patient = np.repeat(np.arange(n_patients), rng.integers(1, images + 1, n_patients))
    ill = rng.random(n_patients) < 0.4
    label = np.where(rng.random(len(patient)) < 0.8, ill[patient], rng.random(len(patient)) < 0.4)
    noise = rng.normal(size=len(patient)) + rng.normal(size=n_patients)[patient]
    score = np.round(1 / (1 + np.exp(-(noise + 1.5 * label - 1))), decimals)
    order = rng.permutation(len(patient))
    return score[order], label[order], patient[order], level[patient][order]


def _value(measure, scores, labels):
    """One subgroup's value, written out; scikit-learn where it has the measure."""
    called = scores >= THRESHOLD
    n_positive, n_negative = labels.sum(), (~labels).sum()
    if measure == "auroc":
        return roc_auc_score(labels, scores) if n_positive and n_negative else np.nan
    if measure == "auprc":
        return average_precision_score(labels, scores) if n_positive else np.nan
    if measure == "brier":
        return brier_score_loss(labels, scores) if len(labels) else np.nan
    if measure == "ece":
        total = 0.0
        for i in range(15):
            top = scores < (i + 1) / 15 if i < 14 else scores <= 1.0
            inside = (scores >= i / 15) & top
            if inside.any():
                total += inside.mean() * abs(labels[inside].mean() - scores[inside].mean())
        return total if len(labels) else np.nan
    hit, out_of = {
        "tpr": ((called & labels).sum(), n_positive),
        "fnr": ((~called & labels).sum(), n_positive),
        "fpr": ((called & ~labels).sum(), n_negative),
        "specificity": ((~called & ~labels).sum(), n_negative),
        "accuracy": ((called == labels).sum(), len(labels)),
        "ppv": ((called & labels).sum(), called.sum()),
        "npv": ((~called & ~labels).sum(), (~called).sum()),
    }[measure]
    return hit / out_of if out_of else np.nan


def _looped(cohort, n_levels, measure, permutations, seed):
    """The reference as a plain loop over the same permutations."""
    scores, labels, patients, codes = cohort
    known = np.unique(patients)
    membership = np.array([codes[patients == i][0] for i in known])
    stratum = np.array([labels[patients == i].any() for i in known])
    differences = []
    for draw in range(permutations):
        moved = permuted_memberships(membership, stratum, seed, draw)
        level = moved[np.searchsorted(known, patients)]
        values = [_value(measure, scores[level == g], labels[level == g]) for g in range(n_levels)]
        values = [v for v in values if not np.isnan(v)]
        differences.append(max(values) - min(values) if len(values) > 1 else np.nan)
    return np.array(differences)


@pytest.mark.parametrize("measure", PERMUTED_MEASURES)
def test_equal_to_a_loop_over_the_same_permutations(measure):
    for seed in range(3):
        cohort = _cohort(seed, decimals=1 if seed else 6)
        result = permutation_reference(
            *cohort[:3], 60, cohort[3], 3, measure, threshold=THRESHOLD, permutations=40, seed=seed
        )
        assert result.draws == pytest.approx(_looped(cohort, 3, measure, 40, seed), abs=1e-12)
        values = [_value(measure, *(c[cohort[3] == g] for c in cohort[:2])) for g in range(3)]
        assert result.observed == pytest.approx(max(values) - min(values), abs=1e-12)
        assert result.status == "ok"
        assert result.n_incomplete == 0


def test_a_subgroup_without_a_value_is_left_out_of_that_range_and_counted():
    # Patients with a positive: A has one with a negative beside it, B three with none; AUROC of the
    # subgroup that holds only all-positive patients depends on where the rest fall.
    labels = np.array([1, 0, 1, 1, 1, 0, 0, 1, 1], dtype=bool)
    scores = np.array([0.9, 0.2, 0.6, 0.7, 0.3, 0.4, 0.8, 0.5, 0.1])
    patients = np.array([0, 0, 1, 2, 3, 4, 4, 5, 6])
    codes = np.array([0, 0, 1, 1, 2, 1, 1, 2, 0])
    cohort = (scores, labels, patients, codes)
    result = permutation_reference(*cohort[:3], 7, codes, 3, "auroc", permutations=200, seed=4)
    looped = _looped(cohort, 3, "auroc", 200, 4)
    assert result.draws == pytest.approx(looped, abs=1e-12, nan_ok=True)
    assert result.n_undefined == np.isnan(looped).sum()
    assert result.n_incomplete > 0
    assert any("left out of the range" in flag for flag in result.flags)


def test_undefined_permutations_do_not_count():
    # Only patients 0 and 1 have negatives. Where one subgroup gets both, the other has no AUROC.
    labels = np.array([1, 0, 1, 0, 1, 1], dtype=bool)
    scores = np.array([0.1, 0.2, 0.3, 0.25, 0.5, 0.6])
    patients = np.array([0, 0, 1, 1, 2, 3])
    codes = np.array([0, 0, 1, 1, 0, 1])
    result = permutation_reference(scores, labels, patients, 4, codes, 2, "auroc", permutations=300, seed=0)
    assert 0 < result.n_undefined < 300
    assert len(result.defined) == 300 - result.n_undefined
    reached = np.count_nonzero(result.defined >= 0.5 - 1e-9)
    assert result.exceedance(0.5) == pytest.approx((1 + reached) / (len(result.defined) + 1))
    assert any(flag.endswith("these do not count.") for flag in result.flags)


def test_against_every_membership():
    # Six single-image patients, two subgroups of three: C(3, 2)^2 = 9 memberships when two of the three
    # positives and one of the three negatives are in the first.
    labels = np.array([1, 1, 1, 0, 0, 0], dtype=bool)
    scores = np.array([0.9, 0.4, 0.35, 0.5, 0.3, 0.1])
    codes = np.array([0, 0, 1, 0, 1, 1])
    every = []
    for other in range(3):  # the positive of the second subgroup
        for own in range(3, 6):  # the negative of the first
            level = np.ones(6, dtype=int)
            level[[i for i in range(3) if i != other] + [own]] = 0
            values = [roc_auc_score(labels[level == g], scores[level == g]) for g in (0, 1)]
            every.append(abs(values[0] - values[1]))
    result = permutation_reference(scores, labels, np.arange(6), 6, codes, 2, "auroc", permutations=20_000)
    assert result.arrangements == pytest.approx(9)
    for delta in sorted(set(every)):
        exact = np.mean(np.array(every) >= delta - 1e-9)
        error = 4.5 * np.sqrt(exact * (1 - exact) / 20_000) + 1 / 20_001
        assert result.exceedance(delta) == pytest.approx(exact, abs=error)
    assert result.mean == pytest.approx(np.mean(every), abs=4.5 * np.std(every) / np.sqrt(20_000))
    assert any(
        "Only 9 memberships" in flag
        for flag in permutation_reference(scores, labels, np.arange(6), 6, codes, 2, "auroc").flags
    )


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 2**63 - 1), st.integers(0, 10**6))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_a_permutation_keeps_the_strata(n_with, n_without, seed, draw):
    stratum = np.array([True] * n_with + [False] * n_without)
    membership = np.arange(n_with + n_without) % 3
    moved = permuted_memberships(membership, stratum, seed, draw)
    for part in (stratum, ~stratum):
        assert sorted(moved[part]) == sorted(membership[part])


def test_permutations_are_uniform():
    # 24 orders of four patients, 24,000 draws: chi-squared with 23 degrees of freedom, 99.9 % below 49.7.
    orders = [tuple(permuted_memberships(np.arange(4), np.ones(4, bool), 7, draw)) for draw in range(24_000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert np.sum((counts - 1000) ** 2 / 1000) < 49.7


def test_threads_and_chunks_and_the_number_of_permutations_change_nothing(monkeypatch):
    cohort = _cohort(1)
    arguments = (*cohort[:3], 60, cohort[3], 3, "auroc")
    one = permutation_reference(*arguments, permutations=150, seed=2, threads=1).draws
    assert np.array_equal(one, permutation_reference(*arguments, permutations=150, seed=2, threads=4).draws)
    assert np.array_equal(one[:10], permutation_reference(*arguments, permutations=10, seed=2).draws)
    monkeypatch.setattr("frame.inference.exchangeability._CHUNK", 7)
    assert np.array_equal(one, permutation_reference(*arguments, permutations=150, seed=2).draws)
    assert not np.array_equal(one, permutation_reference(*arguments, permutations=150, seed=3).draws)


def test_neither_the_order_of_images_nor_the_names_of_patients_change_the_law():
    scores, labels, patients, codes = _cohort(5, n_patients=200)
    first = permutation_reference(scores, labels, patients, 200, codes, 3, "tpr", threshold=0.5)
    order = np.random.default_rng(0).permutation(len(scores))
    shuffled = permutation_reference(
        scores[order], labels[order], patients[order], 200, codes[order], 3, "tpr", threshold=0.5
    )
    assert np.array_equal(first.draws, shuffled.draws)
    renamed = permutation_reference(scores, labels, 499 - 2 * patients, 500, codes, 3, "tpr", threshold=0.5)
    assert renamed.observed == first.observed
    assert renamed.mean == pytest.approx(first.mean, abs=5 * first.sd / np.sqrt(1000))


def test_mirrored_measures_share_their_draws():
    scores, labels, patients, codes = _cohort(6)
    for measure, mirrored in (("tpr", "fnr"), ("fpr", "specificity")):
        pair = [
            permutation_reference(scores, labels, patients, 60, codes, 3, m, threshold=0.5, permutations=99)
            for m in (measure, mirrored)
        ]
        assert pair[0].draws == pytest.approx(pair[1].draws, abs=1e-12)


def test_logits_are_read_as_probabilities_by_ece_and_brier_only():
    scores, labels, patients, codes = _cohort(7, decimals=4)
    logits = np.log(scores / (1 - scores))
    for measure in ("ece", "brier", "auroc"):
        given_p = permutation_reference(scores, labels, patients, 60, codes, 3, measure, permutations=50)
        given_l = permutation_reference(
            logits, labels, patients, 60, codes, 3, measure, permutations=50, scale="logit"
        )
        assert given_l.draws == pytest.approx(given_p.draws, abs=1e-9)


def test_only_evaluable_subgroups_take_part():
    scores, labels, patients, codes = _cohort(8, n_levels=4)
    codes = np.where(codes == 3, -1, codes)
    result = permutation_reference(
        scores, labels, patients, 60, codes, 3, "auroc", permutations=60, evaluable_levels=[2, 0]
    )
    kept = (codes == 0) | (codes == 2)
    alone = permutation_reference(
        scores[kept],
        labels[kept],
        patients[kept],
        60,
        np.where(codes[kept] == 2, 0, 1),
        2,
        "auroc",
        permutations=60,
    )
    assert np.array_equal(result.draws, alone.draws)
    assert result.levels == (2, 0)
    assert result.strata.sum() == len(np.unique(patients[kept]))


def test_summaries():
    scores, labels, patients, codes = _cohort(9)
    result = permutation_reference(scores, labels, patients, 60, codes, 3, "accuracy", threshold=0.5)
    ordered = np.sort(result.draws)
    assert result.mean == pytest.approx(ordered.mean())
    assert result.sd == pytest.approx(ordered.std(ddof=1))
    assert result.quantile(0.975) == ordered[1949]  # 1950 of 2000 draws lie at or below it
    assert result.exceedance(0.0) == 1.0
    assert result.exceedance(2.0) == pytest.approx(1 / 2001)
    assert result.exceedance(ordered[1000]) >= 1001 / 2001  # a tie counts
    assert np.isnan(result.exceedance(np.nan))
    assert result.flags[0] == EXCHANGEABILITY
    assert EXCHANGEABILITY.startswith("This tests exchangeability, not equal performance")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"patients": np.array([0, 0, 1, 2, 3, 4, 5])},
            "1 of 6 patients have images in two subgroups: membership cannot be permuted over patients",
        ),
        ({"evaluable_levels": [0]}, "fewer than two subgroups are evaluable"),
        ({"evaluable_levels": []}, "fewer than two subgroups are evaluable"),
        ({"labels": np.zeros(7, bool)}, "fewer than two subgroups have a value"),
        (
            {
                "labels": np.array([1, 0, 1, 0, 0, 0, 0], bool),
                "codes": np.array([0, 1, 0, 1, 1, 1, 1]),
                "measure": "brier",
            },
            "no patient can change places: every stratum is one subgroup",
        ),
    ],
)
def test_not_estimable_with_the_reason(change, reason):
    arguments = {
        "scores": np.linspace(0.1, 0.9, 7),
        "labels": np.array([1, 0, 1, 0, 1, 0, 0], dtype=bool),
        "patients": np.arange(7),
        "n_patients": 7,
        "codes": np.array([0, 1, 1, 1, 0, 0, 1]),
        "n_levels": 2,
        "measure": "auroc",
        **change,
    }
    result = permutation_reference(**arguments)
    assert (result.status, result.reason) == ("not estimable", reason)
    assert np.isnan([result.mean, result.sd, result.quantile(0.5), result.exceedance(0.1)]).all()
    assert np.isnan(result.observed)
    assert len(result.draws) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "auc"}, "measure is 'auc'; allowed are 'auroc'"),
        ({"measure": "tpr"}, "tpr reads decisions and no threshold was given"),
        ({"measure": "ppv", "threshold": float("nan")}, "ppv reads decisions"),
        ({"scale": "percent"}, "scale is 'percent'"),
        ({"permutations": 0}, "permutations is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"scores": np.array([0.1, np.nan, 0.3, 0.4])}, "1 scores are missing"),
        ({"labels": np.ones(3, bool)}, "one value per image"),
        ({"patients": np.array([0, 1, 2, 4])}, "patients holds numbers outside 0 to 3"),
        ({"codes": np.array([0, 1, 0, -2])}, "codes holds numbers outside -1 to 1"),
        ({"evaluable_levels": [0, 0]}, r"evaluable_levels is \[0, 0\]"),
        ({"evaluable_levels": [0, 2]}, r"evaluable_levels is \[0, 2\]"),
    ],
)
def test_refusals(change, message):
    arguments = {
        "scores": np.linspace(0.1, 0.9, 4),
        "labels": np.array([1, 0, 1, 0], dtype=bool),
        "patients": np.arange(4),
        "n_patients": 4,
        "codes": np.array([0, 1, 0, 1]),
        "n_levels": 2,
        "measure": "auroc",
        **change,
    }
    with pytest.raises(InputError, match=message):
        permutation_reference(**arguments)


def test_without_numba_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "frame.inference.permutation_kernels", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(
        InputError, match=r"needs numba; install it with: pip install 'frame-audit\[scores\]'"
    ):
        permuted_memberships(np.array([0, 1]), np.array([True, True]), 0, 0)


@pytest.mark.parametrize("measure", ["auroc", "tpr", "ece", "ppv"])
def test_size_on_fair_cohorts(measure):
    # Simulated: 200 fair cohorts with repeated images, 99 permutations, nominal level .05. The test is
    # exact, so that 10 rejections are expected; 99.9 % of a binomial(200, .05) lies in 2..21.
    rejected = 0
    for seed in range(200):
        cohort = _cohort(1000 + seed, n_patients=80, decimals=2)
        result = permutation_reference(
            *cohort[:3], 80, cohort[3], 3, measure, threshold=0.5, permutations=99, seed=seed
        )
        rejected += result.exceedance(result.observed) <= 0.05
    assert 2 <= rejected <= 21


def _one_law_of_scores(labels, seed=12):
    rng = np.random.default_rng(seed)
    return 1 / (1 + np.exp(-(rng.normal(size=len(labels)) + 1.5 * labels - 0.75)))


def test_a_differing_share_of_positive_patients_lies_in_the_reference():
    # Scores given the label are the same in both subgroups; prevalence is 0.1 and 0.5.
    codes = np.repeat([0, 1], 1500)
    labels = np.random.default_rng(1).random(3000) < np.where(codes == 0, 0.1, 0.5)
    scores = _one_law_of_scores(labels)
    for measure, least in (("ppv", 0.3), ("ece", 0.1), ("auroc", 0.0)):
        result = permutation_reference(
            scores, labels, np.arange(3000), 3000, codes, 2, measure, threshold=0.5, permutations=400
        )
        assert result.observed > least
        assert result.mean > least
        assert result.exceedance(result.observed) > 0.01


def test_a_differing_share_of_positives_within_patients_exceeds_by_itself():
    # 400 patients with four images each; half of them have positives: one of four, or all four.
    patients = np.repeat(np.arange(400), 4)
    codes = patients % 2
    ill = patients < 200
    labels = ill & ((codes == 1) | (np.arange(1600) % 4 == 0))
    scores = _one_law_of_scores(labels)
    p = {}
    for measure in ("ppv", "ece", "tpr", "fpr"):
        result = permutation_reference(
            scores, labels, patients, 400, codes, 2, measure, threshold=0.5, permutations=400
        )
        p[measure] = result.exceedance(result.observed)
    assert p["ppv"] == p["ece"] == pytest.approx(1 / 401)
    assert min(p["tpr"], p["fpr"]) > 0.01


def test_a_planted_difference_is_found():
    rng = np.random.default_rng(3)
    codes = np.repeat([0, 1, 2], [600, 300, 100])
    labels = rng.random(1000) < 0.4
    scores = rng.normal(size=1000) + np.array([2.0, 2.0, 0.3])[codes] * labels
    result = permutation_reference(scores, labels, np.arange(1000), 1000, codes, 3, "auroc", permutations=500)
    assert result.exceedance(result.observed) == pytest.approx(1 / 501)

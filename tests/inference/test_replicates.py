"""Bootstrap replicates against explicit resampling of rows with the same multiplicities."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from frame.errors import InputError
from frame.inference import kernels, replicates
from frame.inference.multiplicities import patient_multiplicities
from frame.inference.replicates import check_patients, replicate_values, sample, sample_replicates
from frame.measures import MEASURES, measure_value

ALL = tuple(MEASURES)


def cohort(seed, n=150, patients=60, levels=3, ties=False, prevalence=0.3, scale="probability"):
    generator = np.random.default_rng(seed)
    owner = generator.integers(0, patients, n)
    labels = generator.random(n) < prevalence
    scores = generator.normal(size=n) + labels
    if scale == "probability":
        scores = 1 / (1 + np.exp(-scores))
    if ties:
        scores = np.round(scores, 1)
    codes = generator.integers(-1, levels, n)
    return scores, labels, owner, patients, codes, levels


def explicit(data, measures, resamples, seed, threshold, scale, value=measure_value):
    """Rows repeated as often as their patient was drawn, then one call per measure."""
    scores, labels, owner, patients, codes, levels = data
    table = patient_multiplicities(patients, resamples=resamples, seed=seed)
    found = np.empty((len(measures), levels + 1, resamples))
    for b in range(resamples):
        rows = np.repeat(np.arange(len(scores)), table[owner, b])
        for g in range(levels + 1):
            chosen = rows if g == 0 else rows[codes[rows] == g - 1]
            for m, measure in enumerate(measures):
                found[m, g, b] = value(
                    measure, scores[chosen], labels[chosen], threshold=threshold, scale=scale
                )
    return found


def agree(found, expected):
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.nanmax(np.abs(found - expected), initial=0.0) <= 1e-12


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("scale", "threshold"), [("probability", 0.5), ("logit", 0.3)])
@pytest.mark.parametrize("patients", [60, 400])
def test_replicates_equal_explicit_row_resampling(ties, scale, threshold, patients):
    data = cohort(1, ties=ties, scale=scale, patients=patients)
    found = replicate_values(*data, ALL, threshold=threshold, scale=scale, resamples=40, seed=7)
    assert found.shape == (11, 4, 40)
    expected = explicit(data, ALL, 40, 7, threshold, scale)
    agree(found, expected)
    assert not np.isnan(found).any()


def test_replicates_are_undefined_exactly_where_row_resampling_is():
    data = cohort(2, n=24, patients=16, levels=4, prevalence=0.15)
    found = replicate_values(*data, ALL, threshold=0.7, resamples=60, seed=1)
    expected = explicit(data, ALL, 60, 1, 0.7, "probability")
    agree(found, expected)
    undefined = np.isnan(found).any(axis=(1, 2))
    assert undefined.all()  # the cohort is small enough that every measure is undefined somewhere
    assert not np.isnan(found).all(axis=(1, 2)).any()


@pytest.mark.parametrize("ties", [False, True])
def test_replicates_equal_scikit_learn(ties):
    def value(measure, scores, labels, threshold, scale):
        decided = scores >= threshold
        if measure == "ece":
            total = 0.0
            for i in range(15):
                inside = (scores >= i / 15) & ((scores < (i + 1) / 15) | (i == 14))
                if inside.any():
                    total += inside.mean() * abs(labels[inside].mean() - scores[inside].mean())
            return total
        return {
            "auroc": lambda: metrics.roc_auc_score(labels, scores),
            "tpr": lambda: metrics.recall_score(labels, decided),
            "fpr": lambda: 1 - metrics.recall_score(~labels, ~decided),
            "fnr": lambda: 1 - metrics.recall_score(labels, decided),
            "specificity": lambda: metrics.recall_score(~labels, ~decided),
            "accuracy": lambda: metrics.accuracy_score(labels, decided),
            "ppv": lambda: metrics.precision_score(labels, decided),
            "npv": lambda: metrics.precision_score(~labels, ~decided),
            "brier": lambda: metrics.brier_score_loss(labels, scores),
            "auprc": lambda: metrics.average_precision_score(labels, scores),
        }[measure]()

    data = cohort(3, n=300, ties=ties)
    found = replicate_values(*data, ALL, threshold=0.5, resamples=12, seed=2)
    agree(found, explicit(data, ALL, 12, 2, 0.5, "probability", value))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([0.0, 1 / 15, 0.2, 0.4, 0.6, 14 / 15, 1.0]),
            st.booleans(),
            st.integers(0, 5),
            st.integers(-1, 1),
        ),
        min_size=1,
        max_size=25,
    ),
    threshold=st.sampled_from([-1.0, 0.0, 0.4, 0.5, 1.0, 2.0]),
    seed=st.integers(0, 2**64),
)
def test_any_small_cohort_equals_explicit_row_resampling(rows, threshold, seed):
    scores, labels, owner, codes = (np.array(column) for column in zip(*rows, strict=True))
    data = (scores, labels, owner, 6, codes, 2)
    found = replicate_values(*data, ALL, threshold=threshold, resamples=6, seed=seed, threads=1)
    agree(found, explicit(data, ALL, 6, seed, threshold, "probability"))


def test_results_are_the_same_bits_on_any_threads_and_lanes(monkeypatch):
    scores, labels, owner, patients, codes, levels = cohort(4, n=4000, patients=1500)
    sets = [np.arange(len(scores)), *(np.flatnonzero(codes == level) for level in range(levels))]
    samples = [sample(scores[r], labels[r], owner[r], ALL, threshold=0.5) for r in sets]
    base = sample_replicates(samples, ALL, patients, resamples=75, seed=1, threads=1)
    for threads, lanes in ((1, 1), (2, 5), (3, 16), (4, 32), (2, 75), (None, None), (1, 200)):
        other = sample_replicates(samples, ALL, patients, resamples=75, seed=1, threads=threads, lanes=lanes)
        assert np.array_equal(other, base, equal_nan=True), (threads, lanes)
    monkeypatch.setattr(replicates, "TABLE_BYTES", 1)  # too little room for more than one thread, 8 lanes
    short = sample_replicates(samples, ALL, patients, resamples=75, seed=1, threads=4)
    assert np.array_equal(short, base, equal_nan=True)


def test_a_resample_does_not_depend_on_how_many_there_are_or_what_else_is_computed():
    data = cohort(5)
    whole = replicate_values(*data, ALL, threshold=0.5, resamples=50, seed=9)
    first = replicate_values(*data, ALL, threshold=0.5, resamples=13, seed=9)
    assert np.array_equal(first, whole[:, :, :13], equal_nan=True)
    for m, measure in enumerate(ALL):
        alone = replicate_values(*data, (measure,), threshold=0.5, resamples=50, seed=9)
        assert np.array_equal(alone[0], whole[m], equal_nan=True), measure
    scores, labels, owner, patients, codes, _ = data
    merged = replicate_values(
        scores, labels, owner, patients, np.minimum(codes, 0), 1, ALL, threshold=0.5, resamples=50, seed=9
    )
    assert np.array_equal(merged[:, 0], whole[:, 0], equal_nan=True)


def test_the_order_of_the_rows_does_not_matter_for_counts():
    data = cohort(6, ties=True)
    counted = ("auroc", "tpr", "fpr", "accuracy", "ppv")
    base = replicate_values(*data, counted, threshold=0.5, resamples=20)
    order = np.random.default_rng(0).permutation(len(data[0]))
    scores, labels, owner, patients, codes, levels = data
    shuffled = (scores[order], labels[order], owner[order], patients, codes[order], levels)
    assert np.array_equal(replicate_values(*shuffled, counted, threshold=0.5, resamples=20), base)


def test_ranks_survive_any_rising_map_and_labels_of_one_patient_move_together():
    scores, labels, owner, patients, codes, levels = cohort(7, scale="logit")
    base = replicate_values(scores, labels, owner, patients, codes, levels, ("auroc", "auprc"), resamples=20)
    cubed = replicate_values(
        1e6 * scores**3, labels, owner, patients, codes, levels, ("auroc", "auprc"), resamples=20
    )
    assert np.array_equal(cubed, base)
    one = np.zeros_like(owner)
    constant = replicate_values(scores, labels, one, 1, codes, levels, ("auroc",), resamples=20)
    assert (constant == constant[:, :, :1]).all()


def test_empty_levels_and_patients_without_an_image_are_kept():
    scores, labels, owner, patients, codes, levels = cohort(8)
    found = replicate_values(scores, labels, owner, patients + 40, codes, levels + 2, ALL, threshold=0.5)
    assert found.shape == (11, 6, 1000)
    assert np.isnan(found[:, 4:]).all()
    data = (scores, labels, owner, patients + 40, codes, levels + 2)
    agree(found[:, :, :8], explicit(data, ALL, 8, 0, 0.5, "probability"))


def test_counts_stay_exact_beyond_32_bits():
    # Two patients with 60,000 images each; the pairs of a resample pass 2**32.
    size = 60_000
    generator = np.random.default_rng(0)
    scores = generator.integers(0, 50, 2 * size) / 50.0
    labels = np.arange(2 * size) % 3 == 0
    owner = np.repeat([0, 1], size)
    codes = np.zeros(2 * size, dtype=np.int64)
    found = replicate_values(scores, labels, owner, 2, codes, 1, ("auroc",), resamples=12)[0, 0]
    table = patient_multiplicities(2, resamples=12)
    drawn = {tuple(column): b for b, column in enumerate(table.T.tolist())}
    assert set(drawn) == {(0, 2), (1, 1), (2, 0)}
    for b in drawn.values():
        times = table[owner, b].astype(np.int64)
        doubled, negatives_below = 0, 0
        n_positive, n_negative = int(times[labels].sum()), int(times[~labels].sum())
        for score in np.unique(scores):
            here = scores == score
            positive, negative = int(times[labels & here].sum()), int(times[~labels & here].sum())
            doubled += positive * (2 * negatives_below + negative)
            negatives_below += negative
        assert 2 * n_positive * n_negative > 2**32
        assert found[b] == float(Fraction(doubled, 2 * n_positive * n_negative))


def test_sizes_at_which_counts_could_pass_int64_are_refused():
    check_patients(np.zeros(2**15, dtype=np.int64), 2**16)
    with pytest.raises(InputError) as error:
        check_patients(np.zeros(2**15 + 1, dtype=np.int64), 2**16)
    assert str(error.value) == (
        "One of 65536 patients has 32769 images, so a resample could hold 2147549184 images; counts are "
        "exact up to 2147483648, so give fewer images a patient or fewer patients."
    )


def test_a_multiplicity_that_does_not_fit_is_an_error(monkeypatch):
    monkeypatch.setattr(replicates, "drawn_patients", lambda n, seed, resample: np.zeros(n, dtype=np.uint32))
    few = sample(np.array([0.1, 0.9]), np.array([False, True]), np.array([0, 1]), ("auroc",))
    with pytest.raises(OverflowError, match="more than 65535 times in resample 0"):
        sample_replicates([few], ("auroc",), 65_536, resamples=2, threads=1)
    counts = np.zeros(3, dtype=np.uint16)
    assert kernels.count_draws(np.zeros(65_535, dtype=np.uint32), counts)
    assert not kernels.count_draws(np.zeros(1, dtype=np.uint32), counts)
    assert counts[0] == 65_535


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"patients": np.array([0, 1, 5])}, "Patients are numbered 0 to 5; give 0 to 4."),
        ({"patients": np.array([0, -1, 2])}, "Patients are numbered -1 to 2; give 0 to 4."),
        ({"codes": np.array([0, 1, 2])}, "Codes run from 0 to 2; give -1 to 1."),
        ({"codes": np.array([-2, 0, 1])}, "Codes run from -2 to 1; give -1 to 1."),
        (
            {"labels": np.array([True])},
            "There are 3 scores, 1 labels, 3 patients and 3 codes; give one of each per image.",
        ),
        (
            {"threshold": None},
            "threshold is None; give the number from which a score is a positive decision.",
        ),
        (
            {"threshold": float("nan")},
            "threshold is nan; give the number from which a score is a positive decision.",
        ),
        (
            {"labels": np.array([0, 1, 1])},
            "labels are int64 and 0 scores are NaN; give bool labels and a score for every image.",
        ),
        (
            {"scores": np.array([0.1, np.nan, 0.9])},
            "labels are bool and 1 scores are NaN; give bool labels and a score for every image.",
        ),
        ({"threads": 0}, "threads is 0; give a whole number of at least 1."),
        ({"resamples": 0}, "resamples is 0; give a whole number of at least 1."),
        ({"seed": 0.5}, "seed is 0.5; give a whole number of at least 0."),
    ],
)
def test_what_cannot_be_computed_is_named(change, message):
    arguments = {
        "scores": np.array([0.1, 0.5, 0.9]),
        "labels": np.array([False, True, True]),
        "patients": np.array([0, 1, 2]),
        "n_patients": 5,
        "codes": np.array([0, 0, 1]),
        "n_levels": 2,
        "measures": ("auroc", "tpr"),
        "threshold": 0.5,
    }
    with pytest.raises(InputError) as error:
        replicate_values(**arguments | change)
    assert str(error.value) == message


def test_a_sample_of_more_patients_than_there_are_is_refused():
    few = sample(np.array([0.1, 0.9]), np.array([False, True]), np.array([3, 7]), ("auroc",))
    assert sample_replicates([few], ("auroc",), 8, resamples=2).shape == (1, 1, 2)
    with pytest.raises(InputError) as error:
        sample_replicates([few], ("auroc",), 7, resamples=2)
    assert str(error.value) == "A sample has patient number 7 and n_patients is 7; number from 0."


def run_alone(code):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)


SMALL = (
    "import numpy as np\n"
    "from frame.inference.replicates import replicate_values\n"
    "scores, labels = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])\n"
    "rows = np.arange(4)\n"
    "found = replicate_values(scores, labels, rows, 4, 0 * rows, 1, ('auroc', 'ece'), resamples=5)\n"
    "print(float(np.nansum(found)))\n"
)


def test_it_works_where_numba_finds_no_folder_for_its_cache():
    normal = run_alone(SMALL)
    assert normal.returncode == 0, normal.stderr
    homeless = run_alone(
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = []\n" + SMALL + "from frame.inference import kernels\n"
        "print(kernels.add_counts.stats.cache_path)\n"
    )
    assert homeless.returncode == 0, homeless.stderr
    assert homeless.stdout.splitlines() == [normal.stdout.strip(), "None"]


def test_a_missing_numba_is_named_with_the_way_to_install_it():
    result = run_alone("import sys; sys.modules['numba'] = None\n" + SMALL)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "frame.errors.InputError: The bootstrap needs numba; "
        "install it with: pip install 'frame-audit[scores]'"
    )

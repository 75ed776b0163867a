"""The operators against dense formulas, and what they must not change."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from frame.errors import InputError
from frame.interventions import operators
from frame.interventions.operators import (
    DECODABILITY_STRENGTHS,
    EntanglementOperator,
    decodability_operator,
    injected_blocks,
    injected_rows,
    random_direction,
    signs_of,
)

N, D, K = 1500, 24, 6
STRENGTHS = (0.25, 0.5, 1.0, 7.0)


def drawn(dtype=np.float64, offset=3.0, n=N):
    generator = np.random.default_rng(5)
    labels = generator.random(n) < 0.35
    features = generator.normal(size=(n, D)) @ generator.normal(size=(D, D)) + offset
    features += labels[:, None] * generator.normal(size=D)
    groups = generator.choice(np.array(["a", "b", "c", ""], dtype=object), n, p=[0.5, 0.25, 0.15, 0.1])
    return features.astype(dtype), labels.astype(int), groups


def basis(k=K):
    return np.linalg.qr(np.random.default_rng(8).normal(size=(D, k)))[0]


def entanglement(k=K):
    return EntanglementOperator(basis(k), tuple(float(j) for j in range(k + 1)))


def decodability(features, signs, seed=0):
    w = np.random.default_rng(9).normal(size=D)
    return decodability_operator(features, np.arange(1000), signs, w, seed=seed)


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def scores(features, theta):
    """The same sum in every row, whatever stands beside it."""
    return np.add.reduce(np.asarray(features, dtype=np.float64) * theta, axis=1)


# -- signs ------------------------------------------------------------------------------------------------


def test_signs_are_those_of_the_largest_training_group():
    groups = ["x", "y", "x", None, "z", "z", "z", "  ", float("nan")]
    assert signs_of(groups).tolist() == [-1, -1, -1, 0, 1, 1, 1, 0, 0]
    assert signs_of(groups, np.array([0, 1, 2, 4])).tolist() == [1, -1, 1, 0, -1, -1, -1, 0, 0]
    assert signs_of(groups, np.arange(9) < 5).tolist() == [1, -1, 1, 0, -1, -1, -1, 0, 0]
    assert signs_of(groups).dtype == np.int8


def test_majority_and_excluded_groups():
    groups = pd.Series(["x", "y", "x", None, "z", "z", "z"], dtype="str")
    assert signs_of(groups, majority="y").tolist() == [-1, 1, -1, 0, -1, -1, -1]
    assert signs_of(groups, exclude=["z"]).tolist() == [1, -1, 1, 0, 0, 0, 0]
    assert signs_of(groups.astype("category"), exclude=["x"], majority="y").tolist() == [
        0,
        1,
        0,
        0,
        -1,
        -1,
        -1,
    ]


def test_equally_large_groups_are_taken_by_name_in_any_order_of_rows():
    assert signs_of(["b", "a", "b", "a"]).tolist() == [-1, 1, -1, 1]
    assert signs_of(["a", "b", "a", "b"]).tolist() == [1, -1, 1, -1]


def test_numbers_name_groups():
    assert signs_of(np.array([3.0, 3.0, np.nan, 1.0])).tolist() == [1, 1, 0, -1]
    assert signs_of(np.array([3, 3, 1]), majority=1).tolist() == [-1, -1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"majority": "q"}, "The majority 'q' is not a group; the groups are 'x', 'y', 'z'."),
        ({"exclude": ["q"]}, "The excluded group 'q' is not a group; the groups are 'x', 'y', 'z'."),
        ({"exclude": ["x", "y"]}, "1 group of 3 (groups: 'x', 'y', 'z') is left; a difference needs two."),
        ({"exclude": "x"}, "exclude is the text 'x'; give a list of groups, for example ['x']."),
        (
            {"exclude": ["x"], "majority": "x"},
            "The group 'x' is the majority and excluded; choose one of both.",
        ),
        ({"train": np.array([1]), "majority": "x"}, "No training row is in the majority."),
        ({"train": np.array([], dtype=int)}, "No training row is in the largest group."),
    ],
    ids=["majority", "exclude", "one-left", "text", "both", "no-majority-row", "no-row"],
)
def test_wrong_groups_are_refused(arguments, message):
    with pytest.raises(InputError) as problem:
        signs_of(["x", "y", "z"], **arguments)
    assert str(problem.value) == message


# -- decodability -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 19])
@pytest.mark.parametrize("size", [2, 24, 768])
def test_the_random_direction_is_a_unit_vector_orthogonal_to_the_disease(seed, size):
    w = np.random.default_rng(3).normal(size=size)
    w = w / np.linalg.norm(w)
    u = random_direction(w, seed)
    assert abs(math.fsum(u * w)) < 2e-16
    assert abs(math.fsum(u * u) - 1) < 1e-15
    np.testing.assert_array_equal(u, random_direction(w, seed), strict=True)
    np.testing.assert_allclose(u, random_direction(40 * w, seed), rtol=0, atol=1e-15)


def test_random_directions_are_independent_of_each_other():
    w = np.random.default_rng(3).normal(size=400)
    drawn_ones = np.array([random_direction(w, seed) for seed in range(operators.AVERAGED_DIRECTIONS)])
    cosines = (drawn_ones @ drawn_ones.T)[np.triu_indices(20, 1)]
    assert np.abs(cosines).max() < 0.25  # 5 standard deviations of 1/20
    assert np.abs(cosines.mean()) < 0.015
    first = np.random.default_rng(0).standard_normal(400)  # what others draw with the same seed
    assert abs(drawn_ones[0] @ first) / np.linalg.norm(first) < 0.25


def test_decodability_is_the_dense_formula():
    features, _, groups = drawn()
    signs = signs_of(groups)
    operator = decodability(features, signs, seed=4)
    sigma = features[:1000].std(axis=0).mean()
    assert operator.sigma == pytest.approx(sigma, rel=1e-12)
    u = random_direction(np.random.default_rng(9).normal(size=D), 4)
    for s in STRENGTHS:
        expected = features + s * sigma * np.outer(signs, u)
        np.testing.assert_allclose(operator.apply(features, signs, s), expected, rtol=0, atol=1e-12)
        assert np.abs(expected - features).max() > 0.01


def test_sigma_is_of_the_training_rows_alone_with_constant_columns_counted():
    features, _, groups = drawn()
    features[:, 3] = 5.25
    features[1000:] *= 100
    operator = decodability(features, signs_of(groups))
    assert operator.sigma == pytest.approx(features[:1000].std(axis=0).sum() / D, rel=1e-12)
    flags = np.arange(N) < 1000
    again = decodability_operator(features, flags, signs_of(groups), np.ones(D), seed=0)
    assert again.sigma == operator.sigma


@pytest.mark.parametrize("offset", [0.0, 50.0])
@pytest.mark.parametrize("s", STRENGTHS)
def test_no_fixed_head_changes_within_a_group(s, offset):
    """Equation 4, in float64: 1e-12 is far below one changed pair (about 1e-5)."""
    features, labels, groups = drawn(offset=offset)
    signs = signs_of(groups)
    moved = decodability(features, signs).apply(features, signs, s)
    generator = np.random.default_rng(int(10 * s))
    for _ in range(5):
        theta = generator.normal(size=D)
        before, after = scores(features, theta), scores(moved, theta)
        for group in ("a", "b", "c", ""):
            rows = groups == group
            auroc = [roc_auc_score(labels[rows], values[rows]) for values in (before, after)]
            assert abs(auroc[1] - auroc[0]) <= 1e-12
        rows = groups != ""
        overall = [roc_auc_score(labels[rows], values[rows]) for values in (before, after)]
        assert abs(overall[1] - overall[0]) > 1e-6  # groups did move against each other


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_no_fixed_head_changes_within_a_group_from_a_float32_store(tmp_path, dtype):
    features, labels, groups = drawn(np.float32, offset=0.0)
    np.save(tmp_path / "features.npy", features)
    stored = np.load(tmp_path / "features.npy", mmap_mode="r")
    signs = signs_of(groups)
    theta = np.random.default_rng(2).normal(size=D)
    before = scores(features, theta)
    for s in DECODABILITY_STRENGTHS:
        moved = injected_rows(decodability(stored, signs), stored, signs, None, s, dtype=dtype)
        after = scores(moved, theta)
        for group in ("a", "b", "c", ""):
            rows = groups == group
            change = roc_auc_score(labels[rows], after[rows]) - roc_auc_score(labels[rows], before[rows])
            assert abs(change) <= (1e-12 if dtype is np.float64 else 1e-6)


def test_equal_rows_stay_equal():
    features, _, _ = drawn(n=600)
    twice = np.concatenate([features, features[::-1]])
    signs = np.full(1200, -1, dtype=np.int8)
    for operator, s in ((decodability(twice, signs), 0.25), (entanglement(), 4)):
        changed = operator.apply(twice, signs, s)
        np.testing.assert_array_equal(changed[:600], changed[600:][::-1], strict=True)
        assert not np.array_equal(changed, twice)


# -- entanglement -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, K])
def test_entanglement_is_the_dense_formula_on_the_other_groups_alone(k):
    features, _, groups = drawn()
    signs = signs_of(groups)
    changed = entanglement().apply(features, signs, k)
    u = basis()[:, :k]
    expected = features - np.diag((signs < 0).astype(float)) @ features @ u @ u.T
    np.testing.assert_allclose(changed, expected, rtol=0, atol=1e-12)
    assert digest(changed[signs >= 0]) == digest(features[signs >= 0])
    assert np.abs(changed[signs < 0] @ u).max() < 1e-12
    assert np.abs(features[signs < 0] @ u).min() > 1e-12


@pytest.mark.parametrize(("n_columns", "k"), [(1, 1), (127, 9), (128, 64), (300, 150)])
def test_entanglement_at_odd_widths(n_columns, k):
    generator = np.random.default_rng(k)
    u = np.linalg.qr(generator.normal(size=(n_columns, k)))[0]
    for n_rows in (1, 7, 8, 9, 1030):
        features = generator.normal(size=(n_rows, n_columns))
        signs = generator.choice([-1, 0, 1], n_rows).astype(np.int8)
        signs[0] = -1
        changed = EntanglementOperator(u, (0.0, float(k))).apply(features, signs, k)
        expected = features - (signs < 0)[:, None] * (features @ u @ u.T)
        np.testing.assert_allclose(changed, expected, rtol=0, atol=1e-12)


# -- what must not change -----------------------------------------------------------------------------------


def made(name, features, signs):
    return (decodability(features, signs), 0.5) if name == "decodability" else (entanglement(), 4)


@pytest.mark.parametrize("name", ["decodability", "entanglement"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64], ids=["float16", "float32", "float64"])
def test_rows_without_a_group_keep_every_bit(name, dtype):
    features, _, groups = drawn(dtype)
    features[:, :8] = -0.0  # adding 0 would turn it into +0
    signs = signs_of(groups)
    operator, s = made(name, features, signs)
    kind = np.promote_types(dtype, np.float32)
    found = injected_rows(operator, features, signs, None, s, dtype=kind)
    assert digest(found[signs == 0]) == digest(features[signs == 0].astype(kind))
    assert (signs == 0).sum() > 50
    changed = (found != features).any(axis=1)
    assert changed[signs == -1].all()
    assert changed[signs == 1].all() == (name == "decodability")


@pytest.mark.parametrize("name", ["decodability", "entanglement"])
def test_strength_0_gives_back_what_was_given(name):
    features, _, groups = drawn(np.float16)
    features.setflags(write=False)
    signs = signs_of(groups)
    operator, _ = made(name, features, signs)
    assert operator.apply(features, signs, 0) is features
    assert injected_rows(operator, features, signs, None, 0.0) is features
    rows = np.array([5, 3, 900])
    chosen = injected_rows(operator, features, signs, rows, 0)
    assert chosen.dtype == np.float16
    assert digest(chosen) == digest(features[rows])
    for place, block in injected_blocks(operator, features, signs, 0, size=7):
        assert np.shares_memory(block, features)
        assert block.tobytes() == features[place].tobytes()


@pytest.mark.parametrize("name", ["decodability", "entanglement"])
def test_what_was_given_is_never_written(name, tmp_path):
    features, _, groups = drawn(np.float32)
    np.save(tmp_path / "features.npy", features)
    stored = np.load(tmp_path / "features.npy", mmap_mode="r")
    signs = signs_of(groups)
    signs.setflags(write=False)
    operator, s = made(name, stored, signs)
    found = injected_rows(operator, stored, signs, None, s)
    assert digest(stored) == digest(features)
    assert found.flags.writeable
    own = features.astype(np.float64)
    assert not np.shares_memory(operator.apply(own, signs, s), own)


# -- blocks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["decodability", "entanglement"])
@pytest.mark.parametrize("size", [1, 7, 50_000])
def test_bytes_do_not_depend_on_blocks(name, size, monkeypatch):
    features, _, groups = drawn(np.float32)
    signs = signs_of(groups)
    operator, s = made(name, features, signs)
    whole = digest(operator.apply(features, signs, s))
    monkeypatch.setattr(operators, "_STEP", 64)
    blocks = list(injected_blocks(operator, features, signs, s, size=size))
    assert len(blocks) == math.ceil(N / size)
    assert [place.start for place, _ in blocks] == list(range(0, N, size))
    assert digest(np.concatenate([block for _, block in blocks])) == whole
    assert digest(injected_rows(operator, features, signs, None, s)) == whole


@pytest.mark.parametrize("name", ["decodability", "entanglement"])
def test_a_row_is_the_same_among_any_others(name):
    features, _, groups = drawn(np.float32)
    signs = signs_of(groups)
    operator, s = made(name, features, signs)
    whole = operator.apply(features, signs, s)
    generator = np.random.default_rng(1)
    for count in (1, 3, 64, 700):
        rows = generator.choice(N, count, replace=False)
        assert digest(injected_rows(operator, features, signs, rows, s)) == digest(whole[rows])
    flags = generator.random(N) < 0.3
    assert digest(injected_rows(operator, features, signs, flags, s)) == digest(whole[flags])
    assert injected_rows(operator, features, signs, np.array([], dtype=int), s).shape == (0, D)
    assert list(injected_blocks(operator, features, signs, s, np.array([], dtype=int))) == []


def test_bytes_do_not_depend_on_threads_or_the_process():
    program = (
        "import hashlib, numpy as np\n"
        "from frame.interventions.row_products import remove_projection\n"
        "for threads in (1, 2, 5):\n"
        "    x = np.random.default_rng(0).normal(size=(3000, 70))\n"
        "    u = np.linalg.qr(np.random.default_rng(1).normal(size=(70, 33)))[0]\n"
        "    remove_projection(x, np.arange(0, 3000, 2), u, u.T, share=0.75, threads=threads)\n"
        "    print(hashlib.sha256(x.tobytes()).hexdigest())\n"
    )
    found = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        found += done.stdout.split()
    assert len(found) == 6
    assert len(set(found)) == 1


def test_any_byte_order_and_order_of_storage_is_read():
    features, _, groups = drawn(np.float32)
    signs = signs_of(groups)
    operator, s = made("entanglement", features, signs)
    expected = digest(injected_rows(operator, features, signs, None, s, dtype="float32"))
    for same in (features.astype(">f4"), np.asfortranarray(features), features[::-1][::-1]):
        assert digest(injected_rows(operator, same, signs, None, s, dtype="float32")) == expected


# -- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["decodability", "entanglement"])
@pytest.mark.parametrize("strength", [0, 0.5], ids=["strength-0", "strength-above-0"])
def test_rows_that_are_not_finite_are_counted_over_all_blocks(name, strength):
    features, _, groups = drawn(np.float32)
    signs = signs_of(groups)
    operator, s = made(name, features, signs)
    features[[4, 700, 1400], [1, 2, 2]] = np.nan
    features[1401, 2] = np.inf
    s = s if strength else 0
    message = "features: 4 rows have a missing or infinite value (in 2 columns, counted from 0)"
    with pytest.raises(InputError) as problem:
        list(injected_blocks(operator, features, signs, s, size=100))
    assert str(problem.value).startswith(message)
    with pytest.raises(InputError) as problem:
        injected_rows(operator, features, signs, np.array([1401, 700, 3]), s)
    assert str(problem.value).startswith("features: 2 rows have a missing or infinite value (in column 2")
    injected_rows(operator, features, signs, np.array([3, 2]), s)
    with pytest.raises(InputError) as problem:
        operator.apply(features, signs, s)
    assert str(problem.value).startswith("4 of 1,500 rows have a missing or infinite value; ")


def test_training_rows_that_are_not_finite_are_counted():
    features, _, groups = drawn()
    features[[10, 900, 1200], 0] = np.nan
    with pytest.raises(InputError) as problem:
        decodability(features, signs_of(groups))
    assert str(problem.value).startswith("features: 2 rows have a missing or infinite value (in column 0")


MISTAKES = {
    "below 0": (
        lambda o, e, x, a: o.apply(x, a, -0.5),
        "The strength of the decodability operator is -0.5; give a number from 0.",
    ),
    "not a number": (
        lambda o, e, x, a: o.apply(x, a, float("nan")),
        "The strength of the decodability operator is nan; ",
    ),
    "flag": (lambda o, e, x, a: o.apply(x, a, True), "The strength of the decodability operator is True; "),
    "not whole": (
        lambda o, e, x, a: e.apply(x, a, 1.5),
        "The strength of the entanglement operator is 1.5; give a whole number of directions from 0.",
    ),
    "too many directions": (
        lambda o, e, x, a: e.apply(x, a, 7),
        "The entanglement operator was asked to remove 7 directions, and there are 6.",
    ),
    "other signs": (
        lambda o, e, x, a: o.apply(x, a[1:], 1),
        "There are 1,500 rows of features and signs of shape (1499,); give one sign per row.",
    ),
    "no signs": (lambda o, e, x, a: o.apply(x, 2 * a, 1), "Signs are -1, 0 and 1; make them with "),
    "other width": (
        lambda o, e, x, a: o.apply(x[:, 1:], a, 1),
        "The rows have shape (1500, 23); the operator was made for 24 columns.",
    ),
    "row too high": (
        lambda o, e, x, a: injected_rows(o, x, a, np.array([N]), 1),
        "Row numbers reach from 1,500 to 1,500; there are 1,500.",
    ),
    "row below 0": (
        lambda o, e, x, a: injected_rows(o, x, a, np.array([-1]), 1),
        "Row numbers reach from -1 to -1; there are 1,500.",
    ),
    "few flags": (
        lambda o, e, x, a: injected_rows(o, x, a, np.array([True]), 1),
        "Rows are bool of shape (1,); give row numbers, or 1,500 flags (bool).",
    ),
    "narrower": (
        lambda o, e, x, a: injected_rows(o, x, a, None, 1, dtype="float32"),
        "Injected rows of float64 features cannot be float32, ",
    ),
    "half": (
        lambda o, e, x, a: injected_rows(o, x.astype("f2"), a, None, 0, dtype="float16"),
        "Injected rows of float16 features cannot be float16, ",
    ),
    "no block": (
        lambda o, e, x, a: list(injected_blocks(o, x, a, 1, size=0)),
        "A block of 0 rows was asked for; give a whole number from 1.",
    ),
    "zero direction": (
        lambda o, e, x, a: random_direction(np.zeros(3), 0),
        "The disease direction has shape (3,) and length 0; ",
    ),
    "one dimension": (
        lambda o, e, x, a: random_direction(np.ones(1), 0),
        "In one dimension nothing is orthogonal ",
    ),
    "seed": (
        lambda o, e, x, a: random_direction(np.ones(3), -1),
        "The seed of a random direction is -1; ",
    ),
    "other direction": (
        lambda o, e, x, a: decodability_operator(x, None, a, np.ones(5)),
        "The features have 24 columns and the disease direction the shape (5,); ",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_refused_in_a_sentence(mistake):
    call, message = MISTAKES[mistake]
    features, _, groups = drawn()
    signs = signs_of(groups)
    with pytest.raises(InputError) as problem:
        call(decodability(features, signs), entanglement(), features, signs)
    assert str(problem.value).startswith(message)


def test_further_strengths_may_be_given():
    features, _, groups = drawn()
    signs = signs_of(groups)
    operator = decodability_operator(features, None, signs, np.ones(D), strengths=(0.05, 0.25))
    assert operator.strengths == (0.0, 0.05, 0.25)
    turned = replace(operator, direction=random_direction(np.ones(D), 3), seed=3)
    again = decodability_operator(features, None, signs, np.ones(D), seed=3)
    assert digest(turned.apply(features, signs, 0.5)) == digest(again.apply(features, signs, 0.5))

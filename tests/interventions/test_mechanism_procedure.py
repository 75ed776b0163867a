"""The whole procedure on small drawn cohorts."""

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from mechanism_worlds import QUICK, asked, cohort, planted_verdict, spread_signal

import frame
from frame.heads.disease_heads import fit_head
from frame.interventions.decision import CONSISTENT, MOVES_ENTANGLEMENT, UNDETERMINED, VERDICTS
from frame.interventions.disease_subspace import disease_subspace
from frame.interventions.injected_features import InjectedFeatures, injected_in_memory
from frame.interventions.operators import decodability_operator, entanglement_operator
from frame.interventions.procedure import mechanism
from frame.interventions.strength_tables import COLUMNS, OPERATORS, smallest_p


def values(verdict, operator, quantity, column="value"):
    """One quantity by strength."""
    table = verdict.strengths
    chosen = (table["method"] == operator) & (table["quantity"] == quantity)
    return table[chosen].set_index("strength")[column]


# -- the gate -----------------------------------------------------------------------------------------


def test_a_fair_world_stops_at_the_gate():
    steps = []
    found = asked(cohort(number=1), progress=lambda done, total: steps.append((done, total)))
    assert found.verdict == CONSISTENT
    assert found.step_one.p > 0.05
    assert steps == []
    assert len(found.strengths) == len(found.changes) == len(found.trend) == 0
    assert found.precondition is None
    assert "step two was not run" in found.sentences[-1]
    assert "not evidence of fairness" in " ".join(found.sentences)
    assert any("Not exceeding is not fairness" in caveat for caveat in found.caveats)
    row = found.to_frame().iloc[0]
    assert row["verdict"] == CONSISTENT
    assert pd.isna(row["entanglement_moves"])


def test_scores_of_its_own_decide_the_gate():
    found = cohort(2, 0.6)
    rng = np.random.default_rng(0)
    fair = 1 / (1 + np.exp(-(found.labels * 1.5 + rng.normal(size=len(found.labels)) - 1)))
    verdict = asked(found, scores=fair)
    assert verdict.verdict == CONSISTENT
    assert verdict.step_one.score == "the scores given"
    unfair = np.where(found.groups == "A", found.labels * 2.0, 0.0) + rng.normal(size=len(found.labels))
    verdict = asked(found, scores=unfair, whitened=False)
    assert verdict.verdict in VERDICTS[1:]
    assert any("Step one audits the scores that were given" in caveat for caveat in verdict.caveats)
    assert verdict.decided["entanglement"].before != verdict.step_one.observed


SAID = "not shown to tell positives from negatives better than chance: AUROC 0."


def test_scores_that_learnt_nothing_are_told():
    found = cohort(2, 0.6)
    rng = np.random.default_rng(5)
    for scores in (rng.random(len(found.labels)), rng.random(len(found.labels)) - 0.2 * found.labels):
        told = asked(found, scores=np.clip(scores, 0, 1), whitened=False).notes
        assert sum(SAID in note for note in told) == 1
    # By the head of step two, where no scores are given.
    shuffled = SimpleNamespace(**vars(found) | {"labels": rng.permutation(found.labels)})
    assert any(SAID in note for note in asked(shuffled, whitened=False).notes)


def test_scores_that_beat_chance_by_a_little_are_not_blamed():
    from scipy.stats import mannwhitneyu

    found = cohort(2, 0.6)
    noise = np.random.default_rng(6).random(len(found.labels))
    test = found.split == "test"
    positive = test & (found.labels == 1)
    told = {}
    for lift in np.linspace(0.0, 0.1, 21):
        scores = (noise + lift * found.labels) / 1.1
        p = mannwhitneyu(scores[positive], scores[test & (found.labels == 0)], alternative="greater").pvalue
        if any(low < p < high for low, high in ((0.03, 0.05), (0.05, 0.09))):
            notes = asked(found, scores=scores, whitened=False, alpha=1e-9).notes
            told[p] = any(SAID in note for note in notes)
    assert set(told.values()) == {True, False}
    assert all(said == (p > 0.05) for p, said in told.items())


def test_one_evaluable_group_is_undetermined():
    found = cohort(2, 0.6)
    verdict = asked(found, min_size=600)
    assert verdict.verdict == UNDETERMINED
    assert verdict.reasons[0].startswith("step one gives no exceedance: one estimable group")
    assert verdict.sentences[-1].endswith("Step two was not run.")
    assert len(verdict.strengths) == 0


# -- planted worlds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_groups", "expected"),
    [(2, MOVES_ENTANGLEMENT), (3, UNDETERMINED), (5, UNDETERMINED)],
    ids=["2", "3", "5"],
)
def test_a_planted_difference_with_any_number_of_groups(n_groups, expected):
    found = planted_verdict(n_groups)
    assert found.step_one.p < 0.05
    assert found.verdict == expected
    assert found.decided["entanglement"].moves is (expected == MOVES_ENTANGLEMENT)
    assert found.decided["decodability"].moves is False
    assert found.precondition.holds
    # Eq. 4: within a group the operator moves all scores alike, and only the refit can reorder them.
    assert abs(found.decided["decodability"].change) < 0.02
    # Removal lowers all groups but one, so the range over many groups need not grow by much.
    assert found.decided["entanglement"].change > (0.05 if n_groups == 2 else 0.0)
    assert list(found.decided) == list(OPERATORS)
    assert found.levels == tuple("ABCDE"[:n_groups])
    assert found.majority == "A"
    assert set(found.splits["group"]) == set(found.levels)


def test_two_groups_respond_to_entanglement():
    found = planted_verdict(2)
    assert found.verdict == MOVES_ENTANGLEMENT
    assert found.sentences[0] == (
        "The difference in AUROC between groups of group responds to entanglement, not to decodability."
    )
    assert "It rises where 4 disease directions are taken out of every group but 'A'" in found.sentences[1]
    assert any('"responds to", not "is caused by"' in caveat for caveat in found.caveats)
    assert any("almost by construction" in caveat for caveat in found.caveats)
    assert any("not an estimate of the true difference" in caveat for caveat in found.caveats)
    assert any("The achievable difference was not computed" in caveat for caveat in found.caveats)
    assert found.verdict in repr(found).lower()


def test_signal_that_stays_outside_the_removed_directions_is_undetermined():
    found = asked(spread_signal(), whitened=False)
    assert found.step_one.p < 0.001
    assert found.verdict == UNDETERMINED
    assert not found.precondition.holds
    assert abs(found.precondition.change.change) <= 0.010
    assert "predictive signal remains outside the removed directions" in found.reasons[0]
    assert found.reasons[0] in found.sentences[0].replace("The entanglement", "the entanglement")
    assert any("not a finding that neither cause plays a part" in caveat for caveat in found.caveats)


# -- what the tables say ------------------------------------------------------------------------------


def test_the_table_of_strengths_is_whole():
    found = planted_verdict(2)
    table = found.strengths
    assert tuple(table.columns) == COLUMNS
    assert set(table["quantity"]) == {
        *("difference", "disease_auroc", "linear_decodability", "nonlinear_decodability"),
        *("overlap", "erasure_cost", "subgroup_value"),
    }
    assert set(table["status"]) == {"ok", "not run"}
    assert (table.loc[table["status"] == "not run", "quantity"] == "nonlinear_decodability").all()
    test = cohort(2, 0.6).split == "test"
    assert (table.loc[table["quantity"] == "difference", "n_images"] == test.sum()).all()
    patients = len(np.unique(cohort(2, 0.6).patients[test]))
    assert (table.loc[table["quantity"] == "disease_auroc", "n_patients"] == patients).all()
    # Strength 0 is the same thing under every operator.
    zero = table[table["strength"] == 0].drop(columns="method")
    firsts = [part.reset_index(drop=True) for _, part in zero.groupby(table["method"], sort=False)]
    for other in firsts[1:]:
        pd.testing.assert_frame_equal(firsts[0], other)


def test_values_of_groups_give_the_difference():
    found = planted_verdict(3)
    for operator in OPERATORS:
        if operator == "decodability":  # a mean over directions, so a difference of means need not agree
            continue
        groups = found.strengths[
            (found.strengths["method"] == operator) & (found.strengths["quantity"] == "subgroup_value")
        ]
        by_strength = groups.groupby("strength")["value"]
        difference = values(found, operator, "difference")
        np.testing.assert_allclose(by_strength.max() - by_strength.min(), difference, atol=1e-12)


def test_changes_are_last_minus_first():
    found = planted_verdict(2)
    for row in found.changes.to_dict("records"):
        curve = values(found, row["operator"], row["quantity"])
        assert row["before"] == pytest.approx(curve.iloc[0], abs=1e-12)
        assert row["change"] == pytest.approx(curve.iloc[-1] - curve.iloc[0], abs=1e-12)
        assert row["lo"] < row["change"] < row["hi"]
    moved = found.changes.set_index(["operator", "quantity"])["moves"]
    assert moved["entanglement", "difference"]
    assert not moved["decodability", "difference"]
    assert pd.isna(moved["entanglement", "disease_auroc"])
    row = found.to_frame().iloc[0]
    assert row["entanglement_change"] == found.decided["entanglement"].change
    assert row["precondition_holds"]


def test_decodability_rises_and_is_averaged_over_directions():
    found = planted_verdict(2)
    read = values(found, "decodability", "linear_decodability")
    assert read.iloc[-1] > read.iloc[0] + 0.01
    own = found.directions[found.directions["strength"] == 1.0]
    assert own["direction"].tolist() == [0, 1]
    assert own["difference"].nunique() == 2
    assert own["difference"].mean() == pytest.approx(values(found, "decodability", "difference")[1.0])


def test_the_papers_trend_test_stands_beside():
    found = planted_verdict(2)
    trend = found.trend.set_index("operator")
    assert trend.loc["entanglement", "n_strengths"] == 3
    assert trend.loc["entanglement", "smallest_p"] == pytest.approx(2 / 6)
    assert trend["p"].dropna().min() > 0.05
    assert smallest_p(4) == pytest.approx(1 / 12)
    assert smallest_p(6) == pytest.approx(1 / 360)
    assert smallest_p(8) == pytest.approx(1 / 1001)  # 1,000 orders are drawn


def test_strengths_beyond_half_of_the_dimensions_are_not_run():
    found = asked(cohort(2, 0.6), entanglement_strengths=(0, 1, 8, 9, 64), whitened=False, geometry=False)
    status = values(found, "entanglement", "difference", "status")
    assert status.to_dict() == {0.0: "ok", 1.0: "ok", 8.0: "ok", 9.0: "not run", 64.0: "not run"}
    reason = values(found, "entanglement", "difference", "reason")[64.0]
    assert reason == "64 directions are more than half of the 16 dimensions"
    assert found.decided["entanglement"].largest == 8.0
    assert any("were not computed" in caveat for caveat in found.caveats)


def constant_columns(found, n_columns):
    """The same cohort, its last columns constant."""
    features = found.features.copy()
    features[:, -n_columns:] = 1.0
    return SimpleNamespace(**vars(found) | {"features": features})


def test_a_strength_that_is_not_allowed_never_decides():
    # Half of the 12 columns that vary are 6 directions: they are fitted, and no strength that was asked for.
    found = asked(
        constant_columns(cohort(2, 0.6), 4),
        entanglement_strengths=(0, 1, 8),
        whitened=False,
        geometry=False,
    )
    status = values(found, "entanglement", "difference", "status")
    assert status.to_dict() == {0.0: "ok", 1.0: "ok", 8.0: "not run"}
    reason = values(found, "entanglement", "difference", "reason")[8.0]
    assert reason == "8 directions are more than half of the 12 columns that vary"
    assert found.decided["entanglement"].largest == found.precondition.change.largest == 1.0
    assert not any(note.startswith("Disease directions") for note in found.notes)


def test_all_directions_there_are_stand_in_for_more(monkeypatch):
    def ends(features, labels, k):
        whole = disease_subspace(features, labels, k)
        assert whole.reached > 3
        return replace(
            whole, basis=whole.first(3), reached=3, reason="no disease signal is left after 3 directions"
        )

    monkeypatch.setattr("frame.interventions.operator_grids.disease_subspace", ends)
    found = asked(cohort(2, 0.6), entanglement_strengths=(0, 1, 8), whitened=False, geometry=False)
    status = values(found, "entanglement", "difference", "status")
    assert status.to_dict() == {0.0: "ok", 1.0: "ok", 3.0: "ok", 8.0: "not run"}
    assert found.decided["entanglement"].largest == 3.0
    assert any(note.startswith("Disease directions: 3 of 8 were found") for note in found.notes)
    assert found.trend.set_index("operator").loc["entanglement", "n_strengths"] == 2


def test_the_geometry_draws_as_many_rows_as_the_head(monkeypatch):
    from frame.interventions import geometry

    caps, whole = [], geometry.geometry_of

    def counted(train, test, levels, **settings):
        caps.append((len(train), settings["cap"]))
        return whole(train, test, levels, **settings)

    monkeypatch.setattr(geometry, "geometry_of", counted)
    asked(cohort(2, 0.6), cap=900, whitened=False)
    assert set(caps) == {(900, 900)}


def test_saturation_that_was_not_tested_is_said():
    settings = {"decodability_strengths": (0, 4.0, 8.0), "entanglement_strengths": (0, 1), "whitened": False}
    found = asked(cohort(2, 0.6), geometry=False, **settings)
    said = (
        "Whether decodability saturates before strength 4 was not tested, as the geometry was left out; no "
        "smaller strength was added."
    )
    assert said in found.notes
    assert not any("was not tested" in note for note in planted_verdict(2).notes)


def test_smaller_strengths_are_added_where_decodability_saturates():
    found = asked(cohort(2, 0.6), decodability_strengths=(0, 4.0, 8.0), whitened=False)
    strengths = values(found, "decodability", "difference").index.tolist()
    assert strengths[0] == 0
    assert strengths[-2:] == [4.0, 8.0]
    assert strengths[1:-2]
    assert all(b == 2 * a for a, b in pairwise(strengths[1:]))
    assert any(note.startswith("Decodability saturates") for note in found.notes)
    assert found.decided["decodability"].largest == 8.0
    trend = found.trend.set_index("operator")
    assert trend.loc["decodability", "n_strengths"] == 3


# -- groups -------------------------------------------------------------------------------------------


def test_excluded_groups_are_dropped_and_counted():
    found = cohort(3, 0.6)
    verdict = asked(found, exclude=["B"], whitened=False)
    kept = found.groups != "B"
    alone = mechanism(
        found.features[kept],
        found.labels[kept],
        found.groups[kept],
        found.split[kept],
        patients=found.patients[kept],
        **QUICK | {"whitened": False},
    )
    assert verdict.levels == ("A", "C")
    pd.testing.assert_frame_equal(verdict.strengths, alone.strengths)
    n_dropped = int((~kept).sum())
    assert verdict.notes[0] == f"Excluded on request: {n_dropped:,} images of 'group' ('B' {n_dropped:,})."
    assert any("says nothing about the excluded groups ('B')" in caveat for caveat in verdict.caveats)


def test_images_without_a_group_fit_the_head_and_are_in_no_subgroup():
    found = cohort(2, 0.6)
    groups = pd.Series(found.groups, name="race").mask(np.random.default_rng(0).random(len(found)) < 0.2)
    verdict = mechanism(found.features, found.labels, groups, found.split, patients=found.patients, **QUICK)
    missing = verdict.splits[verdict.splits["group"] == "(missing)"].set_index("split")
    assert (missing["sign"] == 0).all()
    assert missing.loc["train", "n_images"] == int((groups.isna() & (found.split == "train")).sum())
    assert any(note.startswith("Train: 'race' is missing for") for note in verdict.notes)
    table = verdict.strengths
    overall = table.loc[table["quantity"] == "disease_auroc", "n_images"].unique().tolist()
    compared = table.loc[table["quantity"] == "difference", "n_images"].unique().tolist()
    assert overall == [int((found.split == "test").sum())]
    assert compared == [int((groups.notna() & (found.split == "test")).sum())]


def test_names_of_groups_and_their_order_do_not_matter():
    found = planted_verdict(2)
    drawn = cohort(2, 0.6)
    renamed = np.where(drawn.groups == "A", "zebra", "ant")
    other = mechanism(drawn.features, drawn.labels, renamed, drawn.split, patients=drawn.patients, **QUICK)
    assert other.majority == "zebra"
    for operator in OPERATORS:
        for quantity in ("difference", "disease_auroc", "linear_decodability"):
            np.testing.assert_allclose(
                values(found, operator, quantity), values(other, operator, quantity), atol=1e-6
            )
    assert other.verdict == found.verdict


def test_another_majority_changes_who_is_treated():
    verdict = asked(cohort(2, 0.6), majority="B", whitened=False)
    assert verdict.majority == "B"
    signs = verdict.splits[verdict.splits["split"] == "train"].set_index("group")["sign"]
    assert signs.to_dict() == {"A": -1, "B": 1}
    assert verdict.decided["entanglement"].change != planted_verdict(2).decided["entanglement"].change


def test_labels_of_any_kind():
    drawn = cohort(2, 0.6)
    for labels in (drawn.labels.astype(int), drawn.labels.astype(object), drawn.labels.astype(float)):
        verdict = mechanism(
            drawn.features,
            labels,
            drawn.groups,
            drawn.split,
            patients=drawn.patients,
            **QUICK | {"whitened": False, "entanglement_strengths": (0, 1), "geometry": False},
        )
        assert verdict.step_one.p == planted_verdict(2).step_one.p


# -- everything at once -------------------------------------------------------------------------------


def test_other_measures_and_methods():
    found = asked(
        cohort(2, 0.6),
        measure="tpr",
        methods=("reweigh", "threshold_shift"),
        nonlinear=True,
        entanglement_strengths=(0, 4),
        decodability_strengths=(0, 1.0),
        whitened=False,
    )
    assert found.measure == "tpr"
    assert found.step_one.measure == "tpr"
    reached = values(found, "entanglement", "achievable_difference")
    difference = values(found, "entanglement", "difference")
    by = values(found, "entanglement", "achievable_difference", "reason")
    assert by.to_dict() == {0.0: "by unmitigated", 4.0: "by reweigh"}
    assert reached[0.0] == difference[0.0]
    assert reached[4.0] < difference[4.0] - 0.005
    drawn = cohort(2, 0.6)
    compared = frame.compare_methods(
        *(drawn.features, drawn.labels, drawn.groups, drawn.split, drawn.patients),
        methods=("reweigh", "threshold_shift"),
        measures="tpr",
        resamples=100,
    ).to_frame()
    after = compared.set_index("method")["after"]
    held = values(found, "entanglement", "achievable_difference_validation")
    assert difference[0.0] == pytest.approx(after["unmitigated"], abs=1e-9)
    assert held[0.0] == pytest.approx(after["threshold_shift"], abs=1e-9)
    assert not values(found, "entanglement", "nonlinear_decodability").isna().any()
    assert not any("was not computed" in caveat for caveat in found.caveats)


def test_a_second_run_gives_the_same_numbers():
    again = asked(cohort(2, 0.6), threads=1)
    pd.testing.assert_frame_equal(again.strengths, planted_verdict(2).strengths)
    pd.testing.assert_frame_equal(again.changes, planted_verdict(2).changes)


def test_strength_zero_is_the_audit_and_the_bootstrap_of_the_head():
    drawn = cohort(3, 0.6)
    found = planted_verdict(3)
    train, test = drawn.split == "train", drawn.split == "test"
    logits = fit_head(drawn.features[train], drawn.labels[train].astype(np.int8)).logit(drawn.features[test])
    given = (logits, drawn.labels[test], drawn.groups[test], drawn.patients[test])
    audited = frame.audit(*given, scale="logit", resamples=0)
    assert found.step_one.p == pytest.approx(audited.p, rel=1e-6)
    drawn_again = frame.bootstrap(*given, measures="auroc", scale="logit", resamples=100)
    expected = drawn_again.difference("score", "auroc", "group")
    table = found.strengths[
        (found.strengths["strength"] == 0) & (found.strengths["quantity"] == "difference")
    ]
    for name in ("value", "lo", "hi", "boot_mean", "sd"):
        np.testing.assert_allclose(table[name], expected[name], atol=1e-9)
    overall = values(found, "entanglement", "disease_auroc", "hi")[0.0]
    assert overall == pytest.approx(drawn_again.to_frame().iloc[0]["hi"], abs=1e-9)


def test_rows_are_injected_as_they_are_read():
    drawn = cohort(3, 0.6)
    signs = np.where(drawn.groups == "A", 1, np.where(drawn.groups == "B", -1, 0)).astype(np.int8)
    train = drawn.features[drawn.split == "train"]
    subspace = disease_subspace(train, drawn.labels[drawn.split == "train"].astype(np.int8), 4)
    numbers = np.flatnonzero(drawn.split == "test")
    for operator, strength in (
        (decodability_operator(drawn.features, None, signs, subspace.first(1)[:, 0]), 0.5),
        (entanglement_operator(subspace, [0, 4]), 4.0),
        (None, 0.0),
    ):
        lazy = InjectedFeatures(drawn.features, signs, numbers, operator, strength)
        whole = injected_in_memory(drawn.features, signs, numbers, operator, strength)
        assert lazy.shape == whole.shape
        assert lazy.dtype == whole.dtype == np.float32
        np.testing.assert_array_equal(lazy[:], whole)
        np.testing.assert_array_equal(np.asarray(lazy), whole)
        np.testing.assert_array_equal(
            np.concatenate([lazy[i : i + 7] for i in range(0, len(lazy), 7)]), whole
        )
        chosen = np.arange(len(lazy)) % 3 == 0
        np.testing.assert_array_equal(lazy[chosen][:], whole[chosen])
        np.testing.assert_array_equal(lazy[np.array([5, 2])][:], whole[[5, 2]])
        untouched = signs[numbers] == 0
        np.testing.assert_array_equal(whole[untouched], drawn.features[numbers][untouched])


@pytest.mark.parametrize("strength", [0.0, 0.5], ids=["as they are", "injected"])
def test_a_mapped_file_is_given_back_block_by_block(monkeypatch, strength):
    drawn = cohort(2, 0.6)
    signs = np.where(drawn.groups == "A", 1, -1).astype(np.int8)
    operator = decodability_operator(drawn.features, None, signs, np.eye(drawn.features.shape[1])[0])
    numbers = np.flatnonzero(drawn.split == "train")
    expected = injected_in_memory(drawn.features, signs, numbers, operator, strength)
    given_back = []
    monkeypatch.setattr("frame.interventions.injected_features._BLOCK", 100)
    monkeypatch.setattr("frame.interventions.injected_features.release_pages", given_back.append)
    found = injected_in_memory(drawn.features, signs, numbers, operator, strength)
    np.testing.assert_array_equal(found, expected)
    assert len(given_back) == math.ceil(len(numbers) / 100) > 1


def test_mapped_half_precision_features(tmp_path, monkeypatch):
    monkeypatch.setattr("frame.interventions.injected_features._LARGE", 0)
    drawn = cohort(2, 0.6)
    path = tmp_path / "features.npy"
    np.save(path, drawn.features.astype(np.float16))
    before = path.read_bytes()
    verdict = mechanism(
        np.load(path, mmap_mode="r"),
        drawn.labels,
        drawn.groups,
        drawn.split,
        patients=drawn.patients,
        **QUICK | {"whitened": False},
    )
    assert path.read_bytes() == before
    np.testing.assert_allclose(
        values(verdict, "entanglement", "difference"),
        values(planted_verdict(2), "entanglement", "difference"),
        atol=0.01,
    )
    assert math.isfinite(verdict.step_one.p)

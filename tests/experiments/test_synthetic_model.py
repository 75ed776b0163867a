"""The collinearity model as an experiment: its units, the printed numbers, and what follows from them."""

import importlib.util
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from synthetic_rows import EFFECTS, all_unit_rows, unit_rows, unmitigated

from frame.errors import InputError
from frame.experiments import synthetic_model
from frame.experiments.contract import check_tidy, named_units, unit_artefact
from frame.experiments.results import write_result
from frame.experiments.synthetic_model import (
    ALL_SEEDS,
    CLIPPED,
    GEOMETRY,
    RECIPE,
    SETS,
    chosen_methods,
    collect,
    run_unit,
    units,
)
from frame.experiments.synthetic_recipe import (
    one_thread,
    recipe_decodability,
    recipe_scores,
    with_clipped_ranks,
)
from frame.measures.values import measure_value
from frame.mitigation.achievable import UNMITIGATED, achievable_difference, candidates_of
from frame.mitigation.contract import Outcome, Rows, Scores, Unit, not_fitted
from frame.mitigation.registry import METHODS, NINE
from frame.synthetic import COLLINEARITIES, SEEDS, draw_sample
from frame.tables import load_table
from frame.workspace.layout import Workspace
from frame.workspace.profiles import load_profile, profile_names


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path, load_profile("tables"))


# ---- units


@pytest.mark.parametrize("profile", sorted(profile_names()))
def test_every_profile_has_the_same_units_and_none_reads_anything(profile, tmp_path):
    found = named_units("synthetic_model", Workspace(tmp_path, load_profile(profile)))
    assert len(found) == len(COLLINEARITIES) * len(SEEDS) == 30
    assert all(unit.inputs == () for unit in found.values())
    assert found["collinearity-025-seed-3"].settings == {"collinearity": 0.25, "seed": 3}


def test_the_modules_of_the_methods_are_named_so_that_a_change_of_one_is_seen():
    assert set(synthetic_model.MODULES) == {METHODS[name].module for name in NINE}
    assert all(importlib.util.find_spec(module) for module in synthetic_model.MODULES)


@pytest.fixture(scope="module")
def one_unit(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("unit"), load_profile("tables"))
    chosen = {unit.name: unit for unit in units(workspace)}["collinearity-100-seed-1"]
    return run_unit(workspace, chosen)


def test_a_unit_has_every_row(one_unit):
    check_tidy(one_unit)
    assert (one_unit["strength"] == 1.0).all()
    assert set(one_unit["site"]) == {"seed 1"}
    assert (one_unit["status"] == "ok").all()
    methods = {UNMITIGATED, *NINE, CLIPPED}
    for split in ("validation", "test"):
        for quantity in ("auroc", "difference"):
            own = one_unit[(one_unit["split"] == split) & (one_unit["quantity"] == quantity)]
            own = own[(own["subgroup"] == "") & ~own["method"].str.startswith(RECIPE)]
            assert sorted(own["method"]) == sorted(methods)
    assert set(GEOMETRY) <= set(one_unit["quantity"])
    keys = ["split", "subgroup", "method", "quantity"]
    assert not one_unit.duplicated(keys).any()


def test_a_difference_is_that_between_the_groups(one_unit):
    head = one_unit[(one_unit["method"] == UNMITIGATED) & (one_unit["split"] == "test")]
    groups = head[head["subgroup"] != ""].set_index("subgroup")
    difference = head[head["quantity"] == "difference"]["value"].item()
    assert difference == pytest.approx(groups["value"].max() - groups["value"].min(), abs=1e-12)
    assert groups["n_images"].sum() == head[head["quantity"] == "difference"]["n_images"].item() == 1000


def test_what_a_unit_shows_at_the_highest_collinearity(one_unit):
    rows = one_unit[(one_unit["subgroup"] == "") & (one_unit["split"] == "test")]
    values = rows.set_index(["method", "quantity"])["value"]
    observed = values[(UNMITIGATED, "difference")]
    # A shift changes no ranking within a group; erasing the group costs the disease here.
    assert values[("threshold_shift", "difference")] == pytest.approx(observed, abs=1e-12)
    assert values[("platt", "difference")] == pytest.approx(observed, abs=1e-12)
    assert values[("", "erasure_cost")] > 0.05
    assert 0.1 < values[(UNMITIGATED, "difference_population")] < 0.179
    # The early stop moves a fit a little, and no more.
    assert values[(f"{RECIPE}_{UNMITIGATED}", "difference")] == pytest.approx(observed, abs=0.002)
    reference = rows[rows["quantity"] == "reference"].iloc[0]
    assert reference["lo"] < reference["value"] < reference["hi"] < observed


def test_a_method_that_is_not_fitted_is_a_row_with_its_reason(workspace, monkeypatch):
    from frame.mitigation import registry

    kept = registry.fit_method

    def refuse(name, unit):
        if name in ("threshold_shift", "leace"):
            return not_fitted("no luck")
        return kept(name, unit) if name == "reweigh" else not_fitted("left out of this test")

    monkeypatch.setattr(registry, "fit_method", refuse)
    monkeypatch.setattr(synthetic_model, "_geometry", lambda unit: [])
    rows = run_unit(workspace, units(workspace)[0])
    silent = rows[rows["status"] != "ok"]
    assert {CLIPPED, "threshold_shift", "leace"} <= set(silent["method"])
    assert set(silent.loc[silent["method"] == CLIPPED, "reason"]) == {"not fitted: no luck"}
    assert silent["value"].isna().all()


def test_one_score_for_all_is_no_difference_of_zero(workspace, monkeypatch):
    """Constant scores have no difference and no AUROC, and are not what is achievable."""
    from frame.mitigation import registry

    def flat(name, unit):
        start = unit.unmitigated
        if name != "leace":
            return Outcome(*start)
        return Outcome(*(Scores(np.full(len(s.ranks), 0.1), np.full(len(s.ranks), 0.5)) for s in start))

    monkeypatch.setattr(registry, "fit_method", flat)
    monkeypatch.setattr(synthetic_model, "_geometry", lambda unit: [])
    rows = run_unit(workspace, units(workspace)[0])
    silent = rows[rows["status"] != "ok"]
    assert set(silent["method"]) == {"leace"}
    assert len(silent) == 4
    assert silent["value"].isna().all()
    assert silent["reason"].str.fullmatch(r"degenerate: all [\d,]+ validation images have one score").all()
    chosen = synthetic_model.chosen_methods(rows)
    assert (chosen.loc[chosen["methods"].isin(["nine", "unclipped"]), "chosen"] != "leace").all()


def test_a_missing_package_is_one_sentence(workspace, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "fairlearn" else found(name, *more)
    )
    with pytest.raises(InputError) as caught:
        run_unit(workspace, units(workspace)[0])
    assert str(caught.value) == (
        "The collinearity model needs fairlearn; install it with: pip install 'frame-audit[mitigation]'."
    )


# ---- the printed numbers, in the paper's own recipe


def unit_of(sample):
    """The draw without a head, which the recipe does not read."""
    parts = {
        name: Rows(
            *(values[sample.split == name] for values in (sample.features, sample.labels, sample.groups))
        )
        for name in ("train", "validation", "test")
    }
    return Unit(**parts, levels=("a = 0", "a = 1"), head=None, unmitigated=(None, None))


def on(unit, split, ranks):
    part = getattr(unit, split)
    groups = [measure_value("auroc", ranks[part.groups == g], part.labels[part.groups == g]) for g in (0, 1)]
    return {
        f"{split}_auroc": measure_value("auroc", ranks, part.labels),
        f"{split}_difference": abs(groups[0] - groups[1]),
    }


@pytest.fixture(scope="module")
def recipe():
    """For every draw: the observed difference, the achievable one, and the linear decodability."""
    found = []
    for level, seed in product(COLLINEARITIES, SEEDS):
        unit = unit_of(draw_sample(level, seed))
        with one_thread():
            scores, decodability = recipe_scores(unit), recipe_decodability(unit)
        candidates = candidates_of(
            [{"method": name, **on(unit, "test", own[1].ranks)} for name, own in scores.items()]
        )
        chosen = achievable_difference(candidates)
        found.append((level, chosen.unmitigated_difference, chosen.difference, decodability))
    return pd.DataFrame(found, columns=["level", "observed", "achievable", "decodability"])


def test_the_printed_numbers_come_out(recipe):
    printed = load_table("paper_numbers").set_index("id")["value"]
    means = recipe.groupby("level").mean()
    assert f"{means.loc[0.0, 'observed']:.3f}" == printed["syn_diff_from"] == "0.010"
    assert f"{means.loc[1.0, 'observed']:.3f}" == printed["syn_diff_to"] == "0.121"
    correlations = recipe.corr(method="spearman")["level"]
    assert f"{correlations['decodability']:.3f}" == printed["syn_rho_linear_decodability"] == "-0.495"
    assert f"{correlations['achievable']:.3f}" == printed["syn_achievable_rho"] == "0.732"
    shares = 100 * means["achievable"] / means["observed"]
    names = (
        "syn_share_0",
        "syn_share_0_10",
        "syn_share_0_25",
        "syn_share_0_50",
        "syn_share_0_75",
        "syn_share_1_00",
    )
    assert [f"{share:.0f}" for share in shares] == [printed[name] for name in names]


def test_the_clipping_is_what_ties_scores():
    unit = unit_of(draw_sample(0.0, 0))
    scores = recipe_scores(unit)
    plain, clipped = (
        on(unit, "test", scores[UNMITIGATED][1].ranks),
        on(unit, "test", scores[CLIPPED][1].ranks),
    )
    assert clipped["test_difference"] != pytest.approx(plain["test_difference"], abs=1e-6)
    assert len(np.unique(scores[CLIPPED][1].ranks)) < len(np.unique(scores[UNMITIGATED][1].ranks))
    shifted = Scores(np.array([-0.5, 0.2, 1.5]), np.array([0.0, 0.2, 1.0]))
    for own in with_clipped_ranks((shifted, shifted)):
        assert own.ranks.tolist() == [0.0, 0.2, 1.0]


def test_a_recipe_without_positives_to_shift_by_is_refused():
    unit = unit_of(draw_sample(0.0, 0))
    known = replace(
        unit, validation=replace(unit.validation, groups=np.full_like(unit.validation.groups, -1))
    )
    with pytest.raises(InputError, match="The threshold shift of the recipe was not fitted"):
        recipe_scores(known)


# ---- all units together


def collected(workspace, **options):
    folder = workspace.path(unit_artefact("synthetic_model", "x")).parent
    folder.mkdir(parents=True)
    by_settings = {tuple(unit.settings.values()): unit for unit in units(workspace)}
    for key, rows in all_unit_rows(**options).items():
        write_result(rows, workspace.path(unit_artefact("synthetic_model", by_settings[key].name)))
    return collect(workspace)


def of(rows, **wanted):
    kept = rows
    for column, value in wanted.items():
        kept = kept[kept[column] == value]
    return kept


def test_collected_rows(workspace):
    rows = collected(workspace)
    check_tidy(rows)
    keys = ["site", "split", "subgroup", "method", "strength", "quantity"]
    assert not rows.duplicated(keys).any()
    for level in COLLINEARITIES:
        same = {"strength": level, "site": ALL_SEEDS, "split": "test"}
        whole = np.mean([unmitigated(level, seed) for seed in SEEDS])
        mean = of(rows, **same, quantity="difference", method=UNMITIGATED)
        assert mean["value"].item() == pytest.approx(whole)
        assert mean["sd"].item() == pytest.approx(np.std(range(5), ddof=1) / 1000)
        # The clipped shift is the best of the printed set, LEACE without the cut, fairlearn's of all nine.
        for methods, share in (("printed", 40.0), (RECIPE, 40.0), ("unclipped", 50.0), ("nine", 25.0)):
            assert of(rows, **same, quantity="share", method=methods)["value"].item() == pytest.approx(share)


def test_a_share_is_a_ratio_of_means_and_no_mean_of_ratios(workspace, monkeypatch):
    # One method that halves the difference of one seed only.
    import synthetic_rows

    kept = synthetic_rows.unit_rows
    monkeypatch.setattr(
        synthetic_rows,
        "unit_rows",
        lambda level, seed, **more: kept(level, seed, effects={"leace": (0.5, 0.0)} if seed == 0 else {}),
    )
    rows = collected(workspace)
    differences = np.array([unmitigated(0.0, seed) for seed in SEEDS])
    halved = differences * [0.5, 1, 1, 1, 1]
    share = of(rows, strength=0.0, quantity="share", method="nine", split="test")["value"].item()
    assert share == pytest.approx(100 * halved.mean() / differences.mean())
    assert share != pytest.approx(100 * (halved / differences).mean())


def test_trends_are_tested_once_and_corrected_in_their_family(workspace):
    from frame.inference.multiplicity import benjamini_hochberg
    from frame.inference.trends import spearman_trend

    rows = collected(workspace)
    tested = rows[rows["quantity"].str.startswith("spearman_")]
    assert set(tested["family"]) == {"synthetic", "synthetic: recipe"}
    ours = tested[tested["family"] == "synthetic"]
    quantities = ["difference", "difference_population", *GEOMETRY]
    assert len(ours) == 2 * (len(quantities) + 2 * len(SETS))
    for _, family in tested.groupby("family"):
        np.testing.assert_allclose(family["p_fdr"], benjamini_hochberg(family["p"].to_numpy()))
    own = rows[(rows["quantity"] == "overlap") & (rows["site"] != ALL_SEEDS)]
    expected = spearman_trend(own["strength"], own["value"], permutations=1000)
    found = of(ours, quantity="spearman_overlap").iloc[0]
    assert (found["value"], found["p"]) == (expected.rho, expected.p)
    # The made-up numbers rise strictly within each seed.
    assert of(ours, quantity="spearman_blocked_difference")["value"].item() == pytest.approx(1.0)


def test_who_has_the_achievable_difference(workspace):
    chosen = chosen_methods(collected(workspace))
    assert len(chosen) == 30 * 2 * (len(SETS) + 1)
    by_set = chosen.groupby("methods")["chosen"].unique().map(list)
    assert by_set.to_dict() == {
        "printed": [CLIPPED],
        RECIPE: [CLIPPED],
        "unclipped": ["leace"],
        "nine": ["exponentiated_gradient"],
    }
    assert chosen.loc[chosen["methods"] == "nine", "auroc_lost"].to_numpy() == pytest.approx(0.002)


def test_a_method_that_loses_the_disease_is_never_chosen(workspace):
    chosen = chosen_methods(collected(workspace, effects={**EFFECTS, "leace": (0.0, -0.0101)}))
    assert "inlp" not in set(chosen["chosen"])
    assert set(chosen.loc[chosen["methods"] == "unclipped", "chosen"]) == {UNMITIGATED}


def test_a_method_that_was_not_fitted_is_left_out_and_its_means_say_so(workspace):
    rows = collected(workspace, refused=("exponentiated_gradient",))
    chosen = chosen_methods(rows)
    assert set(chosen.loc[chosen["methods"] == "nine", "chosen"]) == {"leace"}
    mean = of(rows, site=ALL_SEEDS, method="exponentiated_gradient", strength=0.0, split="test")
    assert set(mean["reason"]) == {"5 of 5 seeds are not estimable"}
    assert mean["value"].isna().all()


def test_collecting_fails_while_a_unit_is_missing(workspace):
    path = workspace.path(unit_artefact("synthetic_model", units(workspace)[0].name))
    path.parent.mkdir(parents=True)
    write_result(unit_rows(0.0, 0), path)
    with pytest.raises(InputError, match="29 of 30 units have not been computed"):
        collect(workspace)

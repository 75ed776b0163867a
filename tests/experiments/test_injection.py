"""The injection experiment on a small release: its rows, its means and its trends."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cohorts"))
from raw_nih import write_profile, write_release

from frame.encoders.panel import encoder
from frame.errors import InputError
from frame.experiments import injection
from frame.experiments.contract import TIDY_COLUMNS, Unit
from frame.experiments.injection import ALL_FINDINGS, ATTRIBUTES, FINDINGS, GRIDS, QUANTITIES
from frame.experiments.injection_settings import left_out_words
from frame.experiments.injection_summary import FAMILY_SIZE, OUR_QUANTITIES, PAIRS, PRINTED_QUANTITIES
from frame.inference.multiplicity import benjamini_hochberg
from frame.interventions.decision import CONSISTENT, UNDETERMINED, VERDICTS
from frame.interventions.procedure import mechanism
from frame.mitigation.registry import NINE
from frame.workspace.graph import make_with_inputs
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile

MORE = (
    "encoders: {injection: [block_means]}\n"
    "findings: {chest: [pleural_effusion, cardiomegaly, fracture]}\n"
    "attributes: {chest: [race]}\n"
)
FEATURES = "features:nih_cxr14:block_means"
WIDTH = 12


def written(folder, more=MORE, patients=40, smallest=1):
    write_release(folder / "raw", patients=patients)
    profile = write_profile(folder / "small.yml", folder / "raw")
    text = profile.read_text().replace("sizes: {", "sizes: {resamples: 100, ")
    profile.write_text(text.replace("smallest_cell: 1}", f"smallest_cell: {smallest}}}") + more)
    return open_workspace(load_profile(profile), folder / "workspace")


class Pooled:
    """Drawn rows and vectors in place of those of the manifests."""

    def __init__(self, rows, vectors, ready):
        self.rows, self.ready, self.width = rows, ready, vectors.shape[1]
        self._vectors = vectors

    def blocks(self, rows):
        for start in range(0, len(rows), 500):
            place = slice(start, min(start + 500, len(rows)))
            yield place, self._vectors[rows[place]]


def planted(n=1500, seed=1):
    """Race is read from one column, and the disease shows less in one race."""
    rng = np.random.default_rng(seed)
    recorded = rng.choice(["White", "Black", "Asian", "Other", None], n, p=[0.35, 0.25, 0.1, 0.1, 0.2])
    sick = rng.random(n) < 0.4
    vectors = rng.normal(size=(n, WIDTH))
    vectors[:, 0] += np.where(recorded == "Black", 0.1, 2.0) * sick
    vectors[:, 1] += recorded == "White"
    rows = pd.DataFrame(
        {
            "subject_id": [f"s:{k}" for k in range(n)],
            "split": rng.choice(["train", "validation", "test"], n, p=[0.5, 0.15, 0.35]),
            "cardiomegaly": np.where(rng.random(n) < 0.05, -2, sick.astype(int)),
            "race": [one or "Other" for one in recorded],
            "race_recorded": recorded,
        }
    )
    return Pooled(rows, vectors.astype("float16"), rng.random(n) > 0.02)


def settings(**more):
    return {
        "encoder": "block_means",
        "finding": "cardiomegaly",
        "attributes": list(ATTRIBUTES),
        "injection.in_full": "first",
        "injection.methods": ["resample", "platt"],
    } | more


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The rows of a unit on planted data, few directions, and its workspace."""
    folder = tmp_path_factory.mktemp("injection")
    workspace = written(folder)
    unit = Unit("block_means-cardiomegaly", (), settings())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frame.workspace.pooled_features.pooled_features", lambda *_: planted())
        patch.setattr(
            "frame.interventions.procedure.mechanism",
            lambda *given, **named: mechanism(
                *given, **{**named, "nonlinear": False, "directions": 2, "resamples": 200}
            ),
        )
        rows = injection.run_unit(workspace, unit)
    return rows, workspace


def row_of(rows, method, quantity, attribute="race"):
    (found,) = rows[
        (rows["method"] == method) & (rows["quantity"] == quantity) & (rows["attribute"] == attribute)
    ].to_dict("records")
    return found


def test_every_quantity_stands_at_every_strength_of_the_grid(ran):
    rows, _ = ran
    assert list(rows.columns) == list(TIDY_COLUMNS)
    assert set(rows["experiment"]) == {"injection"}
    whole = rows[(rows["attribute"] == "race") & rows["quantity"].isin(QUANTITIES)]
    for operator, grid in GRIDS.items():
        for strength in grid:
            there = whole[(whole["method"] == operator) & (whole["strength"] == strength)]
            assert sorted(there["quantity"]) == sorted(QUANTITIES), (operator, strength)
    tried = whole[(whole["method"] == "entanglement") & (whole["strength"] == 16)]
    assert set(tried["status"]) == {"not estimable"}
    assert tried["reason"].str.startswith("not run: 16 directions are more than half of the 12").all()
    others = rows[(rows["attribute"] != "race") & rows["method"].isin(GRIDS)]
    assert set(others["quantity"]) & {"overlap", "achievable_difference"} == set()


def test_values_are_those_of_the_procedure_on_the_same_rows(ran):
    rows, _ = ran
    pooled = planted()
    used = np.flatnonzero(pooled.rows["cardiomegaly"].isin([0, 1]) & pooled.ready)
    people = pooled.rows.loc[used].reset_index(drop=True)
    found = mechanism(
        pooled._vectors[used],
        people["cardiomegaly"],
        people["race_recorded"].astype(object),
        people["split"].astype(object),
        patients=people["subject_id"].astype(object),
        methods=(),
        geometry=False,
        directions=2,
        resamples=200,
    )
    assert found.verdict != CONSISTENT  # the planted difference is large
    own = rows[rows["attribute"] == "race_recorded"]
    for operator, change in found.decided.items():
        kept = row_of(own, operator, "change_difference", "race_recorded")
        assert kept["value"] == pytest.approx(change.change, abs=1e-12)
        assert (kept["lo"], kept["hi"]) == pytest.approx((change.lo, change.hi), abs=1e-12)
    assert row_of(own, "step one", "exceedance", "race_recorded")["value"] == found.step_one.p
    kept = row_of(own, "verdict", "verdict", "race_recorded")
    assert VERDICTS[int(kept["value"])] == found.verdict
    assert kept["reason"].startswith(found.verdict)
    assert set(own.loc[own["quantity"] == "caveat", "reason"]) == set(found.caveats)


def test_groups_differ_by_how_race_is_read(ran):
    rows, _ = ran
    groups = rows[rows["quantity"] == "subgroup_value"].groupby("attribute")["subgroup"].agg(set)
    assert groups["race"] == {"White", "Black", "Asian", "Other"}
    assert groups["race_recorded"] == {"White", "Black", "Asian", "Other"}
    assert groups["race_without_other"] == {"White", "Black", "Asian"}
    images = rows[(rows["quantity"] == "disease_auroc") & (rows["method"] == "decodability")]
    n = images.groupby("attribute")["n_images"].first()
    assert n["race"] == n["race_recorded"] > n["race_without_other"]
    notes = rows[(rows["quantity"] == "note") & (rows["attribute"] == "race_without_other")]["reason"]
    assert notes.str.contains("Excluded on request").any()


def test_images_without_a_vector_and_methods_that_were_left_out_are_told(ran):
    rows, _ = ran
    pooled = planted()
    silent = int((pooled.rows["cardiomegaly"].isin([0, 1]) & ~pooled.ready).sum())
    assert silent > 0
    notes = rows.loc[rows["quantity"] == "note", "reason"]
    assert (notes == f"{silent} images with a label have no vector and were left out.").sum() == len(
        ATTRIBUTES
    )
    assert notes.str.startswith("The achievable difference is chosen from 2 of the nine methods").sum() == 1
    short = rows[rows["reason"] == left_out_words((), full=False)]
    assert short["attribute"].tolist() == ["race_recorded", "race_without_other"]


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (NINE, ""),
        ((), ""),
        (NINE[:8], "chosen from 8 of the nine methods: the profile leaves out INLP."),
        (
            NINE[2:8],
            "from 6 of the nine methods: the profile leaves out Group resampling, Reweighing and INLP.",
        ),
    ],
    ids=["all", "none", "one left out", "three left out"],
)
def test_methods_that_a_profile_leaves_out_are_named(methods, words):
    said = left_out_words(methods, full=True)
    assert said.endswith(words)
    assert bool(said) == bool(words)


def test_methods_are_taken_in_the_order_of_the_paper(tmp_path, monkeypatch):
    """Whatever their order in a profile, so that a tie is settled alike."""
    asked = []

    def refused(*_, **named):
        asked.append((named["methods"], named["geometry"], named["nonlinear"]))
        raise InputError("Enough.")

    monkeypatch.setattr("frame.workspace.pooled_features.pooled_features", lambda *_: planted())
    monkeypatch.setattr("frame.interventions.procedure.mechanism", refused)
    unit = Unit("u", (), settings() | {"injection.methods": ["inlp", "platt", "reweigh"]})
    injection.run_unit(written(tmp_path), unit)
    assert asked == [(("reweigh", "platt", "inlp"), True, True), ((), False, False), ((), False, False)]
    asked.clear()
    injection.run_unit(written(tmp_path), Unit("u", (), settings() | {"injection.in_full": "every"}))
    assert asked == [(("resample", "platt"), True, True)] * 3


def test_sentences_tell_no_count_that_the_profile_hides(tmp_path, monkeypatch):
    pooled = planted()
    in_validation = np.flatnonzero(pooled.rows["split"] == "validation")
    known = pooled.rows["race_recorded"].fillna("White").to_numpy(copy=True).astype(object)
    known[in_validation[:7]] = None
    pooled.rows["race_recorded"] = known
    pooled.ready[:] = True
    pooled.ready[np.flatnonzero(pooled.rows["cardiomegaly"].isin([0, 1]))[:3]] = False
    monkeypatch.setattr("frame.workspace.pooled_features.pooled_features", lambda *_: pooled)
    monkeypatch.setattr(
        "frame.interventions.procedure.mechanism",
        lambda *given, **named: mechanism(*given, **{**named, "directions": 1, "resamples": 100}),
    )
    unit = Unit("u", (), settings(attributes=["race_recorded"]))
    said = {}
    for smallest in (1, 10):
        workspace = written(tmp_path / str(smallest), smallest=smallest)
        rows = injection.run_unit(workspace, unit)
        said[smallest] = "\n".join(rows.loc[rows["quantity"] == "note", "reason"])
    assert "3 images with a label have no vector" in said[1]
    assert re.search(r"Validation: 'race_recorded' is missing for 7 of \d+ images \(", said[1])
    assert "fewer than 10 images with a label have no vector" in said[10]
    assert "Validation: 'race_recorded' is missing for fewer than 10 of 2" in said[10]


def test_a_unit_that_was_ended_gives_the_rows_of_an_undisturbed_one(tmp_path, monkeypatch):
    monkeypatch.setattr("frame.workspace.pooled_features.pooled_features", lambda *_: planted())
    n_read = []

    def ended(*given, **named):
        found = mechanism(*given, **{**named, "directions": 1, "resamples": 100})
        n_read.append(sum("of an earlier run" in note for note in found.notes))
        if len(n_read) == 1:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr("frame.interventions.procedure.mechanism", ended)
    unit = Unit("u", (), settings(attributes=["race_recorded"]))
    with pytest.raises(KeyboardInterrupt):
        injection.run_unit(written(tmp_path / "ended"), unit)
    again = injection.run_unit(written(tmp_path / "ended"), unit)
    undisturbed = injection.run_unit(written(tmp_path / "undisturbed"), unit)
    assert n_read == [0, 1, 0]
    pd.testing.assert_frame_equal(again, undisturbed)


def test_nothing_is_left_beside_the_results(ran):
    _, workspace = ran
    assert not (workspace.state / "injection" / "block_means-cardiomegaly").exists()


def test_the_curves_are_there_where_step_one_finds_nothing(tmp_path, monkeypatch):
    pooled = planted()
    rng = np.random.default_rng(5)
    pooled.rows["race_recorded"] = rng.permutation(pooled.rows["race_recorded"])
    monkeypatch.setattr("frame.workspace.pooled_features.pooled_features", lambda *_: pooled)
    monkeypatch.setattr(
        "frame.interventions.procedure.mechanism",
        lambda *given, **named: mechanism(*given, **{**named, "directions": 1, "resamples": 100}),
    )
    unit = Unit("u", (), settings(attributes=["race_recorded"]))
    rows = injection.run_unit(written(tmp_path), unit)
    verdict = row_of(rows, "verdict", "verdict", "race_recorded")
    assert row_of(rows, "step one", "exceedance", "race_recorded")["value"] > 0.05
    assert VERDICTS[int(verdict["value"])] == verdict["reason"] == CONSISTENT
    beyond = VERDICTS[int(row_of(rows, "verdict", "verdict_of_step_two", "race_recorded")["value"])]
    assert beyond != CONSISTENT
    curve = rows[(rows["method"] == "decodability") & (rows["quantity"] == "difference")]
    assert (curve["status"] == "ok").all()
    assert len(curve) == len(GRIDS["decodability"])


def test_what_cannot_be_run_is_a_row_with_the_reason(tmp_path, monkeypatch):
    pooled = planted()
    pooled.rows["cardiomegaly"] = np.where(
        pooled.rows["split"] == "validation", 0, pooled.rows["cardiomegaly"]
    )
    monkeypatch.setattr("frame.workspace.pooled_features.pooled_features", lambda *_: pooled)
    rows = injection.run_unit(written(tmp_path), Unit("u", (), settings(attributes=["race"])))
    row = row_of(rows, "verdict", "verdict")
    assert row["status"] == "not estimable"
    assert "split 'validation' has no positive" in row["reason"]


def test_a_missing_package_is_told_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(injection.importlib.util, "find_spec", lambda name: None if name == "torch" else 1)
    with pytest.raises(InputError, match=r"needs torch; install it with: pip install 'frame-audit\[mitiga"):
        injection.run_unit(None, Unit("u", (), settings()))


# ---- units


def test_units_follow_the_profile(tmp_path):
    paper = open_workspace(load_profile("paper"), tmp_path / "paper")
    found = {unit.name: unit for unit in injection.units(paper)}
    assert list(found) == [
        f"{name}-{finding}" for name in ("rad_dino", "densenet_121") for finding in FINDINGS
    ]
    unit = found["rad_dino-fracture"]
    assert unit.settings["injection.methods"] == list(NINE)
    assert unit.settings["injection.in_full"] == "every"
    assert unit.settings["attributes"] == list(ATTRIBUTES)
    assert "features/mimic_cxr/rad_dino/vectors.npy" in unit.inputs
    assert sum(path.startswith("manifests/") for path in unit.inputs) == 6
    demo = injection.units(open_workspace(load_profile("demo"), tmp_path / "demo"))
    assert [unit.name for unit in demo] == [f"image_pca-{finding}" for finding in FINDINGS]
    assert all(unit.settings["injection.methods"] == list(NINE) for unit in demo)
    assert all(unit.settings["injection.in_full"] == "first" for unit in demo)
    assert all(unit.settings["attributes"] == list(ATTRIBUTES) for unit in demo)
    assert all("chest" in encoder(unit.settings["encoder"]).modalities for unit in demo)
    assert injection.units(open_workspace(load_profile("tables"), tmp_path / "tables")) == ()


def test_drawn_and_released_images_go_the_same_way(tmp_path):
    """Only the settings of a profile decide what is computed, not what kind of images it has."""
    text = Path(load_profile.__code__.co_filename).with_name("profiles").joinpath("demo.yml").read_text()
    drawn = tmp_path / "drawn.yml"
    drawn.write_text(text.replace("name: demo", "name: drawn").partition("\ninjection:")[0])
    assert load_profile(drawn).phantom is not None
    (first, *_) = injection.units(open_workspace(load_profile(drawn), tmp_path / "drawn"))
    assert first.settings["injection.methods"] == list(NINE)
    assert first.settings["injection.in_full"] == "every"


def test_a_unit_runs_from_the_stores_of_a_small_release(tmp_path):
    workspace = written(tmp_path)
    make_with_inputs(workspace, [FEATURES])
    rows = injection.run_unit(workspace, injection.units(workspace)[0])
    # Its site records no race: there is one group, and that is said.
    assert set(rows["attribute"]) == set(ATTRIBUTES)
    row = row_of(rows, "verdict", "verdict")
    assert row["status"] == "not estimable"
    assert row["reason"] != ""
    assert row["encoder"] == "block_means"


# ---- all units


def made_rows(encoders=("rad_dino", "densenet_121")):
    """Units whose difference rises with entanglement and does not answer to decodability."""
    found = []
    for number, finding in enumerate(FINDINGS):
        for name in encoders:
            for operator, grid in GRIDS.items():
                for place, strength in enumerate(grid):
                    for quantity in QUANTITIES:
                        row = {
                            "encoder": name,
                            "finding": finding,
                            "attribute": "race",
                            "method": operator,
                            "strength": strength,
                            "quantity": quantity,
                            "value": 0.1 * number + (0.02 * place if operator == "entanglement" else 0.0),
                        }
                        if name == "densenet_121" and operator == "entanglement" and strength == 256:
                            row |= {"value": np.nan, "status": "not estimable", "reason": "not run: k"}
                        found.append(row)
            added = {"strength": 0.125, "value": 9.0, "quantity": "difference", "method": "decodability"}
            found.append({"encoder": name, "finding": finding, "attribute": "race", **added})
    return injection.tidy(pd.DataFrame(found), experiment="injection", modality="chest", split="test")


@pytest.fixture
def collected(monkeypatch):
    monkeypatch.setattr(injection, "units", lambda _: ())
    monkeypatch.setattr(injection, "all_units", lambda *_: made_rows())
    return injection.collect(SimpleNamespace())


def test_means_over_the_findings(collected):
    means = collected[
        (collected["finding"] == ALL_FINDINGS)
        & (collected["quantity"] == "difference")
        & (collected["encoder"] == "rad_dino")
    ]
    own = means[means["method"] == "entanglement"].set_index("strength")
    np.testing.assert_allclose(own["value"], 0.1 + 0.02 * np.arange(6))
    np.testing.assert_allclose(own["sd"], 0.1)
    assert 0.125 not in set(means["strength"])  # added strengths are in no mean
    missing = collected[
        (collected["finding"] == ALL_FINDINGS) & (collected["strength"] == 256) & collected["value"].isna()
    ]
    assert set(missing["encoder"]) == {"densenet_121"}
    assert missing["reason"].str.startswith("3 of 3 findings have no value: not run").all()


def test_fewer_encoders_than_in_the_paper_are_told(collected, monkeypatch):
    assert not collected["reason"].str.startswith("The profile names").any()
    monkeypatch.setattr(injection, "all_units", lambda *_: made_rows(encoders=("rad_dino",)))
    rows = injection.collect(SimpleNamespace())
    (note,) = rows[rows["reason"].str.startswith("The profile names")].to_dict("records")
    assert note["reason"] == "The profile names 1 encoder for the injection; the paper has 2."
    assert (note["encoder"], note["attribute"], note["finding"]) == ("rad_dino", "race", ALL_FINDINGS)


def test_trends_pooled_and_within_findings(collected):
    trends = collected[collected["quantity"].str.startswith("spearman")]
    assert len(trends) == 2 * 3 * len(QUANTITIES) * 2
    own = trends[(trends["method"] == "entanglement") & (trends["encoder"] == "rad_dino")]
    blocked = own[own["quantity"] == "spearman_blocked_difference"].iloc[0]
    pooled = own[own["quantity"] == "spearman_difference"].iloc[0]
    assert blocked["value"] == pytest.approx(1.0)
    assert 0 < pooled["value"] < 0.6  # the levels of the findings blur it
    assert blocked["family"] == "injection: race: entanglement: within findings"
    assert pooled["family"] == "injection: race: entanglement"
    assert pooled["p_fdr"] >= pooled["p"]
    assert own["p"].min() == 1 / 1001  # 1,000 permutations
    # A quantity that does not move is no evidence of anything.
    still = trends[(trends["method"] == "decodability") & (trends["quantity"] == "spearman_blocked_overlap")]
    assert set(still["status"]) == {"not estimable"}
    assert still["p_fdr"].isna().all()


def test_the_paper_s_quantities_are_one_family_and_ours_another(monkeypatch):
    assert set(PRINTED_QUANTITIES) | set(OUR_QUANTITIES) == set(QUANTITIES)
    assert (len(PRINTED_QUANTITIES), len(OUR_QUANTITIES)) == (6, 2)
    rows = made_rows()
    rng = np.random.default_rng(3)
    rows["value"] = np.where(rows["status"] == "ok", rng.normal(size=len(rows)), np.nan)
    monkeypatch.setattr(injection, "units", lambda _: ())
    monkeypatch.setattr(injection, "all_units", lambda *_: rows)
    found = injection.collect(SimpleNamespace())
    trends = found[found["quantity"].str.startswith("spearman") & (found["method"] == "entanglement")]
    sizes = found[found["quantity"] == FAMILY_SIZE].groupby("family")["value"].agg(set)
    for before, within in (("spearman", ""), ("spearman_blocked", ": within findings")):
        for named, ours in ((PRINTED_QUANTITIES, ""), (OUR_QUANTITIES, ": ours")):
            own = trends[trends["quantity"].isin([f"{before}_{one}" for one in named])]
            family = f"injection: race: entanglement{ours}{within}"
            assert set(own["family"]) == {family}
            assert sizes[family] == {2.0 * len(named)}
            np.testing.assert_allclose(own["p_fdr"], benjamini_hochberg(own["p"]))


def test_pairs_that_did_not_enter_a_trend_are_told(collected):
    own = collected[(collected["method"] == "entanglement") & (collected["attribute"] == "race")]
    own = own.set_index(["encoder", "quantity"])
    for test in ("spearman_difference", "spearman_blocked_difference"):
        whole, part = own.loc[("rad_dino", PAIRS + test)], own.loc[("densenet_121", PAIRS + test)]
        assert (whole["value"], whole["reason"]) == (18, "18 of 18 pairs")
        assert (part["value"], part["reason"]) == (15, "15 of 18 pairs")
        assert own.loc[("rad_dino", test), "reason"] == ""
        said = own.loc[("densenet_121", test), "reason"]
        assert said.startswith("3 of 18 pairs have a missing value and were left out")


def test_strengths_that_were_not_run_are_told_by_operator(monkeypatch):
    rows = made_rows(encoders=("rad_dino",))
    for k in (64, 256):
        there = (rows["method"] == "entanglement") & (rows["strength"] == k)
        why = f"not run: {k} directions are more than half of the 64 dimensions"
        rows.loc[there, ["value", "status", "reason"]] = [np.nan, "not estimable", why]
    # A quantity alone that was not run is no strength that was not run.
    alone = (rows["method"] == "decodability") & (rows["strength"] == 1) & (rows["quantity"] == "overlap")
    rows.loc[alone, ["value", "status", "reason"]] = [np.nan, "not estimable", "not run: not asked for"]
    monkeypatch.setattr(injection, "units", lambda _: ())
    monkeypatch.setattr(injection, "all_units", lambda *_: rows)
    found = injection.collect(SimpleNamespace())
    notes = found[(found["quantity"] == "note") & (found["finding"] != ALL_FINDINGS)]
    assert notes["finding"].tolist() == list(FINDINGS)
    assert set(notes["reason"]) == {
        "Entanglement: 2 of 6 strengths were not run: 64 and 256 directions are more than half of the 64 "
        "dimensions."
    }


def test_a_finding_that_was_refused_as_a_whole_counts(monkeypatch):
    rows = made_rows(encoders=("rad_dino",))
    refused = {"encoder": "rad_dino", "finding": "fracture", "attribute": "race", "method": "verdict"}
    refused |= {"quantity": "verdict", "value": np.nan, "status": "not estimable"}
    refused = injection.tidy(
        pd.DataFrame([refused | {"reason": "split 'validation' has no positive"}]), experiment="injection"
    )
    rows = pd.concat([rows[rows["finding"] != "fracture"], refused], ignore_index=True)
    monkeypatch.setattr(injection, "units", lambda _: ())
    monkeypatch.setattr(injection, "all_units", lambda *_: rows)
    found = injection.collect(SimpleNamespace())
    said = "1 of 3 findings has no value: split 'validation' has no positive"
    means = found[(found["finding"] == ALL_FINDINGS) & found["quantity"].isin(QUANTITIES)]
    assert len(means) == sum(map(len, GRIDS.values())) * len(QUANTITIES)
    assert set(means["status"]) == {"not estimable"}
    assert set(means["reason"]) == {said}
    own = found[found["method"] == "entanglement"].set_index("quantity")
    for test in ("spearman_difference", "spearman_blocked_difference"):
        assert own.loc[test, "reason"] == f"6 of 18 pairs have a missing value and were left out; {said}"
        assert own.loc[PAIRS + test, "reason"] == "12 of 18 pairs"


def test_units_without_curves_have_no_trends(monkeypatch):
    row = {"encoder": "rad_dino", "finding": "fracture", "attribute": "race", "method": "verdict"}
    row |= {"quantity": "verdict", "value": float(VERDICTS.index(UNDETERMINED)), "reason": UNDETERMINED}
    rows = injection.tidy(pd.DataFrame([row]), experiment="injection")
    monkeypatch.setattr(injection, "units", lambda _: ())
    monkeypatch.setattr(injection, "all_units", lambda *_: rows)
    assert injection.collect(SimpleNamespace())["quantity"].tolist() == ["verdict", "note"]

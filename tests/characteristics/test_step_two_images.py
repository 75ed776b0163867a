"""The whole procedure on drawn images: the cohort, its truth, resuming, and the versioned tables."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from frame.characteristics import step_two_image_tables, step_two_images
from frame.characteristics.step_two_image_tables import (
    DRAWN,
    TABLES,
    image_groups_table,
    images_table,
    rebuild,
)
from frame.characteristics.step_two_images import (
    ATTRIBUTES,
    COLUMNS,
    DESIGN,
    FINDINGS,
    GROUP_COLUMNS,
    LARGEST_K,
    SEEDS,
    SETTINGS,
    SOURCES,
    TIMES,
    TRUTH_SEED,
    ImageDesign,
    audit_unit,
    cohort_rows,
    draw_world,
    planted,
    run_seed,
    truth_world,
)
from frame.characteristics.step_two_tables import modules_digest
from frame.characteristics.tables import sidecar
from frame.cohorts.harmonise import AGE_BANDS, age_band
from frame.cohorts.labels import LabelPolicy, resolve_labels
from frame.cohorts.phantom.chest import draw_chest
from frame.cohorts.phantom.drawing import drawing_table, pictures
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.population_chest import chest_population
from frame.cohorts.phantom.truth import ROOTS, SPLIT_RULES, PhantomTruth, Sizes
from frame.cohorts.splits import hashed_split
from frame.errors import InputError
from frame.figures.phantom_decoding import block_means
from frame.interventions.decision import CONSISTENT, VERDICTS
from frame.interventions.disease_subspace import ENTANGLEMENT_STRENGTHS

#: Large enough for two groups of twenty test images in every attribute, and no larger.
TINY = ImageDesign(
    sizes={
        "mimic_cxr": Sizes(train=120, validation=20, test=110),
        "chexpert": Sizes(train=30, validation=4, test=12),
    },
    times=2,
    side=32,
    findings=("pleural_effusion", "cardiomegaly"),
    settings=SETTINGS | {"directions": 2, "resamples": 100},
)


@pytest.fixture(scope="module")
def tiny():
    return run_seed(3, TINY)


@pytest.fixture(scope="module")
def tiny_world():
    return draw_world(3, TINY)


@pytest.fixture(scope="module")
def stored_world():
    """Seed 2 at its full size, drawn again."""
    return draw_world(2)


@pytest.fixture(scope="module")
def images():
    return images_table()


@pytest.fixture(scope="module")
def groups():
    return image_groups_table()


# ---- what is drawn


def test_what_is_asked_is_what_was_fixed():
    assert (list(SEEDS), TIMES, DESIGN.side) == ([0, 1, 2, 3, 4], 20, 64)
    assert PhantomTruth().chest["mimic_cxr"] == DESIGN.truth(2).chest["mimic_cxr"]
    assert DESIGN.truth(2) == PhantomTruth(seed=2).model_copy(
        update={"chest": {name: PhantomTruth().chest[name] for name in SOURCES}, "skin": {}, "fundus": {}}
    )
    # As in the procedure's default: directions beyond half of the features are not removed.
    assert max(k for k in ENTANGLEMENT_STRENGTHS if k <= 256 / 2) == LARGEST_K
    assert SETTINGS["entanglement_strengths"] == (0, LARGEST_K)


def test_every_unit_says_what_is_planted():
    said = {(a, f): planted(a, f) for a in ATTRIBUTES for f in FINDINGS}
    assert {f for f in FINDINGS if said["age", f] == "control"} == {"support_devices"}
    assert {f for f in FINDINGS if said["race", f] == "label noise in Black"} == {"cardiomegaly"}
    assert {said["sex", f] for f in FINDINGS} == {"nothing"}
    assert said["age", "fracture"] == "oldest fainter"
    assert said["race", "fracture"] == "decodable, fair"


def test_the_cohort_is_read_as_the_demo_reads_it(tmp_path):
    """Beside the manifests that the demo makes of the released tables."""
    from frame.cohorts.manifest import build_manifest, located_files
    from frame.cohorts.phantom.world import LAYOUTS
    from frame.workspace.profiles import SourceSettings, load_profile

    profile = load_profile("demo")
    truth = DESIGN.truth(profile.seed)
    rows, people = cohort_rows(truth)
    for source in SOURCES:
        for name, content in LAYOUTS[source](truth, population(truth, source), 64).items():
            target = tmp_path / source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        settings = SourceSettings(root="x", split=SPLIT_RULES.get(source, "default"), images=False)
        assert settings.split == profile.sources[source].split
        files = located_files(source, settings, tmp_path / source, tmp_path / source / ROOTS[source])
        made = build_manifest(files, settings, profile.seed).table.set_index("image_id")
        own = rows["source"] == source
        made = made.loc[source + ":" + rows.loc[own, "image_id"].astype(str)]
        for column, expected in (
            ("split", "split"),
            ("race_recorded", "race"),
            ("age_band", "age"),
            ("sex", "sex"),
            ("subject_id", "patient"),
        ):
            found = made[column].astype(object).where(made[column].notna(), None).tolist()
            ours = people.loc[own, expected].astype(object)
            assert found == ours.where(ours.notna(), None).tolist(), (source, column)
        policy = LabelPolicy(profile.labels.uncertain, profile.labels.blank)
        for finding in FINDINGS:
            np.testing.assert_array_equal(
                resolve_labels(made[finding], policy).to_numpy(),
                resolve_labels(rows.loc[own, f"{finding}_recorded"], step_two_images.POLICY).to_numpy(),
            )


def test_the_truth_is_other_patients_of_the_same_world(tiny_world):
    truth = truth_world(tiny_world, TINY)
    same = TINY.truth(3)
    assert truth.model_copy(update={"seed": same.seed, "chest": same.chest}) == same
    assert truth.seed == TRUTH_SEED + 3
    assert not {TRUTH_SEED + seed for seed in SEEDS} & set(SEEDS)
    for source in SOURCES:
        here, there = (drawing_table(w, population(w, source)) for w in (same, truth))
        test = (tiny_world.people["source"] == source) & (tiny_world.people["split"] == "test")
        assert len(there) == TINY.times * int(test.sum()) > 0
        for column in ("patient_seed", "seed"):
            assert not set(here[column]) & set(there[column])


def test_no_patient_is_in_two_splits(tiny_world):
    splits = tiny_world.people.groupby("patient")["split"].nunique()
    assert (splits == 1).all()
    assert len(splits) < len(tiny_world.people)


# ---- what is said of it


def test_every_unit_has_a_row_and_every_group(tiny):
    rows, parts = tiny
    assert list(rows.columns) == list(COLUMNS)
    assert list(parts.columns) == list(GROUP_COLUMNS)
    asked = [(3, attribute, finding) for attribute in ATTRIBUTES for finding in TINY.findings]
    assert list(rows[["seed", "attribute", "finding"]].itertuples(index=False, name=None)) == asked
    assert rows["verdict"].isin(VERDICTS).all()
    assert ((rows["status"] == "ok") == rows["p"].notna()).all()
    assert (rows["status"] == "ok").any()
    assert rows.loc[rows["status"] != "ok", "reason"].ne("").all()
    for (attribute, finding), own in parts.groupby(["attribute", "finding"]):
        row = rows.set_index(["attribute", "finding"]).loc[(attribute, finding)]
        assert (own["n_images"].sum(), own["n_positive"].sum()) == (row["n_images"], row["n_positive"])
        assert own["truth_images"].sum() == row["truth_images"]
        values = own.loc[own["status"] == "ok", "value"]
        assert values.max() - values.min() == pytest.approx(row["observed"], abs=2e-6)


def test_step_one_has_no_say_in_the_verdict_of_step_two(tiny):
    """What a unit is called at a level of 0.05, and what step two would say of it at any."""
    rows = tiny[0]
    ok = rows[rows["status"] == "ok"]
    assert ((ok["verdict"] == CONSISTENT) == (ok["p"] > 0.05)).all()
    fair = ok[ok["verdict"] == CONSISTENT]
    # Between 0.05 and 0.3, so that a wider level would be seen.
    assert ((fair["p"] > 0.05) & (fair["p"] < 0.3)).any()
    assert fair["verdict_of_step_two"].isin(set(VERDICTS) - {CONSISTENT}).all()
    assert not fair.empty


def test_a_world_drawn_again_gives_the_same_rows_whatever_else_is_asked(tiny, tiny_world):
    alone = replace(TINY, findings=("pleural_effusion",))
    for whole, part in zip(tiny, run_seed(3, alone), strict=True):
        kept = whole[whole["finding"] == "pleural_effusion"].reset_index(drop=True)
        pd.testing.assert_frame_equal(kept, part, check_dtype=False)
    assert not np.array_equal(draw_world(4, alone).features, tiny_world.features)


def test_a_difference_of_other_groups_is_not_held(tiny):
    """With as few images the truth has groups that the cohort is too small for."""
    rows, parts = tiny
    for row in rows.to_dict("records"):
        own = parts[(parts["attribute"] == row["attribute"]) & (parts["finding"] == row["finding"])]
        alike = (own["status"] == "ok").all() and row["status"] == "ok"
        if row["attribute"] == "sex":
            assert alike
            assert {row["holds_recorded"], row["holds_actual"]} <= {"yes", "no"}
        else:
            assert not alike
            assert row["holds_recorded"] == row["holds_actual"] == ""


def test_the_truth_is_the_head_on_the_images_of_truth(tiny, tiny_world):
    """All of it by hand: drawn at once, pairs counted."""
    truth = truth_world(tiny_world, TINY)
    tables = {source: population(truth, source) for source in SOURCES}
    seen = [
        block_means(pictures(drawing_table(truth, table), source, TINY.side))
        for source, table in tables.items()
    ]
    table = pd.concat(tables.values(), ignore_index=True)
    rows, parts = tiny
    for finding in TINY.findings:
        scores = tiny_world.heads[finding].logit(np.concatenate(seen))
        recorded = resolve_labels(table[f"{finding}_recorded"], LabelPolicy("negative", "missing"))
        for kind, labels in (("recorded", recorded), ("actual", table[f"{finding}_true"].astype(float))):
            values = {}
            for group in ("female", "male"):
                own = (table["sex"] == group) & labels.notna()
                s, y = scores[own], labels[own].to_numpy() == 1
                values[group] = (s[y][:, None] > s[~y]).mean()
            own = parts[(parts["attribute"] == "sex") & (parts["finding"] == finding)].set_index("group")
            assert own[f"truth_{kind}"].to_dict() == pytest.approx(values, abs=2e-6)
            row = rows[(rows["attribute"] == "sex") & (rows["finding"] == finding)].iloc[0]
            assert row[f"truth_{kind}"] == pytest.approx(abs(values["male"] - values["female"]), abs=2e-6)
        assert row["truth_labelled"] == int(recorded.notna().sum()) < len(table)
        assert row["truth_positive"] == int(table[f"{finding}_true"].sum())


def test_the_head_of_the_truth_is_the_one_that_is_audited(tiny, tiny_world):
    rows = tiny[0].set_index(["attribute", "finding"])
    for attribute in ATTRIBUTES:
        for finding in TINY.findings:
            alone = audit_unit(tiny_world, attribute, finding)
            row = rows.loc[(attribute, finding)]
            assert alone.observed == pytest.approx(row["observed"], abs=2e-6)
            assert alone.p == pytest.approx(row["p"], abs=2e-6, nan_ok=True)
            if not math.isnan(alone.p):
                assert alone.reference.mean == pytest.approx(row["reference"], abs=2e-6)


def test_a_unit_that_cannot_be_asked_has_a_row_with_the_reason(monkeypatch):
    def refused(*_, **__):
        raise InputError("The rows are too few.")

    monkeypatch.setattr(step_two_images, "mechanism", refused)
    rows, parts = run_seed(3, TINY)
    assert len(rows) == len(ATTRIBUTES) * len(TINY.findings)
    assert set(rows["status"]) == {"not estimable"}
    assert set(rows["reason"]) == {"The rows are too few"}
    assert rows["truth_actual"].notna().all()
    assert rows[["observed", "p", "n_images"]].isna().all(axis=None)
    assert (rows[["verdict", "holds_actual", "holds_recorded"]] == "").all(axis=None)
    assert parts.empty


def test_too_small_a_cohort_is_not_estimable_and_says_so():
    small = ImageDesign(
        sizes={
            "mimic_cxr": Sizes(train=60, validation=8, test=16),
            "chexpert": Sizes(train=10, validation=2, test=4),
        },
        times=3,
        side=32,
        findings=("pleural_effusion",),
    )
    rows, _ = run_seed(1, small)
    row = rows.set_index("attribute").loc["race"]
    assert row["status"] == "not estimable"
    assert "20 images" in row["reason"]
    assert math.isnan(row["observed"])
    assert row["holds_recorded"] == ""


# ---- running


def test_a_run_that_was_ended_goes_on(monkeypatch, tmp_path):
    asked, ended = [], []

    def answered(seed, design):
        if seed == 1 and not ended:
            ended.append(seed)
            raise KeyboardInterrupt
        asked.append(seed)
        rows = pd.DataFrame([dict.fromkeys(COLUMNS, float("nan")) | {"seed": seed, "n_images": 7}])
        parts = pd.DataFrame([dict.fromkeys(GROUP_COLUMNS, 0) | {"seed": seed}] * 2)
        return rows, parts

    monkeypatch.setattr(step_two_image_tables, "run_seed", answered)
    with pytest.raises(KeyboardInterrupt):
        rebuild(tmp_path / "out", tmp_path / "store", 1, design=TINY, show=str)
    assert not list((tmp_path / "out").iterdir())
    rebuild(tmp_path / "out", tmp_path / "store", 1, design=TINY, show=str)
    assert asked == list(SEEDS)
    for name, columns in TABLES.items():
        table = pd.read_csv(tmp_path / "out" / f"{name}.csv", dtype=str)
        assert list(table.columns) == list(columns)
        many = 2 if name == "step_two_image_groups" else 1
        assert table["seed"].tolist() == [str(seed) for seed in SEEDS for _ in range(many)]
        side = json.loads((tmp_path / "out" / f"{name}.json").read_text(encoding="utf-8"))
        assert side["rows"] == len(table)
        assert side["truth_images_for_each_test_image"] == TINY.times
        assert side["images"]["mimic_cxr"] == {"train": 120, "validation": 20, "test": 110}
    # Counts stay whole numbers beside blanks.
    assert set(pd.read_csv(tmp_path / "out" / "step_two_images.csv", dtype=str)["n_images"]) == {"7"}


# ---- the versioned tables


@pytest.mark.parametrize("name", TABLES)
def test_the_image_tables_are_up_to_date(name):
    side = sidecar(name)
    assert side["sources_sha256"] == modules_digest(DRAWN), "run make characteristics"
    assert side["seeds"] == list(SEEDS)
    assert side["truth_images_for_each_test_image"] == TIMES
    assert side["images"] == {name: PhantomTruth().chest[name].model_dump() for name in SOURCES}
    assert side["side"] == DESIGN.side
    assert side["level"] == step_two_images._ALPHA == 0.05
    asked = json.loads(json.dumps({key: value for key, value in SETTINGS.items() if key != "threads"}))
    assert side["settings_of_step_two"] == asked
    assert side["modules"] == list(DRAWN)


def test_every_module_that_a_drawing_asks_has_a_digest():
    """Where each thing that decides a drawing is written down."""
    asked = (cohort_rows, run_seed, pictures, population, block_means, age_band, hashed_split, resolve_labels)
    for one in (*asked, drawing_table, LabelPolicy, PhantomTruth, chest_population, draw_chest):
        assert one.__module__.removeprefix("frame.").replace(".", "/") + ".py" in DRAWN, one
    assert "characteristics/step_two_runs.py" in DRAWN  # the settings of step two


def test_every_world_has_all_units(images):
    asked = [(seed, a, f) for seed in SEEDS for a in ATTRIBUTES for f in FINDINGS]
    assert list(images[["seed", "attribute", "finding"]].itertuples(index=False, name=None)) == asked
    assert len(images) == sidecar("step_two_images")["rows"] == 60
    assert images["planted"].tolist() == [planted(a, f) for _, a, f in asked]
    assert images["reason"][images["status"] != "ok"].ne("").all()


def test_rows_follow_from_their_groups(images, groups):
    assert len(groups) == sidecar("step_two_image_groups")["rows"]
    levels = {"race": 5, "age": len(AGE_BANDS), "sex": 2}
    by_unit = dict(list(groups.groupby(["seed", "attribute", "finding"])))
    for row in images.to_dict("records"):
        own = by_unit[row["seed"], row["attribute"], row["finding"]]
        assert len(own) == levels[row["attribute"]]
        for kind in ("n_images", "n_positive", "truth_images", "truth_labelled", "truth_labelled_positive"):
            assert own[kind].sum() == row[kind]
        for value, name in (
            ("value", "observed"),
            ("truth_recorded", "truth_recorded"),
            ("truth_actual", "truth_actual"),
        ):
            assert own[value].max() - own[value].min() == pytest.approx(row[name], abs=3e-6)


def test_the_truth_shows_what_is_planted_in_every_world(images, groups):
    by_age = groups[groups["attribute"] == "age"]
    for (_, finding), own in by_age.groupby(["seed", "finding"]):
        true = own.set_index("group")[["truth_recorded", "truth_actual"]]
        ends = true.idxmax() if planted("age", finding) == "control" else true.idxmin()
        assert set(ends) == {">=80"}
    noisy = images[images["planted"] == "label noise in Black"]
    assert (noisy["truth_recorded"] > 5 * noisy["truth_recorded_reference"]).all()
    assert (noisy["truth_actual"] < 2 * noisy["truth_actual_reference"]).all()
    fair = images[images["planted"].isin(["decodable, fair", "nothing"])]
    for kind in ("recorded", "actual"):
        mean = (fair[f"truth_{kind}"] / fair[f"truth_{kind}_reference"]).mean()
        assert 0.75 < mean < 1.25


def test_each_truth_has_twenty_times_the_test_images(images):
    for seed in SEEDS:
        _, people = cohort_rows(DESIGN.truth(seed))
        test = int((people["split"] == "test").sum())
        own = images[images["seed"] == seed]
        assert set(own["truth_images"]) == {TIMES * test}
        assert (own["n_images"] < test).all()  # labels are blank in some


def test_what_is_said_fits_the_numbers(images):
    ok = images[images["status"] == "ok"]
    for kind in ("recorded", "actual"):
        held = (ok["lo"] <= ok[f"truth_{kind}"]) & (ok[f"truth_{kind}"] <= ok["hi"])
        assert (ok[f"holds_{kind}"] == held.map({True: "yes", False: "no"})).all()
    level = sidecar("step_two_images")["level"]
    assert ((ok["verdict"] == CONSISTENT) == (ok["p"] > level)).all()
    assert ((ok["p"] > level) & (ok["p"] < 0.3)).any()
    passed = ok[ok["p"] <= level]
    assert (ok.loc[ok["p"] > level, "verdict_of_step_two"] != CONSISTENT).all()
    assert (passed["verdict"] == passed["verdict_of_step_two"]).all()
    holds = (ok["disease_change"] < -0.010) & (ok["disease_hi"] < 0)
    assert (ok["precondition"] == holds.map({True: "yes", False: "no"})).all()
    assert (ok["reference_lo"] < ok["reference"]).all()
    assert (ok["reference"] < ok["reference_hi"]).all()


def test_a_stored_world_audited_again_gives_its_rows(images, stored_world):
    kept = images[images["seed"] == 2].set_index(["attribute", "finding"])
    for attribute, finding in (("age", "pleural_effusion"), ("race", "cardiomegaly")):
        again, row = audit_unit(stored_world, attribute, finding), kept.loc[(attribute, finding)]
        assert (again.n_images, again.n_positive, again.n_patients) == tuple(
            row[["n_images", "n_positive", "n_patients"]]
        )
        assert again.observed == pytest.approx(row["observed"], abs=2e-4)
        assert again.p == pytest.approx(row["p"], abs=2e-4)
        assert again.reference.mean == pytest.approx(row["reference"], abs=2e-4)


def test_a_stored_unit_through_the_whole_procedure_again_gives_its_row(images, stored_world, monkeypatch):
    """One that step one keeps back at 0.05, and would not at 0.3; only its truth is on fewer images."""
    monkeypatch.setattr(step_two_images, "ATTRIBUTES", ("race",))
    monkeypatch.setattr(step_two_images, "draw_world", lambda seed, design: stored_world)
    small = replace(DESIGN, times=1, findings=("pleural_effusion",))
    again = run_seed(2, small)[0].iloc[0]
    kept = images.set_index(["seed", "attribute", "finding"]).loc[(2, "race", "pleural_effusion")]
    assert 0.05 < kept["p"] < 0.3
    assert kept["verdict"] == CONSISTENT != kept["verdict_of_step_two"]
    for name in ("verdict", "verdict_of_step_two", "precondition", "status", "reason", "planted"):
        assert again[name] == kept[name], name
    changes = [
        f"{n}_{e}" for n in ("decodability", "entanglement", "disease") for e in ("change", "lo", "hi")
    ]
    for name in ("observed", "reference", "p", "lo", "hi", *changes):
        assert again[name] == pytest.approx(kept[name], abs=2e-4), name
    assert abs(kept["decodability_change"]) > 1e-3

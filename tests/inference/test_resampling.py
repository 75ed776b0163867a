"""The bootstrap on what a user gives: its table, differences, contrasts and refusals."""

import math

import numpy as np
import pandas as pd
import pytest

from frame.errors import InputError
from frame.inference.bootstrap_result import CONSTANT, NO_TEST
from frame.inference.multiplicities import patient_multiplicities
from frame.inference.resampling import NO_PATIENT_IDS, ONLY_OVERALL, bootstrap
from frame.measures import MEASURES, measure_value, scored_rows, subgroup_table

COLUMNS = [
    *("score", "attribute", "group", "measure", "n_images", "n_positive", "n_negative", "n_patients"),
    *("value", "boot_mean", "sd", "lo", "hi", "n_undefined", "unit", "status", "reason"),
]


PAIR_NEEDED = "were given; a contrast takes two scores or two groups, and one of the other."


def cohort(seed=0, n=600, patients=250):
    generator = np.random.default_rng(seed)
    owner = np.sort(np.append(np.arange(patients), generator.integers(0, patients, n - patients)))
    labels = (generator.random(n) < 0.3).astype(int)
    scores = 1 / (1 + np.exp(-(generator.normal(size=n) + labels)))
    groups = pd.DataFrame(
        {
            "sex": np.array(["F", "M"])[generator.integers(0, 2, patients)[owner]],
            "age": np.array(["<40", "40-60", ">=60"])[generator.integers(0, 3, patients)[owner]],
        }
    )
    return scores, labels, groups, np.array([f"patient {p:03d}" for p in owner])


def members(groups, attribute, group):
    everything = np.ones(len(groups), dtype=bool)
    return everything if attribute == "overall" else (groups[attribute] == group).to_numpy()


def line(frame, **where):
    kept = frame
    for column, value in where.items():
        kept = kept[kept[column] == value]
    assert len(kept) == 1
    return kept.iloc[0]


def test_the_table_holds_points_and_percentiles_of_explicit_resampling():
    scores, labels, groups, ids = cohort()
    result = bootstrap(
        scores, labels, groups, ids, measures=tuple(MEASURES), threshold=0.6, resamples=30, seed=4
    )
    frame = result.to_frame()
    assert list(frame.columns) == COLUMNS
    assert frame[["attribute", "group"]].drop_duplicates().to_numpy().tolist() == [
        ["overall", "overall"],
        ["sex", "F"],
        ["sex", "M"],
        ["age", "40-60"],
        ["age", "<40"],
        ["age", ">=60"],
    ]
    assert len(frame) == 6 * 11
    _, codes = np.unique(ids, return_inverse=True)
    table = patient_multiplicities(codes.max() + 1, resamples=30, seed=4)
    for row in frame.to_dict("records"):
        inside = members(groups, row["attribute"], row["group"])
        arguments = {"threshold": 0.6, "scale": "probability"}
        assert row["value"] == measure_value(row["measure"], scores[inside], labels[inside], **arguments)
        values = []
        for b in range(30):
            rows = np.repeat(np.flatnonzero(inside), table[codes[inside], b])
            values.append(measure_value(row["measure"], scores[rows], labels[rows], **arguments))
        assert row["boot_mean"] == pytest.approx(np.mean(values), abs=1e-12)
        assert row["sd"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)
        assert [row["lo"], row["hi"]] == pytest.approx(np.percentile(values, [2.5, 97.5]), abs=1e-12)
        assert row["n_images"] == inside.sum()
        assert row["n_positive"] == labels[inside].sum()
        assert row["n_negative"] == inside.sum() - labels[inside].sum()
        assert row["n_patients"] == len(set(ids[inside]))
        assert (row["unit"], row["status"], row["reason"], row["n_undefined"]) == ("patient", "ok", "", 0)


@pytest.mark.parametrize("min_size", [1, 20])
def test_counts_values_and_reasons_are_those_of_the_table_of_subgroups(min_size):
    scores, labels, groups, ids = small_group(1)
    for chosen in (np.ones(240, bool), groups == "b", labels == 0, labels == 1):
        part = [np.asarray(column)[chosen] for column in (scores, labels, groups, ids // 2)]
        for threshold in (-1.0, 0.5, 2.0):
            measures = tuple(MEASURES)
            settings = {"threshold": threshold, "min_size": min_size}
            result = bootstrap(*part, measures=measures, resamples=20, **settings)
            rows = scored_rows(*part)
            for measure in measures:
                table = subgroup_table(rows, "group", "score", measure, **settings)
                found = result.to_frame().query("attribute == 'group' and measure == @measure")
                for column in ("group", "n_images", "n_positive", "n_negative", "n_patients"):
                    assert found[column].tolist() == table[column].tolist()
                assert np.array_equal(found["value"], table["value"], equal_nan=True)
                reasons = result.reasons[0, measures.index(measure), 1:]
                assert reasons.tolist() == table["reason"].tolist()


def test_points_and_values_are_read_by_name():
    scores, labels, groups, ids = cohort()
    result = bootstrap(scores, labels, groups, ids, threshold=0.5, resamples=25)
    frame = result.to_frame()
    assert result.measures == ("auroc", "tpr", "fpr", "ece")
    assert result.scores == ("score",)
    assert result.subgroups.shape == (6, 6)
    assert result.point("score", "fpr").tolist() == frame.loc[frame["measure"] == "fpr", "value"].tolist()
    values = result.values("score", "fpr")
    assert values.shape == (6, 25)
    assert values.mean(axis=1) == pytest.approx(frame.loc[frame["measure"] == "fpr", "boot_mean"].to_numpy())
    values[:] = 0.0
    assert result.values("score", "fpr").min() > 0.0  # what is handed out is a copy


def test_the_same_seed_gives_the_same_numbers_on_any_number_of_threads():
    data = cohort(n=900, patients=400)
    one, two = (bootstrap(*data, threshold=0.5, resamples=70, seed=3, threads=t) for t in (1, 3))
    assert np.array_equal(one.replicates, two.replicates)
    other = bootstrap(*data, threshold=0.5, resamples=70, seed=4)
    assert not np.array_equal(one.replicates, other.replicates)


def test_a_group_with_one_class_is_not_estimable_and_makes_no_difference():
    result = bootstrap(
        *([0.1, 0.9, 0.4, 0.3, 0.8, 0.7], [0, 1, 0, 1, 1, 1], list("aaaabb")),
        measures="auroc",
        min_size=1,
        resamples=50,
    )
    frame = result.to_frame()
    b = line(frame, group="b")
    assert (b["status"], b["reason"], b["n_positive"], b["n_negative"]) == (
        "not estimable",
        "0 negatives",
        2,
        0,
    )
    assert b[["value", "boot_mean", "sd", "lo", "hi"]].isna().all()
    assert b["n_undefined"] == 50
    assert np.isnan(result.values("score", "auroc")[2]).all()
    difference = result.difference("score", "auroc", "group")
    assert difference["status"] == "not estimable"
    assert difference["reason"] == "1 of 2 subgroups can be evaluated, and a difference needs 2"
    assert math.isnan(difference["value"])
    assert math.isnan(difference["lo"])


def test_every_level_is_listed_also_small_and_empty_ones():
    scores, labels, _, ids = cohort(n=400, patients=150)
    stage = pd.Categorical(["I"] * 388 + ["II"] * 12, categories=["0", "I", "II"])
    result = bootstrap(scores, labels, pd.Series(stage, name="stage"), ids, threshold=0.5, resamples=20)
    frame = result.to_frame()
    assert result.subgroups["group"].tolist() == ["overall", "0", "I", "II"]
    assert line(frame, group="0", measure="tpr")["reason"] == "fewer than 20 images (0)"
    assert line(frame, group="II", measure="ece")["reason"] == "fewer than 20 images (12)"
    assert line(frame, group="I", measure="ece")["status"] == "ok"
    values = result.values("score", "ece")
    assert np.isnan(values[[1, 3]]).all()  # so that no largest or smallest value is taken from them
    assert not np.isnan(values[[0, 2]]).any()
    assert result.difference("score", "ece", "stage")["n_groups"] == 1


def small_group(n_cases, seed=1):
    """40 images of 40 patients in group b, with so many positives; 200 in group a."""
    generator = np.random.default_rng(seed)
    groups = np.repeat(["a", "b"], [200, 40])
    labels = np.append(generator.random(200) < 0.4, np.arange(40) < n_cases)
    scores = np.clip(0.3 + 0.3 * labels + 0.2 * generator.normal(size=240), 0, 1)
    return scores, labels, groups, np.arange(240)


def test_a_few_positives_leave_resamples_undefined_and_say_how_many():
    result = bootstrap(*small_group(3), measures=("auroc", "fpr"), threshold=0.5, resamples=400)
    b = line(result.to_frame(), group="b", measure="auroc")
    values = result.values("score", "auroc")[2]
    undefined = int(np.isnan(values).sum())
    assert 0 < undefined < 60  # a patient is missed with probability 0.37, three of them with 0.05
    assert b["status"] == "ok"
    assert b["reason"] == f"undefined in {undefined} of 400 resamples"
    assert b["n_undefined"] == undefined
    assert [b["lo"], b["hi"]] == np.percentile(values[~np.isnan(values)], [2.5, 97.5]).tolist()
    assert line(result.to_frame(), group="b", measure="fpr")["reason"] == ""


def test_one_positive_has_a_value_and_no_interval():
    result = bootstrap(*small_group(1), measures=("auroc", "tpr", "fpr"), threshold=0.3, resamples=100)
    for measure in ("auroc", "tpr"):
        b = line(result.to_frame(), group="b", measure=measure)
        assert (b["status"], b["reason"]) == ("not estimable", "1 patient with a positive: no interval")
        assert 0.0 <= b["value"] <= 1.0
        assert b[["boot_mean", "sd", "lo", "hi"]].isna().all()
    assert line(result.to_frame(), group="b", measure="fpr")["status"] == "ok"
    contrast = result.contrast("tpr", attribute="group", groups=("a", "b"))
    assert (contrast["status"], contrast["reason"]) == (
        "not estimable",
        "'b': 1 patient with a positive: no interval",
    )
    assert math.isnan(contrast["p"])


def test_one_negative_and_one_patient_have_no_interval_either():
    scores, labels, groups, ids = small_group(39)
    result = bootstrap(scores, labels, groups, ids, measures=("fpr", "tpr"), threshold=0.5, resamples=30)
    assert line(result.to_frame(), group="b", measure="fpr")["reason"] == (
        "1 patient with a negative: no interval"
    )
    ids = np.where(groups == "b", "the same", ids.astype(str))
    result = bootstrap(scores, labels, groups, ids, measures=("ece",), resamples=30)
    assert line(result.to_frame(), group="b", measure="ece")["reason"] == "1 patient: no interval"


def test_more_than_half_of_the_resamples_undefined_is_not_estimable():
    # Twelve groups with two positives each: some group lacks one in four of five resamples.
    generator = np.random.default_rng(0)
    groups = np.repeat([f"g{i:02d}" for i in range(12)], 30)
    labels = np.tile(np.arange(30) < 2, 12)
    scores = generator.random(360)
    table = {"score": scores, "other": generator.random(360)}
    result = bootstrap(table, labels, groups, np.arange(360), measures="auroc", resamples=200)
    difference = result.difference("score", "auroc", "group")
    assert difference["n_groups"] == 12
    assert difference["n_undefined"] > 100
    assert difference["status"] == "not estimable"
    assert difference["reason"] == f"undefined in {difference['n_undefined']} of 200 resamples"
    assert difference["value"] > 0
    assert math.isnan(difference["hi"])
    contrast = result.contrast("auroc", scores=("score", "other"), attribute="group")
    assert contrast["change"] == result.difference("other", "auroc", "group")["value"] - difference["value"]
    assert (contrast["status"], contrast["reason"]) == ("not estimable", difference["reason"])
    assert math.isnan(contrast["p"])
    frame = result.to_frame().query("score == 'score'")
    assert (frame["status"] == "ok").all()
    assert frame["reason"].str.startswith("undefined in ").sum() == 12


def test_an_interval_without_width_says_so():
    scores, labels, groups, ids = cohort()
    result = bootstrap(scores, labels, groups, ids, measures=("tpr", "fpr"), threshold=2.0, resamples=30)
    rows = result.to_frame()
    assert (rows["value"] == 0).all()
    assert (rows["reason"] == CONSTANT).all()
    assert result.notes == (
        "'score': no positive predictions at the threshold, so its rates are alike in every subgroup.",
    )


def test_no_number_is_missing_without_a_reason():
    scores, labels, groups, ids = small_group(3)
    groups = pd.DataFrame({"group": groups, "half": np.arange(240) % 17})
    frame = bootstrap(
        *(scores, labels, groups, ids),
        measures=tuple(MEASURES),
        threshold=0.95,
        resamples=40,
        intersections=True,
    ).to_frame()
    absent = frame[["value", "boot_mean", "sd", "lo", "hi"]].isna().any(axis=1)
    assert absent.any()
    assert (absent == (frame["status"] == "not estimable")).all()
    assert (frame.loc[absent, "reason"] != "").all()


def test_without_ids_the_unit_is_the_image_and_a_sentence_warns():
    scores, labels, groups, ids = cohort()
    with_ids = bootstrap(scores, labels, groups, ids, measures="auroc", resamples=20)
    without = bootstrap(scores, labels, groups, measures="auroc", resamples=20)
    assert (with_ids.unit, with_ids.notes) == ("patient", ())
    assert (without.unit, without.notes) == ("image (no patient ids)", (NO_PATIENT_IDS,))
    assert set(without.to_frame()["unit"]) == {"image (no patient ids)"}
    assert "unit image (no patient ids)" in repr(without)


def test_images_of_one_patient_move_together_so_that_the_interval_is_wider():
    scores, labels, groups, _ = cohort(n=400, patients=400)
    tripled = (np.repeat(scores, 3), np.repeat(labels, 3), groups.loc[groups.index.repeat(3)])
    clustered = bootstrap(*tripled, np.repeat(np.arange(400), 3), measures="auroc", resamples=400)
    counted = bootstrap(*tripled, measures="auroc", resamples=400)
    alone = bootstrap(scores, labels, groups, measures="auroc", resamples=400)
    sd = [r.to_frame()["sd"].to_numpy() for r in (clustered, counted, alone)]
    assert sd[0] / sd[1] == pytest.approx(math.sqrt(3), rel=0.15)
    assert sd[0] == pytest.approx(sd[2], abs=1e-14)  # three copies of everything change nothing


def test_scores_share_their_resamples():
    scores, labels, groups, ids = cohort()
    table = {"plain": scores, "again": scores, "noisy": np.clip(scores + 0.1 * np.sin(np.arange(600)), 0, 1)}
    result = bootstrap(table, labels, groups, ids, threshold=0.5, resamples=50)
    assert np.array_equal(result.values("plain", "ece"), result.values("again", "ece"))
    alone = bootstrap(scores, labels, groups, ids, threshold=0.5, resamples=50)
    assert np.array_equal(alone.values("score", "ece"), result.values("plain", "ece"))
    same = result.contrast("auroc", scores=("plain", "again"))
    assert (same["change"], same["lo"], same["hi"], same["p"]) == (0.0, 0.0, 0.0, 1.0)
    changed = result.contrast("auroc", scores=("plain", "noisy"), attribute="sex", groups="F")
    difference = result.values("noisy", "auroc")[1] - result.values("plain", "auroc")[1]
    point = result.point("noisy", "auroc")[1] - result.point("plain", "auroc")[1]
    assert changed["change"] == point
    assert [changed["lo"], changed["hi"]] == np.percentile(difference, [2.5, 97.5]).tolist()
    reached = np.count_nonzero(np.abs(difference - difference.mean()) >= abs(point))
    assert changed["p"] == (1 + reached) / 51
    assert (changed["scores"], changed["attribute"], changed["groups"]) == (("plain", "noisy"), "sex", ("F",))


def test_differences_and_their_contrast_are_paired_over_resamples():
    scores, labels, groups, ids = cohort()
    result = bootstrap({"a": scores, "b": scores**3}, labels, groups, ids, threshold=0.5, resamples=60)
    spread = {}
    for name in ("a", "b"):
        values, point = result.values(name, "tpr")[3:], result.point(name, "tpr")[3:]
        spread[name] = values.max(axis=0) - values.min(axis=0)
        found = result.difference(name, "tpr", "age")
        assert found["value"] == point.max() - point.min()
        assert found["boot_mean"] == pytest.approx(spread[name].mean(), abs=1e-15)
        assert [found["lo"], found["hi"]] == np.percentile(spread[name], [2.5, 97.5]).tolist()
        assert (found["n_groups"], found["unit"], found["note"]) == (3, "patient", NO_TEST)
    change = result.contrast("tpr", scores=("a", "b"), attribute="age")
    assert [change["lo"], change["hi"]] == np.percentile(spread["b"] - spread["a"], [2.5, 97.5]).tolist()
    assert change["groups"] == ()


def test_two_subgroups_are_contrasted_as_second_minus_first():
    scores, labels, groups, ids = cohort()
    result = bootstrap(scores, labels, groups, ids, measures="auroc", resamples=60)
    forth = result.contrast("auroc", attribute="sex", groups=("F", "M"))
    back = result.contrast("auroc", attribute="sex", groups=("M", "F"))
    point = result.point("score", "auroc")
    assert forth["change"] == point[2] - point[1] == -back["change"]
    assert (forth["lo"], forth["p"]) == (pytest.approx(-back["hi"], abs=1e-15), back["p"])
    assert forth["groups"] == ("F", "M")


def test_an_intersection_equals_one_column_of_both():
    scores, labels, groups, ids = cohort()
    crossed = bootstrap(scores, labels, groups, ids, measures="ece", resamples=20, intersections=True)
    joined = (groups["sex"] + " & " + groups["age"]).rename("sex x age")
    single = bootstrap(scores, labels, joined, ids, measures="ece", resamples=20)
    of_cross = (crossed.subgroups["attribute"] == "sex x age").to_numpy()
    assert crossed.subgroups.loc[of_cross, "group"].tolist() == single.subgroups["group"].tolist()[1:]
    assert np.array_equal(crossed.values("score", "ece")[of_cross], single.values("score", "ece")[1:])


def test_images_left_out_are_counted():
    scores, labels, groups, ids = cohort()
    labels = labels.astype(float)
    labels[:7] = np.nan
    groups.loc[10:14, "sex"] = None
    with pytest.raises(InputError, match="column 'sex' is blank for 5 of 593 images"):
        bootstrap(scores, labels, groups, ids, measures="auroc", resamples=20)
    dropped = bootstrap(scores, labels, groups, ids, measures="auroc", resamples=20, missing="drop")
    assert dropped.notes[0] == "7 images without a label are left out."
    assert dropped.notes[1].startswith("'sex' is missing for 5 of 593 images")
    assert dropped.notes[1].endswith(ONLY_OVERALL)
    counts = dropped.subgroups.set_index(["attribute", "group"])["n_images"]
    assert counts["overall", "overall"] == 593
    assert counts["sex"].sum() == 588
    assert counts["age"].sum() == 593
    grouped = bootstrap(scores, labels, groups, ids, measures="auroc", resamples=20, missing="group")
    assert not grouped.notes[1].endswith(ONLY_OVERALL)
    assert grouped.subgroups["group"].tolist()[1:4] == ["F", "M", "(missing)"]


def test_thresholds_come_from_each_scores_own_validation():
    scores, labels, groups, ids = cohort()
    table = {"a": scores, "b": scores / 2}
    result = bootstrap(
        *(table, labels, groups, ids),
        measures="tpr",
        validation=({"a": scores, "b": scores / 2}, labels),
        resamples=20,
    )
    assert result.thresholds["b"].value == pytest.approx(result.thresholds["a"].value / 2)
    assert result.point("a", "tpr")[0] == pytest.approx(0.8, abs=0.01)
    assert np.array_equal(result.values("a", "tpr"), result.values("b", "tpr"))
    by_name = bootstrap(
        table, labels, groups, ids, measures="tpr", threshold={"a": 0.6, "b": 0.3}, resamples=20
    )
    assert [by_name.thresholds[s].value for s in "ab"] == [0.6, 0.3]
    decisions = bootstrap((scores > 0.5).astype(int), labels, groups, ids, measures="tpr", resamples=20)
    assert decisions.thresholds["score"].source == "predictions"


def test_logits_are_ranked_as_they_are_and_read_as_probabilities_when_said():
    scores, labels, groups, ids = cohort()
    logits = np.log(scores / (1 - scores))
    raw = bootstrap(scores, labels, groups, ids, measures=("auroc", "ece"), resamples=20)
    said = bootstrap(logits, labels, groups, ids, measures=("auroc", "ece"), resamples=20, scale="logit")
    assert np.array_equal(said.values("score", "auroc"), raw.values("score", "auroc"))
    assert said.values("score", "ece") == pytest.approx(raw.values("score", "ece"), abs=1e-12)
    with pytest.raises(InputError, match=r"lie outside 0 to 1.*scale='logit'"):
        bootstrap(logits, labels, groups, ids, measures=("auroc", "ece"), resamples=20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resamples": 19}, "resamples is 19; give a whole number of at least 20."),
        ({"resamples": 1e3}, "resamples is 1000.0; give a whole number of at least 20."),
        ({"seed": ""}, "seed is ''; give a whole number of at least 0."),
        ({"threads": 0}, "threads is 0; give a whole number of at least 1."),
        ({"measures": ()}, "measures is empty; give at least one of " + ", ".join(MEASURES) + "."),
        ({"measures": ("tpr", "tpr")}, "measures names 'tpr' twice; name each once."),
        ({"measures": "f1"}, "measure is 'f1'; allowed are " + ", ".join(MEASURES) + "."),
        (
            {"groups": {"overall": ["a", "b"] * 300}},
            "A group column is called 'overall', the name of the row for all images; rename it.",
        ),
        (
            {"scores": {"a": np.linspace(0, 1, 600), "b": np.linspace(0, 1, 600)}, "threshold": {"a": 0.5}},
            "threshold has no entry 'b'; give one for every score, under the same names.",
        ),
        (
            {
                "scores": {"a": np.linspace(0, 1, 600), "b": np.linspace(0, 1, 600)},
                "threshold": None,
                "validation": ([0.1, 0.9], [0, 1]),
            },
            "validation has one column of scores for 2 scores, and each needs its own threshold; give a "
            "dictionary or a DataFrame with the same names.",
        ),
    ],
)
def test_what_cannot_be_computed_is_named(change, message):
    scores, labels, groups, ids = cohort()
    arguments = {"scores": scores, "labels": labels, "groups": groups, "patients": ids, "threshold": 0.5}
    with pytest.raises(InputError) as error:
        bootstrap(**arguments | change)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.values("c", "auroc"), "score is 'c'; this bootstrap has 'a', 'b'."),
        (lambda r: r.point("a", "ece"), "measure is 'ece'; this bootstrap has 'auroc'."),
        (
            lambda r: r.difference("a", "auroc", "overall"),
            "attribute is 'overall'; this bootstrap has 'sex', 'age'.",
        ),
        (
            lambda r: r.contrast("auroc", attribute="sex", groups=("F", "M")),
            "scores is None; name one or two of 'a', 'b'.",
        ),
        (
            lambda r: r.contrast("auroc", scores=("a", "b"), attribute="sex", groups=("F", "M")),
            f"2 scores and 2 groups {PAIR_NEEDED}",
        ),
        (
            lambda r: r.contrast("auroc", scores="a"),
            f"1 scores and 1 groups {PAIR_NEEDED}",
        ),
        (
            lambda r: r.contrast("auroc", scores=("a", "b"), groups="F"),
            "groups is 'F' without an attribute; say which attribute it is of.",
        ),
        (
            lambda r: r.contrast("auroc", scores="a", attribute="sex", groups=("F", "X")),
            "group is 'X'; attribute 'sex' has 'F', 'M'.",
        ),
    ],
)
def test_names_that_are_not_in_a_result_are_named(ask, message):
    scores, labels, groups, ids = cohort()
    result = bootstrap({"a": scores, "b": scores}, labels, groups, ids, measures="auroc", resamples=20)
    with pytest.raises(InputError) as error:
        ask(result)
    assert str(error.value) == message


def test_no_error_quotes_a_patient():
    scores, labels, groups, ids = cohort()
    for change in (
        {"labels": np.full(600, 2)},
        {"scores": np.full(600, 7.0)},
        {"min_size": 0},
        {"patients": ids[:5]},
    ):
        arguments = {"scores": scores, "labels": labels, "groups": groups, "patients": ids, "threshold": 0.5}
        with pytest.raises(InputError) as error:
            bootstrap(**arguments | change)
        assert "patient 0" not in str(error.value)

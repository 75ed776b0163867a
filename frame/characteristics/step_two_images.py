"""The whole procedure on drawn images whose truth is known: the chest radiographs of the phantom world.

Sources, sizes, image size, label rules and splits are the demo's, and only the seed of the world changes. The
two sources are those that record race, as for the drawn features
(:mod:`frame.characteristics.step_two`). Images are drawn in memory and seen by the panel's transparent
encoder, means of 16 by 16 blocks; unlike in the demo no file is written in between, so there is no JPEG.

What is planted is known, but not how much of it a fitted head shows. The true difference is therefore that of
the same head on :data:`TIMES` as many images of other patients of the same world: a world with all the same
settings and a seed of its own. With as many images a largest minus a smallest value is still a little above
0 where the head is fair, so what a fair head shows on them stands beside. Attributes are read there as they
are true, since what is not recorded is so at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.audits import audit
from frame.characteristics.step_two_runs import DIGITS, STEP_TWO
from frame.cohorts.harmonise import age_band
from frame.cohorts.labels import LabelPolicy, resolve_labels
from frame.cohorts.phantom.drawing import drawing_table, pictures
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.truth import SPLIT_RULES, PhantomTruth, Sizes
from frame.cohorts.splits import hashed_split
from frame.errors import InputError
from frame.figures.phantom_decoding import block_means
from frame.heads.disease_heads import Head, fit_head
from frame.interventions.decision import VERDICTS, decide
from frame.interventions.procedure import mechanism

if TYPE_CHECKING:
    from frame.audits import Audit
    from frame.interventions.verdict import Verdict

__all__ = [
    "ATTRIBUTES",
    "COLUMNS",
    "DESIGN",
    "FINDINGS",
    "GROUP_COLUMNS",
    "LARGEST_K",
    "POLICY",
    "SEEDS",
    "SETTINGS",
    "SOURCES",
    "SPLIT_SEED",
    "TIMES",
    "TRUTH_SEED",
    "DrawnWorld",
    "ImageDesign",
    "audit_unit",
    "cohort_rows",
    "draw_world",
    "planted",
    "run_seed",
    "truth_world",
]

Floats = NDArray[np.float64]

#: Seeds of the worlds.
SEEDS: Final = range(5)
#: The demo's sources that record race.
SOURCES: Final = ("mimic_cxr", "chexpert")
#: A common finding, the one with planted label noise, a rare one, and the control that age leaves alone.
FINDINGS: Final = ("pleural_effusion", "cardiomegaly", "fracture", "support_devices")
ATTRIBUTES: Final = ("race", "age", "sex")
#: Images of the truth for each test image, and what is added to a seed for their world.
TIMES: Final = 20
TRUTH_SEED: Final = 1_000_000
#: Seed of CheXpert's hashed split, as in the demo.
SPLIT_SEED: Final = 0
#: The demo's reading of labels.
POLICY: Final = LabelPolicy(uncertain="negative", blank="missing")
#: Largest k of the default grid that is at most half of the 256 means.
LARGEST_K: Final = 64
SETTINGS: Final[dict[str, Any]] = STEP_TWO | {"entanglement_strengths": (0, LARGEST_K)}
_ALPHA: Final = 0.05
#: A level of step one that lets every difference through.
_OPEN: Final = math.nextafter(1.0, 0.0)
#: Images that are drawn and seen together.
_BLOCK: Final = 500
_CHANGES: Final = ("decodability", "entanglement", "disease")
#: Columns of a row; blank where there is no value.
COLUMNS: Final = (
    *("seed", "attribute", "finding", "planted"),
    *("n_images", "n_positive", "n_patients", "n_groups"),
    *("observed", "reference", "reference_lo", "reference_hi", "p", "lo", "hi"),
    *("truth_images", "truth_positive", "truth_patients", "truth_labelled", "truth_labelled_positive"),
    *("truth_recorded", "truth_recorded_reference", "truth_actual", "truth_actual_reference"),
    *("holds_recorded", "holds_actual", "verdict", "verdict_of_step_two"),
    *(f"{name}_{end}" for name in _CHANGES for end in ("change", "lo", "hi")),
    *("precondition", "status", "reason"),
)
#: Columns of a row about one group of a unit.
GROUP_COLUMNS: Final = (
    *("seed", "attribute", "finding", "group", "n_images", "n_positive", "n_patients", "value"),
    *("truth_labelled", "truth_labelled_positive", "truth_recorded"),
    *("truth_images", "truth_positive", "truth_actual", "status", "reason"),
)


@dataclass(frozen=True)
class ImageDesign:
    """What is drawn.

    Attributes
    ----------
    sizes : mapping of str to Sizes, optional
        Images of each source; None is the demo's.
    times : int
        Images of the truth for each test image.
    side : int
        Pixels a side.
    findings : tuple of str
    settings : mapping
        Of step two.
    """

    sizes: Mapping[str, Sizes] | None = None
    times: int = TIMES
    side: int = 64
    findings: tuple[str, ...] = FINDINGS
    settings: Mapping[str, Any] = field(default_factory=lambda: dict(SETTINGS))

    def truth(self, seed: int) -> PhantomTruth:
        """The world with this seed, without the sources that are not drawn."""
        world = PhantomTruth(seed=seed)
        sizes = {name: (self.sizes or world.chest)[name] for name in SOURCES}
        return world.model_copy(update={"chest": sizes, "skin": {}, "fundus": {}})


DESIGN: Final = ImageDesign()


@dataclass(frozen=True, eq=False)
class DrawnWorld:
    """The cohort of one seed; no image is part of the text of this object.

    Attributes
    ----------
    seed : int
    features : ndarray of float64, shape (images, 256)
    people : DataFrame
        ``source, patient, split`` and the attributes as they are recorded.
    labels : mapping of str to ndarray of float64, shape (images,)
        Recorded labels of each finding: 0, 1 or NaN.
    heads : mapping of str to Head
        Fitted to the training rows with a label.
    """

    seed: int
    features: Floats = field(repr=False)
    people: pd.DataFrame = field(repr=False)
    labels: Mapping[str, Floats] = field(repr=False)
    heads: Mapping[str, Head] = field(repr=False)

    def rows(self, split: str, finding: str) -> NDArray[np.bool_]:
        """Rows of a split with a label of a finding."""
        return (self.people["split"] == split).to_numpy() & ~np.isnan(self.labels[finding])


def planted(attribute: str, finding: str) -> str:
    """What is planted in a unit, in words."""
    truth = PhantomTruth()
    if attribute == "age":
        return "control" if finding == truth.age.control else "oldest fainter"
    if attribute == "race":
        noisy = finding == truth.noise.finding
        return f"label noise in {truth.noise.group}" if noisy else "decodable, fair"
    return "nothing"


def draw_world(seed: int, design: ImageDesign = DESIGN) -> DrawnWorld:
    """Draw the cohort of a seed and fit its heads.

    Parameters
    ----------
    seed : int
        Of the world, below :data:`TRUTH_SEED`.
    design : ImageDesign

    Returns
    -------
    DrawnWorld
    """
    truth = design.truth(seed)
    images, people = cohort_rows(truth)
    features = np.concatenate(
        [
            seen
            for source in SOURCES
            for _, seen in _seen(truth, source, images[images["source"] == source], design.side)
        ]
    )
    labels = {name: _labels(images, name) for name in design.findings}
    train = (people["split"] == "train").to_numpy()
    heads = {}
    for name, own in labels.items():
        rows = train & ~np.isnan(own)
        heads[name] = fit_head(features[rows], own[rows], threads=1)
    return DrawnWorld(seed, features, people, labels, heads)


def cohort_rows(truth: PhantomTruth) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The images of a cohort, and what is recorded of them as the demo reads it.

    Parameters
    ----------
    truth : PhantomTruth
        Of :meth:`ImageDesign.truth`.

    Returns
    -------
    images : DataFrame
        Rows of :func:`frame.cohorts.phantom.population.population`, one source after the other.
    people : DataFrame
        The same rows: ``source``, ``patient``, ``split`` (MIMIC's as released, CheXpert's by hash), ``race``,
        ``age`` (the band) and ``sex``, missing where nothing is recorded.
    """
    images = pd.concat([population(truth, source) for source in SOURCES], ignore_index=True)
    patients = images["source"] + ":" + images["patient_id"].astype(str)
    released = images["source"].map(SPLIT_RULES) == "released"
    people = pd.DataFrame(
        {
            "source": images["source"],
            "patient": patients,
            "split": images["released_split"].where(released, hashed_split(patients, SPLIT_SEED)),
            "race": images["race_recorded"],
            "age": age_band(images["age_recorded"]),
            "sex": images["sex_recorded"],
        }
    )
    return images, people


def truth_world(world: DrawnWorld, design: ImageDesign = DESIGN) -> PhantomTruth:
    """The world of the images of truth: other patients, and :attr:`ImageDesign.times` as many test images.

    Parameters
    ----------
    world : DrawnWorld
    design : ImageDesign

    Returns
    -------
    PhantomTruth
        With as many images of each source as its number of test images times ``design.times``, all of them
        in one split or, where the split is a hash, in none.
    """
    test = world.people.loc[world.people["split"] == "test", "source"].value_counts()
    sizes = {name: Sizes(train=0, validation=0, test=int(test[name]) * design.times) for name in SOURCES}
    return design.truth(TRUTH_SEED + world.seed).model_copy(update={"chest": sizes})


def run_seed(seed: int, design: ImageDesign = DESIGN) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw a world and its truth, and ask the procedure about every attribute and finding.

    Parameters
    ----------
    seed : int
    design : ImageDesign

    Returns
    -------
    tuple of two DataFrame
        A row per attribute and finding (:data:`COLUMNS`), and one per group of each (:data:`GROUP_COLUMNS`);
        numbers have :data:`frame.characteristics.step_two_runs.DIGITS` decimals. A unit that the procedure
        refuses has a row with the reason.
    """
    world = draw_world(seed, design)
    judged = _truth_scores(world, design)
    rows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for attribute in ATTRIBUTES:
        for finding in design.findings:
            row, parts = _unit(world, judged, attribute, finding, design.settings)
            rows.append(row)
            groups += parts
    return (
        pd.DataFrame(rows, columns=list(COLUMNS)).round(DIGITS),
        pd.DataFrame(groups, columns=list(GROUP_COLUMNS)).round(DIGITS),
    )


def audit_unit(world: DrawnWorld, attribute: str, finding: str) -> Audit:
    """Step one of one unit: the audit of the fitted head on the test images.

    Parameters
    ----------
    world : DrawnWorld
    attribute, finding : str

    Returns
    -------
    Audit
    """
    rows = world.rows("test", finding)
    return _audit(
        world.heads[finding].logit(world.features[rows]),
        world.labels[finding][rows],
        world.people[attribute][rows],
        world.people["patient"][rows],
    )


# -- drawing ------------------------------------------------------------------------------------------


def _seen(
    truth: PhantomTruth, source: str, table: pd.DataFrame, side: int
) -> Iterator[tuple[pd.DataFrame, Floats]]:
    """Rows of a population, block by block, with the features of their images."""
    drawing = drawing_table(truth, table)
    for start in range(0, len(table), _BLOCK):
        rows = slice(start, start + _BLOCK)
        yield table.iloc[rows], block_means(pictures(drawing.iloc[rows], source, side))


def _labels(images: pd.DataFrame, finding: str) -> Floats:
    return resolve_labels(images[f"{finding}_recorded"], POLICY).to_numpy(dtype=np.float64)


def _truth_scores(world: DrawnWorld, design: ImageDesign) -> pd.DataFrame:
    """Scores, labels and attributes of the images of truth; no image or feature is kept.

    ``patient``, the attributes, and for each finding its score, ``<finding>_recorded`` (0, 1 or NaN) and
    ``<finding>_actual``.
    """
    truth = truth_world(world, design)
    parts = []
    for source in SOURCES:
        for images, features in _seen(truth, source, population(truth, source), design.side):
            kept = pd.DataFrame(
                {
                    "patient": source + ":" + images["patient_id"].astype(str),
                    "race": images["race"],
                    "age": age_band(images["age"]),
                    "sex": images["sex"],
                }
            )
            for finding, head in world.heads.items():
                kept[finding] = head.logit(features)
                kept[f"{finding}_recorded"] = _labels(images, finding)
                kept[f"{finding}_actual"] = images[f"{finding}_true"].to_numpy(dtype=np.float64)
            parts.append(kept)
    return pd.concat(parts, ignore_index=True)


# -- judging ------------------------------------------------------------------------------------------


def _audit(scores: Floats, labels: Floats, groups: pd.Series, patients: pd.Series) -> Audit:
    return audit(
        scores,
        labels,
        groups.to_numpy(dtype=object),
        patients=patients.to_numpy(dtype=object),
        scale="logit",
        missing="drop",
        resamples=SETTINGS["resamples"],
    )


def _unit(
    world: DrawnWorld, judged: pd.DataFrame, attribute: str, finding: str, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Row of one attribute and finding, and the rows of its groups."""
    named = {"seed": world.seed, "attribute": attribute, "finding": finding}
    row: dict[str, Any] = {**dict.fromkeys(COLUMNS, math.nan), **named}
    row["planted"] = planted(attribute, finding)
    row |= dict.fromkeys(("verdict", "verdict_of_step_two", "precondition", "reason"), "")
    row |= {"holds_recorded": "", "holds_actual": "", "status": "ok"}
    truths = {}
    for kind, counts in (("recorded", "truth_labelled"), ("actual", "truth_images")):
        known = judged[f"{finding}_{kind}"].notna()
        part = judged[known]
        labels = part[f"{finding}_{kind}"].to_numpy(dtype=np.float64)
        row[counts] = len(part)
        row["truth_positive" if kind == "actual" else f"{counts}_positive"] = int(labels.sum())
        try:
            found = _audit(part[finding].to_numpy(dtype=np.float64), labels, part[attribute], part["patient"])
        except InputError as problem:
            return _failed(row, f"the truth cannot be told: {problem}"), []
        truths[kind] = found
        row[f"truth_{kind}"] = found.observed
        if found.reference is not None:
            row[f"truth_{kind}_reference"] = found.reference.mean
    row["truth_patients"] = int(judged["patient"].nunique())
    try:
        verdict = mechanism(
            world.features,
            pd.Series(world.labels[finding], name=finding),
            pd.Series(world.people[attribute].to_numpy(dtype=object), name=attribute),
            world.people["split"].to_numpy(dtype=object),
            patients=world.people["patient"].to_numpy(dtype=object),
            alpha=_OPEN,
            **settings,
        )
    except InputError as problem:
        return _failed(row, str(problem)), []
    row |= _said(verdict)
    for kind, found in truths.items():
        # Differences of other groups are not what the interval is about.
        alike = _evaluable(found) == _evaluable(verdict.step_one)
        if alike and not math.isnan(row["lo"]) and not math.isnan(found.observed):
            row[f"holds_{kind}"] = "yes" if row["lo"] <= found.observed <= row["hi"] else "no"
    return row, _groups(named, verdict.step_one, truths)


def _evaluable(found: Audit) -> set[str]:
    return set(found.table.loc[found.table["evaluable"].astype(bool), "group"].astype(str))


def _failed(row: dict[str, Any], reason: str) -> dict[str, Any]:
    return row | {"status": "not estimable", "reason": reason.rstrip(".")}


def _said(found: Verdict) -> dict[str, Any]:
    """What step one and step two say of a unit."""
    one, decided, held = found.step_one, found.decided, found.precondition
    gate = {"p": one.p, "alpha": _ALPHA, "reason": one.reason}
    row: dict[str, Any] = {
        "n_images": one.n_images,
        "n_positive": one.n_positive,
        "n_patients": one.n_patients,
        "n_groups": int(one.table["evaluable"].sum()),
        "observed": one.observed,
        "p": one.p,
    }
    row["lo"], row["hi"] = one.interval
    if one.reference is not None:
        row["reference"] = one.reference.mean
        row["reference_lo"], row["reference_hi"] = one.reference.interval
    # Where step two has not run, step one has no p or one of 1, and its verdict is the whole.
    row["verdict"], reasons = (found.verdict, found.reasons) if held is None else decide(gate, decided, held)
    beyond: tuple[str, ...] = ()
    if held is not None:
        row["verdict_of_step_two"], beyond = decide({"p": 0.0, "alpha": 1.0, "reason": ""}, decided, held)
        row["precondition"] = {True: "yes", False: "no", None: ""}[held.holds]
        changes = {name: decided[name] for name in _CHANGES[:2]} | {"disease": held.change}
        for name, change in changes.items():
            row |= {f"{name}_{end}": getattr(change, end) for end in ("change", "lo", "hi")}
    assert row["verdict"] in VERDICTS
    missing = math.isnan(one.observed) or math.isnan(one.p) or held is None
    why = one.reason or "; ".join(reasons) or "step two was not run"
    row["status"] = "not estimable" if missing else "ok"
    row["reason"] = why if missing else "; ".join(reasons or beyond)
    return row


def _groups(named: Mapping[str, Any], one: Audit, truths: Mapping[str, Audit]) -> list[dict[str, Any]]:
    """A row per group of the cohort: its value on test, and in truth."""
    tables = {kind: found.table.set_index("group") for kind, found in truths.items()}
    rows = []
    for own in one.table.to_dict("records"):
        group = own["group"]
        row: dict[str, Any] = {**dict.fromkeys(GROUP_COLUMNS, math.nan), **named, "group": group}
        row |= {name: own[name] for name in ("n_images", "n_positive", "n_patients", "value")}
        row |= {"status": own["status"], "reason": own["reason"]}
        for kind, counts in (("recorded", "truth_labelled"), ("actual", "truth_images")):
            true = tables[kind].loc[group] if group in tables[kind].index else None
            row[f"truth_{kind}"] = math.nan if true is None else true["value"]
            row[counts] = 0 if true is None else true["n_images"]
            positive = "truth_positive" if kind == "actual" else "truth_labelled_positive"
            row[positive] = 0 if true is None else true["n_positive"]
        rows.append(row)
    return rows

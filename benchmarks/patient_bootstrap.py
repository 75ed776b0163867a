"""The patient bootstrap against loops over scikit-learn, fairlearn and a DataFrame, and its growth with rows.

Simulated scores, the same in every way, in one run. The slow ways are timed on a few resamples and scaled
to 1,000. Beside each time stands the largest difference of its values from ours: of the replicates, on
the same multiplicities of patients, or of the values on the data where a way draws for itself.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from frame.inference.multiplicities import patient_multiplicities
from frame.inference.resampling import bootstrap

MEASURES = ("auroc", "tpr", "fpr", "ece")
THRESHOLD = 0.3
RESAMPLES = 1000
#: Images, patients and levels of each attribute of the comparison: overall and nine subgroups.
IMAGES, PATIENTS, LEVELS = 126_000, 41_621, {"sex": 2, "age": 4, "race": 3}
_REPEATS = 3
#: Seconds and MB, for the comparison and for a million rows.
_LIMITS = {126_000: (3.0, 1000.0), 1_000_000: (30.0, 2000.0)}
#: Our time is to go at least this often into that of this way.
_TIMES_FASTER, _JUDGED = 100.0, "scikit-learn loop"


@dataclass
class Cohort:
    scores: np.ndarray
    labels: np.ndarray
    patients: np.ndarray
    groups: pd.DataFrame

    def bootstrap(self, resamples: int = RESAMPLES):
        return bootstrap(
            *(self.scores, self.labels, self.groups, self.patients),
            measures=MEASURES,
            threshold=THRESHOLD,
            resamples=resamples,
        )


def simulated(n_images: int, n_patients: int, levels: dict[str, int], seed: int = 0) -> Cohort:
    """Every patient has an image and a level of each attribute; a tenth of the images is positive."""
    generator = np.random.default_rng(seed)
    further = generator.integers(0, n_patients, n_images - n_patients)
    patients = np.sort(np.append(np.arange(n_patients), further))
    labels = (generator.random(n_images) < 0.1).astype(np.int64)
    signal = (
        generator.normal(size=n_images) + 0.5 * generator.normal(size=n_patients)[patients] + 1.2 * labels
    )
    groups = {
        name: np.array([f"{name} {k}" for k in range(size)])[
            generator.integers(0, size, n_patients)[patients]
        ]
        for name, size in levels.items()
    }
    return Cohort(1 / (1 + np.exp(2 - signal)), labels, patients, pd.DataFrame(groups))


def calibration_error(labels: np.ndarray, scores: np.ndarray) -> float:
    bins = np.searchsorted(np.arange(1, 15) / 15, scores, side="right")
    observed = np.bincount(bins, weights=labels, minlength=15)
    return float(np.abs(observed - np.bincount(bins, weights=scores, minlength=15)).sum() / len(labels))


def with_scikit_learn(labels: np.ndarray, scores: np.ndarray) -> list[float]:
    from sklearn.metrics import confusion_matrix, roc_auc_score

    (tn, fp), (fn, tp) = confusion_matrix(labels, scores >= THRESHOLD)
    area = roc_auc_score(labels, scores)
    return [area, tp / (tp + fn), fp / (fp + tn), calibration_error(labels, scores)]


def with_numpy_rates(labels: np.ndarray, scores: np.ndarray) -> list[float]:
    from sklearn.metrics import roc_auc_score

    decided, positive = scores >= THRESHOLD, labels == 1
    area = roc_auc_score(labels, scores)
    return [area, decided[positive].mean(), decided[~positive].mean(), calibration_error(labels, scores)]


def row_loop(cohort: Cohort, table: np.ndarray, measures: Callable[..., list[float]]) -> np.ndarray:
    """Arrays and row indices, one process; shape (resamples, subgroups, measures)."""
    rows_of = [np.arange(len(cohort.scores))]
    for name, size in LEVELS.items():
        column = cohort.groups[name].to_numpy()
        rows_of += [np.flatnonzero(column == f"{name} {k}") for k in range(size)]
    values = []
    for times in table.T:
        drawn = [np.repeat(rows, times[cohort.patients[rows]]) for rows in rows_of]
        values.append([measures(cohort.labels[rows], cohort.scores[rows]) for rows in drawn])
    return np.array(values)


def frame_loop(cohort: Cohort, table: np.ndarray) -> np.ndarray:
    """A DataFrame merged with the drawn patients, then grouped by each attribute."""
    frame = cohort.groups.assign(patient=cohort.patients, label=cohort.labels, score=cohort.scores)

    def measured(part: pd.DataFrame) -> list[float]:
        return with_scikit_learn(part["label"].to_numpy(), part["score"].to_numpy())

    values = []
    for times in table.T:
        drawn = pd.DataFrame({"patient": np.repeat(np.arange(len(times)), times)})
        resampled = drawn.merge(frame, on="patient")
        lines = [measured(resampled)]
        for name in LEVELS:
            lines += [measured(part) for _, part in resampled.groupby(name)]
        values.append(lines)
    return np.array(values)


def metric_frames(cohort: Cohort, resamples: int) -> np.ndarray:
    """fairlearn's own bootstrap, one MetricFrame per attribute; the values on the data."""
    from fairlearn.metrics import MetricFrame, false_positive_rate, true_positive_rate
    from sklearn.metrics import roc_auc_score

    metrics = {
        "auroc": roc_auc_score,
        "tpr": lambda y, s: true_positive_rate(y, s >= THRESHOLD, pos_label=1),
        "fpr": lambda y, s: false_positive_rate(y, s >= THRESHOLD, pos_label=1),
        "ece": lambda y, s: calibration_error(np.asarray(y), np.asarray(s)),
    }
    lines = []
    for name in LEVELS:
        found = MetricFrame(
            metrics=metrics,
            y_true=cohort.labels,
            y_pred=cohort.scores,
            sensitive_features=cohort.groups[[name]],
            n_boot=resamples or None,
            ci_quantiles=[0.025, 0.975] if resamples else None,
            random_state=0,
        )
        lines += [found.overall.to_numpy()[None]] if not lines else []
        lines.append(found.by_group.sort_index().to_numpy())
    return np.concatenate(lines).astype(float)


def timed(function: Callable[..., np.ndarray], *arguments: object) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    values = function(*arguments)
    return time.perf_counter() - start, values


def child(n_images: int, n_patients: int, levels: dict[str, int]) -> None:
    """Print the seconds of loading, those of one call on the clock and on all processors, and the peak MB."""
    start = time.perf_counter()
    simulated(100, 50, {"group": 2}).bootstrap(20)  # compiles, or loads what was compiled before
    loading = time.perf_counter() - start
    cohort = simulated(n_images, n_patients, levels)
    start, processors = time.perf_counter(), time.process_time()
    cohort.bootstrap()
    seconds, processors = time.perf_counter() - start, time.process_time() - processors
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([loading, seconds, processors, kilobytes / 1024]))


def in_a_child(n_images: int, n_patients: int, levels: dict[str, int]) -> list[float]:
    code = f"from benchmarks.patient_bootstrap import child; child({n_images}, {n_patients}, {levels!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(number) for number in json.loads(done.stdout)]


def compare() -> Table:
    cohort = simulated(IMAGES, PATIENTS, LEVELS)
    cohort.bootstrap(20)  # compiles, or loads what was compiled before: 'loading' in the second table
    runs = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        result = cohort.bootstrap()
        runs.append(time.perf_counter() - start)
    ours = statistics.median(runs)
    replicates = result.replicates[0].transpose(2, 1, 0)
    points = result.points[0].T

    table = Table(
        title=f"Patient bootstrap, {RESAMPLES:,} resamples x {len(MEASURES)} measures x 10 sets of images"
    )
    for heading in ("way", "draws", "timed", "time", "against ours", "at least", "largest difference"):
        table.add_column(heading, justify="left" if heading in ("way", "draws") else "right")
    table.add_row("frame.bootstrap", "patients", f"{RESAMPLES:,} x {_REPEATS}", f"{ours:.2f} s", "1", "", "0")

    def add(way: str, draws: str, timed_on: int, per_resample: float, difference: float) -> None:
        total = per_resample * RESAMPLES
        aim = (
            f"{_TIMES_FASTER:g}: {'yes' if total >= _TIMES_FASTER * ours else 'NO'}" if way == _JUDGED else ""
        )
        table.add_row(
            *(way, draws, f"{timed_on}, scaled", f"{total:,.0f} s"),
            *(f"{total / ours:,.0f}", aim, f"{difference:.0e}"),
        )

    ways: dict[str, tuple[int, Callable[[np.ndarray], np.ndarray]]] = {
        _JUDGED: (3, lambda t: row_loop(cohort, t, with_scikit_learn)),
        "the same, rates in numpy": (3, lambda t: row_loop(cohort, t, with_numpy_rates)),
        "DataFrame, merged": (2, lambda t: frame_loop(cohort, t)),
    }
    for way, (count, function) in ways.items():
        multiplicities = patient_multiplicities(PATIENTS, count)
        function(multiplicities[:, :1])  # imports and caches are not what is compared
        spent, values = timed(function, multiplicities)
        add(way, "patients", count, spent / count, float(np.abs(values - replicates[:count]).max()))
    count = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own deprecations
        once, values = timed(metric_frames, cohort, 0)
        spent, _ = timed(metric_frames, cohort, count)
    add(
        "fairlearn, n_boot",
        "images",
        count,
        (spent - once) / count,
        float(np.abs(values - points).max()),
    )
    return table


def grow() -> Table:
    table = Table(title=f"Whole processes, {RESAMPLES:,} resamples x {len(MEASURES)} measures")
    for heading in (
        *("images", "patients", "sets", "loading", "time", "processors"),
        *("a million", "memory", "limits", "within"),
    ):
        table.add_column(heading, justify="right")
    sizes = [
        (IMAGES, PATIENTS, LEVELS),
        *((n, n // 3, {"group": 8}) for n in (250_000, 500_000, 1_000_000)),
        (1_000_000, 1_000_000, {"group": 8}),
    ]
    for n_images, n_patients, levels in sizes:
        loading, seconds, processors, megabytes = in_a_child(n_images, n_patients, levels)
        limit = _LIMITS.get(n_images)
        within = "" if limit is None else "yes" if seconds <= limit[0] and megabytes <= limit[1] else "NO"
        table.add_row(
            *(f"{n_images:,}", f"{n_patients:,}", str(1 + sum(levels.values())), f"{loading:.1f} s"),
            *(f"{seconds:.1f} s", f"{processors:.1f} s", f"{processors * 1e6 / n_images:.1f} s"),
            *(
                f"{megabytes:.0f} MB",
                "" if limit is None else f"{limit[0]:g} s, {limit[1] / 1000:g} GB",
                within,
            ),
        )
    return table


def run() -> None:
    console = Console(width=110)
    console.print(compare())
    console.print(
        "The largest difference is between replicates on the same draws; for fairlearn, which draws images "
        "for itself, between the values on the data. 'scaled': timed on that many resamples, given for 1,000."
    )
    console.print(grow())
    console.print(
        "'loading': a first, small call, which compiles or loads what was compiled before. 'processors': "
        "seconds of all of them together, which a busy machine changes less than the time; the column beside "
        "it is those for a million images, so that growth in line with the images shows as one number. The "
        "limits are meant for two idle processors."
    )

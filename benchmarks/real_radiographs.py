"""Do stored vectors hold what is seen in real radiographs? EfficientNet-Lite0 and a linear head.

The 621 frontal radiographs of 621 patients are a selection of NIH ChestX-ray14 (NIH Clinical Center) that
lies beside a clone of this project, with rare findings over-represented: the numbers say that vectors carry
the findings, not how well a model would do in a hospital. The weights were trained on photographs. The head
was fixed before any number was seen; both ways of preprocessing are shown.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT.parent / "shared" / "data" / "real" / "nih_cxr"
ENCODER = "efficientnet_lite0"
FINDINGS = ("Effusion", "Cardiomegaly")
FOLDS, SEED, RESAMPLES = 5, 0, 2000
#: Inverse strength of the ridge penalty of the head, on standardised numbers.
_PENALTY = 0.01


def extract(folder: Path, target: Path, mode: str) -> tuple[np.ndarray, pd.DataFrame]:
    """Vectors of all radiographs, through image preparation and the feature store, and their table."""
    from frame.cohorts.image_rows import open_image_rows
    from frame.cohorts.images import prepare_images
    from frame.encoders.extraction import extract_features
    from frame.encoders.features import open_features
    from frame.encoders.loaders import load_encoder

    raw = pd.read_csv(folder / "metadata.csv", dtype=str, keep_default_na=False)
    table = pd.DataFrame(
        {"image_id": "nih_cxr14:" + raw["Image Index"], "file": "images/" + raw["Image Index"]}
    )
    prepare_images(table, folder, target / "images", size=224)
    digest = "0" * 64  # there is no manifest
    extract_features(
        load_encoder(ENCODER, mode=mode),
        open_image_rows(target / "images"),
        table["image_id"],
        target / ENCODER,
        manifest_sha256=digest,
        dtype="float16",
    )
    return open_features(target / ENCODER, manifest_sha256=digest).read(dtype="float64"), raw


def held_out_scores(vectors: np.ndarray, labels: np.ndarray, patients: pd.Series) -> np.ndarray:
    """Score of each image by a head that has not seen its patient."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scores = np.full(len(labels), np.nan)
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=SEED)
    for train, test in folds.split(vectors, labels, patients):
        head = make_pipeline(StandardScaler(), LogisticRegression(C=_PENALTY, max_iter=2000))
        scores[test] = head.fit(vectors[train], labels[train]).predict_proba(vectors[test])[:, 1]
    return scores


def results(mode: str, folder: Path = FOLDER) -> pd.DataFrame:
    """Cross-validated AUROC of each finding with its patient-bootstrap interval.

    Parameters
    ----------
    mode : {"native", "shared"}
        Preprocessing.
    folder : Path
        Of the radiographs and their table.

    Returns
    -------
    pandas.DataFrame
        finding, n_images, n_positive, n_patients, auroc, lo, hi.
    """
    import frame

    with tempfile.TemporaryDirectory() as target:
        vectors, raw = extract(folder, Path(target), mode)
    rows = []
    for finding in FINDINGS:
        labels = raw["Finding Labels"].str.split("|").map(lambda named, finding=finding: finding in named)
        labels = labels.to_numpy().astype(int)
        scores = held_out_scores(vectors, labels, raw["Patient ID"])
        found = frame.bootstrap(
            scores,
            labels,
            raw["Patient Gender"],
            raw["Patient ID"],
            measures="auroc",
            resamples=RESAMPLES,
            seed=SEED,
        ).to_frame()
        overall = found[found["attribute"] == "overall"].iloc[0]
        rows.append(
            {
                "finding": finding,
                **{key: int(overall[key]) for key in ("n_images", "n_positive", "n_patients")},
                "auroc": overall["value"],
                "lo": overall["lo"],
                "hi": overall["hi"],
            }
        )
    return pd.DataFrame(rows)


def run() -> None:
    if not FOLDER.is_dir():
        sys.exit("The radiographs are not there: no folder shared/data/real/nih_cxr beside the clone.")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    print(f"{ENCODER}, ridge-penalised logistic head, {FOLDS} folds over patients, {RESAMPLES:,} resamples")
    for mode in ("native", "shared"):
        for row in results(mode).itertuples():
            counts = f"{row.n_positive} positive of {row.n_images} images of {row.n_patients} patients"
            interval = f"{row.auroc:.3f} [{row.lo:.3f}, {row.hi:.3f}]"
            print(f"{mode} preprocessing, {row.finding:<12} AUROC {interval}, {counts}")


if __name__ == "__main__":
    run()

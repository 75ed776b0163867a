"""Read the versioned tables of operating characteristics, and say whether they are up to date."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frame.tables import load_table, table_path

if TYPE_CHECKING:
    import pandas as pd

#: Modules that the tables depend on.
SOURCES = (
    "characteristics/cells.py",
    "characteristics/operating.py",
    "characteristics/simulation.py",
    "characteristics/worlds.py",
    "inference/exchangeability.py",
    "inference/kernels.py",
    "inference/multiplicities.py",
    "inference/permutation_kernels.py",
    "inference/replicates.py",
    "measures/values.py",
    "reference/calibrated.py",
    "reference/clustered_rates.py",
    "reference/exact_auroc.py",
    "reference/exact_rates.py",
    "reference/heterogeneity.py",
    "reference/placement.py",
    "reference/roots.py",
    "reference/subgroup_values.py",
    "reference/variances.py",
)

_FLAGS = ("repeats", "shifted", "large_groups")
_WHOLE = ("dropped_size", "cohorts", "estimable", "rejected", "rejected_of_repeated")
_NUMBERS = (
    "auroc",
    "prevalence",
    "drop",
    "size",
    "size_lo",
    "size_hi",
    "observed_mean",
    "reference_mean",
    "ratio",
)


def sources_digest() -> str:
    """SHA-256 over the modules that the tables depend on."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((Path(__file__).parents[1] / name).read_bytes())
    return digest.hexdigest()


def characteristics(name: str) -> pd.DataFrame:
    """One table of operating characteristics.

    Parameters
    ----------
    name : str
        ``sizes_auroc``, ``sizes_tpr``, ``sizes_fpr`` or ``power_auroc``.

    Returns
    -------
    DataFrame
        One row per cell and method, columns :data:`frame.characteristics.simulation.COLUMNS`, typed; NaN
        where a method has no reference.

    Raises
    ------
    InputError
        If the table is missing or damaged.
    """
    import pandas as pd

    table = load_table(name)
    for column in _FLAGS:
        table[column] = table[column] == "True"
    for column in _WHOLE:
        table[column] = table[column].astype("int64")
    for column in _NUMBERS:
        table[column] = pd.to_numeric(table[column].replace("", None))
    return table


def sidecar(name: str) -> dict[str, Any]:
    """How a table was made: cells, cohorts, seed, and the digest of the modules it depends on."""
    found: dict[str, Any] = json.loads(table_path(name).with_suffix(".json").read_text(encoding="utf-8"))
    return found

"""One module per source: its released files, read into the rows of one common table.

Every module has ``read_rows(files)``; those of sources with reports also have ``read_reports(files, table)``.
:mod:`frame.cohorts.sites.contract` says what both take and give.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from frame.errors import InputError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["SITES", "site_module"]

#: The ten sources in the order of the paper's Table 1.
SITES: Final = (
    "mimic_cxr",
    "chexpert",
    "nih_cxr14",
    "padchest",
    "vindr_cxr",
    "vindr_pcxr",
    "ddi",
    "fitzpatrick17k",
    "isic_2019",
    "fairvision",
)


def site_module(name: str) -> ModuleType:
    """Import the module that reads one source.

    Parameters
    ----------
    name : str
        One of :data:`SITES`.

    Returns
    -------
    module
        With the function ``read_rows``.

    Raises
    ------
    frame.InputError
        If there is no such source.
    """
    if name not in SITES:
        raise InputError(f"There is no source {name!r}; the sources are {', '.join(SITES)}.")
    return import_module(f"frame.cohorts.sites.{name}")

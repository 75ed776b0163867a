"""FRAME: audit a reported subgroup difference in medical imaging.

Step one asks how large a max-min difference between subgroups an exactly fair model would show at
the observed counts. Public names load when they are first used, so that ``import frame`` and
``frame --help`` stay quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from frame.errors import InputError
    from frame.published import audit_claims
    from frame.reference import FairReference, detectable_difference, fair_reference

_HOMES = {
    "FairReference": "frame.reference",
    "InputError": "frame.errors",
    "audit_claims": "frame.published",
    "detectable_difference": "frame.reference",
    "fair_reference": "frame.reference",
}

__all__ = [
    "FairReference",
    "InputError",
    "__version__",
    "audit_claims",
    "detectable_difference",
    "fair_reference",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'frame' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "reference"])

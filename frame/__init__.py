"""FRAME: audit a reported subgroup difference in medical imaging.

Step one asks how large a max-min difference between subgroups an exactly fair model would show at the
observed counts: of published counts (:func:`audit_claims`) or of your own scores (:func:`audit`). On a
model's own features, :func:`compare_methods` asks what mitigation does to the difference, and step two,
:func:`mechanism`, injects a cause and asks whether it moves. Public names load when they are first used, so
that ``import frame`` and ``frame --help`` stay quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from frame.audits import Audit, audit
    from frame.errors import InputError
    from frame.inference.bootstrap_result import BootstrapResult
    from frame.inference.resampling import bootstrap
    from frame.interventions.procedure import mechanism
    from frame.interventions.verdict import Verdict
    from frame.mitigation.comparison import Comparison, compare_methods
    from frame.published import audit_claims
    from frame.reference import FairReference, detectable_difference, fair_reference
    from frame.reference.required import required_counts

_HOMES = {
    "Audit": "frame.audits",
    "BootstrapResult": "frame.inference.bootstrap_result",
    "Comparison": "frame.mitigation.comparison",
    "FairReference": "frame.reference",
    "InputError": "frame.errors",
    "Verdict": "frame.interventions.verdict",
    "audit": "frame.audits",
    "audit_claims": "frame.published",
    "bootstrap": "frame.inference.resampling",
    "compare_methods": "frame.mitigation.comparison",
    "detectable_difference": "frame.reference",
    "fair_reference": "frame.reference",
    "mechanism": "frame.interventions.procedure",
    "required_counts": "frame.reference.required",
}

__all__ = [
    "Audit",
    "BootstrapResult",
    "Comparison",
    "FairReference",
    "InputError",
    "Verdict",
    "__version__",
    "audit",
    "audit_claims",
    "bootstrap",
    "compare_methods",
    "detectable_difference",
    "fair_reference",
    "mechanism",
    "required_counts",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'frame' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "measures", "reference"])

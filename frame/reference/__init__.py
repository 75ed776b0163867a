"""Step one: what difference an exactly fair model would show at the observed counts."""

from frame.reference.fair_model import FairReference, fair_reference
from frame.reference.planning import detectable_difference
from frame.reference.required import RequiredCounts, required_counts

__all__ = [
    "FairReference",
    "RequiredCounts",
    "detectable_difference",
    "fair_reference",
    "required_counts",
]

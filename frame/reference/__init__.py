"""Step one: what difference an exactly fair model would show at the observed counts."""

from frame.reference.fair_model import FairReference, fair_reference
from frame.reference.planning import detectable_difference

__all__ = ["FairReference", "detectable_difference", "fair_reference"]

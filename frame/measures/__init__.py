"""Measures of subgroups on a user's own scores: values, thresholds, the table of subgroups, differences."""

from frame.measures.attributes import Attribute
from frame.measures.differences import equity_scaled_auroc, max_min_difference, worst_group
from frame.measures.registry import MEASURES, Measure, check_measure
from frame.measures.rows import ScoredRows, are_decisions, missing_note, scored_rows, split_within, strata
from frame.measures.subgroups import (
    check_min_size,
    check_probabilities,
    evaluable,
    reason_not_evaluable,
    subgroup_table,
)
from frame.measures.thresholds import (
    Threshold,
    decision_flags,
    resolve_threshold,
    sensitivity_threshold,
    youden_threshold,
)
from frame.measures.values import (
    ECE_BINS,
    ECE_EDGES,
    calibration_bins,
    decision_counts,
    measure_value,
    probabilities,
)

__all__ = [
    "ECE_BINS",
    "ECE_EDGES",
    "MEASURES",
    "Attribute",
    "Measure",
    "ScoredRows",
    "Threshold",
    "are_decisions",
    "calibration_bins",
    "check_measure",
    "check_min_size",
    "check_probabilities",
    "decision_counts",
    "decision_flags",
    "equity_scaled_auroc",
    "evaluable",
    "max_min_difference",
    "measure_value",
    "missing_note",
    "probabilities",
    "reason_not_evaluable",
    "resolve_threshold",
    "scored_rows",
    "sensitivity_threshold",
    "split_within",
    "strata",
    "subgroup_table",
    "worst_group",
    "youden_threshold",
]

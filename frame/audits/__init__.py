"""Audits of a user's own scores: the difference between subgroups beside its fair-model reference."""

from frame.audits.resampled import WorstGroup
from frame.audits.result import Audit
from frame.audits.score_audits import audit, audit_table, audits_of

__all__ = ["Audit", "WorstGroup", "audit", "audit_table", "audits_of"]

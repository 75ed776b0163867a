"""Cohorts: real tables, read and joined into rows that can be audited. Nothing here leaves as a row."""

"""Choices that several verbs offer."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["FailOn", "Format", "Protocol"]


class Protocol(StrEnum):
    """How a reference is computed."""

    exact = "exact"
    paper = "paper"


class Format(StrEnum):
    """What is printed or written."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"


class FailOn(StrEnum):
    """What turns the exit code to 1."""

    exceeds = "exceeds"

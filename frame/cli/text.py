"""Text that comes from a file and goes to a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Replace control characters by their escapes, so that a file cannot steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)

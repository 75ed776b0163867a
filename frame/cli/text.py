"""Text that comes from a file and goes to a terminal."""

from frame.writing import printable

__all__ = ["printable"]

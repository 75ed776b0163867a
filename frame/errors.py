"""The one exception that tells a user what to change."""

from __future__ import annotations


class InputError(ValueError):
    """A mistake in what the user gave: a value, a column, a file or an option.

    The message is one sentence for the user: what was found, where, what is allowed and what to do.
    The command line prints it and ends with exit code 2; a notebook or a script sees it as a
    ``ValueError``.
    """

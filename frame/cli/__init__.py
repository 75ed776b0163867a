"""The command line: parse, call, print. Nothing is computed here."""

from frame.cli.application import main

__all__ = ["main"]

"""What ``frame mitigate --list`` prints: every method in a sentence."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from frame.cli.output import FILE_WIDTH, reader_may_leave

__all__ = ["print_methods"]


def print_methods() -> None:
    """Print every method: its name, what it changes, and what it does."""
    from frame.mitigation.registry import FAMILIES, METHODS, NINE

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=FILE_WIDTH)
    with reader_may_leave():
        for family, changes in FAMILIES.items():
            chosen = [method for method in METHODS.values() if method.family == family]
            if not chosen:
                continue
            console.print(Text(f"Changing {changes}", style="underline"))
            for method in chosen:
                beside = "" if method.name in NINE else ", beside the paper's nine"
                console.print(
                    Text.assemble((method.name, "bold"), f"  {method.label} ({method.family}{beside})")
                )
                console.print(Padding(Text(method.sentence), (0, 0, 0, 4), expand=False))
            console.print()
        console.print(
            Text("Without --method the nine of the paper are compared; name any of the others with --method.")
        )

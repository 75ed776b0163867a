"""Make one stage of a workspace: what a rule of the graph calls.

``python -m frame.workspace STAGE --profile PROFILE --workspace FOLDER``
"""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import suppress

from frame.errors import InputError
from frame.workspace.graph import stage_of
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile
from frame.workspace.stages import make


def main(arguments: list[str] | None = None) -> int:
    """Make the stage if it is stale; 0 when it is there, 2 with one sentence when it cannot be made.

    130 after Ctrl-C and 143 after SIGTERM; every file is then as it was before, or complete.
    """
    parser = argparse.ArgumentParser(
        prog="python -m frame.workspace", description="Make one stage of a workspace."
    )
    parser.add_argument("stage")
    parser.add_argument("--profile", required=True)
    parser.add_argument("--workspace", required=True)
    given = parser.parse_args(arguments)
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _ended)
    try:
        workspace = open_workspace(load_profile(given.profile), given.workspace)
        made = make(workspace, stage_of(workspace, given.stage))
    except InputError as problem:
        return _said(str(problem), 2)
    except MemoryError:
        return _said(f"{given.stage} needs more memory than there is.", 2)
    except KeyboardInterrupt:
        return _said(f"{given.stage} was interrupted; no file was left half-written.", 130)
    print(f"{given.stage}: {'made' if made else 'unchanged'}")
    return 0


def _said(sentence: str, code: int) -> int:
    with suppress(OSError):
        print(f"frame: {sentence}", file=sys.stderr)
    return code


def _ended(*_: object) -> None:
    """Asked to end: leave as after Ctrl-C."""
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())

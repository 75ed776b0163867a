"""Make one stage of a workspace: what a rule of the graph calls.

``python -m frame.workspace STAGE --profile PROFILE --workspace FOLDER``
"""

from __future__ import annotations

import argparse
import sys

from frame.errors import InputError
from frame.workspace.graph import stage_of
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile
from frame.workspace.stages import make


def main(arguments: list[str] | None = None) -> int:
    """Make the stage if it is stale; 0 when it is there, 2 with one sentence when it cannot be made."""
    parser = argparse.ArgumentParser(
        prog="python -m frame.workspace", description="Make one stage of a workspace."
    )
    parser.add_argument("stage")
    parser.add_argument("--profile", required=True)
    parser.add_argument("--workspace", required=True)
    given = parser.parse_args(arguments)
    try:
        workspace = open_workspace(load_profile(given.profile), given.workspace)
        made = make(workspace, stage_of(workspace, given.stage))
    except InputError as problem:
        print(f"frame: {problem}", file=sys.stderr)
        return 2
    print(f"{given.stage}: {'made' if made else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

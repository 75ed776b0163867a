"""Resolve the locked environments again: the two lock files and ``environment.yml``.

``requirements.lock``
    The package with its extras ``plots``, ``book`` and ``test``, for ``make book`` and ``make test``.
``requirements-models.lock``
    The same and the extra ``models``: one environment for GPU nodes. Shared packages have the same versions.
``environment.yml``
    Every pin of ``requirements-models.lock`` for conda users.

The present locks are read as preferences, so a run without ``--upgrade`` changes only what pyproject.toml
forces. All three files are replaced together at the end, or none is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "pins.txt"
PYTHON_VERSION = "3.11"
BASE_EXTRAS = ("plots", "book", "test")
MODEL_EXTRAS = (*BASE_EXTRAS, "models")
ENVIRONMENT_HEADER = f"""\
# Written by requirements/update.py from requirements-models.lock: change pyproject.toml, run `make lock`.
# For conda users: conda env create -f environment.yml, then, in it: pip install --no-deps -e .
name: frame
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python={PYTHON_VERSION}
  - pip
  - pip:
"""


class LockError(RuntimeError):
    """A lock could not be made, or holds something that it must not."""


def compile_lock(uv: str, output: Path, extras: tuple[str, ...], options: list[str]) -> None:
    """Resolve ``pyproject.toml`` with ``extras`` into ``output``, with a hash for every file."""
    command = [uv, "pip", "compile", "pyproject.toml", "--universal", "--python-version", PYTHON_VERSION]
    command += ["--fork-strategy", "fewest", "--generate-hashes", "--no-annotate", "--no-header"]
    command += [argument for extra in extras for argument in ("--extra", extra)]
    command += [*options, "--output-file", str(output)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise LockError(f"uv could not resolve the extras {', '.join(extras)}:\n{finished.stderr.strip()}")
    address = re.search(r"\w+://|--(extra-)?index|--find-links", output.read_text(encoding="utf-8"))
    if address:
        raise LockError(f"the lock for the extras {', '.join(extras)} names a place: {address.group()!r}")


def locked_pins(lock: Path) -> list[str]:
    """Return the entries of a lock as ``name==version`` with their marker, without hashes, in their order."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [line.removesuffix("\\").strip() for line in lines if line and not line.startswith((" ", "#"))]


def environment_yaml(lock: Path) -> str:
    """Return the text of ``environment.yml`` for the pins of ``lock``."""
    return ENVIRONMENT_HEADER + "".join(f"      - {json.dumps(pin)}\n" for pin in locked_pins(lock))


def main() -> int:
    """Make the three files; return 0, or 1 with a sentence on the error stream."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--uv", default=shutil.which("uv"), help="the uv program; default: the one on the path"
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest admitted releases")
    options = parser.parse_args()
    if options.uv is None:
        print("uv was not found: run `make lock`, or name it with --uv.", file=sys.stderr)
        return 1

    names = ("requirements.lock", "requirements-models.lock", "environment.yml")
    targets = {name: ROOT / name for name in names}
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".lock-") as folder:
        new = {name: Path(folder) / name for name in targets}
        for name, target in targets.items():
            if name.endswith(".lock") and target.exists():
                shutil.copyfile(target, new[name])
        upgrade = ["--upgrade"] if options.upgrade else []
        base, models = new["requirements.lock"], new["requirements-models.lock"]
        try:
            compile_lock(options.uv, base, BASE_EXTRAS, upgrade)
            shared = ["--constraint", str(base), "--constraint", str(PINS)]
            compile_lock(options.uv, models, MODEL_EXTRAS, [*shared, *upgrade])
        except LockError as error:
            print(error, file=sys.stderr)
            return 1
        new["environment.yml"].write_text(environment_yaml(models), encoding="utf-8")
        for name, target in targets.items():
            new[name].replace(target)
    for name in names[:2]:
        print(f"{name}: {len(locked_pins(ROOT / name))} packages")
    print("environment.yml: written from requirements-models.lock")
    return 0


if __name__ == "__main__":
    sys.exit(main())

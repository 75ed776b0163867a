"""Resolve the locked environments again: the three lock files and ``environment.yml``.

``requirements.lock``
    The package with its extras ``scores``, ``plots``, ``study``, ``book`` and ``test``, for ``make book`` and
    ``make test``.
``requirements-models.lock``
    The same and the extras ``models`` and ``pretrained``: one environment for GPU nodes.
    Shared packages have the same versions.
``requirements-tables.lock``
    What ``requirements/tables.in`` names, without its dependencies, in the version of the models lock: a
    package from whose files real tables are read, and which is never imported.
``environment.yml``
    Every pin of ``requirements-models.lock`` for conda users.

The present locks are read as preferences, so a run without ``--upgrade`` changes only what pyproject.toml
forces. All four files are replaced together at the end, or none is.
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
TABLES = ROOT / "requirements" / "tables.in"
PYTHON_VERSION = "3.11"
BASE_EXTRAS = ("scores", "plots", "study", "dicom", "book", "test")
MODEL_EXTRAS = (*BASE_EXTRAS, "models", "pretrained")
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


def compile_lock(uv: str, output: Path, source: str, options: list[str]) -> None:
    """Resolve the requirements in the file ``source`` into ``output``, with a hash for every file."""
    command = [uv, "pip", "compile", source, "--universal", "--python-version", PYTHON_VERSION]
    command += ["--fork-strategy", "fewest", "--generate-hashes", "--no-annotate", "--no-header"]
    command += [*options, "--output-file", str(output)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise LockError(f"uv could not make {output.name} from {source}:\n{finished.stderr.strip()}")
    address = re.search(r"\w+://|--(extra-)?index|--find-links", output.read_text(encoding="utf-8"))
    if address:
        raise LockError(f"{output.name} names a place: {address.group()!r}")


def extra_options(extras: tuple[str, ...]) -> list[str]:
    """Return uv's options that ask for ``extras``."""
    return [argument for extra in extras for argument in ("--extra", extra)]


def locked_pins(lock: Path) -> list[str]:
    """Return the entries of a lock as ``name==version`` with their marker, without hashes, in their order."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [line.removesuffix("\\").strip() for line in lines if line and not line.startswith((" ", "#"))]


def environment_yaml(lock: Path) -> str:
    """Return the text of ``environment.yml`` for the pins of ``lock``."""
    return ENVIRONMENT_HEADER + "".join(f"      - {json.dumps(pin)}\n" for pin in locked_pins(lock))


def main() -> int:
    """Make the four files; return 0, or 1 with a sentence on the error stream."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--uv", default=shutil.which("uv"), help="the uv program; default: the one on the path"
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest admitted releases")
    options = parser.parse_args()
    if options.uv is None:
        print("uv was not found: run `make lock`, or name it with --uv.", file=sys.stderr)
        return 1

    locks = ("requirements.lock", "requirements-models.lock", "requirements-tables.lock")
    names = (*locks, "environment.yml")
    targets = {name: ROOT / name for name in names}
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".lock-") as folder:
        new = {name: Path(folder) / name for name in targets}
        for name, target in targets.items():
            if name.endswith(".lock") and target.exists():
                shutil.copyfile(target, new[name])
        upgrade = ["--upgrade"] if options.upgrade else []
        base, models, tables = (new[name] for name in locks)
        project = "pyproject.toml"
        try:
            compile_lock(options.uv, base, project, [*extra_options(BASE_EXTRAS), *upgrade])
            shared = ["--constraint", str(base), "--constraint", str(PINS)]
            compile_lock(options.uv, models, project, [*extra_options(MODEL_EXTRAS), *shared, *upgrade])
            alone = ["--no-deps", "--constraint", str(models)]
            compile_lock(options.uv, tables, str(TABLES), [*alone, *upgrade])
        except LockError as error:
            print(error, file=sys.stderr)
            return 1
        new["environment.yml"].write_text(environment_yaml(models), encoding="utf-8")
        for name, target in targets.items():
            new[name].replace(target)
    for name in locks:
        found = len(locked_pins(ROOT / name))
        print(f"{name}: {found} package{'' if found == 1 else 's'}")
    print("environment.yml: written from requirements-models.lock")
    return 0


if __name__ == "__main__":
    sys.exit(main())

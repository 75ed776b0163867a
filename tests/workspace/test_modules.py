"""Which modules a piece of code depends on."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

import frame
from frame.errors import InputError
from frame.workspace.modules import module_hashes, modules_named, package_module

PACKAGE = Path(frame.__file__).parent


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("import numpy\nfrom pathlib import Path", ()),
        ("import frame", ("frame",)),
        ("import frame\nframe.audit_claims('x')", ("frame", "frame.published")),
        ("from frame import audit_claims", ("frame.published",)),
        ("from frame.figures import style", ("frame.figures.style",)),
        ("from frame.figures.style import COLOURS", ("frame.figures.style",)),
        ("def late():\n    import frame.tables", ("frame.tables",)),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import frame.tables", ()),
        ("if TYPE_CHECKING:\n    import frame.tables\nelse:\n    import frame.errors", ("frame.errors",)),
        ("import framework.tables", ()),
    ],
)
def test_modules_that_code_names(code, named):
    assert modules_named(code) == named


def test_the_closure_holds_what_a_module_imports_anywhere_inside():
    found = module_hashes(["frame.published"])
    assert {"frame", "frame.published", "frame.reference.exact_auroc", "frame.errors"} <= set(found)
    assert "frame.figures.style" not in found
    assert "frame.audits.result" not in found
    file = PACKAGE / "reference" / "exact_auroc.py"
    assert found["frame.reference.exact_auroc"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_closure_is_what_really_gets_imported():
    """Static analysis finds no less than running the module loads."""
    code = (
        "import sys, frame.published; print(*[name for name in sys.modules if name.split('.')[0] == 'frame'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) <= set(module_hashes(["frame.published"]))


def test_every_module_of_the_package_can_be_closed_over():
    for file in PACKAGE.rglob("*.py"):
        steps = file.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(steps[:-1] if steps[-1] == "__init__" else steps)
        assert package_module(name) == file
        assert name in module_hashes([name])


def test_no_module_of_that_name():
    with pytest.raises(InputError, match=r"frame\.nothing is no module of this package"):
        module_hashes(["frame.nothing"])

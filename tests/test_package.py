"""What an import costs, and that the project says the same version everywhere."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import frame

ROOT = Path(__file__).parents[1]


def modules_after(statement):
    code = f"import sys\n{statement}\nprint(' '.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_import_frame_is_light():
    loaded = modules_after("import frame")
    assert not loaded & {"numpy", "scipy", "pandas", "pandera", "torch", "sklearn", "numba", "matplotlib"}


def test_help_is_light():
    loaded = modules_after("import frame.cli")
    assert not loaded & {"numpy", "scipy", "pandas", "pandera", "torch", "sklearn", "numba", "matplotlib"}


def test_an_audit_needs_no_heavy_package():
    statement = f"import frame; frame.audit_claims({str(ROOT / 'data' / 'published_claims.csv')!r})"
    loaded = modules_after(statement)
    assert "numpy" in loaded
    assert not loaded & {"torch", "sklearn", "numba", "matplotlib"}
    code = f"import sys\n{statement}\nassert not {{'scipy.stats', 'scipy.optimize'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names():
    assert set(frame.__all__) <= set(dir(frame))
    for name in frame.__all__:
        assert getattr(frame, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = frame.nothing


def test_no_module_carries_a_public_name():
    stems = {path.stem for path in (ROOT / "frame").rglob("*.py")}
    folders = {path.name for path in (ROOT / "frame").rglob("*") if path.is_dir()}
    assert not (stems | folders) & (set(frame.__all__) | {"audit", "bootstrap", "mechanism", "plan"})


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == frame.__version__
    assert f"version: {frame.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8").replace(
        '"', ""
    )
    assert frame.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_modules_stay_readable():
    long = {
        p.name: n
        for p in (ROOT / "frame").rglob("*.py")
        if (n := len(p.read_text("utf-8").splitlines())) > 500
    }
    assert long == {}

"""The locked environments: they agree with each other and with pyproject.toml, and step one stays small."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-models.lock")
TABLES = "requirements-tables.lock"
# What step one must never pull in: libraries of the model stage, of plotting and of compiled kernels.
HEAVY = {"torch", "scikit-learn", "numba", "matplotlib", "seaborn", "jupyter-book", "transformers", "timm"}


def entries(lock: str) -> list[str]:
    """Return a lock's entries, each with its continuation lines."""
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip()]


def pins(lock: str) -> list[str]:
    """Return a lock's requirements without their hashes, in one canonical spelling."""
    return [str(Requirement(entry.partition("--hash")[0].strip())) for entry in entries(lock)]


def versions(lock: str) -> dict[str, set[str]]:
    """Return the locked versions of each package."""
    found: dict[str, set[str]] = {}
    for requirement in map(Requirement, pins(lock)):
        found.setdefault(canonicalize_name(requirement.name), set()).add(str(requirement.specifier))
    return found


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def direct_requirements(*extras: str) -> list[Requirement]:
    """Return what pyproject.toml asks for, with the extras and the extras that they name."""
    texts = list(project()["dependencies"])
    for extra in extras:
        texts += project()["optional-dependencies"][extra]
    requirements = [Requirement(text) for text in texts]
    own = [r for r in requirements if r.name == project()["name"]]
    others = [r for r in requirements if r.name != project()["name"]]
    return others + [r for named in own for extra in sorted(named.extras) for r in direct_requirements(extra)]


def test_conda_environment_holds_the_pins_of_the_models_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    conda, pip = environment["dependencies"][:-1], environment["dependencies"][-1]["pip"]
    assert [re.split("[=<>]", name)[0] for name in conda] == ["python", "pip"]
    assert [str(Requirement(pin)) for pin in pip] == pins("requirements-models.lock")


def test_models_lock_extends_the_base_lock_with_equal_versions() -> None:
    base, models = versions("requirements.lock"), versions("requirements-models.lock")
    assert {name: models.get(name) for name in base} == base
    # scikit-learn and fairlearn are in both: the tests compare measures with theirs.
    assert {"torch", "torchvision", "timm", "torchxrayvision", "transformers"} <= models.keys() - base.keys()


def test_the_tables_lock_holds_one_package_in_the_version_of_the_models_lock() -> None:
    lines = (ROOT / "requirements" / "tables.in").read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if line and not line.startswith("#")]
    tables = versions(TABLES)
    assert list(tables) == named == ["torchxrayvision"]
    assert tables["torchxrayvision"] == versions("requirements-models.lock")["torchxrayvision"]


def test_the_environment_is_made_from_both_locks() -> None:
    recipe = re.split(
        r"^\$\(LOCKED\): ", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )[1].partition("\n\n")[0]
    assert recipe.splitlines()[0].split() == ["requirements.lock", TABLES]
    installed = re.findall(r"pip install --quiet --require-hashes --no-deps -r (\S+)", recipe)
    assert installed == ["requirements.lock", TABLES]


@pytest.mark.parametrize(("lock", "at_least"), [*((lock, 100) for lock in LOCKS), (TABLES, 1)])
def test_every_locked_package_is_pinned_and_hashed(lock: str, at_least: int) -> None:
    assert len(entries(lock)) >= at_least
    for entry in entries(lock):
        requirement = Requirement(entry.partition("--hash")[0].strip())
        assert [s.operator for s in requirement.specifier] == ["=="], entry[:80]
        assert requirement.url is None
        assert re.fullmatch(r"[^#]+?(\s--hash=sha256:[0-9a-f]{64})+\s*", entry), entry[:80]


@pytest.mark.parametrize(
    "name", [*LOCKS, TABLES, "environment.yml", "requirements/pins.txt", "requirements/tables.in"]
)
def test_no_place_is_named(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert re.findall(r"\w+://\S*|--(?:extra-)?index\S*|--find-links\S*|file:\S+", text) == []


@pytest.mark.parametrize(("lock", "extras"), [(LOCKS[0], ("test",)), (LOCKS[1], ("test", "models"))])
def test_the_ranges_of_pyproject_admit_the_locked_versions(lock: str, extras: tuple[str, ...]) -> None:
    locked = versions(lock)
    for requirement in direct_requirements(*extras):
        name = canonicalize_name(requirement.name)
        assert name in locked, f"{lock} lacks {name}"
        for version in locked[name]:
            admitted = requirement.specifier.contains(version.removeprefix("=="))
            assert admitted, f"{requirement} against {version}"


def test_the_models_lock_holds_the_releases_that_were_checked_together() -> None:
    models = versions("requirements-models.lock")
    lines = (ROOT / "requirements" / "pins.txt").read_text(encoding="utf-8").splitlines()
    checked = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert len(checked) >= 10
    for requirement in checked:
        assert models[canonicalize_name(requirement.name)] == {str(requirement.specifier)}


def everything_pulled_in(requirements: list[Requirement]) -> set[str]:
    """Walk the installed packages' own requirements, with the extras that are asked for."""
    waiting = [(r, frozenset({""})) for r in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement, extras = waiting.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        asked = frozenset({"", *requirement.extras})
        name = canonicalize_name(requirement.name)
        if (name, asked) in seen:
            continue
        seen.add((name, asked))
        waiting += [(Requirement(text), asked) for text in importlib.metadata.requires(name) or []]
    return {name for name, _ in seen}


def test_no_model_library_comes_with_the_tests_and_the_book() -> None:
    model_libraries = {"torch", "torchvision", "torchxrayvision", "transformers", "timm"}
    assert versions("requirements.lock").keys() & model_libraries == set()


def test_step_one_pulls_in_no_heavy_library() -> None:
    pulled_in = everything_pulled_in(direct_requirements())
    assert {"numpy", "scipy", "pandas", "python-dateutil"} <= pulled_in
    assert pulled_in & HEAVY == set()


def test_the_walk_finds_what_an_extra_pulls_in() -> None:
    assert "matplotlib" in everything_pulled_in([Requirement("seaborn")])
    assert "python-dateutil" in everything_pulled_in([Requirement("pandas")])

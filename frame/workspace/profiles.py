"""Profiles: one YAML file says which cohorts, encoders, findings and sizes a study has.

Four profiles come with the package. ``demo`` runs on a laptop without any download: all ten image sources as
drawings with a planted truth. ``tables`` counts NIH ChestX-ray14 from a table in an installed package,
``open`` needs its images and no credentials, ``paper`` needs all ten image sources. The same code runs all
four. A profile is checked as a whole when it is read; a key that is not known is refused.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from frame.cohorts.phantom import truth as phantoms
from frame.cohorts.phantom.truth import ROOTS, PhantomTruth
from frame.cohorts.schema import FINDINGS, MODALITIES
from frame.cohorts.sources import sources
from frame.encoders.panel import encoders, side_problem
from frame.errors import InputError
from frame.experiments.injection_settings import InjectionSettings
from frame.mitigation.registry import NINE

__all__ = [
    "ATTRIBUTES",
    "IN_WORKSPACE",
    "RAW",
    "ROLES",
    "Features",
    "Labels",
    "Profile",
    "Sizes",
    "SourceSettings",
    "load_profile",
    "profile_names",
]

_FOLDER: Final = Path(__file__).with_name("profiles")
#: How a folder of the workspace is written.
IN_WORKSPACE: Final = "workspace:"
#: Folder of a workspace that phantoms are drawn into.
RAW: Final = "raw"

#: Environment variable with the path of the profile that a notebook is executed under, when it is a file.
GIVEN: Final = "FRAME_PROFILE"

#: Attributes whose levels a modality can be compared by.
ATTRIBUTES: Final = {
    "chest": ("race", "age", "sex", "insurance", "view", "site"),
    "skin": ("skin_type", "age", "sex", "site"),
    "fundus": ("race", "ethnicity", "age", "sex"),
}
#: What an encoder may be there for.
ROLES: Final = ("panel", "injection", "fine_tuning", "image_text", "pretraining_start")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SourceSettings(_Part):
    """How one image source is read.

    ``root`` is the folder of the release: a path (a relative one counts from the folder of the profile's
    file), a variable of the environment (``$NAME``; ``$$`` is a dollar sign) that holds an absolute path, a
    folder of the workspace (``workspace:raw/...``), or ``package:torchxrayvision`` for the tables inside
    that package.
    ``linked_root`` is the folder of the tables that the source is joined with (MIMIC-IV, CheXpert Plus).
    ``split`` is ``default``, ``released`` or ``hashed``. Without ``images`` only tables are read.
    With ``reports`` the radiologists' reports are read too, where the source releases them.
    """

    root: str = Field(min_length=1)
    linked_root: str | None = Field(default=None, min_length=1)
    split: Literal["default", "released", "hashed"] = "default"
    images: bool = True
    reports: bool = False


class Labels(_Part):
    """What an uncertain and a blank label count as; there is no default."""

    uncertain: Literal["negative", "positive", "missing"]
    blank: Literal["missing", "negative"]


class Sizes(_Part):
    """Sizes of a study: side of an image in pixels, resamples, rows that a head is fitted on."""

    image: int = Field(default=224, ge=16, le=2048)
    resamples: int = Field(default=1000, ge=1)
    permutations: int = Field(default=1000, ge=1)
    head_rows: int = Field(default=100_000, ge=1)
    smallest_group: int = Field(default=20, ge=1)
    smallest_cell: int = Field(default=10, ge=1)


class Features(_Part):
    """How vectors of encoders are made and stored.

    ``preprocessing`` is ``shared`` (all encoders see the same picture) or ``native`` (each its own),
    ``precision`` is ``auto`` (half on an accelerator), ``half``, ``bf16`` or ``float32``, ``dtype`` is what a
    number is stored in, and with ``normalise`` each vector is divided by its length.
    """

    preprocessing: Literal["shared", "native"] = "shared"
    precision: Literal["auto", "half", "bf16", "float32"] = "auto"
    dtype: Literal["float16", "float32"] = "float16"
    normalise: bool = False


class Profile(_Part):
    """A checked profile; made by :func:`load_profile`.

    Attributes
    ----------
    name : str
        Name of the profile.
    seed : int
        Seed of splits, resampling and fits.
    sources : mapping of str to SourceSettings
        The image sources, in the order in which they are pooled.
    labels : Labels
        The policy for uncertain and blank labels.
    identical_files : {"error", "count"}
        What it is when the same image file is in two splits: an error, or only counted.
    findings, attributes : mapping of str to tuple of str
        By modality. A modality that is left out has all of them.
    encoders : mapping of str to tuple of str
        By role, see :data:`ROLES`.
    features : Features
        Preprocessing, precision and type of stored vectors.
    sizes : Sizes
        Image side, resamples and the like.
    injection : InjectionSettings
        What the injection experiment computes at every strength; everything unless it says less.
    phantom : PhantomTruth, optional
        What is planted, where the images are drawings. All sources are drawn then, and each has the root
        ``workspace:raw/<source>``; drawn and released images are never mixed.
    """

    name: str = Field(min_length=1, pattern=r"^[a-z][a-z0-9_-]*$")
    title: str = ""
    seed: int = Field(default=0, ge=0)
    sources: Mapping[str, SourceSettings] = Field(min_length=1)
    labels: Labels
    identical_files: Literal["error", "count"] = "error"
    findings: Mapping[str, tuple[str, ...]] = {}
    attributes: Mapping[str, tuple[str, ...]] = {}
    encoders: Mapping[str, tuple[str, ...]] = {}
    features: Features = Features()
    sizes: Sizes = Sizes()
    injection: InjectionSettings = InjectionSettings()
    phantom: PhantomTruth | None = None
    _origin: str = PrivateAttr(default="")
    _sha256: str = PrivateAttr(default="")

    @property
    def origin(self) -> str:
        """What :func:`load_profile` takes to read this profile again: its name, or the path of its file."""
        return self._origin or self.name

    @field_validator("findings", "attributes", "encoders", mode="before")
    @classmethod
    def _tuples(cls, value: object) -> object:
        if isinstance(value, Mapping):
            return {key: tuple(one) if isinstance(one, list) else one for key, one in value.items()}
        return value

    @model_validator(mode="after")
    def _known(self) -> Profile:
        _check_names("sources", self.sources, tuple(sources()))
        _check_names("findings", self.findings, MODALITIES)
        _check_names("attributes", self.attributes, MODALITIES)
        _check_names("encoders", self.encoders, ROLES)
        for role, named in self.encoders.items():
            _check_names(f"encoders.{role}", named, tuple(encoders()))
            for name in named:
                self._check_side(name)
        for modality, named in self.findings.items():
            _check_names(f"findings.{modality}", named, FINDINGS[modality])
        for modality, named in self.attributes.items():
            _check_names(f"attributes.{modality}", named, ATTRIBUTES[modality])
        _check_names("injection.methods", self.injection.methods, NINE)
        for name in self.sources:
            self._check_roots(name)
        if self.phantom is not None and self.sizes.image > phantoms.SIDES[1]:
            raise ValueError(
                f"sizes.image is {self.sizes.image}; with the key phantom it must be {phantoms.SIDES[0]} to "
                f"{phantoms.SIDES[1]}, the sides that can be drawn"
            )
        return self

    def _check_side(self, name: str) -> None:
        """An encoder that takes images as they are stored can take those of this size."""
        row = encoders()[name]
        native = self.features.preprocessing == "native"
        if (row.native_size if native else row.input_size) == 0:
            problem = side_problem(row, self.sizes.image)
            if problem:
                raise ValueError(f"sizes.image is {self.sizes.image}, and {problem}")

    def _check_roots(self, name: str) -> None:
        """Drawn sources lie in the workspace, and only they do so in its folder of raw files."""
        settings = self.sources[name]
        if self.phantom is None:
            if any(_is_raw(given) for given in (settings.root, settings.linked_root)):
                raise ValueError(
                    f"sources.{name}: the folder {RAW} of a workspace holds drawn images; say what is "
                    "planted in them with the key phantom, which may be {}"
                )
            return
        if name not in self.phantom.sources:
            modality = phantoms.modality_of(name)
            raise ValueError(
                f"phantom: {name} is a source, and no image of it is drawn; give phantom.{modality}.{name}"
            )
        root = f"{IN_WORKSPACE}{RAW}/{name}"
        linked = f"{root}/{ROOTS[name]}" if name in ROOTS else None
        for key, given, drawn in (
            ("root", settings.root, root),
            ("linked_root", settings.linked_root, linked),
        ):
            if given != drawn:
                wanted = "there must be none" if drawn is None else f"it must be {drawn}"
                raise ValueError(
                    f"sources.{name}.{key}: with the key phantom {wanted}; drawn and released images are "
                    "never mixed"
                )

    @property
    def sha256(self) -> str:
        """Sum of all values of the profile as it was loaded."""
        return self._sha256 or _sum_of(self)

    def only(self, names: Iterable[str]) -> Profile:
        """The same profile with some of its sources: what can be done without the others."""
        kept = set(names)
        part = self.model_copy(
            update={"sources": {name: one for name, one in self.sources.items() if name in kept}}
        )
        part._sha256 = self.sha256
        return part

    @property
    def modalities(self) -> tuple[str, ...]:
        """Modalities that the sources have, in the order chest, skin, fundus."""
        there = {sources()[name].modality for name in self.sources}
        return tuple(modality for modality in MODALITIES if modality in there)

    def sources_of(self, modality: str) -> tuple[str, ...]:
        """Names of the sources of one modality, in the profile's order."""
        return tuple(name for name in self.sources if sources()[name].modality == modality)

    def findings_of(self, modality: str) -> tuple[str, ...]:
        """Findings that the study looks at in one modality."""
        return tuple(self.findings.get(modality, FINDINGS[modality]))

    def attributes_of(self, modality: str) -> tuple[str, ...]:
        """Attributes that the study compares in one modality."""
        return tuple(self.attributes.get(modality, ATTRIBUTES[modality]))

    def values(self, *keys: str) -> dict[str, Any]:
        """The values under dotted keys, such as ``labels.uncertain`` or ``sources.ddi.split``.

        Raises
        ------
        KeyError
            If a key names nothing; keys are written in the code, not by a user.
        """
        return {key: self._value(key) for key in keys}

    def _value(self, key: str) -> Any:
        value: Any = self.model_dump(mode="json")
        for step in key.split("."):
            value = value[step]
        return value


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that come with the package."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yml")))


@cache
def _read(path: Path, size: int, changed: int) -> Profile:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _OneOfEachKey)
    except UnicodeDecodeError:
        raise InputError(f"Profile {path.name} is not UTF-8 text.") from None
    except OSError as problem:
        raise InputError(f"Profile {path.name} cannot be read ({_reason(problem)}).") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        what = getattr(problem, "problem", None) or "it cannot be read"
        raise InputError(
            f"Profile {path.name}{where}: this is no YAML that a profile can have ({what})."
        ) from None
    except (ValueError, TypeError, RecursionError):  # a date, number or key that Python has none for
        raise InputError(
            f"Profile {path.name}: this is no YAML that a profile can have (a key or a value cannot be read)."
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"Profile {path.name} holds no keys; `frame doctor` lists profiles to copy from.")
    try:
        profile = Profile.model_validate(content)
    except ValidationError as problem:
        raise InputError(_sentence(path.name, problem)) from None
    except RecursionError:
        raise InputError(f"Profile {path.name}: a value contains itself.") from None
    if path.parent != _FOLDER and profile.name in profile_names():
        raise InputError(
            f"Profile {path.name}: its name is {profile.name}, which a profile of the package has; "
            "give it another."
        )
    profile._origin = profile.name if path.parent == _FOLDER else str(path)
    return profile


def load_profile(name_or_path: str | Path) -> Profile:
    """Read a profile and check it.

    Parameters
    ----------
    name_or_path : str or Path
        ``demo``, ``tables``, ``open``, ``paper``, or the path of a YAML file. In a notebook that the graph
        executes also the name that such a file gives itself, since no path is written into a notebook.

    Returns
    -------
    Profile
        The checked profile.

    Raises
    ------
    frame.InputError
        If there is no such profile, it is no YAML, a key is unknown or missing, or a value is not allowed.
    """
    named = str(name_or_path)
    mine = os.environ.get(GIVEN)
    if (
        mine
        and named not in (mine, *profile_names())
        and _is_file(Path(mine))
        and load_profile(mine).name == named
    ):
        named = mine
    path = _FOLDER / f"{named}.yml" if named in profile_names() else Path(named)
    if path.suffix not in (".yml", ".yaml") or not _is_file(path):
        raise InputError(
            f"There is no profile {named[:80]!r}; give one of {', '.join(profile_names())} or the path of a "
            ".yml file."
        )
    status = path.stat()
    return _read(path.resolve(), status.st_size, status.st_mtime_ns)


# -- sentences ----------------------------------------------------------------------------------------


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that may not be entered
        return False


def _reason(problem: OSError) -> str:
    return (problem.strerror or "unknown reason").lower()


class _OneOfEachKey(yaml.SafeLoader):
    """A safe loader that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key} is there twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _sum_of(profile: Profile) -> str:
    return hashlib.sha256(profile.model_dump_json().encode("utf-8")).hexdigest()


def _is_raw(given: str | None) -> bool:
    return given is not None and bool(re.match(rf"{IN_WORKSPACE}/*{RAW}(/|$)", given))


def _check_names(where: str, given: Mapping[str, Any] | tuple[str, ...], allowed: tuple[str, ...]) -> None:
    named = tuple(given)
    for name in named:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"{where}: {name!r} is unknown; allowed are {', '.join(allowed)}{hint}")
    if len(set(named)) < len(named):
        raise ValueError(f"{where}: an entry is there twice")


def _sentence(file: str, problem: ValidationError) -> str:
    first = problem.errors(include_url=False)[0]
    key = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        allowed = _allowed_beside(first["loc"])
        near = difflib.get_close_matches(str(first["loc"][-1]), allowed, 1)
        what = f"key {key} is unknown; allowed here are {', '.join(allowed)}"
        what += f"; did you mean {near[0]}?" if near else "."
    elif first["type"] == "missing":
        what = f"key {key} is missing."
    elif first["type"] == "value_error":
        said = str(first["ctx"]["error"])
        what = (f"{key}." if key else "") + said.rstrip("?.") + ("?" if "did you mean" in said else ".")
    else:
        found = first.get("input")
        shown = (
            repr(found)
            if isinstance(found, (str, int, float, bool)) or found is None
            else type(found).__name__
        )
        what = f"{key} is {shown[:60]}; {_requirement(first)}."
    more = len(problem.errors()) - 1
    return f"Profile {file}: {what}" + (f" ({more} more like this.)" if more else "")


def _requirement(error: Any) -> str:
    message = str(error["msg"]).replace("a valid tuple", "a list")
    return message[0].lower() + message[1:].rstrip(".")


def _allowed_beside(place: tuple[int | str, ...]) -> list[str]:
    if len(place) > 1 and place[0] == "sources":
        return list(SourceSettings.model_fields)
    if len(place) > 2 and place[0] == "phantom":
        inner: dict[str, type[BaseModel]] = {
            "race": phantoms.RacePlant,
            "age": phantoms.AgePlant,
            "noise": phantoms.LabelNoise,
            "recording": phantoms.Recording,
        }
        return list(inner.get(str(place[1]), phantoms.Sizes).model_fields)
    parts: dict[str, type[BaseModel]] = {
        "labels": Labels,
        "features": Features,
        "sizes": Sizes,
        "injection": InjectionSettings,
        "phantom": PhantomTruth,
    }
    return (
        list(parts.get(str(place[0]), Profile).model_fields) if len(place) > 1 else list(Profile.model_fields)
    )

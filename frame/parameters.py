"""Parameters of a notebook: checked once, before anything is computed.

papermill reads ``-p name value`` with rules of its own: a list arrives as text, ``007`` as the number 7, and
in a notebook whose defaults cell has lost its ``parameters`` tag the given values are run first and then
overwritten by the defaults, without a word. :func:`resolve_parameters` turns each of these into the value
that was meant or into one sentence.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias

from frame.errors import InputError

__all__ = [
    "Kind",
    "ResolvedParameters",
    "choice",
    "flag",
    "fraction",
    "list_of",
    "number",
    "resolve_parameters",
    "text",
    "whole",
]

Value: TypeAlias = str | bool | int | float | tuple[Any, ...]

#: How papermill begins the cell that it writes into a notebook.
_INJECTED = "# Parameters"


class Kind(Protocol):
    """What a parameter may be."""

    @property
    def expected(self) -> str:
        """What is allowed, to follow the word *expected* in a message."""

    def parse(self, given: object) -> Value:
        """The value that ``given`` stands for; a ValueError when it stands for none.

        The text of that error, where there is one, is a hint for the user.
        """


# -- kinds ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    allowed: tuple[str, ...]

    @property
    def expected(self) -> str:
        return ("one of " if len(self.allowed) > 1 else "") + ", ".join(repr(name) for name in self.allowed)

    def parse(self, given: object) -> str:
        if isinstance(given, str) and given.strip() in self.allowed:
            return given.strip()
        raise ValueError


@dataclass(frozen=True)
class _Whole:
    smallest: int
    largest: int | None

    @property
    def expected(self) -> str:
        upper = "or more" if self.largest is None else f"to {self.largest}"
        return f"a whole number, {self.smallest} {upper}"

    def parse(self, given: object) -> int:
        found = _real(given)
        if isinstance(found, float) and not found.is_integer():
            raise ValueError
        count = int(found)
        if count < self.smallest or (self.largest is not None and count > self.largest):
            raise ValueError
        return count


@dataclass(frozen=True)
class _Number:
    low: float
    high: float

    @property
    def expected(self) -> str:
        if math.isinf(self.low) and math.isinf(self.high):
            return "a finite number"
        if math.isinf(self.high):
            return f"a number, {self.low:g} or more"
        if math.isinf(self.low):
            return f"a number, {self.high:g} or less"
        return f"a number from {self.low:g} to {self.high:g}"

    def parse(self, given: object) -> float:
        found = float(_real(given))
        if not self.low <= found <= self.high:
            raise ValueError
        return found


@dataclass(frozen=True)
class _Fraction:
    @property
    def expected(self) -> str:
        return "a number strictly between 0 and 1"

    def parse(self, given: object) -> float:
        found = float(_real(given))
        if 0.0 < found < 1.0:
            return found
        hint = f"if it is a percentage, give {found / 100:g}" if 1.0 < found < 100.0 else ""
        raise ValueError(hint)


@dataclass(frozen=True)
class _Flag:
    @property
    def expected(self) -> str:
        return "True or False"

    def parse(self, given: object) -> bool:
        if isinstance(given, bool):
            return given
        named = {"true": True, "false": False}.get(given.strip().lower()) if isinstance(given, str) else None
        if named is None:
            raise ValueError
        return named


@dataclass(frozen=True)
class _Text:
    @property
    def expected(self) -> str:
        return "text that is not blank"

    def parse(self, given: object) -> str:
        if isinstance(given, str) and given.strip():
            return given
        if not isinstance(given, bool) and isinstance(given, (int, float)):
            # 007 has arrived as 7: which digits were typed can no longer be known.
            raise ValueError("papermill keeps text that looks like a number with -r in place of -p")
        raise ValueError


@dataclass(frozen=True)
class _List:
    entry: Kind
    shortest: int

    @property
    def expected(self) -> str:
        many = f", {self.shortest} or more" if self.shortest else ""
        return f"a list such as [a, b]{many}, each entry {self.entry.expected}"

    def parse(self, given: object) -> tuple[Value, ...]:
        if isinstance(given, str):
            entries: Sequence[object] = _entries(given)
        elif isinstance(given, Sequence) and not isinstance(given, bytes):
            entries = given
        else:
            raise ValueError
        if len(entries) < self.shortest:
            raise ValueError
        parsed = tuple(self.entry.parse(entry) for entry in entries)
        if len(set(parsed)) < len(parsed):
            raise ValueError("an entry is there twice")
        return parsed


def choice(*allowed: str) -> Kind:
    """One of the given words."""
    return _Choice(allowed)


def whole(smallest: int, largest: int | None = None) -> Kind:
    """A whole number, ``smallest`` or more, at most ``largest``; ``1e3`` counts as 1000."""
    return _Whole(smallest, largest)


def number(low: float = -math.inf, high: float = math.inf) -> Kind:
    """A finite number in [low, high]."""
    return _Number(low, high)


def fraction() -> Kind:
    """A number strictly between 0 and 1, such as a level or a power."""
    return _Fraction()


def flag() -> Kind:
    """True or False."""
    return _Flag()


def text() -> Kind:
    """Text that is not blank, such as an id; a number is refused, since its typed form is lost."""
    return _Text()


def list_of(entry: Kind, *, shortest: int = 1) -> Kind:
    """A list of distinct entries of one kind, at least ``shortest``; becomes a tuple."""
    return _List(entry, shortest)


def _real(given: object) -> int | float:
    """A finite number, also from its text; a truth value is none."""
    found: int | float
    if isinstance(given, str):
        found = _number_in(given.strip())
    elif isinstance(given, bool) or not isinstance(given, Real):
        raise ValueError
    else:
        found = int(given) if isinstance(given, Integral) else float(given)
    if not math.isfinite(found):
        raise ValueError
    return found


def _number_in(written: str) -> int | float:
    if "_" in written:  # Python's digit grouping, which no reader of a parameter expects
        raise ValueError
    for kind in (int, float):
        try:
            return kind(written)
        except ValueError:
            continue
    raise ValueError


def _entries(given: str) -> list[str]:
    """The entries of a list written as text: ``[sex, age]`` or ``['sex', "age"]``."""
    inner = given.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise ValueError
    inner = inner[1:-1].strip()
    if not inner:
        return []
    if "[" in inner or "{" in inner:
        raise ValueError
    entries = [entry.strip() for entry in inner.removesuffix(",").split(",")]
    for i, entry in enumerate(entries):
        if len(entry) > 1 and entry[0] == entry[-1] and entry[0] in "'\"":
            entries[i] = entry[1:-1]
        elif not entry or "'" in entry or '"' in entry:
            raise ValueError
    return entries


# -- the resolved set -------------------------------------------------------------------------------


class ResolvedParameters(Mapping[str, Value]):
    """Resolved parameters of a notebook: read by name or by attribute, never changed.

    Made by :func:`resolve_parameters`. Its text is one line, ``alpha=0.05, protocol='exact'``, in the order
    in which the kinds were given.
    """

    __slots__ = ("_values",)
    _values: dict[str, Value]

    def __init__(self, values: Mapping[str, Value]) -> None:
        object.__setattr__(self, "_values", dict(values))

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            known = ", ".join(self._values)
            raise AttributeError(f"there is no parameter {name!r}; there are {known}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"parameters do not change once they are resolved ({name})")

    def __repr__(self) -> str:
        return ", ".join(f"{name}={_written(value)}" for name, value in self._values.items())


def resolve_parameters(namespace: Mapping[str, Any], /, **kinds: Kind) -> ResolvedParameters:
    """Check the parameters of a notebook and print them in one line.

    Call it once, in the cell after the one tagged ``parameters``.

    Parameters
    ----------
    namespace : mapping
        ``globals()`` of the notebook, or any mapping that holds the values by name. Where it also holds
        IPython's input history ``In``, a cell that papermill wrote is checked against it.
    **kinds : Kind
        What each parameter may be: :func:`choice`, :func:`whole`, :func:`number`, :func:`fraction`,
        :func:`flag`, :func:`text` or :func:`list_of`.

    Returns
    -------
    ResolvedParameters
        The parsed values in the order of ``kinds``.

    Raises
    ------
    frame.InputError
        One sentence: a parameter is missing or of another kind (its name, value and what is expected); a
        value was given for a name that the notebook does not have; or a given value is not in force because
        the defaults were run after it, as happens when their cell has lost the tag ``parameters``.

    Notes
    -----
    The cell with the defaults must not itself begin with the line ``# Parameters``, which is papermill's.

    Examples
    --------
    >>> from frame.parameters import choice, fraction, list_of, resolve_parameters, text
    >>> given = {"protocol": "paper", "alpha": 0.05, "groups": "[sex, age]"}
    >>> resolved = resolve_parameters(
    ...     given, protocol=choice("exact", "paper"), alpha=fraction(), groups=list_of(text())
    ... )
    Parameters: protocol='paper', alpha=0.05, groups=['sex', 'age']
    >>> resolved.groups
    ('sex', 'age')
    """
    injected = _injected_values(namespace.get("In"))
    for name in injected:
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            raise InputError(
                f"There is no parameter {name!r} in this notebook{meant}; it has {', '.join(kinds)}."
            )
    resolved: dict[str, Value] = {}
    for name, kind in kinds.items():
        if name not in namespace:
            raise InputError(
                f"Parameter {name} has no value; the cell tagged 'parameters' must set it to {kind.expected}."
            )
        given = namespace[name]
        if name in injected and repr(injected[name]) != repr(given):
            raise InputError(
                f"Parameter {name} was given as {injected[name]!r}, but {given!r} is in force: the defaults "
                "were run after it, so their cell has lost its tag 'parameters'; tag it again."
            )
        resolved[name] = _parsed(name, given, kind)
    parameters = ResolvedParameters(resolved)
    print(f"Parameters: {parameters!r}")
    return parameters


def _parsed(name: str, given: object, kind: Kind) -> Value:
    try:
        return kind.parse(given)
    except ValueError as reason:
        hint = f" ({reason})" if str(reason) else ""
        raise InputError(
            f"Parameter {name} is {given!r} ({_described(given)}); expected {kind.expected}{hint}."
        ) from None


def _described(given: object) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, str):
        return "text" if given.strip() else "blank text"
    if isinstance(given, bool):
        return "a truth value"
    if isinstance(given, Real):
        return "a number"
    if isinstance(given, (list, tuple)):
        return "a list"
    return f"a {type(given).__name__}"


def _written(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(repr(entry) for entry in value)}]"
    return repr(value)


def _injected_values(history: object) -> dict[str, object]:
    """What papermill's last cell sets, read from IPython's history of inputs; empty where there is none."""
    if not isinstance(history, list):
        return {}
    cells = [cell for cell in map(str, history) if cell.lstrip().split("\n", 1)[0].rstrip() == _INJECTED]
    if not cells:
        return {}
    values: dict[str, object] = {}
    for statement in ast.parse(cells[-1]).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            values[statement.targets[0].id] = _literal(statement.value)
    return values


def _literal(node: ast.expr) -> object:
    """The value of papermill's literal; it writes infinities and NaN as ``float('inf')``."""
    if isinstance(node, ast.Call):
        return float(ast.literal_eval(node.args[0]))
    return ast.literal_eval(node)

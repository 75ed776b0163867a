"""Printed numbers: taken apart, compared with ours, and written the same way.

A printed number stands for an interval: ``0.017`` for every value that rounds to it. Two rules follow.

- A **rounded** number agrees with ours when ours lies within half a unit of its last printed digit
  (both ends included, since a tie may be rounded either way; float noise of 1e-9 is forgiven).
- A **count** agrees only when it is the same whole number. A printed number without decimals is a count when
  our value is an ``int``; a median or a percentage is a ``float`` and is compared as a rounded number.

A bound such as ``<0.001`` agrees when ours lies strictly beyond it, and ``about 0.05`` allows a whole unit of
its last digit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from numbers import Integral, Real

from frame.errors import InputError

__all__ = ["Comparison", "Printed", "PrintedNumber", "agreement", "format_like", "parse_printed"]

_SLACK = Decimal("1e-9")
_NUMBER = re.compile(
    r"(?P<relation>about |<|>)?(?P<sign>[+\-−])?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?P<exponent>e[+\-−]?\d+)?(?P<percent> ?%)?"
)
_SHAPES = {
    "#": "number",
    "# of #": "count of a total",
    "# to #": "range",
    "# against #": "pair",
    "#, #": "list",
    "# ± #": "value and SD",
    "# [#, #]": "value and interval",
    "# ± # [#, #]": "value, SD and interval",
}


@dataclass(frozen=True)
class PrintedNumber:
    """One number as it is printed.

    Attributes
    ----------
    value : decimal.Decimal
        The number.
    step : decimal.Decimal
        One unit of its last printed digit (0.001 for ``0.017``, 1 for ``1,152``).
    relation : str
        ``"="``, ``"<"``, ``">"`` or ``"about"``.
    """

    value: Decimal
    step: Decimal
    relation: str = "="


@dataclass(frozen=True)
class Printed:
    """A printed text taken apart.

    Attributes
    ----------
    text : str
        The text as printed.
    shape : str
        What the text is: ``number``, ``count of a total`` (``20 of 29``), ``range`` (``0.1 to 0.2``),
        ``pair`` (``0.1 against 0.2``), ``list``, ``value and SD``, ``value and interval`` or
        ``value, SD and interval`` (``0.017 ± 0.008 [0.005, 0.035]``).
    numbers : tuple of PrintedNumber
        Its numbers, in order.
    """

    text: str
    shape: str
    numbers: tuple[PrintedNumber, ...]


@dataclass(frozen=True)
class Comparison:
    """The outcome of comparing one printed text with our value.

    Attributes
    ----------
    equal : bool
        Whether every number agrees.
    tolerance : float
        The largest deviation allowed (0 for counts, NaN for a bound or for words).
    reason : str
        What deviates, in words; empty when equal.
    """

    equal: bool
    tolerance: float
    reason: str


def parse_printed(text: str) -> Printed:
    """Take a printed number apart.

    Parameters
    ----------
    text : str
        For example ``"1,152"``, ``"<0.001"``, ``"+0.008"``, ``"−0.002"`` (Unicode minus), ``"25%"``,
        ``"8.8e-5"``, ``"about 0.05"``, ``"20 of 29"``, ``"0.017 ± 0.008 [0.005, 0.035]"``. A percent sign
        does not change the value: shares are in percent throughout.

    Returns
    -------
    Printed
        Its shape and its numbers.

    Raises
    ------
    frame.InputError
        If the text is not of one of the shapes above.
    """
    shape = re.sub(r"\s+", " ", _NUMBER.sub("#", text)).strip()
    if shape not in _SHAPES:
        raise InputError(
            f"{text!r} is not a printed number; understood are a number, <x, >x, about x, x of y, x to y, "
            "x against y, and x ± sd [lo, hi]."
        )
    return Printed(text, _SHAPES[shape], tuple(_printed_number(match) for match in _NUMBER.finditer(text)))


def agreement(printed: str, ours: float | int | str) -> Comparison:
    """Compare one printed text with our value.

    Parameters
    ----------
    printed : str
        The text as printed: a number in one of the forms of :func:`parse_printed`, or words (``yes``).
    ours : float, int or str
        Our value. An ``int`` is a count; a text holds the same numbers in the same order as ``printed``, with
        as many digits as it has.

    Returns
    -------
    Comparison
        Whether they agree, the tolerance, and what deviates.

    Raises
    ------
    frame.InputError
        If ``ours`` does not hold as many numbers as ``printed``, or is a bound itself.

    Examples
    --------
    >>> from frame.fidelity import agreement
    >>> agreement("0.017 ± 0.008 [0.005, 0.035]", "0.0171 ± 0.0081 [0.0052, 0.0352]").equal
    True
    >>> agreement("41", 42).reason
    'ours 42, printed 41'
    """
    parsed = _parsed_or_words(printed, ours)
    if parsed is None:
        same = str(ours) == printed
        return Comparison(same, float("nan"), "" if same else f"ours {ours}, printed {printed}")
    values = _our_numbers(ours, parsed)
    tolerance = Decimal(0)
    bounded = False
    reasons = []
    for number, (value, is_count) in zip(parsed.numbers, values, strict=True):
        if number.relation in ("<", ">"):
            bounded = True
            close = value < number.value if number.relation == "<" else value > number.value
        else:
            allowed = _tolerance(number, is_count=is_count)
            tolerance = max(tolerance, allowed)
            close = abs(value - number.value) <= allowed + min(_SLACK, allowed / 1000)
        if not close:
            relation = "" if number.relation == "=" else f"{number.relation} "
            shown = value if is_count else round(value, 2 - int(number.step.log10()))
            reasons.append(f"ours {shown}, printed {relation}{number.value}")
    return Comparison(not reasons, float("nan") if bounded else float(tolerance), "; ".join(reasons))


def format_like(printed: str, ours: float | int | str) -> str:
    """Write our value the way the paper prints its own.

    Parameters
    ----------
    printed : str
        The printed text whose shape, decimals, signs and separators are followed.
    ours : float, int or str
        Our value, as for :func:`agreement`.

    Returns
    -------
    str
        For example ``"0.017 ± 0.008 [0.005, 0.035]"``. A tie goes to the even digit, as in the paper's tables
        (0.0085 is printed 0.008, and a median of 40.5 is 40). Where ours is not beyond a printed bound, the
        number itself is written.

    Raises
    ------
    frame.InputError
        As for :func:`agreement`.
    """
    parsed = _parsed_or_words(printed, ours)
    if parsed is None:
        return str(ours)
    written = iter(
        [
            _write(match, number, value)
            for match, number, (value, _) in zip(
                _NUMBER.finditer(printed), parsed.numbers, _our_numbers(ours, parsed), strict=True
            )
        ]
    )
    return _NUMBER.sub(lambda _: next(written), printed)


def _printed_number(match: re.Match[str]) -> PrintedNumber:
    plain = (match["sign"] or "") + match["digits"].replace(",", "") + (match["exponent"] or "")
    value = Decimal(plain.replace("−", "-"))
    step = Decimal(1).scaleb(int(value.as_tuple().exponent))
    return PrintedNumber(value, step, (match["relation"] or "=").strip())


def _parsed_or_words(printed: str, ours: object) -> Printed | None:
    """Take the printed text apart, or return None where both sides are words."""
    if isinstance(ours, str) and re.sub(r"\s+", " ", _NUMBER.sub("#", printed)).strip() not in _SHAPES:
        return None
    return parse_printed(printed)


def _our_numbers(ours: object, printed: Printed) -> list[tuple[Decimal, bool]]:
    """Read our numbers, each with whether it is a count."""
    if isinstance(ours, str):
        own = parse_printed(ours)
        if any(number.relation != "=" for number in own.numbers):
            raise InputError(f"our value {ours!r} is a bound; a number is needed.")
        values = [(number.value, number.step >= 1) for number in own.numbers]
    elif isinstance(ours, bool) or not isinstance(ours, Real):
        raise InputError(f"our value {ours!r} is not a number, and the paper prints {printed.text!r}.")
    elif isinstance(ours, Integral):
        values = [(Decimal(int(ours)), True)]
    else:
        values = [(Decimal(repr(float(ours))), False)]
    if len(values) != len(printed.numbers):
        raise InputError(
            f"the paper prints {len(printed.numbers)} numbers ({printed.text}) and ours has {len(values)}."
        )
    return values


def _tolerance(number: PrintedNumber, *, is_count: bool) -> Decimal:
    if number.relation == "about":
        return number.step
    return Decimal(0) if is_count and number.step >= 1 else number.step / 2


def _write(match: re.Match[str], number: PrintedNumber, value: Decimal) -> str:
    beyond = {"<": value < number.value, ">": value > number.value}
    if beyond.get(number.relation, False):
        return match[0]
    clean = Decimal(f"{value:.12g}")
    rounded = clean.quantize(number.step, rounding=ROUND_HALF_EVEN)
    if match["exponent"]:
        digits = max(0, len(match["digits"].partition(".")[2]))
        text = re.sub(r"e([+-])0*(\d)", lambda part: f"e{part[1].strip('+')}{part[2]}", f"{clean:.{digits}e}")
    else:
        separator = "," if "," in match["digits"] or number.value < 1000 else ""
        text = f"{rounded:{separator}f}"
    if match["sign"] == "+" and rounded >= 0:
        text = "+" + text
    if match["sign"] == "−":
        text = text.replace("-", "−", 1)
    about = "about " if number.relation == "about" else ""
    return about + text + (match["percent"] or "")

"""One claim: what its rows must agree on, and what an audit takes from them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from frame.claims.cells import number_in
from frame.claims.columns import COUNT_COLUMNS, MOST_DECIMALS, NOT_PRINTED
from frame.claims.files import Place
from frame.errors import InputError


@dataclass(frozen=True)
class Claim:
    """One reported difference, checked.

    Attributes
    ----------
    claim_id, measure : str
        Name and measure (``auroc``, ``tpr``, ``fpr``).
    subgroups : tuple of str
        Subgroups that have a denominator, in the order of the table.
    n_positive, n_negative : tuple of int
        Counts per subgroup; empty where the measure does not use them.
    values : tuple of float
        Subgroup values; empty when only a difference was given.
    difference : float
        Reported (given or largest minus smallest) difference, 0-1 scale; NaN when not auditable.
    exact_difference : Fraction or None
        The same from confusion counts, to be compared in integers.
    overall : float
        Common value A; NaN when there is none.
    overall_source : str
        ``printed`` or ``weighted mean``; empty when there is none.
    decimals : int or None
        Decimals to which the values are printed; None for exact ones.
    half_widths : float
        Half the length of the difference's rounding interval; 0 for exact values.
    direction : str
        ``disparity``, ``caution`` or empty: what the study itself claims.
    reason : str
        Empty, or what was left out, or (beginning ``not auditable:``) why there is no audit.
    """

    claim_id: str
    measure: str
    subgroups: tuple[str, ...]
    n_positive: tuple[int, ...]
    n_negative: tuple[int, ...]
    values: tuple[float, ...]
    difference: float
    exact_difference: Fraction | None
    overall: float
    overall_source: str
    decimals: int | None
    half_width: float
    direction: str
    reason: str

    @property
    def auditable(self) -> bool:
        """Whether a reference can be computed."""
        return not self.reason.startswith("not auditable")

    @property
    def denominators(self) -> tuple[int, ...]:
        """Cases behind each subgroup value: both classes for AUROC, one for a rate."""
        if self.measure == "auroc":
            return tuple(p + n for p, n in zip(self.n_positive, self.n_negative, strict=True))
        return self.n_positive if self.measure == "tpr" else self.n_negative


class ClaimRows:
    """The rows of one claim."""

    def __init__(
        self,
        rows: dict[str, list[str]],
        labels: list[int],
        positions: list[int],
        place: Place,
        texts_are_printed: bool,
    ) -> None:
        self._rows = rows
        self._labels = labels
        self._positions = positions
        self._place = place
        self._printed = texts_are_printed

    def _cells(self, column: str) -> list[str]:
        return (
            [self._rows[column][p] for p in self._positions]
            if column in self._rows
            else [""] * len(self._positions)
        )

    def _fail(self, member: int, column: str | None, message: str) -> InputError:
        return InputError(f"{self._place.at(self._labels[self._positions[member]], column)}: {message}")

    def _one(self, column: str, what: str) -> str:
        """The single cell a claim has in a column, blank when it has none."""
        cells = self._cells(column)
        given = [c for c in cells if c]
        for member, cell in enumerate(cells):
            if cell and cell != given[0] and number_in(cell) != number_in(given[0]):
                raise self._fail(
                    member,
                    column,
                    f"'{cell}' conflicts with '{given[0]}' in an earlier row of the same claim; "
                    f"a claim has one {what}.",
                )
        return given[0] if given else ""

    def claim(self, claim_id: str) -> Claim:
        """Check what the rows say together and put the claim together."""
        subgroups = self._cells("subgroup")
        for member, subgroup in enumerate(subgroups):
            if subgroup in subgroups[:member]:
                raise self._fail(
                    member,
                    "subgroup",
                    f"'{subgroup}' stands twice in claim '{claim_id}'; give each subgroup once.",
                )
        metric = self._one("metric", "metric").lower()
        if len(subgroups) < 2:
            raise self._fail(
                0, None, f"claim '{claim_id}' has one subgroup only; a difference needs at least two."
            )
        difference = self._one("difference", "difference")
        overall = self._one("overall_value", "overall value")
        direction = self._one("claim_direction", "direction")
        n_positive, n_negative, exact = self._counts(metric)
        values = self._cells("value")
        needed = (
            [n_positive] if metric == "tpr" else [n_negative] if metric == "fpr" else [n_positive, n_negative]
        )
        empty = [any(counts[m] == 0 for counts in needed) for m in range(len(values))]
        self._check_values(values, exact, difference, empty)
        looked_for = [c.lower() == NOT_PRINTED for c in self._cells("provenance")]
        self._check_denominators(metric, n_positive, n_negative, looked_for)
        return self._assemble(
            claim_id, metric, subgroups, n_positive, n_negative, exact, values, difference, overall, direction
        )

    def _counts(self, metric: str) -> tuple[list[int | None], list[int | None], list[Fraction | None]]:
        """Positives, negatives and exact values per subgroup, from whichever counts are given."""
        whole = {c: [int(float(x)) if x else None for x in self._cells(c)] for c in COUNT_COLUMNS}
        prevalence = self._cells("prevalence")
        positives: list[int | None] = []
        negatives: list[int | None] = []
        exact: list[Fraction | None] = []
        for member in range(len(self._positions)):
            own = {c: whole[c][member] for c in COUNT_COLUMNS}
            tp, fn, fp, tn, total = (own[c] for c in ("tp", "fn", "fp", "tn", "n_total"))
            for first, second, used in (("tp", "fn", "tpr"), ("fp", "tn", "fpr")):
                if (own[first] is None) != (own[second] is None) and metric in (used, "auroc"):
                    blank = first if own[first] is None else second
                    given = second if blank == first else first
                    raise self._fail(
                        member, blank, f"the cell is blank but '{given}' is given; give both or none."
                    )
            known = {
                "n_positive": tp + fn if tp is not None and fn is not None else None,
                "n_negative": fp + tn if fp is not None and tn is not None else None,
            }
            if total is not None and prevalence[member]:
                share = _fraction(prevalence[member])
                derived = math.floor(total * share + Fraction(1, 2))
                known = {
                    "n_positive": derived if known["n_positive"] is None else known["n_positive"],
                    "n_negative": total - derived if known["n_negative"] is None else known["n_negative"],
                }
            elif (total is not None or prevalence[member]) and None in (own["n_positive"], own["n_negative"]):
                needed, given = ("prevalence", "n_total") if total is not None else ("n_total", "prevalence")
                raise self._fail(
                    member, needed, f"the cell is blank but '{given}' is given; give both or none."
                )
            for name, found in known.items():
                written = own[name]
                if written is not None and found is not None and written != found:
                    raise self._fail(
                        member,
                        name,
                        f"{written} conflicts with {found}, which follows from the other counts of the row.",
                    )
                (positives if name == "n_positive" else negatives).append(
                    written if written is not None else found
                )
            counted = {"tpr": (tp, fn), "fpr": (fp, tn)}.get(metric, (None, None))
            hits, misses = counted
            exact.append(
                Fraction(hits, hits + misses)
                if hits is not None and misses is not None and hits + misses > 0
                else None
            )
        return positives, negatives, exact

    def _check_values(
        self, values: list[str], exact: list[Fraction | None], difference: str, empty: list[bool]
    ) -> None:
        for member, (value, counted) in enumerate(zip(values, exact, strict=True)):
            if (
                value
                and counted is not None
                and abs(float(value) - counted) > 0.5 * 10.0 ** -_decimals(value) + 1e-9
            ):
                raise self._fail(
                    member,
                    "value",
                    f"'{value}' conflicts with {float(counted):.4f}, which follows from the counts.",
                )
        has_value = [bool(v) or e is not None for v, e in zip(values, exact, strict=True)]
        if difference and any(has_value):
            raise self._fail(
                0, "difference", "both a difference and subgroup values are given; give one of them."
            )
        looked_for = [c.lower() == NOT_PRINTED for c in self._cells("provenance")]
        for member, present in enumerate(has_value):
            lacking = not present and not difference and not looked_for[member]
            if lacking and not empty[member]:
                raise self._fail(
                    member,
                    "value",
                    "the cell is blank; give the value, counts it follows from, or a 'difference' for the "
                    f"whole claim. If it is not in the article, write '{NOT_PRINTED}' in 'provenance'.",
                )

    def _check_denominators(
        self, metric: str, n_positive: list[int | None], n_negative: list[int | None], looked_for: list[bool]
    ) -> None:
        needed = {"n_positive": n_positive} if metric != "fpr" else {}
        needed |= {"n_negative": n_negative} if metric != "tpr" else {}
        for column, counts in needed.items():
            for member, count in enumerate(counts):
                if count is None and not looked_for[member]:
                    raise self._fail(
                        member,
                        column,
                        f"the cell is blank; {metric} needs this count, or counts it follows from. "
                        f"If it is not in the article, write '{NOT_PRINTED}' in 'provenance'.",
                    )

    def _assemble(
        self,
        claim_id: str,
        metric: str,
        subgroups: list[str],
        n_positive: list[int | None],
        n_negative: list[int | None],
        exact: list[Fraction | None],
        values: list[str],
        difference: str,
        overall: str,
        direction: str,
    ) -> Claim:
        kept: list[int] = []
        left_out: list[str] = []
        for member, subgroup in enumerate(subgroups):
            needed = {"positives": n_positive[member]} if metric != "fpr" else {}
            needed |= {"negatives": n_negative[member]} if metric != "tpr" else {}
            lacking = [
                f"no printed number of {c}" if n is None else f"0 {c}" for c, n in needed.items() if not n
            ]
            if not lacking and not difference and not values[member] and exact[member] is None:
                lacking = ["no printed value"]
            if lacking:
                left_out.append(f"subgroup '{subgroup}' left out ({lacking[0]})")
            else:
                kept.append(member)
        reason = "; ".join(left_out)
        if len(kept) < 2:
            reason = f"not auditable: fewer than two subgroups have a value and a denominator; {reason}"
        elif difference and left_out:
            reason = f"not auditable: a difference was given, and a subgroup behind it has no count; {reason}"
        positives = tuple(int(n_positive[m] or 0) for m in kept) if metric != "fpr" else ()
        negatives = tuple(int(n_negative[m] or 0) for m in kept) if metric != "tpr" else ()
        all_exact = not difference and bool(kept) and all(exact[m] is not None for m in kept)
        fractions = [e for m in kept if (e := exact[m]) is not None]
        numbers = (
            ()
            if difference
            else tuple(float(e) if (e := exact[m]) is not None else float(values[m]) for m in kept)
        )
        if difference:
            delta, decimals = (
                float(difference),
                _printed_decimals([c for c in self._cells("difference") if c]),
            )
            half_width = 0.0 if decimals is None else 0.5 * 10.0**-decimals
        else:
            delta = max(numbers) - min(numbers) if numbers else math.nan
            printed = [values[m] for m in kept if exact[m] is None]
            decimals = _printed_decimals(printed) if self._printed else _stored_decimals(printed)
            half_width = 0.0 if decimals is None else 10.0**-decimals
        common, source = (float(overall), "printed") if overall else (math.nan, "")
        weights = (
            [p + n for p, n in zip(positives, negatives, strict=True)]
            if metric == "auroc"
            else (positives or negatives)
        )
        if overall and numbers and metric != "auroc" and common in (0.0, 1.0) and delta > 0.0:
            # As a true rate it would allow no difference at all, so it is a rounded one.
            reason = "; ".join(
                filter(None, [reason, f"overall value printed as {overall}, weighted mean used"])
            )
            overall = ""
        elif overall and numbers and not min(numbers) <= common <= max(numbers):
            note = f"overall value {overall} lies outside the subgroup values"
            reason = "; ".join(filter(None, [reason, note]))
        if not overall and numbers:
            if all_exact:
                hits = sum((f * w for f, w in zip(fractions, weights, strict=True)), Fraction(0))
                common = float(hits / sum(weights))
            else:
                common = math.fsum(v * w for v, w in zip(numbers, weights, strict=True)) / sum(weights)
            # Rounding may carry a mean of equal values past their own value, or past 1.
            common, source = min(max(common, min(numbers)), max(numbers)), "weighted mean"
        if len(kept) < 2 and not difference:
            delta, common, source = math.nan, math.nan, ""
        if not source and not reason.startswith("not auditable"):
            reason = "not auditable: a difference alone needs an overall value for the common performance"
        return Claim(
            claim_id=claim_id,
            measure=metric,
            subgroups=tuple(subgroups[m] for m in kept),
            n_positive=positives,
            n_negative=negatives,
            values=numbers,
            difference=delta,
            exact_difference=max(fractions) - min(fractions) if all_exact else None,
            overall=common,
            overall_source=source,
            decimals=decimals,
            half_width=half_width,
            direction=direction,
            reason=reason,
        )


def _fraction(text: str) -> Fraction:
    """A number as it is written; in scientific notation, as it is stored."""
    plain = re.fullmatch(r"[+-]?\d{0,20}\.?\d{0,40}", text)
    return Fraction(text) if plain else Fraction(float(text))


def _decimals(text: str) -> int:
    """Decimals a number is written with; scientific notation counts as exact."""
    plain = re.fullmatch(r"[+-]?\d*\.?(\d*)", text)
    return len(plain.group(1)) if plain and "." in text else (0 if plain else MOST_DECIMALS + 1)


def _printed_decimals(texts: list[str]) -> int | None:
    """Smallest number of decimals among printed values; None when all of them are exact."""
    rounded = [d for d in map(_decimals, _not_whole(texts)) if d <= MOST_DECIMALS]
    return min(rounded) if rounded else None


def _not_whole(texts: list[str]) -> list[str]:
    """Leave out a bare 0 or 1: a spreadsheet strips the zeros of 1.00, and nobody rounds to whole rates."""
    return [t for t in texts if not (_decimals(t) == 0 and number_in(t) in (0.0, 1.0))]


def _stored_decimals(texts: list[str]) -> int | None:
    """Largest number of decimals: a stored 0.2 may have been printed as 0.20, a stored 0.23 was not 0.2."""
    decimals = [_decimals(t) for t in _not_whole(texts)]
    return max(decimals) if decimals and max(decimals) <= MOST_DECIMALS else None

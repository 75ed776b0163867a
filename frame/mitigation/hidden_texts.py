"""Words and facts of a comparison from which no small count can be computed.

What a method did to a group rests on counts of training and validation images: a weight, a shift or a slope
can give them back, and so can the word that a group was left as it was. With a limit on counts no such number
is shown for any group, since the counts of hidden groups follow from those of the others by subtraction from
the totals; and a word stands for all groups alike.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from frame.audits.settings import check_suppression
from frame.audits.suppression import masked_text

if TYPE_CHECKING:
    import pandas as pd

    from frame.mitigation.comparison import Comparison

__all__ = ["HIDDEN_COUNTS", "masked", "tells_a_count", "without_small_counts", "words_without_counts"]

#: Stands in place of a flag or a reason that would tell a count.
HIDDEN_COUNTS: Final = "counts below {limit} are hidden"
#: A whole number that stands alone: not part of a decimal, of a percentage or of a name.
_WHOLE_NUMBER: Final = re.compile(r"(?<![\w.,+-])\d[\d,]*(?![\w.%]|[.,]\d| %)")
#: Words that tell a count of training or validation images of a group, or that one is zero.
_TELLS: Final = re.compile(
    r"\bno (?:positive |negative )?(?:training|validation|test) image|\bhas (?:no )?training images?\b"
    r"|\bhas a positive validation image"
    r"|\d (?:positive |negative )?(?:training|validation) image(?!s? (?:was|were) drawn)"
    r"|\bone training image|\btraining images are all alike|\bkept the identity|\bkept its scores"
    r"|\bno group could be|\bno group has\b|\bone label\b|undefined in \d|\d of [\d,]+ resamples"
)
#: Images without a group, by split: with the number of all of them those of training follow.
_BY_SPLIT: Final = re.compile(r"\b\d[\d,]* images? of (validation|test)\b")
#: What a method did to each group, without its numbers.
_VERBS: Final = {
    "resample": "resampled",
    "reweigh": "weighted",
    "group_dro": "weighted",
    "group_dro_converged": "weighted",
    "threshold_shift": "shifted",
    "platt": "calibrated",
    "platt_monotone": "calibrated",
}
#: Facts of a fit that are counts of images or of groups, or belong to one group.
_FACTS_OF_COUNTS: Final = ("images", "left out", "rows used", "effective images", "groups", "worst group")


def masked(text: str, limit: int) -> str:
    """Text in which every whole number below the limit is replaced; 0 changes nothing."""
    if not limit:
        return text

    def mask(found: re.Match[str]) -> str:
        small = int(found.group().replace(",", "") or "0") < limit
        return f"fewer than {limit}" if small else found.group()

    return _WHOLE_NUMBER.sub(mask, text)


def without_small_counts(comparison: Comparison, suppress_below: int) -> Comparison:
    """The comparison with texts that tell no small count, for everything that is printed or written.

    Parameters
    ----------
    comparison : Comparison
        The result.
    suppress_below : int
        Smallest count that may be shown; 0 changes nothing.

    Returns
    -------
    Comparison
        Statuses, reasons, flags, actions, facts and notes are changed; numbers of tables are not.
    """
    limit = check_suppression(suppress_below)
    if limit == 0:
        return comparison
    hidden = comparison.hidden(limit)
    changed = {}
    for name in ("table", "achievable", "methods_run"):
        table = getattr(comparison, name).copy()
        for column in ("reason", "flags", "excluded"):
            if column in table:
                table[column] = [
                    words_without_counts(str(words), hidden[str(attribute)], limit)
                    for words, attribute in zip(table[column], table["attribute"], strict=True)
                ]
        changed[name] = table.astype(getattr(comparison, name).dtypes.to_dict())
    facts = changed["methods_run"]["facts"]
    changed["methods_run"]["facts"] = [_facts(str(words), limit) for words in facts]
    return replace(
        comparison,
        **changed,
        by_group=_treatments(comparison.by_group, limit),
        notes=tuple(_note(note, limit) for note in comparison.notes),
    )


def tells_a_count(words: str, hidden: frozenset[str]) -> bool:
    """Whether words are about a hidden group, or tell a count of training or validation images of a group."""
    about = any(words.startswith((f"{g}: ", f"{g} has ")) or f"group '{g}'" in words for g in hidden)
    return about or _TELLS.search(words) is not None


def words_without_counts(text: str, hidden: frozenset[str], limit: int) -> str:
    """Flags or reasons, one after another, in which those that tell a count say that it is hidden."""
    said = HIDDEN_COUNTS.format(limit=limit)
    parts = []
    for part in text.split("; "):
        if tells_a_count(part, hidden):
            method = re.match(r"[a-z_]+: ", part)
            kept = method[0] if method and method[0][:-2] in _methods() else ""
            parts.append(f"{kept}{said}")
        else:
            parts.append(masked(masked_text(re.sub(r"\bslope \S+ on\b", "slope on", part), limit), limit))
    return "; ".join(dict.fromkeys(parts))


def _methods() -> frozenset[str]:
    from frame.mitigation.achievable import UNMITIGATED
    from frame.mitigation.judged import REFITTED
    from frame.mitigation.registry import METHODS

    return frozenset((UNMITIGATED, REFITTED, *METHODS))


def _facts(text: str, limit: int) -> str:
    kept = [one for one in text.split("; ") if one and not one.startswith(_FACTS_OF_COUNTS)]
    return "; ".join(masked(one, limit) for one in kept)


def _treatments(by_group: pd.DataFrame, limit: int) -> pd.DataFrame:
    """The table of groups in which all groups have one action and one reason under a method."""
    said = HIDDEN_COUNTS.format(limit=limit)
    table = by_group.copy()
    keys = ["attribute", "method", "measure"]
    told = table["action_reason"].ne("").groupby([table[key] for key in keys]).transform("any")
    actions: list[Any] = [
        _VERBS.get(str(method), "treated") if action else ""
        for method, action in zip(table["method"], table["action"], strict=True)
    ]
    table["action"] = actions
    table["action_reason"] = [said if one else "" for one in told]
    table["reason"] = [masked(masked_text(str(reason), limit), limit) for reason in table["reason"]]
    return table.astype(by_group.dtypes.to_dict())


def _note(note: str, limit: int) -> str:
    """A note without small counts, and without what they leave of a total."""
    if note.startswith("The unmitigated head"):
        return masked(masked_text(note, limit), limit)
    shown = masked_text(_BY_SPLIT.sub(r"images of \1", note), limit)
    if " left out (" in shown and masked(shown, limit) != shown:
        return re.sub(r" \(.*\)\.$", ".", shown)
    return shown

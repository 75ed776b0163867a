"""Representation geometry: how groups lie in features, and how that overlaps with the disease."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.capped_rows import CAP, capped_rows
from frame.heads.linear_maps import LinearMap, standardising_map
from frame.heads.logistic import LogisticFit, fit_logistic
from frame.interventions.decodability import (
    Quantity,
    check_level_codes,
    macro_auroc,
    nonlinear_probe,
    not_estimable,
)
from frame.interventions.subspaces import principal_cosines
from frame.measures.values import measure_value
from frame.mitigation.contract import Rows
from frame.mitigation.least_squares import fit_eraser
from frame.mitigation.nullspace import directions_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["QUANTITIES", "Geometry", "geometry_of"]

QUANTITIES: Final = ("linear_decodability", "nonlinear_decodability", "overlap", "erasure_cost")
_PROBE_C = 1.0


@dataclass(frozen=True, eq=False)
class Geometry:
    """Four numbers of a representation, for one finding and one attribute.

    Attributes
    ----------
    linear_decodability : Quantity
        Macro one-vs-rest AUROC, on test, of a multinomial logistic regression (C = 1, standardised rows, no
        class weights); about 0.5 where nothing can be read. ``details["by_group"]``.
    nonlinear_decodability : Quantity
        The same of a network with one hidden layer of 256.
    overlap : Quantity
        In [0, 1]: mean cosine of the principal angles between the subspaces that the group probe and the
        linear disease head read, in standardised coordinates. K groups span at most K - 1 dimensions and the
        disease one, so there is one angle. ``details``: ``cosines``, ``group_rank``, ``disease_rank``.
    erasure_cost : Quantity
        Test AUROC of the linear disease head less that of the head refitted after least-squares erasure of
        the group; may be negative. ``details``: ``auroc``, ``auroc_after``, ``gap``.
    groups : tuple of dict
        One for each level: ``group``, ``n_train``, ``n_train_positive``, ``n_test``, ``n_test_positive``.
    n_train, n_test : int
        Images used, all with a known group.
    n_train_left_out, n_test_left_out : int
        Images without a known group; for training also those beyond the cap.
    """

    linear_decodability: Quantity
    nonlinear_decodability: Quantity
    overlap: Quantity
    erasure_cost: Quantity
    groups: tuple[dict[str, Any], ...]
    n_train: int
    n_test: int
    n_train_left_out: int
    n_test_left_out: int

    def to_frame(self) -> pd.DataFrame:
        """One row per quantity: quantity, value, n_train, n_test, status, reason, flags."""
        import pandas as pd

        found = [(name, getattr(self, name)) for name in QUANTITIES]
        return pd.DataFrame(
            {
                "quantity": [name for name, _ in found],
                "value": [quantity.value for _, quantity in found],
                "n_train": self.n_train,
                "n_test": self.n_test,
                "status": [quantity.status for _, quantity in found],
                "reason": [quantity.reason for _, quantity in found],
                "flags": ["; ".join(quantity.flags) for _, quantity in found],
            }
        )


def geometry_of(
    train: Rows,
    test: Rows,
    levels: tuple[str, ...],
    *,
    nonlinear: bool = True,
    cap: int = CAP,
    seed: int = 0,
) -> Geometry:
    """Decodability of the group, its overlap with the disease, and what erasing it costs.

    Parameters
    ----------
    train, test : Rows
        Features, labels of the finding and groups. Images whose group is not known are left out of all four
        numbers, so that the disease head before and after erasure has the same images.
    levels : tuple of str
        Names of the groups.
    nonlinear : bool
        Whether the network is fitted, by far the slowest part; else it is ``not run``.
    cap : int
        Training images at most, drawn without replacement.
    seed : int
        Of that draw and of the network.

    Returns
    -------
    Geometry
        A number that cannot be estimated has the status and the reason; nothing is raised for it. A group
        without training images is unknown to the probes: its test images are left out of the two
        decodabilities, and it is named, as is a group without test images.

    Raises
    ------
    InputError
        Where features of train and test differ in width, or a group code names no level.
    """
    if train.features.shape[1] != test.features.shape[1]:
        raise InputError(
            f"Training features have {train.features.shape[1]:,} columns and test features have "
            f"{test.features.shape[1]:,}; give the same."
        )
    check_level_codes(train.groups, levels, "training")
    check_level_codes(test.groups, levels, "test")
    known = train.known
    used = train.kept(known if int(known.sum()) <= cap else capped_rows(known, cap, seed))
    tested = test.kept(test.known)
    present = np.unique(used.groups)
    groups = tuple(
        _counts(used, "train", code) | _counts(tested, "test", code) | {"group": level}
        for code, level in enumerate(levels)
    )
    if len(present) < 2:
        found = f"only {levels[present[0]]} has" if len(present) else "no group has"
        missing = not_estimable(f"{found} training images")
        quantities = dict.fromkeys(QUANTITIES, missing)
    else:
        quantities = _estimated(used, tested, levels, present, nonlinear=nonlinear, seed=seed)
    return Geometry(
        **quantities,
        groups=groups,
        n_train=len(used),
        n_test=len(tested),
        n_train_left_out=len(train) - len(used),
        n_test_left_out=len(test) - len(tested),
    )


def _estimated(
    train: Rows, test: Rows, levels: tuple[str, ...], present: NDArray[Any], *, nonlinear: bool, seed: int
) -> dict[str, Quantity]:
    standard = standardising_map(train.features)
    names = tuple(levels[code] for code in present.tolist())
    train_codes = np.searchsorted(present, train.groups)
    probed = test.kept(np.isin(test.groups, present))
    test_codes = np.searchsorted(present, probed.groups)
    unseen = tuple(
        f"{level} has no training images and its test images were left out"
        for code, level in enumerate(levels)
        if code not in present and bool((test.groups == code).any())
    )
    probe = fit_logistic(train.features, train_codes, classes=range(len(names)), C=_PROBE_C, map=standard)
    disease = _disease(train, standard, probe.preconditioner)
    linear = macro_auroc(probe.decision(probed.features), test_codes, names)
    network = Quantity(float("nan"), "not run", "the nonlinear probe was not asked for")
    if nonlinear:
        network = nonlinear_probe(
            train.features, train_codes, probed.features, test_codes, names, standard, seed=seed
        )
    return {
        "linear_decodability": replace(linear, flags=(*linear.flags, *unseen, *_unsettled(probe))),
        "nonlinear_decodability": replace(network, flags=(*network.flags, *unseen) if nonlinear else ()),
        "overlap": _overlap(probe, disease),
        "erasure_cost": _erasure_cost(train, test, disease),
    }


def _disease(train: Rows, standard: LinearMap, preconditioner: Any) -> LogisticFit:
    return fit_logistic(
        train.features,
        train.labels,
        classes=(0, 1),
        class_weight="balanced",
        map=standard,
        preconditioner=preconditioner,
    )


def _overlap(probe: LogisticFit, disease: LogisticFit) -> Quantity:
    if disease.status == "one class":
        return not_estimable(f"there is no disease head: {disease.reason}")
    group, finding = directions_of(probe.coefficients), directions_of(disease.coefficients)
    if group.shape[1] == 0 or finding.shape[1] == 0:
        which = "groups" if group.shape[1] == 0 else "disease"
        return not_estimable(f"no direction of the features tells the {which} apart")
    cosines = principal_cosines(group, finding)
    return Quantity(
        float(cosines.mean()),
        flags=(*_unsettled(probe), *_unsettled(disease)),
        details={"cosines": cosines.tolist(), "group_rank": group.shape[1], "disease_rank": finding.shape[1]},
    )


def _erasure_cost(train: Rows, test: Rows, disease: LogisticFit) -> Quantity:
    if disease.status == "one class":
        return not_estimable(f"there is no disease head: {disease.reason}")
    n_positive = int(np.count_nonzero(test.labels == 1))
    if n_positive in (0, len(test)):
        lacking = "positive" if n_positive == 0 else "negative"
        return not_estimable(f"of {len(test):,} test images with a known group none is {lacking}")
    try:
        eraser = fit_eraser(train.features, train.groups)
    except InputError as error:
        return not_estimable(str(error).rstrip("."))
    after = _disease(train, eraser.standardised(train.features), disease.preconditioner)
    before_auroc, after_auroc = (
        measure_value("auroc", fit.decision(test.features), test.labels) for fit in (disease, after)
    )
    return Quantity(
        before_auroc - after_auroc,
        flags=(*_unsettled(disease), *_unsettled(after)),
        details={"auroc": before_auroc, "auroc_after": after_auroc, "gap": eraser.gap},
    )


def _unsettled(fit: LogisticFit) -> tuple[str, ...]:
    return (f"a logistic fit did not converge: {fit.reason}",) if fit.status == "not converged" else ()


def _counts(rows: Rows, split: str, code: int) -> dict[str, int]:
    chosen = rows.groups == code
    return {
        f"n_{split}": int(np.count_nonzero(chosen)),
        f"n_{split}_positive": int(np.count_nonzero(chosen & (rows.labels == 1))),
    }

"""Rows of the collinearity experiment with simple numbers, for tests that need no fit."""

import pandas as pd

from frame.experiments.contract import tidy
from frame.experiments.synthetic_model import CLIPPED, GEOMETRY, NAME, RECIPE
from frame.mitigation.achievable import UNMITIGATED
from frame.mitigation.registry import NINE
from frame.synthetic import COLLINEARITIES, SEEDS

#: Factor on the unmitigated difference, and change of the disease AUROC, under the methods that do anything.
EFFECTS = {
    "leace": (0.5, -0.004),
    CLIPPED: (0.4, -0.009),
    "exponentiated_gradient": (0.25, -0.002),
    "inlp": (0.1, -0.2),
}


def unmitigated(collinearity, seed):
    """The difference of the head: it rises with the collinearity, and differs between seeds."""
    return 0.01 + 0.1 * collinearity**2 + 0.001 * seed


def unit_rows(collinearity, seed, effects=None, refused=()):
    """Rows of one unit as ``run_unit`` gives them."""
    effects = EFFECTS if effects is None else effects
    rows = []
    names = {method: method for method in (UNMITIGATED, *NINE, CLIPPED)}
    names |= {f"{RECIPE}_{method}": method for method in (UNMITIGATED, "reweigh", "leace", CLIPPED)}
    for name, method in names.items():
        factor, change = effects.get(method, (1.0, 0.0))
        for split in ("validation", "test"):
            counts = {"n_images": 1000, "n_positive": 500, "method": name, "split": split}
            values = {"auroc": 0.9 + change, "difference": factor * unmitigated(collinearity, seed)}
            for quantity, value in values.items():
                missing = {"value": None, "status": "not estimable", "reason": "not fitted: no luck"}
                rows.append(
                    {**counts, "quantity": quantity, "value": value} | (missing if method in refused else {})
                )
    head = {"method": UNMITIGATED, "split": "test"}
    rows += [
        {**head, "subgroup": f"a = {group}", "quantity": "auroc", "value": 0.95 - 0.01 * group}
        for group in (0, 1)
    ]
    rows.append({**head, "quantity": "difference_population", "value": 0.14 * collinearity**2})
    rows.append({**head, "quantity": "reference", "value": 0.012, "sd": 0.009, "lo": 0.001, "hi": 0.03})
    for place, quantity in enumerate(GEOMETRY):
        rows.append(
            {"split": "test", "quantity": quantity, "value": 0.6 - 0.01 * place - 0.05 * collinearity}
        )
    decodability = 0.6 - 0.05 * collinearity
    rows.append({"split": "test", "method": RECIPE, "quantity": "linear_decodability", "value": decodability})
    same = {"experiment": NAME, "modality": "synthetic", "finding": "disease", "attribute": "group"}
    return tidy(pd.DataFrame(rows), site=f"seed {seed}", strength=collinearity, **same)


def all_unit_rows(**options):
    """Rows of every unit, by collinearity and seed."""
    return {(level, seed): unit_rows(level, seed, **options) for level in COLLINEARITIES for seed in SEEDS}

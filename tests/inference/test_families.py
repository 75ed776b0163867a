import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control

import frame
from frame.errors import InputError
from frame.inference.families import FAMILIES, RULES, correct, families_table, family_of
from frame.tables import load_table


def test_every_family_follows_from_its_rule():
    for family in FAMILIES:
        splits = RULES[family.experiment].splits
        last = family.name.rsplit(": ", 1)[-1]
        named = family_of(
            family.experiment,
            attribute=family.attribute,
            measure=last if "measure" in splits else None,
            operator=last if "operator" in splits else None,
        )
        assert named == family.name
        assert family.made_of
        assert family.source
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)


def test_sizes_of_the_reference_families():
    sizes = {family.name: family.size for family in FAMILIES}
    assert sizes["reference: race"] == 130 + 104 + 9 == 243
    assert sizes["reference: age"] == 130 + 104 + 9 + 9 == 252
    assert sizes["reference: sex"] == 2 * 4 * 13 + 9 + 9 == 122
    table = families_table().set_index("name")
    assert table.loc["reference: race", "size"] == 243
    assert table["size"].isna().sum() == sum(family.size is None for family in FAMILIES)


def test_sizes_of_the_claim_families_are_those_of_the_record():
    counted = frame.audit_claims(load_table("published_claims"))["measure"].value_counts()
    sizes = {family.name: family.size for family in FAMILIES if family.experiment == "claims"}
    assert sizes == {f"claims: {measure}": n for measure, n in counted.items()}


def test_names():
    assert family_of("reference", attribute="view") == "reference: view"
    assert family_of("transfer", attribute="race") == "transfer"
    assert family_of("mitigation change", attribute="age", measure="auroc") == "mitigation change"
    assert (
        family_of("injection", attribute="race", operator="entanglement") == "injection: race: entanglement"
    )
    assert family_of("claims", measure="fnr") == family_of("claims", measure="tpr") == "claims: tpr"
    assert family_of("claims", measure="specificity") == "claims: fpr"
    with pytest.raises(InputError, match="'references'; allowed are 'reference'"):
        family_of("references", attribute="race")
    with pytest.raises(InputError, match="split by operator; name the operator"):
        family_of("injection", attribute="race")


def _tests():
    rng = np.random.default_rng(9)
    return pd.DataFrame(
        {
            "unit": [f"u{i}" for i in range(12)],
            "family": ["reference: race", "reference: age", "transfer"] * 4,
            "p": rng.uniform(0, 0.2, 12),
        },
        index=np.arange(12)[::-1],
    )


def test_correction_is_within_families():
    table = _tests()
    corrected = correct(table)
    for _, rows in corrected.groupby("family"):
        assert rows["p_fdr"].to_numpy() == pytest.approx(false_discovery_control(rows["p"], method="bh"))
    assert list(corrected.index) == list(table.index)
    assert "p_fdr" not in table
    assert not np.allclose(corrected["p_fdr"], false_discovery_control(table["p"], method="bh"))


def test_a_test_that_was_not_made_does_not_count():
    table = _tests()
    more = pd.concat([table, table.assign(p=np.nan)], ignore_index=True)
    corrected = correct(more)
    assert corrected["p_fdr"][:12].to_numpy() == pytest.approx(correct(table)["p_fdr"].to_numpy())
    assert corrected["p_fdr"][12:].isna().all()
    nullable = more.astype({"p": "Float64"})
    assert correct(nullable)["p_fdr"][:12].to_numpy() == pytest.approx(corrected["p_fdr"][:12].to_numpy())


def test_a_test_shown_twice_counts_once():
    table = _tests()
    again = table.sort_values("p", ascending=False)[:4].assign(measure="fnr")
    shown = pd.concat([table.assign(measure="tpr"), again], ignore_index=True)
    once = correct(table).set_index("unit")["p_fdr"]
    corrected = correct(shown, test="unit")
    assert corrected["p_fdr"].to_numpy() == pytest.approx(once[shown["unit"]].to_numpy())
    # Not told that they are the same, the copies dilute their family.
    assert not np.allclose(correct(shown)["p_fdr"], once[shown["unit"]])
    shown.loc[len(shown) - 1, "p"] = 0.5
    with pytest.raises(InputError, match="rows of one test differ in p"):
        correct(shown, test="unit")


def test_refusals():
    with pytest.raises(InputError, match="no column 'family'"):
        correct(pd.DataFrame({"p": [0.1]}))
    with pytest.raises(InputError, match="2 tests have no family"):
        correct(pd.DataFrame({"p": [0.1, 0.2, 0.3], "family": ["a", None, " "]}))
    with pytest.raises(InputError, match=r"p is 1.5"):
        correct(pd.DataFrame({"p": [0.1, 1.5], "family": ["a", "a"]}))
    assert len(correct(pd.DataFrame({"p": pd.Series(dtype=float), "family": pd.Series(dtype=str)}))) == 0

"""What each table of ``data/`` holds: its columns, their allowed content, its key and its origin.

Declarations only; :mod:`frame.tables` reads and checks the files.
"""

from __future__ import annotations

from collections.abc import Mapping

from frame.table_columns import COUNT, NOTE, TEXT, Column, Table, one_of
from frame.table_schemas_cohorts import COHORT_TABLES
from frame.table_schemas_encoders import ENCODER_TABLES

__all__ = ["TABLES", "Column", "Table"]

PAPER = "transcribed from the paper (Lotfinia, Truhn, Maier and Tayebi Arasteh)"


FRACTION = Column("a decimal number from 0 to 1", r"0(\.\d+)?|1(\.0+)?")
FRACTION_OR_BLANK = Column("a decimal number from 0 to 1, or nothing", FRACTION.pattern, blank=True)
SIGNED = Column("a decimal number from -1 to 1, with its sign", r"[+\-−]?0\.\d+")
Q_VALUE = Column("a q value with three decimals, <0.001 or >0.999", r"0\.\d{3}|<0\.001|>0\.999")
COUNT_TEXT = Column("a whole number from 1, or nothing", r"[1-9]\d*", blank=True)
COUNT_OR_BLANK = Column("a whole number from 0, or nothing", r"\d+", blank=True, count=True)
STUDY = Column("a study key such as glocker-2023", r"[a-z]+(-[a-z]+)*-\d{4}(-[a-z]+)*")
CLAIM = Column("a claim id such as glocker-2023-01", r"[a-z]+(-[a-z]+)*-\d{4}-\d{2}")
LINK = Column("a https address, or nothing", r"https://\S+", blank=True)
MODALITIES = (
    "chest radiograph",
    "dermatology",
    "funduscopy",
    "computational pathology",
    "mammography",
    "abdominal CT",
)
MEASURE = one_of("auroc", "tpr", "fpr")
DIRECTION = one_of("disparity", "caution", blank=True)
YES_NO = one_of("yes", "no")

_CLAIMS = Table(
    name="published_claims",
    file="published_claims.csv",
    meaning="One subgroup of one published difference: its value, its counts and where they are printed.",
    origin="transcribed from the nine audited articles and their supplements",
    key=("claim_id", "subgroup"),
    columns={
        "claim_id": CLAIM,
        "study": STUDY,
        "doi_or_url": LINK,
        "modality": one_of(*MODALITIES),
        "dataset": TEXT,
        "task": TEXT,
        "attribute": one_of("race", "sex", "race x sex", "age", "skin tone"),
        "condition": TEXT,
        "metric": MEASURE,
        "subgroup": TEXT,
        "value": FRACTION,
        "n_positive": COUNT_TEXT,
        "n_negative": COUNT_TEXT,
        "overall_value": FRACTION_OR_BLANK,
        "provenance": one_of("reported", "derived", "reconstructed"),
        "source_table": TEXT,
        "claim_direction": DIRECTION,
    },
    rules=(
        "one description per claim",
        "two subgroups per claim",
        "denominator present",
        "claim id of study",
    ),
)

_STUDIES = Table(
    name="published_studies",
    file="published_studies.csv",
    meaning="One screened study: included with its claims, or excluded with the criterion it fails.",
    origin="the screening described in the paper's Methods; the excluded studies are partly inferred",
    key=("study",),
    columns={
        "study": STUDY,
        "citation": TEXT,
        "doi_or_url": LINK,
        "modality": NOTE,
        "included": YES_NO,
        "n_claims": COUNT,
        "criterion_failed": COUNT_OR_BLANK,
        "criterion_basis": one_of(
            "reason names it", "inferred from the totals", "stated in the paper", blank=True
        ),
        "reason": TEXT,
        "claim_direction": NOTE,
        "direction": DIRECTION,
    },
    rules=("included or criterion",),
)

_CHECKS = Table(
    name="published_claims_checks",
    file="published_claims_checks.csv",
    meaning="One spot check of transcribed claims against a second source or by arithmetic.",
    origin="our own checks against public files of the audited articles' authors, abstracts and arithmetic",
    key=("claims", "checked"),
    columns={
        "claims": TEXT,
        "checked": TEXT,
        "against": NOTE,
        "outcome": one_of("match", "consistent", "inconsistent", "inconsistent by one", "not checked"),
        "note": TEXT,
    },
)

_NUMBERS = Table(
    name="paper_numbers",
    file="paper_numbers.csv",
    meaning="One number that the paper prints in its text or figures, and every place that prints it.",
    origin=PAPER,
    key=("id",),
    columns={
        "id": Column("an identifier of lower-case letters, digits and underscores", r"[a-z][a-z0-9_]*"),
        "quantity": TEXT,
        "value": Column("a printed number", r"[^\n]*\d[^\n]*"),
        "where": TEXT,
    },
)

_SUPPLEMENTARY_7 = Table(
    name="paper_supplementary_table7",
    file="paper_supplementary_table7.csv",
    meaning="One audited claim as the paper prints it: difference, reference, interval, q and mark.",
    origin=f"{PAPER}, Supplementary Table 7",
    key=("claim_id",),
    columns={
        "claim_id": CLAIM,
        "study": STUDY,
        "study_printed": TEXT,
        "modality": one_of(*MODALITIES),
        "dataset": TEXT,
        "task": TEXT,
        "attribute": TEXT,
        "condition": TEXT,
        "metric": MEASURE,
        "n_groups": COUNT,
        "smallest_group": COUNT,
        "provenance": one_of("R", "D", "P"),
        "reported": FRACTION,
        "reference": FRACTION,
        "ref_lo": FRACTION,
        "ref_hi": FRACTION,
        "p_fdr": Q_VALUE,
        "exceeds": YES_NO,
    },
    rules=("claim id of study", "reference inside its interval", "mark follows q"),
)


def _paper(
    stem: str, label: str, meaning: str, key: tuple[str, ...], columns: Mapping[str, Column], *rules: str
) -> Table:
    """Declare a table of the paper's own cohorts, kept to stand beside a recomputation."""
    return Table(f"paper_{stem}", f"paper_{stem}.csv", meaning, f"{PAPER}, {label}", key, columns, rules)


_PAPER_TABLES = (
    _paper(
        "table1",
        "Table 1",
        "One source or subgroup with its images per split and its test patients.",
        ("section", "row"),
        {
            "section": TEXT,
            "row": TEXT,
            "reference": COUNT_OR_BLANK,
            "images": COUNT,
            "train": COUNT,
            "validation": COUNT,
            "test": COUNT,
            "test_patients": COUNT,
        },
        "splits add up",
    ),
    _paper(
        "table2",
        "Table 2",
        "One encoder, or one block of pretraining runs, with its objective, domain and width.",
        ("model", "pretraining_objective", "role"),
        {
            "section": TEXT,
            "model": TEXT,
            "reference": COUNT_OR_BLANK,
            "pretraining_objective": TEXT,
            "domain": TEXT,
            "dimension": Column("one or more widths such as 768 or 1,024", r"[\d,]+(, \d+)*"),
            "role": TEXT,
        },
    ),
    _paper(
        "supplementary_table1",
        "Supplementary Table 1",
        "One attribute with its difference under the linear and the nonlinear disease head.",
        ("attribute",),
        {
            "attribute": TEXT,
            "linear_median": FRACTION,
            "linear_q1": FRACTION,
            "linear_q3": FRACTION,
            "nonlinear_median": FRACTION,
            "nonlinear_q1": FRACTION,
            "nonlinear_q3": FRACTION,
            "median_paired_change": SIGNED,
            "largest_change": FRACTION,
        },
        "quartiles in order",
    ),
    _paper(
        "supplementary_table2",
        "Supplementary Table 2",
        "One finding with its smallest positive counts, differences, references and shares for race and age.",
        ("finding",),
        {
            "finding": TEXT,
            "race_n": COUNT,
            "race_observed": FRACTION,
            "race_reference": FRACTION,
            "race_share_pct": COUNT,
            "age_n": COUNT,
            "age_observed": FRACTION,
            "age_reference": FRACTION,
            "age_share_pct": COUNT,
        },
    ),
    _paper(
        "supplementary_table3",
        "Supplementary Table 3",
        "One category of race or insurance with its test radiographs by whether the site records the field.",
        ("attribute", "category"),
        {
            "attribute": one_of("Race", "Insurance"),
            "category": TEXT,
            "recorded": COUNT,
            "not_recorded": COUNT,
            "total": COUNT,
        },
        "recorded and not add up",
    ),
    _paper(
        "supplementary_table4",
        "Supplementary Table 4",
        "One attribute in dermatology or funduscopy with its median difference and reference.",
        ("modality", "attribute"),
        {
            "modality": one_of("Dermatology", "Fundus"),
            "attribute": TEXT,
            "observed": FRACTION,
            "reference": FRACTION,
            "exceeding": COUNT,
            "of": COUNT,
            "achievable": FRACTION,
        },
        "part within whole",
    ),
    _paper(
        "supplementary_table5",
        "Supplementary Table 5",
        "One mitigation method with the fall of the race and age difference (positive: it got smaller).",
        ("method",),
        {
            "method": TEXT,
            "race_n": COUNT,
            "race_median": SIGNED,
            "race_q1": SIGNED,
            "race_q3": SIGNED,
            "age_n": COUNT,
            "age_median": SIGNED,
            "age_q1": SIGNED,
            "age_q3": SIGNED,
        },
        "quartiles in order",
    ),
    _paper(
        "supplementary_table6",
        "Supplementary Table 6",
        "One contrast of pretraining objectives with its gain in worst-group and equity-scaled AUROC.",
        ("contrast", "attribute"),
        {
            "contrast": TEXT,
            "attribute": one_of("Race", "Age", "Sex"),
            "n": COUNT,
            "worst_group_gain": SIGNED,
            "worst_group_significant": COUNT,
            "equity_scaled_gain": SIGNED,
            "equity_scaled_significant": COUNT,
        },
        "part within whole",
    ),
    _paper(
        "supplementary_table8",
        "Supplementary Table 8",
        "One finding with its evaluable and positive radiographs over the whole chest pool.",
        ("finding",),
        {"finding": TEXT, "evaluable": COUNT, "positive": COUNT, "prevalence_pct": COUNT},
        "prevalence is positive over evaluable",
    ),
    _paper(
        "figure4",
        "Figure 4, panels e and f",
        "One quantity at one strength of the decodability or the entanglement injection.",
        ("injection", "strength", "quantity"),
        {
            "injection": one_of("decodability", "entanglement"),
            "strength": Column("a strength such as 0.25 or 256", r"\d+(\.\d+)?"),
            "quantity": TEXT,
            "value": FRACTION,
        },
    ),
    _paper(
        "figure6g",
        "Figure 6, panel g",
        "One mitigation method's median paired change of one race difference (negative: it got smaller).",
        ("measure", "method"),
        {"measure": TEXT, "method": TEXT, "median_paired_change": SIGNED},
    ),
)

DECIMAL = Column("a decimal number", r"-?\d+(\.\d+)?(e-?\d+)?")
DECIMAL_OR_BLANK = Column("a decimal number or nothing", DECIMAL.pattern, blank=True)
FLAG = one_of("True", "False")


def _characteristics(name: str, meaning: str) -> Table:
    """Declare a table of simulated operating characteristics."""
    columns = {
        "cell": TEXT,
        "design": TEXT,
        "measure": one_of("auroc", "tpr", "fpr"),
        "auroc": DECIMAL,
        "prevalence": DECIMAL,
        "repeats": FLAG,
        "shifted": FLAG,
        "correlations": NOTE,
        "drop": DECIMAL,
        "dropped_size": COUNT,
        "large_groups": FLAG,
        "method": TEXT,
        "cohorts": COUNT,
        "estimable": COUNT,
        "rejected": COUNT,
        "rejected_of_repeated": Column("a whole number from 0, or -1", r"-1|\d+"),
        "size": DECIMAL,
        "size_lo": DECIMAL,
        "size_hi": DECIMAL,
        "observed_mean": DECIMAL_OR_BLANK,
        "reference_mean": DECIMAL_OR_BLANK,
        "ratio": DECIMAL_OR_BLANK,
    }
    origin = "simulated; rebuilt by `make characteristics`"
    return Table(name, f"characteristics/{name}.csv", meaning, origin, ("cell", "method"), columns)


_FAIR = "One method in one design of exactly fair simulated cohorts, audited by {}: how often it exceeds."
CHARACTERISTICS_TABLES = (
    *(_characteristics(f"sizes_{m}", _FAIR.format(m.upper())) for m in ("auroc", "tpr", "fpr")),
    _characteristics(
        "power_auroc", "One method in one design with a planted drop of one subgroup's AUROC (simulated)."
    ),
)

_CHANGES = {
    f"{name}_{end}": DECIMAL_OR_BLANK
    for name in ("decodability", "entanglement", "disease")
    for end in ("change", "lo", "hi")
}
#: What the whole procedure says of drawn features, and of drawn images, with a planted truth.
STEP_TWO_TABLES = (
    Table(
        name="step_two_cohorts",
        file="characteristics/step_two_cohorts.csv",
        meaning="One cohort of drawn features with a planted truth, and what the procedure says of it.",
        origin="simulated; rebuilt by `make characteristics`",
        key=("cell", "seed"),
        columns={
            "cell": TEXT,
            "seed": COUNT,
            **dict.fromkeys(("p", "observed", "reference", "truth", "lo", "hi"), DECIMAL_OR_BLANK),
            "verdict": NOTE,
            **_CHANGES,
        },
    ),
    Table(
        name="step_two_rates",
        file="characteristics/step_two_rates.csv",
        meaning="How often the procedure says something in one design of drawn features (planted truth).",
        origin="simulated; rebuilt by `make characteristics`",
        key=("cell", "quantity"),
        columns={
            "cell": TEXT,
            "step": one_of("one", "two"),
            "cause": TEXT,
            "n_groups": COUNT,
            "where": NOTE,
            "quantity": TEXT,
            "count": COUNT,
            "cohorts": COUNT,
            "rate": DECIMAL,
            "rate_lo": DECIMAL,
            "rate_hi": DECIMAL,
            "target": NOTE,
            "met": one_of("yes", "no", blank=True),
        },
    ),
    Table(
        name="step_two_images",
        file="characteristics/step_two_images.csv",
        meaning="One attribute and finding of one world of drawn images, and what the procedure says of it.",
        origin="simulated; rebuilt by `make characteristics`",
        key=("seed", "attribute", "finding"),
        columns={
            "seed": COUNT,
            **dict.fromkeys(("attribute", "finding", "planted"), TEXT),
            **dict.fromkeys(("n_images", "n_positive", "n_patients", "n_groups"), COUNT_OR_BLANK),
            **dict.fromkeys(
                ("observed", "reference", "reference_lo", "reference_hi", "p", "lo", "hi"), DECIMAL_OR_BLANK
            ),
            **dict.fromkeys(("truth_images", "truth_positive", "truth_patients"), COUNT_OR_BLANK),
            **dict.fromkeys(("truth_labelled", "truth_labelled_positive"), COUNT_OR_BLANK),
            **{
                f"truth_{kind}{what}": DECIMAL_OR_BLANK
                for kind in ("recorded", "actual")
                for what in ("", "_reference")
            },
            **dict.fromkeys(("holds_recorded", "holds_actual"), one_of("yes", "no", blank=True)),
            **dict.fromkeys(("verdict", "verdict_of_step_two"), NOTE),
            **_CHANGES,
            "precondition": one_of("yes", "no", blank=True),
            "status": TEXT,
            "reason": NOTE,
        },
    ),
    Table(
        name="step_two_image_groups",
        file="characteristics/step_two_image_groups.csv",
        meaning="One group of a row of step_two_images: its AUROC on test, and in truth.",
        origin="simulated; rebuilt by `make characteristics`",
        key=("seed", "attribute", "finding", "group"),
        columns={
            "seed": COUNT,
            **dict.fromkeys(("attribute", "finding", "group"), TEXT),
            **dict.fromkeys(("n_images", "n_positive", "n_patients"), COUNT),
            "value": DECIMAL_OR_BLANK,
            **dict.fromkeys(("truth_labelled", "truth_labelled_positive"), COUNT),
            "truth_recorded": DECIMAL_OR_BLANK,
            **dict.fromkeys(("truth_images", "truth_positive"), COUNT),
            "truth_actual": DECIMAL_OR_BLANK,
            "status": TEXT,
            "reason": NOTE,
        },
    ),
)

_DEMOGRAPHIC_TERMS = Table(
    name="demographic_terms",
    file="demographic_terms.csv",
    meaning="One term of sex, race, ethnicity or age that is removed from reports, or a phrase that is kept.",
    origin="ours; races and ethnicities as the sources of the cohorts print them",
    key=("term",),
    columns={
        "term": TEXT,
        "kind": one_of("sex", "race", "ethnicity", "age"),
        "form": one_of("word", "pattern", "keep"),
        "version": Column("a whole number from 1", r"[1-9]\d*"),
        "note": NOTE,
    },
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        *(_CLAIMS, _STUDIES, _CHECKS, _NUMBERS, _SUPPLEMENTARY_7),
        *_PAPER_TABLES,
        *CHARACTERISTICS_TABLES,
        *STEP_TWO_TABLES,
        *COHORT_TABLES,
        _DEMOGRAPHIC_TERMS,
        *ENCODER_TABLES,
    )
}

"""The columns a table of claims may have, and an example of such a table."""

from __future__ import annotations

MEASURES = ("auroc", "tpr", "fpr")
DIRECTIONS = ("disparity", "caution")
#: Written in ``provenance``, it says that blank numbers were looked for and are not in the article.
NOT_PRINTED = "not printed"
LARGEST_COUNT = 10**9
#: A value written with more decimals than this stands for itself, without a rounding interval.
MOST_DECIMALS = 6

REQUIRED = ("claim_id", "metric", "subgroup")
COUNT_COLUMNS = ("n_positive", "n_negative", "tp", "fn", "fp", "tn", "n_total")
SHARE_COLUMNS = ("value", "overall_value", "prevalence", "difference")
TEXT_COLUMNS = (
    "study",
    "doi_or_url",
    "modality",
    "dataset",
    "task",
    "attribute",
    "condition",
    "provenance",
    "source_table",
    "claim_direction",
)
KNOWN = (*REQUIRED, *SHARE_COLUMNS, *COUNT_COLUMNS, *TEXT_COLUMNS)


TEMPLATE = """\
claim_id,metric,subgroup,value,n_positive,n_negative,overall_value,tp,fn,fp,tn,n_total,prevalence,difference,claim_direction,provenance,source_table
values-and-counts,auroc,Female,0.86,120,910,0.84,,,,,,,,disparity,reported,"Table 2: value and counts per subgroup"
values-and-counts,auroc,Male,0.81,135,1010,0.84,,,,,,,,disparity,reported,"Table 2: value and counts per subgroup"
confusion-counts,tpr,Under 60,,,,,212,48,,,,,,caution,reported,"Table 3: true positives and false negatives"
confusion-counts,tpr,60 and over,,,,,301,99,,,,,,caution,reported,"Table 3: true positives and false negatives"
total-and-prevalence,fpr,Site A,0.11,,,,,,,,2400,0.18,,,derived,"Table 1: images and share of positives"
total-and-prevalence,fpr,Site B,0.19,,,,,,,,800,0.22,,,derived,"Table 1: images and share of positives"
difference-only,auroc,Light skin,,150,600,0.88,,,,,,,0.05,disparity,reported,"Abstract: the difference and the overall value"
difference-only,auroc,Dark skin,,40,160,0.88,,,,,,,0.05,disparity,reported,"Abstract: the difference and the overall value"
"""

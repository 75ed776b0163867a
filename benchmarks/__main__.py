"""Run the benchmarks that take minutes and print one table each.

Longer ones are modules of their own: ``disease_heads`` (the linear solver beside scikit-learn's),
``mitigation_unit`` (one unit at the scale of the study), ``disease_subspace`` (256 directions),
``mechanism_memory``, ``phantom_truth`` and ``real_radiographs``. Run one as
``python -m benchmarks.mitigation_unit``.
"""

from benchmarks import (
    fair_reference_laws,
    feature_extraction,
    image_preparation,
    manifests,
    patient_bootstrap,
    score_audit,
    whole_processes,
)

if __name__ == "__main__":
    fair_reference_laws.run()
    patient_bootstrap.run()
    score_audit.run()
    image_preparation.run()
    manifests.run()
    feature_extraction.run()
    whole_processes.run()

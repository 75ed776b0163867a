"""Run every benchmark and print one table each."""

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

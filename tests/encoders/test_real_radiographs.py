"""Real radiographs through a really pretrained encoder: a linear head finds effusion and cardiomegaly."""

from importlib.metadata import PackageNotFoundError, version

import pytest

from benchmarks.real_radiographs import ENCODER, FINDINGS, FOLDER, results
from frame.encoders.panel import encoder

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the radiographs of shared/data/real/nih_cxr are not beside this clone"
)


def installed(package):
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def test_a_linear_head_is_clearly_above_chance_on_patients_it_has_not_seen():
    pytest.importorskip("torch", reason="torch is in the extra [models]")
    package = encoder(ENCODER).package
    if not installed(package):
        pytest.skip(f"the weights come in the package {package}, which is not installed")
    found = results("native").set_index("finding")
    assert found["n_images"].tolist() == found["n_patients"].tolist() == [621, 621]
    assert found["n_positive"].to_dict() == {"Effusion": 82, "Cardiomegaly": 56}
    assert set(found.index) == set(FINDINGS)
    # Chance is 0.5; 0.6 leaves room for other versions of the libraries.
    assert (found["lo"] > 0.6).any(), found[["auroc", "lo", "hi"]].round(3).to_dict("index")
    assert (found["lo"] > 0.5).all(), found[["auroc", "lo", "hi"]].round(3).to_dict("index")

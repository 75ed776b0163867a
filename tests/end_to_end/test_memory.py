"""What an audit of the published record needs, as a whole process. Times are measured by ``make bench``."""

from pathlib import Path

from benchmarks.whole_processes import AUDIT, spent


def test_an_audit_of_the_published_record_stays_below_250_megabytes():
    assert Path(AUDIT[-1]).exists()
    _, megabytes = spent(AUDIT)
    assert 20 < megabytes < 250

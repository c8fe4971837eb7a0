"""What a run says of the disk and the memory that it takes."""

import re

import pytest

from hybrid_nbody.cli.main import main
from hybrid_nbody.config.sections import Every, Time
from hybrid_nbody.running import amounts

JOB = """\
model: nbody
bodies: {kind: plummer, n: 2000}
gravity: {softening: 0.02}
time: {dt: 1e-3, steps: 12}
compute: {backend: cpu, threads: 1}
output:
  trajectory: {every_steps: 1}
  diagnostics: {every_steps: 4}
  checkpoint: {every_steps: 4, keep: 2}
  directory: OUT
"""


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("OUT", str(tmp_path / "out")))
    return path


def test_the_disk_is_about_what_is_written(job, monkeypatch):
    monkeypatch.setattr(amounts, "WORTH_SAYING", 0.0)
    assert main(["run", str(job)]) == 0
    log = (job.parent / "out/log.txt").read_text()
    found = re.search(r"expected: about (\S+) MB on the disk \((.*?)\), (\S+) ([MG])B of host", log)
    assert found[2] == "13 frames, 4 rows of diagnostics, 2 checkpoints"
    written = sum(path.stat().st_size for path in job.parent.glob("out/**/*.*"))
    assert float(found[1]) * 1e6 == pytest.approx(written, rel=0.1)
    assert float(found[3]) * {"M": 1e6, "G": 1e9}[found[4]] > 5e7


def test_little_is_not_worth_a_line(job, monkeypatch):
    monkeypatch.setattr(amounts, "MUCH_MEMORY", 1e15)  # other tests of this process may take much
    assert main(["run", str(job)]) == 0
    assert "on the disk" not in (job.parent / "out/log.txt").read_text()


@pytest.mark.parametrize(
    ("every", "count"),
    [
        (None, 0),
        (Every(every_steps=4), 4),
        (Every(every_steps=5), 4),
        (Every(every_steps=100), 2),
        (Every(every_time=0.25), 5),
    ],
)
def test_the_first_and_the_last_state_count(every, count):
    assert amounts.event_count(every, Time(dt=0.1, steps=12 if count != 5 else 10)) == count

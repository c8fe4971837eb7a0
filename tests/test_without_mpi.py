"""One rank where no MPI library can be loaded: commands and Python work, to the same bits."""

import json

import numpy as np
import pytest
from support.ranks import alone, run_python
from support.runs import contents

from hybrid_nbody import Simulation
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.one_rank import OneRank

__all__ = ["alone"]

JOB = """\
model: nbody
bodies: {kind: plummer, n: 30}
gravity: {softening: 0.05}
time: {dt: 1e-2, steps: 6}
compute: {backend: cpu, threads: 1}
output: {directory: OUT, trajectory: {every_steps: 6}, diagnostics: {every_steps: 6}}
"""

SCRIPT = """
import json, sys
sys.modules["mpi4py"] = None
from hybrid_nbody.cli.main import main
assert main(["run", sys.argv[1]]) == 0
assert main(["resume", sys.argv[2], "--set=time.steps=8"]) == 0
from hybrid_nbody import Simulation
simulation = Simulation(sys.argv[1])
simulation.run()
assert simulation.gathered("bodies/id").tolist() == list(range(30))
print(json.dumps([simulation.positions.tolist(), simulation.energy]))
"""


def test_a_run_and_a_simulation_have_their_bits_without_mpi(tmp_path, alone):
    job = tmp_path / "job.yaml"
    job.write_text(JOB.replace("OUT", str(tmp_path / "out")))
    result = run_python(SCRIPT, str(job), str(tmp_path / "out"))
    positions, energy = json.loads(result.stdout.splitlines()[-1])
    here = Simulation(job, communicator=alone)
    here.run()
    np.testing.assert_array_equal(positions, here.positions)
    assert energy == here.energy
    found = contents(tmp_path / "out")
    assert found["diagnostics/step"].tolist() == [0, 6, 8]
    here.step(2)
    np.testing.assert_array_equal(found["bodies/position"][-1], here.positions)


@pytest.mark.parametrize(
    "ask",
    [
        lambda ranks: (ranks.rank, ranks.size, ranks.local_rank, ranks.node_number),
        lambda ranks: ranks.gather_integers(3, 5).tolist(),
        lambda ranks: ranks.concatenate(np.arange(4.0)).tolist(),
        lambda ranks: [ranks.any(True), ranks.any(False), ranks.barrier()],
        lambda ranks: ranks.sum(np.arange(3)).tolist(),
        lambda ranks: ranks.node.allgather("a") + [ranks.comm.Split(0).size],
        lambda ranks: received(ranks, ranks.mpi.IN_PLACE),
        lambda ranks: received(ranks, np.arange(4.0)),
    ],
)
def test_it_stands_in_for_a_communicator_of_one_rank(alone, ask):
    assert ask(Communicator(OneRank())) == ask(alone)


def received(ranks, own):
    """Return what each way of sending to all ranks leaves on the one rank that there is."""
    found = []
    for name in ("Iallreduce", "Ireduce_scatter", "Iallgatherv"):
        rows = np.full(4, 7.0)
        to = [rows, ([4], [0])] if name == "Iallgatherv" else rows
        counts = [[4]] if name == "Ireduce_scatter" else []
        operation = {} if name == "Iallgatherv" else {"op": ranks.mpi.MAX}
        getattr(ranks.comm, name)(own, to, *counts, **operation).Test()
        found.append(rows.tolist())
    return found

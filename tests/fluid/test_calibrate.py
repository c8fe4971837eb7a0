"""Calibration: it does what the ranks of a run do, and every rank hears how fast all are."""

import numpy as np
import pytest
from support.bodies import make_backend
from support.fluids import MIXED
from support.ranks import same_bits

from hybrid_nbody.fluid import calibrate
from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.stencil import POISSON
from hybrid_nbody.parallel import calibrate as calibration


@pytest.mark.mpi
@pytest.mark.parametrize("mixed", [False, True])
def test_every_rank_hears_the_speed_of_all(communicator, monkeypatch, mixed):
    monkeypatch.setattr(calibration, "ROUND_SECONDS", 0.001)
    weights = calibrate.measured_weights(make_backend("cpu"), MIXED, "f4", communicator, mixed)
    assert len(weights) == communicator.size
    assert min(weights) > 0
    assert len(set(map(str, communicator.gather(weights)))) == 1


def test_ranks_of_several_kinds_are_measured_in_single_sweeps(monkeypatch):
    """As they run: a device that does a whole solve at once alone must not do so here."""
    backend, found = make_backend("cpu"), []
    for mixed, unused in ((False, "sweep"), (True, "begin_passes")):
        kernels = make_kernels(backend, Slab((12, 10, 8), MIXED, 0, 8, mixed), "f8")
        monkeypatch.setattr(
            kernels, unused, lambda *_, name=unused: pytest.fail(f"{name} was called")
        )
        x, b = kernels.colours(), kernels.colours()
        kernels.split(np.random.default_rng(1).standard_normal(kernels.slab.shape), b)
        calibrate.typical_solve(kernels)(x, b, POISSON)
        assert kernels.statistics() == {"solves": 1, "iterations": calibrate.ITERATIONS, "early": 0}
        kernels.merge(x, cells := np.zeros(kernels.slab.shape))
        found.append(cells[1:-1].copy())
    assert same_bits(*found)
    assert found[0].any()

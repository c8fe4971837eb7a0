"""The exchange of a configuration of bodies, and the lines of the log about it."""

from types import SimpleNamespace

import numpy as np
import pytest
from support import configs
from support.paper import PaperGpu

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.build import Masses, NBodyBuilder
from hybrid_nbody.nbody.forces.direct import DirectForce
from hybrid_nbody.nbody.forces.registry import make_direct
from hybrid_nbody.nbody.forces.ring import RingForce
from hybrid_nbody.nbody.forces.symmetric import SymmetricForce
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu.exact_sums import LEAST_BODIES
from hybrid_nbody.nbody.state import BYTES_OF_A_SOURCE
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.shares import Devices
from hybrid_nbody.parallel.transport.host import HostTransport

CONFIG = """
model: nbody
bodies: {{kind: plummer, n: 100}}
gravity: {{softening: 0.1, precision: single}}
time: {{dt: 1e-3, steps: 10}}
compute: {{backend: cpu, threads: 1, exchange: {exchange}}}
"""


def builder(communicator, exchange, **options):
    """Return the builder of a hundred bodies."""
    return NBodyBuilder(
        configs.loads(CONFIG.format(exchange=exchange), "test.yaml"), communicator, **options
    )


def built(communicator, exchange, **options):
    """Return their model, and where it runs."""
    maker = builder(communicator, exchange, **options)
    return maker.fresh(maker.initial() if communicator.is_root else None)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("asked", "force"), [("auto", DirectForce), ("allgather", DirectForce), ("ring", RingForce)]
)
def test_the_exchange_that_was_asked_for(communicator, asked, force):
    """One rank alone has nothing to exchange."""
    made = built(communicator, asked)
    expected = DirectForce if communicator.size == 1 else force
    assert type(made.model.force) is expected
    assert made.exchange.name == ("ring" if expected is RingForce else "allgather")
    made.model.advance(2)
    assert abs(made.model.diagnostics()["total_energy"] + 0.25) < 0.05


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("bytes_of_all", "name"), [(2 * BYTES_OF_A_SOURCE, "allgather"), (BYTES_OF_A_SOURCE, "ring")]
)
def test_auto_lets_bodies_go_around_where_a_device_is_small(
    communicator, monkeypatch, bytes_of_all, name
):
    """All positions may take half of what is free, which ranks of one device share.

    The last rank has the least.
    """
    last = communicator.rank == communicator.size - 1
    free = 100 * bytes_of_all * communicator.local_size
    monkeypatch.setattr(CpuBackend, "free_memory", lambda self: free if last else 10**15)
    assert built(communicator, "auto").exchange.name == (
        name if communicator.size > 1 else "allgather"
    )


@pytest.mark.mpi
def test_hybrid_ranks_hold_all_positions(communicator):
    placement = SimpleNamespace(
        backends=("cpu",) * (communicator.size - 1) + ("hybrid",), backend=CpuBackend(1)
    )
    with pytest.raises(
        InputError, match="compute.exchange: ring needs ranks that compute on one device"
    ) as caught:
        builder(communicator, "ring")._exchange_name(100, placement)
    assert caught.value.shared
    assert builder(communicator, "auto")._exchange_name(10**15, placement) == "allgather"


@pytest.mark.parametrize(
    ("asked", "backends", "expected"),
    [
        ("auto", ("gpu", "gpu"), SymmetricForce),
        ("allgather", ("gpu",), SymmetricForce),
        ("ring", ("gpu",), DirectForce),
        ("auto", ("gpu", "cpu"), DirectForce),
    ],
)
def test_many_bodies_on_gpus_take_the_symmetric_force_unless_a_ring_is_asked_for(
    alone, asked, backends, expected
):
    """A ring's speed on one rank is what its speed on several is compared with."""
    maker = builder(alone, asked)
    equal = np.full(LEAST_BODIES, 1.0 / LEAST_BODIES)
    masses = Masses(equal, lambda: equal)
    assert maker.config.gravity.precision == "single"
    exchange = AllgatherExchange(None, Partition.equal(LEAST_BODIES, 1), 0)
    placement = SimpleNamespace(backends=backends, backend=PaperGpu(lambda *arguments: 1e-3))
    setup = maker._force_setup(placement, exchange, masses, PairForce("single", 0.1))
    assert type(make_direct(setup)) is expected


@pytest.mark.mpi
def test_a_transport_that_stands_in_for_another_is_in_the_log(communicator):
    def connect(asked, backend, ranks, gpus_shared):
        transport = HostTransport(backend, ranks)
        transport.warning = (
            "transport nccl could not be started (rank 1: no route); host is used instead"
        )
        return transport

    maker = builder(communicator, "auto", devices=Devices(connect=connect))
    lines = maker.lines(maker.fresh(maker.initial() if communicator.is_root else None))
    warnings = [line for line in lines if line.startswith("warning: ")]
    expected = [
        "warning: transport nccl could not be started (rank 1: no route); host is used instead"
    ]
    assert warnings == (expected if communicator.size > 1 else [])


def test_free_memory_of_the_host():
    assert 10**7 < CpuBackend(1).free_memory() < 10**14


# --- bodies in a plane ----------------------------------------------------------------------------

PLANE = """
model: nbody
bodies: {{kind: file, path: {path}, dimensions: {dimensions}}}
time: {{dt: 1e-3, steps: 10}}
compute: {{backend: cpu, threads: 1}}
"""


def bodies_of_file(communicator, path, dimensions=2):
    """Return the bodies of a file."""
    return NBodyBuilder(
        configs.loads(PLANE.format(path=path, dimensions=dimensions), "test.yaml"), communicator
    ).initial()


def test_bodies_of_a_plane_from_files(alone, tmp_path):
    (tmp_path / "plane.csv").write_text("1,2,3,4,5\n")
    (tmp_path / "space.csv").write_text("x,y,z,vx,vy,vz,m\n1,2,0,3,4,0,5\n")
    for name in ("plane.csv", "space.csv"):
        bodies = bodies_of_file(alone, tmp_path / name)
        assert (bodies.position.tolist(), bodies.velocity.tolist()) == ([[1, 2, 0]], [[3, 4, 0]])


@pytest.mark.parametrize("row", ["1,2,0.5,3,4,0,5", "1,2,0,3,4,0.5,5"])
def test_a_body_that_leaves_the_plane_is_refused(alone, tmp_path, row):
    path = tmp_path / "space.csv"
    path.write_text(f"x,y,z,vx,vy,vz,m\n1,2,0,3,4,0,5\n{row}\n")
    with pytest.raises(
        InputError,
        match="body 1, counted from 0, has z = .* with bodies.dimensions: 2 both must be 0",
    ):
        bodies_of_file(alone, path)
    assert len(bodies_of_file(alone, path, dimensions=3)) == 2


@pytest.mark.mpi
def test_what_a_file_leaves_open_is_drawn_alike_on_any_number_of_ranks(
    communicator, alone, shared_tmp_path
):
    path = shared_tmp_path / "open.csv"
    communicator.only_on_root(lambda: path.write_text(",,,,\n" * 11))
    made = NBodyBuilder(
        configs.loads(PLANE.format(path=path, dimensions=2), "test.yaml"), communicator
    )
    model = made.fresh(made.initial() if communicator.is_root else None).model
    field = model.fields()["bodies/position"]
    rows = communicator.concatenate(field.host(0, field.rows))
    np.testing.assert_array_equal(rows, bodies_of_file(alone, path).position)

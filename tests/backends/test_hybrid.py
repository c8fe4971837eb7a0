"""A hybrid backend is its main device, but for its name, its kernels, and what can be replayed."""

import numpy as np
import pytest

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.hybrid import HybridBackend


class Recording(CpuBackend):
    """A device that notes what it replays."""

    replayed = 0

    def recorded(self, action):
        def replay():
            self.replayed += 1
            action()

        return replay


@pytest.fixture
def backend():
    return HybridBackend(Recording(1), CpuBackend(2), 0.25)


def test_all_of_the_contract_is_the_main_devices(backend):
    assert (backend.name, backend.identity, backend.transports) == ("hybrid", "cpu", ("host",))
    assert backend.shares_host_memory is backend.main.shares_host_memory
    assert backend.devices == (backend.main, backend.helper)
    assert backend.main.devices == (backend.main,)
    assert backend.description == "CPU, 1 thread + CPU, 2 threads"
    package = "hybrid_nbody.nbody.kernels"
    assert backend.kernels(package).__name__ == f"{package}.hybrid.kernels"
    assert backend.zeros(3, "i4").tolist() == [0, 0, 0]
    with pytest.raises(AttributeError, match="no_such_thing"):
        backend.no_such_thing()


def test_what_the_helper_takes_part_in_is_not_replayed(backend):
    done = []
    step = backend.recorded(lambda: done.append(1))
    for helping, replayed in ((True, 0), (False, 1), (True, 1), (False, 2)):
        backend.helping = helping
        step()
        assert backend.main.replayed == replayed
    assert len(done) == 4


@pytest.mark.parametrize("own", [slice(0, 5), slice(2, 2), slice(3, 5)])
def test_copies_between_device_and_host(backend_name, own):
    from support.bodies import make_backend

    backend = make_backend(backend_name)
    values = np.random.default_rng(1).standard_normal((5, 3))
    array, host = backend.upload(values), backend.pinned((5, 3), "f8")
    host[:] = 0
    backend.wait(backend.fetch(array[own], host[own]))
    np.testing.assert_array_equal(host[own], values[own])
    host[own] *= 2
    backend.send(host[own], array[own])
    expected = values.copy()
    expected[own] *= 2
    np.testing.assert_array_equal(backend.download(array), expected)

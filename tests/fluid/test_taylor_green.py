"""Taylor-Green vortices between walls decay and keep their shape.

u = sin(pi x) cos(pi y) exp(-2 nu pi^2 t), v = -cos(pi x) sin(pi y) exp(-2 nu pi^2 t).
"""

import numpy as np
import pytest
from support.fluids import make_model

from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.relaxation import Sor
from hybrid_nbody.fluid.step import Physics

VISCOSITY, END = 0.02, 0.5


def vortices(number, planes):
    """Return u and v on the cells of a flat box."""
    x = np.pi * (np.arange(number) + 0.5) / number
    u = np.sin(x) * np.cos(x)[:, None]
    v = -np.cos(x) * np.sin(x)[:, None]
    return [np.broadcast_to(field, (planes, number, number)) for field in (u, v)]


def error(number, advection, backend, communicator):
    """Return the root-mean-square error of u after `END`, with a step of half a cell's width."""
    steps = 2 * number
    physics = Physics(dt=END / steps, viscosity=VISCOSITY, diffusivity=0.0, advection=advection)
    model = make_model(
        (number, number, 3), physics, communicator, backend=backend,
        solver=lambda kernels, halo: Sor(kernels, halo, Accuracy(300, 1e-7, "residual")),
    )  # fmt: skip
    exact = vortices(number, 3)
    for array, values in zip(model.state.velocity, exact, strict=False):
        array[1:-1] = backend.upload(np.ascontiguousarray(values))
    model.advance(steps)
    decayed = exact[0] * np.exp(-2 * VISCOSITY * np.pi**2 * END)
    found = backend.download(model.state.velocity[0][1:-1])
    return np.sqrt(np.mean((found - decayed) ** 2))


@pytest.mark.parametrize(("advection", "best"), [("semi-lagrangian", 0.1), ("maccormack", 0.02)])
def test_errors_fall_with_the_first_order(backend, alone, advection, best):
    """Steps in space and time are halved; splitting keeps MacCormack's scheme at first order."""
    errors = np.array([error(number, advection, backend, alone) for number in (8, 16, 32)])
    orders = np.log2(errors[:-1] / errors[1:])
    assert (orders > 0.75).all(), (errors, orders)
    assert errors[-1] < best

"""Kernels get the arguments that their CUDA sources declare; no GPU is needed.

Launches of a GPU on paper compare every argument with the declaration, and compute nothing.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from support.nvrtc import H200
from support.paper import PaperArray
from support.ranks import on_threads

from hybrid_nbody.fluid.grid import SCALAR, Boundary, Face, Slab
from hybrid_nbody.fluid.kernels.contract import Flow, Relaxation, Solve, Source
from hybrid_nbody.fluid.kernels.gpu import layout, red_black
from hybrid_nbody.fluid.kernels.gpu.kernels import FRAME, Kernels
from hybrid_nbody.fluid.kernels.gpu.multigrid import MultigridKernels
from hybrid_nbody.fluid.kernels.multigrid_contract import CoarseSystem
from hybrid_nbody.fluid.solvers.halos import PushedPlanes
from hybrid_nbody.fluid.solvers.relaxation import run_passes
from hybrid_nbody.fluid.stencil import Stencil, diffusion
from hybrid_nbody.parallel.transport.peer_barrier import BARRIER

CELLS = (20, 6, 40)
STILL = Boundary.of_axes(("free-slip", "no-slip", "periodic"))
LID = Face("no-slip", (1.0, 0.0, 0.0))
MOVING = Boundary((Face("no-slip"),) * 3 + (LID,) + (Face("free-slip"),) * 2)


class PaperBackend:
    """A GPU on paper; launches are noted by name."""

    def __init__(self):
        self.launches = []
        self.host_wait = SimpleNamespace(alarms=[])

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype).view(PaperArray)

    pinned = zeros

    def upload(self, host):
        return np.array(host, order="C").view(PaperArray)

    download = upload

    def facts(self):
        return H200

    def synchronize(self):
        pass

    def fetch(self, array, host):
        return None

    def wait(self, mark):
        pass

    def compile(self, source, defines, options, cooperative):
        return PaperModule(source, defines, self.launches)


class PaperModule:
    """The kernels of a source."""

    def __init__(self, source, defines, launches):
        self.text = expanded(source.read_text(), defines["FACES"])
        self.real = {"float": np.dtype("f4"), "double": np.dtype("f8")}[defines["REAL"]]
        self.launches = launches

    def get_function(self, name):
        declaration = re.search(rf"\b{name}\(([^)]*)\)\s*\{{", self.text)[1]
        parameters = [" ".join(part.split()) for part in declaration.split(",")]

        def launch(grid, block, arguments, shared_mem=0):
            assert len(arguments) == len(parameters), (name, parameters)
            for argument, parameter in zip(arguments, parameters, strict=True):
                check(argument, parameter, self.real)
            self.launches.append(name)

        return SimpleKernel(launch)


class SimpleKernel:
    """A kernel that takes attributes, too."""

    def __init__(self, launch):
        self.launch = launch

    def __call__(self, *arguments, **options):
        self.launch(*arguments, **options)


MACROS = {
    "THE_EQUATION": "",
    "EQUATION": "Real shift, Real neighbour, GHOSTS",
    "COARSE_EQUATION": (
        "const Real *x, const Real *b, Real shift, Real neighbour, const Real *of_x, "
        "const Real *of_y, const Real *of_z"
    ),
    "AVERAGING": (
        "const unsigned *index_x, const Real *weight_x, const unsigned *index_y, "
        "const Real *weight_y"
    ),
    "GRID": "int columns, int rows, int planes",
    "KERNEL": "",
}
GHOSTS = {3: "Real x_sign, Real y_sign, Real z_sign", 6: "const __grid_constant__ Ghosts ghosts"}
ALONG = "const unsigned *l, const unsigned *u, const Real *lw, const Real *uw"
TYPES = {"int": "i4", "unsigned": "u4", "long": "i8", "double": "f8", "GridBarrier": "u8"}
STRUCTURES = {
    "PeerHalo": red_black.PEER_HALO,
    "EarlyPush": red_black.EARLY_PUSH,
    "PeerBarrier": BARRIER,
    "Frame": FRAME,
}
SIZES = {"Factors": 8, "Offsets": 6, "Ghosts": 12}


def expanded(text, faces):
    """Return a source with the macros of its arguments replaced."""
    text = re.sub(r"^#define .*?(?<!\\)$", "", text, flags=re.M | re.S)
    for name, value in (MACROS | {"GHOSTS": GHOSTS[faces]}).items():
        text = re.sub(rf"\b{name}\b", value, text)
    return re.sub(r"\bALONG\(\w\)", ALONG, text)


def check(argument, parameter, real):
    """Compare an argument with the declaration of a parameter."""
    words = re.findall(r"\w+", re.sub(r"\b(const|__restrict__|__grid_constant__)\b", "", parameter))
    kind = words[0]
    if kind in STRUCTURES:
        assert argument.dtype == STRUCTURES[kind], parameter
        assert argument.shape == (1,), parameter
    elif kind in SIZES:
        assert argument.dtype.itemsize == SIZES[kind] * real.itemsize, parameter
        assert argument.shape == (1,), parameter
    else:
        assert argument.dtype == np.dtype(TYPES.get(kind, real)), parameter
        array = "*" in parameter or kind in ("Field", "Colours")
        assert (argument.ndim > 0) == array, parameter
        assert argument.ndim == 0 or argument.flags.c_contiguous, parameter


@pytest.fixture(params=["f4", "f8"])
def dtype(request):
    return request.param


@pytest.fixture(params=[STILL, MOVING], ids=["still", "moving"])
def kernels(request, dtype):
    slab = Slab.whole(CELLS, request.param)
    return Kernels(PaperBackend(), slab, dtype)


def equation_of(slab):
    return diffusion(0.3, slab.velocity_ghosts[0])


def test_parts_of_a_step(kernels):
    fields = [kernels.field() for _ in range(8)]
    u, v, w, density, *others = fields
    velocity, flow = (u, v, w), Flow((u, v, w), 0.5)
    colours, work = kernels.colours(), kernels.colours()
    source = Source(density, 1, SCALAR)
    kernels.split(u, colours)
    kernels.split_twice(u, colours, work)
    kernels.split_carried(u, 0.1, v, colours, work)
    kernels.merge(colours, u)
    kernels.divergence(velocity, 0.5, colours)
    kernels.subtract_gradient(velocity, colours, 0.5)
    kernels.buoyancy(velocity, density, (0.0, 1.0, 0.0))
    kernels.curl_length(velocity, density)
    kernels.confine(velocity, density, 0.1, others[:3])
    kernels.advect(source, others[0], flow)
    kernels.advect_velocity(others[:3], flow)
    kernels.correct(source, others[1], others[2], flow)
    sums, record = (kernels.backend.zeros(shape, "f8") for shape in ((40, 4), 4))
    kernels.sum_changes(u, v, sums)
    kernels.update_budget(sums, record)
    kernels.scale_changes(u, v, record, sums)
    kernels.add_box(u, (0, 1, 0, 1, 0, 1), 1.0)
    kernels.set_sphere(u, (0.0, 1.0, 2.0), 3.0, 1.0)
    kernels.largest(u)
    kernels.largest_later(u)()
    kernels.largest_into(colours, 0.5, kernels.backend.zeros(1, kernels.dtype))
    kernels.plane_sums(u)
    kernels.plane_sums_with_ghosts(u)
    kernels.plane_squares(u, v)
    assert len(kernels.backend.launches) == 26


def test_sweeps_and_residuals(kernels):
    x, b = kernels.colours(), kernels.colours()
    equation = equation_of(kernels.slab)
    kernels.begin_solve()
    relaxation = Relaxation(equation, equation.fixed_ghost_factors, 0.1)
    kernels.sweep(0, x, b, relaxation)
    kernels.end_iteration()
    kernels.end_solve()
    kernels.residual(x, b, equation)
    kernels.exceeds(x, b, equation, kernels.backend.zeros(1, kernels.dtype))
    names = ["begin_solve", "sweep", "end_iteration", "end_solve", "residual", "exceeds"]
    assert kernels.backend.launches == names


def test_offsets_are_added_to_the_right_hand_side_where_a_wall_moves(kernels):
    kernels.impose(equation_of(kernels.slab), kernels.colours())
    moving = kernels.faces == layout.ALL_FACES
    assert kernels.backend.launches == ["impose"] * moving


def test_elements_of_a_box(kernels):
    x, b = kernels.colours(), kernels.colours()
    nx, ny, planes = *kernels.slab.cells[:2], kernels.slab.planes
    u, v, w = (kernels.backend.zeros((planes + 2, ny + 3, nx + 4), kernels.dtype) for _ in range(3))
    kernels.split_spread(u, (1, 1, 2), 0.5, b)
    kernels.split_divergence((u, v, w), (1, 1, 1), -1.0, b)
    kernels.merge_into(x, u, (1, 1, 1))
    kernels.merge_onto(x, u, (1, 2, 1))
    names = ["split_spread", "split_divergence", "merge_into", "merge_onto"]
    assert kernels.backend.launches == names


def test_a_solve_of_a_grid_that_fits_is_one_kernel(kernels):
    x, b = kernels.colours(), kernels.colours()
    solve = kernels.begin_passes(x, b, Solve(equation_of(kernels.slab), 0.1, 9), None)
    (only,) = solve.passes
    solve.run(only)
    solve.finish()
    assert kernels.backend.launches == ["relax"]


@pytest.mark.parametrize("tolerance", [-1.0, 0.1])
def test_a_solve_in_passes(kernels, tolerance):
    kernels.pass_solver = red_black.TiledSolver(kernels)
    longest = kernels.longest_pass
    x, b = kernels.colours(), kernels.colours()
    solve = kernels.begin_passes(x, b, Solve(equation_of(kernels.slab), tolerance, 5), None)
    for step in solve.passes:
        solve.run(step)
    solve.finish()
    redone = ["redo"] * (longest - 1) if tolerance >= 0 else []
    passes = ["relax"] * (5 // longest + 5 % longest)
    assert kernels.backend.launches == [*passes, "end_passes", *redone, "copy_back"]


@pytest.mark.parametrize("iterations", [4, 6, 10])
def test_a_solve_from_zero_copies_nothing_after_an_odd_number_of_passes(kernels, iterations):
    kernels.pass_solver = red_black.TiledSolver(kernels)
    x, b = kernels.colours(), kernels.colours()
    solve = Solve(equation_of(kernels.slab), -1.0, iterations, from_zero=True)
    passes = kernels.begin_passes(x, b, solve, None)
    passes.finish()
    odd = len(passes.passes) % 2 == 1
    assert passes.begins_in_work == odd
    assert ("copy_back" in kernels.backend.launches) == (not odd)


def test_multigrid(kernels):
    coarse = MultigridKernels(kernels)
    real, planes = kernels.dtype, kernels.slab.planes
    array = kernels.backend.zeros((planes + 2, 6, 20), real)
    number = kernels.backend.zeros(3, real)
    index = kernels.backend.zeros(3, "u4")
    averaging = (index, number)
    interpolation = (index, index, number, number)
    poisson = Stencil(0.0, 1.0, SCALAR)
    system = CoarseSystem(array, array, poisson, (number, number, number), 0)
    coarse.sweep(0, system)
    coarse.restrict_rows(system, (averaging, averaging), array)
    x, b = kernels.colours(), kernels.colours()
    coarse.restrict_finest_rows(x, b, poisson, (averaging, averaging), array)
    coarse.restrict_planes(array, averaging, array)
    coarse.subtract_mean(array)
    coarse.prolong(array, (interpolation,) * 3, array)
    coarse.prolong_to_finest(array, (interpolation,) * 3, 0.1, x)
    assert len(kernels.backend.launches) == 7


class SharedAddresses:
    """The memory of ranks that are threads."""

    def __init__(self, rank):
        self.rank = rank

    def addresses(self, array):
        return self.rank.gather(array.data.ptr)


PLANES = (24, 16)
"""Of two ranks."""


def launches_of_a_rank(rank, boundary, dtype, *solve):
    """Return what a solve on two ranks launches on one of them, and the length of its passes."""
    slab = Slab(CELLS, boundary, sum(PLANES[: rank.rank]), PLANES[rank.rank])
    kernels = Kernels(PaperBackend(), slab, dtype)
    x, b = kernels.colours(), kernels.colours()
    peers = kernels.peer_planes(SharedAddresses(rank), rank.rank, PLANES)
    halo = SimpleNamespace(fill=lambda *arrays: None)
    passes = kernels.begin_passes(x, b, Solve(equation_of(slab), *solve), None)
    run_passes(passes, PushedPlanes(halo, peers))
    return kernels.backend.launches, kernels.longest_pass


@pytest.mark.parametrize("iterations", [4, 6])
def test_ranks_that_begin_with_zeros_do_not_push_them(dtype, iterations):
    def relax(rank):
        return launches_of_a_rank(rank, STILL, dtype, -1.0, iterations, True)

    for launches, longest in on_threads(2, relax):
        number = iterations // longest + iterations % longest
        passes = ["relax", "push_and_barrier"] * number
        end = ["end_passes"] if number % 2 else ["end_passes", "copy_back"]
        assert launches == ["barrier", "push_and_barrier", *passes, *end]


@pytest.mark.parametrize("boundary", [STILL, MOVING], ids=["still", "moving"])
def test_ranks_push_planes_between_passes(boundary, dtype):
    def relax(rank):
        return launches_of_a_rank(rank, boundary, dtype, 0.1, 4)

    for launches, longest in on_threads(2, relax):
        passes = ["relax", "push_and_barrier"] * (4 // longest + 4 % longest)
        begin = ["barrier", "push", "push_and_barrier"]
        end = ["end_passes", *["redo"] * (longest - 1), "copy_back"]
        assert launches == [*begin, *passes, *end]


def test_thin_slabs_do_not_push():
    slab = Slab(CELLS, STILL, 0, 38)
    kernels = Kernels(PaperBackend(), slab, "f4")
    assert kernels.peer_planes(None, 0, (38, 2)) is None

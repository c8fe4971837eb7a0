"""The machine code of the CPU's fluid loops: what their speed rests on could be lost in silence."""

import platform
import re

import numpy as np
import pytest
from support.bodies import make_backend
from support.command import python

from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.stencil import SCALAR, diffusion

ARITHMETIC = r"v(add|sub|mul|max)p[sd]\s"
SCALAR_ARITHMETIC = r"v?(add|sub|mul|div|max)s[sd]\s"


@pytest.fixture(scope="module", params=["f4", "f8"])
def kernels(request):
    """Kernels of a small slab, on a processor whose assembly is known here."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"the assembly of {platform.machine()} is not known here")
    backend = make_backend("cpu")
    from hybrid_nbody.fluid.kernels.cpu.kernels import Kernels

    return Kernels(
        backend, Slab((34, 4, 4), Boundary.of_axes(("free-slip",) * 3), 0, 4), request.param
    )


def addressed(kind):
    """Return a type with addresses in the place of arrays, also in a named tuple."""
    from numba import types

    if isinstance(kind, types.Array):
        return types.CPointer(kind.dtype)
    if isinstance(kind, types.NamedTuple):
        return types.NamedTuple([addressed(part) for part in kind.types], kind.instance_class)
    return kind


def assembly_of(function, *arguments):
    """Return the assembly of a function compiled afresh: code from the cache cannot be looked at.

    It is compiled as loops over planes call it, with addresses in the place of flat arrays.
    """
    import numba

    fresh = numba.njit(error_model="numpy")(function.py_func)
    fresh.compile(tuple(addressed(numba.typeof(argument)) for argument in arguments))
    (assembly,) = fresh.inspect_asm().values()
    return assembly


def blocks_of(assembly):
    """Return the instructions between labels, block by block."""
    blocks = [[]]
    for line in assembly.splitlines():
        if re.match(r"\.?\w+:", line):
            blocks.append([])
        elif re.match(r"\t[a-z]", line):
            blocks[-1].append(line.strip())
    return blocks


def widest_vectors():
    """Return the name of the widest vector registers."""
    from numba.core.registry import cpu_target

    features = cpu_target.target_context.codegen().magic_tuple()[2]
    if "+avx512f" in features:
        return "zmm"
    return "ymm" if "+avx" in features else "xmm"


def found(pattern, block):
    return [line for line in block if re.match(pattern, line)]


def assert_vector_code(assembly, fewest):
    """Check that blocks with at least `fewest` full-width instructions hold no others."""
    width = f"%{widest_vectors()}"
    wide = [
        [line for line in found(ARITHMETIC, block) if width in line]
        for block in blocks_of(assembly)
    ]
    blocks = [
        block
        for block, lines in zip(blocks_of(assembly), wide, strict=True)
        if len(lines) >= fewest
    ]
    assert blocks
    for block in blocks:
        assert all(width in line for line in found(ARITHMETIC, block))
        assert found(SCALAR_ARITHMETIC, block) == []
        # nor is anything contracted: bits would depend on the code
        assert found(r"v?(div|p?gather|fn?m)", block) == []
        assert found(r"v?call", block) == []  # references to arrays are counted by calls


def test_a_row_is_relaxed_in_vector_code(kernels):
    from hybrid_nbody.fluid.kernels.cpu import red_black

    stencil = diffusion(0.3, SCALAR)
    system = kernels.compiled_system(
        kernels.colours(), kernels.colours(), stencil, stencil.fixed_ghost_factors
    )
    assembly = assembly_of(red_black.sweep_plane, 0, 1, system, kernels.grid)
    assert_vector_code(assembly, 16)


def test_a_row_is_traced_in_vector_code(kernels):
    from hybrid_nbody.fluid.kernels.cpu import advection, ghosts

    ghosted = np.zeros(ghosts.ghosted_shape(kernels.field()), kernels.dtype)
    copy = advection.Copy(ghosted.reshape(-1), -1, len(ghosted))
    *velocity, out = np.zeros((4, kernels.field().size), kernels.dtype)
    flow = advection.Flow(*velocity, kernels.number(-1))
    assembly = assembly_of(advection.advect_plane, 1, copy, flow, out, kernels.box)
    assert_vector_code(assembly, 21)


def test_no_references_are_counted_plane_by_plane(kernels):
    """Threads would wait for each other's counts."""
    from hybrid_nbody.fluid.kernels.cpu import red_black

    stencil = diffusion(0.3, SCALAR)
    system = kernels.compiled_system(
        kernels.colours(), kernels.colours(), stencil, stencil.fixed_ghost_factors
    )
    assembly = assembly_of(red_black.sweep_planes, 0, 1, 4, system, kernels.grid)
    assert "sweep_plane" in assembly
    assert "NRT_incref" not in assembly


STEPS = """
import hashlib
from mpi4py import MPI
from support.fluids import DEFAULT, make_model, state, stirring
from hybrid_nbody.parallel.communicator import Communicator

cells = (37, 9, 11)
model = make_model(cells, DEFAULT, Communicator(MPI.COMM_SELF), stirring(cells), dtype="f4")
model.advance(4)
print(hashlib.sha256(b"".join(field.tobytes() for field in state(model).values())).hexdigest())
"""


def test_a_processor_without_avx512_gives_the_same_bits(tmp_path):
    """Compiled for an older processor, which this one can stand in for."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"the older processors of {platform.machine()} are not known here")
    older = {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    assert python(STEPS) == python(STEPS, **older)

"""How the loops over bodies are compiled.

Numba counts who holds an array, by an atomic operation at the beginning and at the end of every
function that takes one. Those of a force of a few bodies took longer than the force itself. Here
Python holds all arrays while a loop runs, and where none is made within, nothing is counted.
"""

from numba import njit

from hybrid_nbody.backends.simd import VECTOR_MATH

compiled = njit(cache=True, error_model="numpy", _nrt=False)

compiled_with_threads = njit(cache=True, error_model="numpy", _nrt=False, nogil=True)
"""Compiles a function that holds no lock of Python: other threads of Python go on meanwhile."""

compiled_parallel = njit(cache=True, error_model="numpy", parallel=True)
"""Compiles a function whose outer loop threads share."""

linked = njit(error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Compiles a function that only compiled code calls, as a part of what Python calls."""

linked_block = njit(
    error_model="numpy",
    _nrt=False,
    fastmath=VECTOR_MATH,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)
"""Does the same with products that may be fused with sums: for blocks of targets."""

INLINE = {
    "error_model": "numpy",
    "fastmath": VECTOR_MATH,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "forceinline": True,
}

linked_inline = njit(_nrt=False, **INLINE)
"""Puts such a function into the code that calls it: for the kernels of a tree, of whole vectors."""

linked_inline_with_arrays = njit(**INLINE)
"""Does the same with a function that makes arrays."""

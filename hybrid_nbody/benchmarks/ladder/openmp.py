"""The loop of ``openmp_loop.c``, compiled by the C compiler of the machine: what gcc makes of the plain program."""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.cpu import node_local_cache
from hybrid_nbody.errors import InputError

SOURCE = Path(__file__).with_name("openmp_loop.c")
OPTIONS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC", "-std=gnu11")
REALS = {"float": np.float32, "double": np.float64}


def compiler() -> str | None:
    """Return the C compiler of the machine: ``$CC``, gcc or cc; None where there is none."""
    return next(
        filter(None, map(shutil.which, filter(None, (os.environ.get("CC"), "gcc", "cc")))), None
    )


def compiler_version() -> str:
    """Return the first line of what the compiler says of itself; empty where there is none."""
    if compiler() is None:
        return ""
    return subprocess.run(
        [compiler(), "--version"], capture_output=True, text=True
    ).stdout.partition("\n")[0]


@cache
def load(real: str = "float"):
    """Return the compiled library for ``float`` or ``double``, kept in this node's cache of kernels.

    Raises
    ------
    InputError
        If there is no compiler, or it fails.
    """
    words = (SOURCE.read_text(), compiler_version(), platform.node(), real, *OPTIONS)
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
    path = node_local_cache() / f"openmp_loop-{real}-{digest}.so"
    if not path.exists():
        _compile(real, path)
    library = ctypes.CDLL(path)
    array = np.ctypeslib.ndpointer(REALS[real], ndim=1, flags="C_CONTIGUOUS")
    number = ctypes.c_float if real == "float" else ctypes.c_double
    library.accelerations.argtypes = [ctypes.c_int, *[array] * 4, number, *[array] * 3]
    library.accelerations.restype = None
    return library


def _compile(real, path):
    """Compile and link apart: linking with -ffast-math would make the whole process flush denormals."""
    if compiler() is None:
        raise InputError("no C compiler: neither $CC, gcc nor cc is there")
    part = path.with_suffix(f".{os.getpid()}.o")
    try:
        _call(compiler(), *OPTIONS, f"-DREAL={real}", "-c", SOURCE, "-o", part)
        _call(compiler(), "-shared", "-fopenmp", part, "-lm", "-o", part.with_suffix(".so"))
        part.with_suffix(".so").replace(path)
    finally:
        part.unlink(missing_ok=True)


def _call(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        raise InputError(
            f"{words[0]} cannot compile {SOURCE.name}: {lines[0] if lines else 'no message'}"
        )

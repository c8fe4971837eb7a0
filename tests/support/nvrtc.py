"""NVRTC, the CUDA compiler that needs no GPU.

What it made of a source is kept in a folder of this user, for other files of tests, workers and
later runs, under a digest of all that it depends on.
"""

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path

from cuda.bindings import nvrtc

from hybrid_nbody.backends.cpu import node_local_cache
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, compile_options

WANTED = (70, 80, 90)
H200 = {
    "multiprocessors": 132,
    "cooperative_launch": 1,
    "threads_per_block_limit": 1024,
    "registers_per_block_limit": 65536,
    "shared_memory_per_block_limit": 232448,
}
"""What a backend says of this GPU, as far as kernels are chosen by it."""


def architectures():
    """Return the compute capabilities to compile for: 7.0, or the lowest that this NVRTC supports,
    8.0 and 9.0.
    """
    _, count = nvrtc.nvrtcGetNumSupportedArchs()
    _, supported = nvrtc.nvrtcGetSupportedArchs()
    supported = list(supported)[:count]
    return sorted({max(wanted, min(supported)) for wanted in WANTED})


def oldest_and_newest():
    """Return the first and the last of them, for sources that are the same for all: the oldest
    lacks most.
    """
    return architectures()[0], architectures()[-1]


def assert_same_for_all_architectures(*sources) -> None:
    """Check that no source asks which architecture it is compiled for."""
    for path in sources:
        assert "__CUDA_ARCH__" not in path.read_text(), f"{path}: compile it for every architecture"


def words_for(macros, options=FLUSH_DENORMALS) -> tuple[str, ...]:
    """Return the options of a source with macros: they mean the same as at its head."""
    words = (f"-D{name}={value}" for name, value in sorted(macros.items()))
    return (*compile_options(options), *words)


def compile_to_cubin(source: str, options, architecture: int) -> bytes:
    """Return machine code of `source`, made with little optimization, which takes a quarter of the
    time; ValueError with the compiler's log if it does not compile.
    """
    return optimized_cubin(source, (*options, "--Ofast-compile=mid"), architecture)


def optimized_cubin(source: str, options, architecture: int) -> bytes:
    """Return the machine code that a GPU would run."""
    words = (*options, f"-arch=sm_{architecture}")
    kept = _folder() / f"{_digest(source, words)}.cubin"
    if kept.exists():
        return kept.read_bytes()
    cubin = _compiled(source, words)
    with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
        file.write(cubin)
    os.replace(file.name, kept)  # another process may have been as fast
    return cubin


@cache
def _folder() -> Path:
    folder = node_local_cache() / "cubins-of-tests"
    folder.mkdir(exist_ok=True)
    return folder


def _digest(source, words) -> str:
    """Return a digest of the compiler, the source, its options and the headers in its folders."""
    folders = [Path(word.removeprefix("-I")) for word in words if word.startswith("-I")]
    headers = [path.read_text() for folder in folders for path in sorted(folder.glob("*.cuh"))]
    others = [word for word in words if not word.startswith("-I")]
    parts = (nvrtc.nvrtcVersion()[1:], source, others, headers)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _compiled(source, words) -> bytes:
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"source.cu", 0, [], [])
    encoded = [word.encode() for word in words]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise ValueError(
            _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode()
        )
    return _text(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)


def _text(program, size_of, read) -> bytes:
    _, size = size_of(program)
    buffer = b" " * size
    read(program, buffer)
    return buffer

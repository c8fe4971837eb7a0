"""Compilation and launches of CUDA kernels: the one place that turns their source into calls."""

import functools
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_nbody.backends.base import Array

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend

FLUSH_DENORMALS = ("-ftz=true",)
"""NVRTC's option that treats subnormal float32 numbers as zero: without it every reciprocal
square root costs extra instructions."""

Macros = Mapping[str, str | int]
"""Values of preprocessor macros by name."""


def compile_options(options: tuple[str, ...] = FLUSH_DENORMALS) -> tuple[str, ...]:
    """Return NVRTC's options for a source."""
    return ("-std=c++17", *options)


def with_macros(source: str, defines: Macros) -> str:
    """Return a source that begins with the given macros; the numbers of its lines stay.

    As options of NVRTC they would make another set of options for each source, and CuPy has NVRTC
    preprocess an empty one for every set, which takes 15 ms.
    """
    macros = (f"#define {name} {value}\n" for name, value in sorted(defines.items()))
    return "".join((*macros, "#line 1\n", source))


def checksum(headers: Iterable[Path]) -> int:
    """Return a number that changes with the text of headers.

    As a macro it tells versions of what a source includes apart: compiled code is kept under its
    source and options alone.
    """
    return zlib.crc32(b"".join(header.read_bytes() for header in headers))


class CudaModule:
    """The kernels of one source, compiled for the device of a backend.

    Launches are queued on the backend's stream and return at once. The caller passes arguments as a
    kernel declares them: arrays, and NumPy scalars of the declared type.

    Parameters
    ----------
    backend : GpuBackend
        Compiles the source, unless the result is in CuPy's cache on disk.
    source : Path or str
        A ``.cu`` file, or a text that was generated.
    defines : mapping of str to str or int
        Macros.
    options : tuple of str
        Other options of NVRTC.
    cooperative : bool
        Whether all blocks of a launch must run at once, because they wait for each other.
    """

    def __init__(
        self,
        backend: "GpuBackend",
        source: Path | str,
        defines: Macros,
        options: tuple[str, ...] = FLUSH_DENORMALS,
        cooperative: bool = False,
    ):
        self._module = backend.compile(source, defines, options, cooperative)
        self.kernel = functools.cache(self._module.get_function)

    def load(self, *names: str) -> None:
        """Load kernels now, so that none of their launches has to wait for it."""
        for name in names:
            self.kernel(name)

    def launch(self, name: str, threads: int, block: int, *arguments: Any) -> None:
        """Launch a kernel with at least `threads` threads along x, in blocks of `block`.

        Nothing is launched for 0 threads.
        """
        if threads:
            self.kernel(name)((-(-threads // block),), (block,), arguments)

    def launch_grid(
        self,
        name: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: tuple[Any, ...],
        shared_memory: int = 0,
    ) -> None:
        """Launch a kernel on a grid of blocks.

        Parameters
        ----------
        name : str
            The kernel.
        grid : tuple of int
            Blocks along x, y and z. Nothing is launched if one of them is 0.
        block : tuple of int
            Threads of a block along x, y and z.
        arguments : tuple
            What the kernel declares.
        shared_memory : int
            Bytes of dynamic shared memory of a block; see `allow_shared_memory`.
        """
        if all(grid):
            self.kernel(name)(grid, block, arguments, shared_mem=shared_memory)

    def allow_shared_memory(self, name: str, size: int) -> None:
        """Let launches of a kernel ask for up to `size` bytes of dynamic shared memory.

        CUDA grants 48 KiB without being asked.
        """
        self.kernel(name).max_dynamic_shared_size_bytes = size

    def constant(self, name: str) -> Array:
        """Return the address of a ``__constant__`` or ``__device__`` variable of the source."""
        return self._module.get_global(name)

"""NVRTC, the CUDA compiler that needs no GPU."""

from cuda.bindings import nvrtc

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


def compile_to_cubin(source: str, options, architecture: int) -> bytes:
    """Return the machine code of `source`; ValueError with the compiler's log if it does not
    compile.
    """
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"source.cu", 0, [], [])
    words = [option.encode() for option in (*options, f"-arch=sm_{architecture}")]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
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

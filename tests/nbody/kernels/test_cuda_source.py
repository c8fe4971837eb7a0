"""Every CUDA source compiles for old and new GPUs, on a machine without one."""

import pytest
from support.nvrtc import (
    architectures,
    assert_same_for_all_architectures,
    compile_to_cubin,
    oldest_and_newest,
    words_for,
)

from hybrid_nbody.nbody.kernels.gpu import hermite as gpu_hermite
from hybrid_nbody.nbody.kernels.gpu import kernels as gpu
from hybrid_nbody.nbody.kernels.gpu import peer_rows, peer_sums, symmetric
from hybrid_nbody.nbody.kernels.gpu.layout import DEFAULTS, Layout
from hybrid_nbody.nbody.precision import PRECISIONS

KERNELS = (
    b"pack",
    b"pack_moving",
    b"accelerations",
    b"accelerations_of_equal_masses",
    b"accelerations_and_jerks",
    b"potentials",
    b"combine",
    b"combine_accelerations_and_jerks",
    b"combine_move_and_pack",
    b"combine_move_copy_and_pack",
    b"keep_middles",
    b"add_scaled",
)


def test_sources_are_the_same_for_all_architectures():
    assert_same_for_all_architectures(
        gpu.SOURCE, *gpu.HEADERS, gpu_hermite.SOURCE, symmetric.SOURCE
    )


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("architecture", oldest_and_newest())
@pytest.mark.parametrize("number", [6, 131072])
def test_gravity_compiles(precision, architecture, number):
    macros = gpu.defines(
        precision, Layout.of(number), DEFAULTS[precision], number, number, unsoftened=number == 6
    )
    options = words_for(macros, gpu.OPTIONS)
    cubin = compile_to_cubin(gpu.SOURCE.read_text(), options, architecture)
    for kernel in KERNELS:
        assert kernel + b"\0" in cubin
    assert (b"run_steps\0" in cubin) == (number == 6)


@pytest.mark.parametrize("architecture", oldest_and_newest())
@pytest.mark.parametrize("short", [False, True])
def test_pairs_compile(architecture, short):
    cubin = compile_to_cubin(
        symmetric.SOURCE.read_text(),
        words_for(symmetric.defines(short), symmetric.OPTIONS),
        architecture,
    )
    for kernel in (
        *symmetric.COMPONENTS,
        "gather",
        "combine",
        "gather_and_move",
        "find_largest_speed",
        "set_speed_unit",
    ):
        assert kernel.encode() + b"\0" in cubin


@pytest.mark.parametrize("architecture", oldest_and_newest())
@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("source", [peer_rows, peer_sums], ids=["rows", "sums"])
def test_what_several_gpus_share_compiles(architecture, ranks, source):
    options = words_for(source.defines(ranks), source.OPTIONS)
    cubin = compile_to_cubin(source.SOURCE.read_text(), options, architecture)
    for kernel in source.KERNELS:
        assert kernel.encode() + b"\0" in cubin


@pytest.mark.parametrize("architecture", architectures())
def test_the_formulas_of_hermite_compile(architecture):
    options = words_for(gpu_hermite.DEFINES)
    cubin = compile_to_cubin(gpu_hermite.SOURCE.read_text(), options, architecture)
    for kernel in (b"predict", b"correct", b"first_steps", b"next_steps", b"keep"):
        assert kernel + b"\0" in cubin


def test_a_fault_in_the_source_is_found():
    source = gpu.SOURCE.read_text().replace("rsqrtf(x)", "rsqurtf(x)")
    with pytest.raises(ValueError, match="undefined"):
        compile_to_cubin(source, words_for(macros_of_one_body(), gpu.OPTIONS), 90)


@pytest.mark.parametrize("which", range(len(gpu.HEADERS)))
def test_another_header_makes_other_macros(monkeypatch, tmp_path, which):
    """Compiled code is kept under its source and options, in which a header does not show."""
    before = macros_of_one_body()
    headers = list(gpu.HEADERS)
    headers[which] = tmp_path / headers[which].name
    headers[which].write_text(gpu.HEADERS[which].read_text() + "// changed\n")
    monkeypatch.setattr(gpu, "HEADERS", headers)
    assert macros_of_one_body() != before


def macros_of_one_body():
    return gpu.defines("single", Layout.of(1), DEFAULTS["single"], 1, 1)

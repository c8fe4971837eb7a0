"""Boxes and tiles cover every grid and fit into GPUs of all kinds; peers push the right planes."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nvrtc import H200

from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels.contract import Pass
from hybrid_nbody.fluid.kernels.gpu import layout as gpu_layout
from hybrid_nbody.fluid.kernels.gpu import linear_systems as gpu
from hybrid_nbody.fluid.kernels.gpu.layout import LANES, RESERVED_SHARED_MEMORY, pitch_of
from hybrid_nbody.fluid.kernels.gpu.peers import Peers, planes_read
from hybrid_nbody.fluid.kernels.gpu.red_black import EARLY_PUSH, PEER_HALO
from hybrid_nbody.fluid.kernels.gpu.resident_boxes import boxes_of
from hybrid_nbody.fluid.kernels.gpu.tiling import LONG_WALK, Tiling, tiling_of
from hybrid_nbody.parallel.transport import peer_barrier

GPUS = st.fixed_dictionaries(
    {
        "multiprocessors": st.integers(1, 150),
        "threads_per_block_limit": st.just(1024),
        "registers_per_block_limit": st.just(65536),
        "shared_memory_per_block_limit": st.sampled_from([49152, 65536, 101376, 166912, 232448]),
    }
)
EDGES = st.integers(1, 100) | st.sampled_from([96, 192, 256, 384, 512])
GRIDS = st.tuples(EDGES, EDGES, EDGES)
KINDS = st.sampled_from(["free-slip", "periodic"])
BOUNDARIES = st.builds(Boundary.of_axes, st.tuples(KINDS, KINDS, KINDS))
TYPES = st.sampled_from(["f4", "f8"])
WALLS = Boundary.of_axes(("free-slip",) * 3)


def test_python_finds_what_the_device_remembers():
    """The words of ``control`` that Python reads are those of the enumeration in ``solve.cuh``."""
    text = (gpu_layout.FOLDER / "solve.cuh").read_text()
    words = re.findall(
        r"\b[A-Z_]+\b", re.sub(r"//.*", "", re.search(r"enum Word \{(.*?)\};", text, re.S)[1])
    )
    assert all(words[index] == name.upper() for name, index in gpu.STATISTICS.items())
    assert (words[0], words[gpu.DONE], words[gpu.FLAGS]) == ("CHANGED", "DONE", "FLAGS")
    assert int(re.search(r"#define MOST (\d+)", text)[1]) == gpu.FLAGS_OF_A_LAUNCH
    assert int(re.search(r"launch % (\d+) \* MOST", text)[1]) == gpu.LAUNCHES
    assert gpu.WORDS >= gpu.FLAGS + gpu.LAUNCHES * gpu.FLAGS_OF_A_LAUNCH


@given(GRIDS, TYPES, GPUS)
def test_boxes_cover_the_grid_and_fit(cells, dtype, gpu):
    slab = Slab.whole(cells, WALLS)
    boxes = boxes_of(slab, dtype, gpu)
    if boxes is None:
        return
    _, ny, nz = cells
    assert boxes.number <= gpu["multiprocessors"]
    assert (boxes.across - 1) * boxes.rows < ny <= boxes.across * boxes.rows
    assert (boxes.along - 1) * boxes.planes < nz <= boxes.along * boxes.planes
    assert boxes.threads // slab.half * boxes.thread_rows >= boxes.rows
    assert boxes.threads % LANES == 0
    assert boxes.threads <= gpu["threads_per_block_limit"]
    assert boxes.memory(dtype) + RESERVED_SHARED_MEMORY <= gpu["shared_memory_per_block_limit"]


@pytest.mark.parametrize(
    ("edge", "dtype", "fits"), [(168, "f4", True), (200, "f4", False), (84, "f8", True)]
)
def test_which_grids_an_h200_keeps(edge, dtype, fits):
    assert bool(boxes_of(Slab.whole((edge,) * 3, WALLS), dtype, H200)) == fits


@given(GRIDS, BOUNDARIES, TYPES, st.sampled_from([1, 2]), GPUS)
def test_tiles_fit_and_there_are_some_for_a_single_iteration(cells, boundary, dtype, count, gpu):
    tiling = tiling_of(Slab.whole(cells, boundary), dtype, count, gpu)
    assert tiling or count > 1
    if tiling:
        assert (
            tiling.memory(dtype) + tiling.edges(dtype, count)
            <= gpu["shared_memory_per_block_limit"]
        )
        assert (2 * count + 2) % tiling.stages == 0
        assert tiling.threads <= gpu["threads_per_block_limit"]
        assert tiling.height > 4 * count


def spans(size, padded, width, skirt, more, periodic, number):
    """Yield the first cell of each tile of an axis and its own range, as ``Span`` does."""
    own, single = width - 2 * skirt, size == width or (not periodic and size < width)
    for tile in range(number):
        begin = tile * own + more
        first = (
            begin - skirt if periodic and not single else max(0, min(begin - skirt, padded - width))
        )
        yield first, begin if tile > 0 else 0, begin + own if tile + 1 < number else size


@given(GRIDS, BOUNDARIES, TYPES, st.sampled_from([1, 2]), st.integers(1, 150))
def test_tiles_own_every_cell_once_and_reach_a_skirt_beyond(
    cells, boundary, dtype, count, multiprocessors
):
    slab = Slab.whole(cells, boundary)
    tiling = tiling_of(slab, dtype, count, H200)
    across, _ = tiling.number(slab, count)
    width, periodic, needed = tiling.side * LANES, slab.periodic[0], count
    skirt = -(-count // tiling.align) * tiling.align
    more = skirt if tiling.align == 1 and not periodic else 0
    pitch = -(-slab.half // 8) * 8
    end = 0
    for first, low, high in spans(
        slab.half, pitch if tiling.align > 1 else slab.half, width, skirt, more, periodic, across
    ):
        assert low == end < high
        end = high
        whole = across == 1
        assert first <= low - needed or first <= 0 or (periodic and whole)
        assert first + width >= high + needed or first + width >= slab.half or (periodic and whole)
    assert end == slab.half


@given(GRIDS, TYPES)
def test_rows_of_colours_are_those_of_cpus_where_planes_travel_to_them(cells, dtype):
    from hybrid_nbody.fluid.kernels.cpu.layout import make_grid

    slab = Slab(cells, WALLS, 0, cells[2], mixed=True)
    assert pitch_of(slab, dtype) == make_grid(slab).pitch


def test_long_walks_tell_when_their_first_planes_are_complete():
    """As ``completes`` of red_black_tiles.cu does: else blocks that wait for it would never end."""
    halo = gpu_layout.halo_of(Slab((8, 8, 40), WALLS, 8, 20))
    slots = 2 * gpu_layout.LONGEST_PASS + 2
    assert halo + slots <= LONG_WALK


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("cells", [(512, 512, 512), (96, 64, 200)])
def test_pushers_take_what_tiles_leave_and_wait_for_long_walks_alone(cells, count):
    """Else a tile lacks a multiprocessor, or they wait forever for planes that are not counted."""
    slab, most = Slab(cells, WALLS, 9, cells[2] - 9), 0
    tiling = tiling_of(slab, "f4", count, H200)
    for number in range(1, 150):
        pushers, tiles = tiling.pushers(slab, count, number), tiling.number(slab, count)[0]
        blocks = tiles * (len(tiling.cuts(slab, count, number)) - 1)
        assert 0 <= pushers <= min(tiles, max(0, number - blocks))
        assert pushers == 0 or tiling.walk(slab, count, number) >= LONG_WALK
        most = max(most, pushers)
    assert most > 0


def test_an_h200_has_pushers_where_four_share_512_planes():
    slabs = [Slab((512, 512, 512), WALLS, first, 128) for first in (0, 128)]
    found = [
        [tiling_of(slab, "f4", count, H200).pushers(slab, count, 132) for count in (1, 2)]
        for slab in slabs
    ]
    assert found == [[0, 0], [1, 2]]  # the first rank has a wall below


class Memory:
    """Memory of a GPU, of which the address alone matters."""

    def __init__(self, address=7):
        self.data = SimpleNamespace(ptr=address)


class PeerBackend:
    """A GPU whose memory is not there, and whose host memory is."""

    def __init__(self):
        self.host_wait = SimpleNamespace(alarms=[])

    def zeros(self, shape, dtype):
        return Memory()

    def upload(self, host):
        return Memory()

    def pinned(self, shape, dtype):
        return np.ones(shape, dtype)

    def synchronize(self):
        pass


class PeerSystems:
    """The kernels of a rank, whose launches are noted and not run."""

    def __init__(self, slab):
        self.slab, self.control, self.launched = slab, None, []
        self.backend = PeerBackend()
        self.pass_depth = gpu_layout.halo_of(slab)
        self.modules = {"red_black": self.compile("red_black.cu")}

    def compile(self, source):
        def launch_grid(name, grid, block, arguments):
            self.launched.append((name, arguments))

        return SimpleNamespace(load=lambda *_: None, launch_grid=launch_grid)


@pytest.mark.parametrize("ends", ["free-slip", "periodic"])
def test_planes_are_pushed_into_the_halos_of_neighbours(ends):
    """A plane in the halo of a neighbour has the address that this rank's index of it leads to."""
    counts, bases, size = (5, 4, 7), [10_000, 500_000, 900_000], 4
    offsets, pitch, rows = (0, 5, 9), 8, 6
    slabs = [
        Slab((16, rows, 16), Boundary.of_axes((ends,) * 3), *share)
        for share in zip(offsets, counts, strict=True)
    ]
    halo = gpu_layout.halo_of(slabs[0])
    for rank, slab in enumerate(slabs):
        array = np.zeros((2, counts[rank] + 2 * halo, rows, pitch), "f4")
        memory = SimpleNamespace(addresses=lambda _: bases)
        peers = Peers(PeerSystems(slab), memory, rank, counts)
        found = peers._peer_halo(array)[0]
        for name, other, plane in (("below", rank - 1, 1), ("above", rank + 1, counts[rank] - 2)):
            if ends != "periodic" and not 0 <= other < 3:
                assert found[name] == 0
                continue
            other %= 3
            there = counts[other] + plane if name == "below" else plane - counts[rank]
            address = int(found[name]) + (plane + halo) * rows * pitch * size
            assert address == bases[other] + (there + halo) * rows * pitch * size
            assert found[f"colour_{name}"] == (counts[other] + 2 * halo) * rows * pitch


@pytest.mark.parametrize(("pushers", "later"), [(0, (11, 22)), (6, (0, 22))])
def test_pushers_serve_the_rank_below_and_the_next_kernel_the_one_above(pushers, later):
    memory = SimpleNamespace(addresses=lambda _: [1, 2, 3])
    systems = PeerSystems(Slab((16, 6, 16), WALLS, 5, 4))
    peers = Peers(systems, memory, 1, (5, 4, 7))
    peers.counts, peers.halos = (2, 2, 0), {7: np.array([(11, 22, 33, 44)], PEER_HALO)}
    peers.pushers, peers.watched = {2: pushers}, False
    step = Pass(0, 2, Memory(), Memory())
    (early,) = peers.early_push(step)
    assert early["pushers"] == pushers
    assert (early["to"]["below"], early["to"]["above"]) == ((11, 0) if pushers else (0, 0))
    assert (early["first"], early["second"]) == (planes_read(2) if pushers else (0, 0))
    assert early["complete_tiles"] == (7 + 8 if pushers else 0)
    peers.after(step)
    name, (_, first, second, to, *_) = systems.launched[-1]
    assert (name, first, second) == ("push_and_barrier", *planes_read(2))
    assert (to["below"], to["above"]) == later


def test_structures_are_those_of_the_sources():
    """Python and CUDA lay the arguments of kernels out alike: names and sizes, in their order."""
    sizes = {"int": 4, "unsigned": 4, "Real": 8, "long long": 8, "unsigned long long": 8}
    for name, dtype in (
        ("PeerHalo", PEER_HALO),
        ("EarlyPush", EARLY_PUSH),
        ("PeerState", np.dtype([(word, "u4") for word in peer_barrier.STATE])),
        ("PeerBarrier", peer_barrier.BARRIER),
    ):
        found = members_of(name)
        assert [member for _, member in found] == list(dtype.names), name
        for kind, member in found:
            pointer = "*" in kind
            size = 8 if pointer else sizes.get(kind, PEER_HALO.itemsize)
            assert dtype.fields[member][0].itemsize == size, (name, member)


def members_of(structure):
    """Return types and names of the members of a structure of the CUDA sources."""
    sources = [*sorted(gpu_layout.FOLDER.glob("*.cu")), *gpu_layout.HEADERS]
    text = "".join(path.read_text() for path in sources)
    body = re.search(rf"^struct {structure} \{{(.*?)^\}};", text, re.S | re.M)[1]
    declarations = re.sub(r"//.*", "", body).split(";")
    for declaration in filter(str.strip, declarations):
        first, *others = declaration.strip().split(",")
        kind, name = re.match(r"(.*?[ *])(\w+)$", first.strip()).groups()
        yield kind.strip(), name
        for other in others:
            yield kind.strip(), other.strip(" *")


@given(GRIDS, BOUNDARIES, TYPES, st.sampled_from([1, 2]), st.integers(1, 150))
def test_rows_of_blocks_take_every_plane_once_and_about_as_long(
    cells, boundary, dtype, count, multiprocessors
):
    slab = Slab.whole(cells, boundary)
    tiling = tiling_of(slab, dtype, count, H200)
    across, strips = tiling.number(slab, count)
    cuts = tiling.cuts(slab, count, multiprocessors).tolist()
    assert len(cuts) - 1 <= max(1, multiprocessors // across)
    assert cuts == sorted(set(cuts))
    assert (cuts[0], cuts[-1]) == (0, strips * cells[2])


def steps_of(cuts, planes, beyond):
    """Return the steps of each row of blocks: its planes, and `beyond` for each part of a strip."""
    parts = [
        -(-end // planes) - begin // planes for begin, end in zip(cuts, cuts[1:], strict=False)
    ]
    return [
        int(steps) + beyond * number for steps, number in zip(np.diff(cuts), parts, strict=True)
    ]


def test_a_row_with_parts_of_two_strips_takes_fewer_planes():
    cuts = Tiling(8, 8, 1, 4, 4).cuts(Slab((512, 512, 512), WALLS, 128, 128), 2, 132)
    assert len(cuts) == 13  # for nine strips
    assert max(steps_of(cuts, 128, 10)) <= 111
    assert max(steps_of(np.arange(13) * 96, 128, 10)) == 116


def test_tiles_are_as_high_as_lets_all_blocks_walk_side_by_side():
    for planes in (512, 256, 128):
        slab = Slab((512, 512, 512), WALLS, 0, planes)
        tiling = tiling_of(slab, "f4", 2, H200)
        assert tiling.level(slab, 2, 132)
        assert np.array_equal(tiling.cuts(slab, 2, 132), np.arange(14) * planes)
    assert not Tiling(8, 8, 1, 4, 4).level(slab, 2, 132)


FASTEST = {
    (192, "f4"): {(12, 4), (12, 2)},
    (256, "f4"): {(11, 2), (12, 2)},
    (320, "f4"): {(12, 2), (12, 1)},
    (336, "f4"): {(8, 2)},
    (384, "f4"): {(12, 2), (8, 4)},
    (501, "f4"): {(11, 2)},
    (512, "f4"): {(12, 2)},
    (576, "f4"): {(8, 4)},
    (640, "f4"): {(12, 2)},
    (960, "f4"): {(8, 4)},
    (1024, "f4"): {(12, 4)},
    (256, "f8"): {(8, 2)},
    (384, "f8"): {(8, 4)},
}
"""Warps and `Tiling.align` of the tiles that were the fastest on an H200, or 1 % slower."""


@pytest.mark.parametrize(("edge", "dtype"), FASTEST)
def test_the_tiles_are_those_that_were_the_fastest(edge, dtype):
    slab = Slab.whole((edge + edge % 2, edge, edge), WALLS)
    tiling = tiling_of(slab, dtype, 2, H200)
    assert (tiling.warps, tiling.align) in FASTEST[edge, dtype]

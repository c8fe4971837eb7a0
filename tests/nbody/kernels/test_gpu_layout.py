"""The pieces of the sources on a GPU, for any number of sources; no GPU is needed."""

from hypothesis import given
from hypothesis import strategies as st

from hybrid_nbody.nbody.kernels.gpu.layout import DEFAULTS, RUN, Layout, Tuning
from hybrid_nbody.nbody.precision import CHUNK, chunk_capacity

numbers = st.integers(1, 1 << 24)


@given(numbers)
def test_pieces_cover_the_largest_chunk(number):
    layout = Layout.of(number)
    assert layout.piece % RUN == 0
    assert layout.pieces * layout.piece >= min(number, CHUNK)
    assert layout.slots(number) == chunk_capacity(number) * layout.pieces * layout.piece >= number


@given(numbers, numbers)
def test_pieces_cover_chunks_of_bodies_without_mass_too(number, sources):
    layout = Layout.of(number, min(sources, number))
    assert layout.pieces * layout.piece >= min(number, CHUNK)
    assert layout.parts <= Layout.of(number).parts or layout.piece < Layout.of(number).piece
    assert Layout.of(number, 0) == Layout.of(number, number) == Layout.of(number)


@given(numbers)
def test_no_part_is_without_a_piece_when_chunks_are_full(number):
    layout = Layout.of(number)
    assert 1 <= layout.parts <= -(-number // layout.piece)


@given(numbers)
def test_partial_sums_take_less_than_a_gigabyte_up_to_two_million_bodies(number):
    number = min(number, 2_000_000)
    assert Layout.of(number).parts * number * 3 * 8 < 2**30


def test_small_pieces_where_bodies_are_few():
    assert Layout.of(6) == Layout(piece=32, pieces=1, parts=1)
    assert Layout.of(1024) == Layout(piece=32, pieces=8, parts=32)
    assert Layout.of(16384) == Layout(piece=256, pieces=1, parts=48)
    assert Layout.of(16384, 1024) == Layout(piece=32, pieces=8, parts=32)


@given(number=numbers)
def test_a_rank_beyond_the_table_takes_its_last_entry(number):
    tuning = Tuning(few=0, targets=((100, 1), (1000, 2)), jerk_targets=1)
    assert tuning.targets_for(number) == (1 if number <= 100 else 2)


def test_every_precision_has_defaults():
    assert set(DEFAULTS) == {"single", "mixed", "double"}
    for tuning in DEFAULTS.values():
        assert [most for most, _ in tuning.targets] == sorted(most for most, _ in tuning.targets)

"""Forces in pieces, between which signals are heard: the same bits, and never a piece too few."""

import pytest
from support.bodies import make_model
from support.ranks import same_bits

from hybrid_nbody.backends.simd import BLOCK
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels.cpu import pieces as module
from hybrid_nbody.nbody.kernels.cpu.pieces import is_long, pieces

NUMBER = 5 * BLOCK + 7


@pytest.mark.parametrize(
    ("targets", "sources", "threads"), [(1000, 1000, 2), (10**6, 10**6, 2), (10**6, 10**9, 3)]
)
def test_pieces_are_whole_blocks_and_cover_all_targets(targets, sources, threads):
    found = list(pieces(targets, sources, threads))
    assert [piece.start for piece in found] == [0, *(piece.stop for piece in found[:-1])]
    assert found[-1].stop == targets
    assert all(piece.start % BLOCK == 0 for piece in found)
    assert (len(found) > 1) == is_long(targets, sources, threads)
    work = (found[0].stop - found[0].start) * sources
    assert work <= max(module.PIECE, BLOCK * sources) * threads


def test_no_targets_take_no_piece():
    assert not list(pieces(0, 10**9, 1))


def test_steps_in_pieces_have_the_same_bits(alone, monkeypatch):
    bodies = plummer(NUMBER, seed=1)
    whole = make_model(bodies, 1e-3, alone)
    whole.advance(3)
    cut = []
    monkeypatch.setattr(module, "PIECE", 2 * BLOCK * NUMBER)
    monkeypatch.setattr(
        "hybrid_nbody.nbody.kernels.cpu.kernels.pieces",
        lambda *sizes: cut.append(list(pieces(*sizes))) or cut[-1],
    )
    model = make_model(bodies, 1e-3, alone)
    model.advance(3)
    assert [len(found) for found in cut] == [3] * 4  # at the start, and in each step
    for name in ("position", "velocity", "acceleration"):
        assert same_bits(getattr(model.bodies, name), getattr(whole.bodies, name))
    assert model.diagnostics() == whole.diagnostics()

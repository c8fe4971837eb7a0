"""Calibration: all ranks run at the same time, and each counts its fastest run."""

import pytest
from support.ranks import on_threads

from hybrid_nbody.parallel.calibrate import ROUND_SECONDS, ROUNDS, fastest_run


@pytest.mark.mpi
def test_the_fastest_of_all_rounds_is_each_ranks_own(communicator):
    rank = communicator.rank
    # a run fills a round
    taken = iter([ROUND_SECONDS + rank + delay for delay in reversed(range(ROUNDS))])
    assert fastest_run(lambda: next(taken), communicator) == ROUND_SECONDS + rank
    assert next(taken, None) is None


def test_a_round_goes_on_until_it_has_lasted_long_enough(alone):
    done = []

    def seconds():
        done.append(1)
        return 0.3 * ROUND_SECONDS

    assert fastest_run(seconds, alone) == 0.3 * ROUND_SECONDS
    assert len(done) == 4 * ROUNDS


def test_rounds_begin_together():
    """A rank that is quick with its runs waits for the others before the next round."""
    begun = []

    def measuring(rank):
        def seconds():
            begun.append(rank.rank)
            return ROUND_SECONDS / (1 + rank.rank)

        return fastest_run(seconds, rank)

    assert on_threads(2, measuring) == [ROUND_SECONDS, ROUND_SECONDS / 2]
    assert [sorted(begun[start : start + 3]) for start in range(0, 3 * ROUNDS, 3)] == [
        [0, 1, 1]
    ] * ROUNDS

"""When work is shared out anew among ranks."""

import numpy as np

from hybrid_nbody.nbody.forces.tree.resharing import (
    FIRST_FORCES,
    FORCES_BETWEEN,
    LEAST_FORCES,
    MOST_SHIFTED,
    Resharing,
)

NUMBERS = np.array([1000, 3000])
SHIFT = np.array([-1, 1]) * int(1000 * MOST_SHIFTED + 1)
"""Bodies that go from one rank to another: too many for the smaller."""


def reshared_until(last: int, numbers_at=lambda force: NUMBERS) -> list[int]:
    """Return the forces up to a last one for which work is shared out anew."""
    resharing = Resharing()
    found = []
    foreseen = True
    while resharing.force <= last:
        assert resharing.is_due == foreseen
        if resharing.is_due:
            found.append(resharing.force)
        else:
            resharing.note(numbers_at(resharing.force))
        foreseen = resharing.counts_work
        resharing.go_on()
    return found


def test_work_is_shared_out_for_the_first_forces_and_then_seldom():
    first = list(range(FIRST_FORCES))
    later = [first[-1] + FORCES_BETWEEN, first[-1] + 2 * FORCES_BETWEEN]
    assert reshared_until(later[-1]) == first + later


def test_it_is_shared_out_after_the_force_in_which_a_rank_takes_too_many_more_bodies():
    moved = FIRST_FORCES + LEAST_FORCES + 5
    found = reshared_until(moved + 5, lambda force: NUMBERS + SHIFT * (force >= moved))
    assert found == [*range(FIRST_FORCES), moved + 1]


def test_numbers_are_compared_with_those_since_shares_began_elsewhere():
    resharing = Resharing()
    due = []
    for force in range(FIRST_FORCES + FORCES_BETWEEN):
        due.append(resharing.is_due)
        if not resharing.is_due:
            resharing.note(NUMBERS + SHIFT * (force > LEAST_FORCES // 2))
        if resharing.is_due or force == LEAST_FORCES // 2:
            resharing.forget()
        resharing.go_on()
    assert np.flatnonzero(due).tolist() == [
        *range(FIRST_FORCES),
        FIRST_FORCES - 1 + FORCES_BETWEEN,
    ]


def test_it_is_not_shared_out_for_a_few_bodies_more():
    few = SHIFT // 2
    found = reshared_until(FORCES_BETWEEN, lambda force: NUMBERS + few * (force % 2))
    assert found == list(range(FIRST_FORCES))


def test_bodies_that_move_all_the_time_do_not_have_it_shared_out_all_the_time():
    found = reshared_until(4 * LEAST_FORCES, lambda force: NUMBERS + SHIFT * force)
    assert set(np.diff(found[FIRST_FORCES - 1 :])) == {LEAST_FORCES + 1}


def test_a_rank_that_gets_its_first_bodies_has_work_shared_out():
    found = reshared_until(
        FIRST_FORCES + LEAST_FORCES, lambda force: np.array([10, int(force > LEAST_FORCES)])
    )
    assert found[-1] > FIRST_FORCES

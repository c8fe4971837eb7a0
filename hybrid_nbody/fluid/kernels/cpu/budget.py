"""The budget of a field on CPU threads: sums of its changes, and their correction.

Sums are float64 and run along columns of a plane first, as in `reductions`.
"""

import numpy as np

from hybrid_nbody.backends.subnormals import flush_subnormals, restore_subnormals
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.contract import BUDGET, CHANGES
from hybrid_nbody.fluid.kernels.cpu.layout import (
    compiled,
    compiled_with_threads,
    inlined,
    linked,
    linked_with_arrays,
)
from hybrid_nbody.fluid.kernels.cpu.reductions import total_of

GAINED, LOST, SIZE, REST = (CHANGES.index(name) for name in ("gained", "lost", "size", "rest"))
CUT_GAINS, CUT_LOSSES, LEFT, MADE = (
    BUDGET.index(name) for name in ("cut_gains", "cut_losses", "left", "made")
)


@linked
def add_changes(before, after, gained, lost, size):
    """Add the changes of a row to the sums of the columns."""
    for c in range(before.size):
        old = np.float64(before[c])
        change = np.float64(after[c]) - old
        gained[c] += max(change, 0.0)
        lost[c] += max(-change, 0.0)
        size[c] += abs(old)


@linked_with_arrays
def sum_plane(before, after, sums):
    """Store what the cells of a plane gained, what they lost, and their sizes before."""
    columns = np.zeros((3, before.shape[1]))
    for y in range(before.shape[0]):
        add_changes(before[y], after[y], columns[0], columns[1], columns[2])
    sums[GAINED] = total_of(columns[0])
    sums[LOST] = total_of(columns[1])
    sums[SIZE] = total_of(columns[2])


@inlined
def with_less_change(old, new, cut_gain, cut_loss):
    """Return `new` less a part of its change, not beyond `old`; NaN stays NaN."""
    if new < old:
        value = new - cut_loss * (new - old)
        return old if value > old else value
    value = new - cut_gain * (new - old)
    return old if value < old else value


@linked
def scale_row(before, after, cut_gain, cut_loss, columns):
    """Scale the changes of a row; add what remains of them to the sums of the columns."""
    for c in range(before.size):
        old = before[c]
        new = with_less_change(old, after[c], cut_gain, cut_loss)
        after[c] = new
        columns[c] += np.float64(new) - np.float64(old)


@linked_with_arrays
def scale_plane(before, after, cut_gain, cut_loss):
    """Scale the changes of a plane, and return the sum of what remains of them."""
    columns = np.zeros(before.shape[1])
    for y in range(before.shape[0]):
        scale_row(before[y], after[y], cut_gain, cut_loss, columns)
    return total_of(columns)


@inlined
def part_to_cut(excess, changes):
    """Return the part of changes of one sign that is too much, 1 at most."""
    return min(excess / changes, 1.0) if 0.0 < excess < np.inf and changes > 0.0 else 0.0


# ---- All planes ----------------------------------------------------------------------------------


@linked_with_arrays
def sum_changes_at(z, before, after, sums):
    """Store the sums of a plane."""
    sum_plane(before[z + 1], after[z + 1], sums[z])


@linked_with_arrays
def scale_changes_at(z, before, after, cut_gain, cut_loss, sums):
    """Scale the changes of a plane."""
    mode = flush_subnormals()
    sums[z, REST] = scale_plane(before[z + 1], after[z + 1], cut_gain, cut_loss)
    restore_subnormals(mode)


@compiled_with_threads
def sum_changes(before, after, sums):
    """Store the sums of every plane but the halos; see `Kernels.sum_changes`."""
    each_on_threads(sum_changes_at, 0, len(sums), (before, after, sums))


@compiled
def update_budget(sums, record):
    """Find the parts to cut; see `Kernels.update_budget`."""
    gained = 0.0
    lost = 0.0
    size = 0.0
    rest = 0.0
    for z in range(len(sums)):
        gained += sums[z, GAINED]
        lost += sums[z, LOST]
        size += sums[z, SIZE]
        rest += sums[z, REST]
    left = record[LEFT] + rest
    excess = (gained - lost) + left
    record[CUT_GAINS] = part_to_cut(excess, gained)
    record[CUT_LOSSES] = part_to_cut(-excess, lost)
    record[LEFT] = left
    record[MADE] += (gained - lost) / size if size > 0.0 else 0.0


@compiled_with_threads
def scale_changes(before, after, cut_gain, cut_loss, sums):
    """Scale the changes of every plane but the halos; see `Kernels.scale_changes`."""
    given = (before, after, cut_gain, cut_loss, sums)
    each_on_threads(scale_changes_at, 0, len(sums), given)

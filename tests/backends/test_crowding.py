"""Threads give way to other processes, and come back."""

import os
import time
from pathlib import Path

import numba
import pytest

from hybrid_nbody.backends import crowding
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.crowding import ThreadChoice, Used, used


def choices(most, cores, taken):
    """Return the threads chosen while others take some cores from look to look."""
    looks = [Used(0.0, 0.0, 0.0)]
    for by_others in taken:
        last = looks[-1]
        looks.append(Used(last.time + 0.5, last.by_all + 0.5 * (by_others + 1), last.by_this + 0.5))
    scripted = iter(looks)
    choice = ThreadChoice(most, range(cores), lambda cores: next(scripted))
    choice.update()
    return [choice.update() for _ in taken]


@pytest.mark.parametrize(
    ("most", "cores", "taken", "expected"),
    [
        (2, 2, [0.1, 0.3, 0.0], [2, 2, 2]),
        (2, 2, [1.0, 0.0, 1.0, 0.0], [2, 2, 2, 2]),  # a moment alone changes nothing
        (2, 2, [1.0, 0.9, 1.0, 0.1], [2, 1, 1, 2]),
        (2, 2, [2.0, 2.0, 2.0], [2, 1, 1]),
        (4, 16, [8.0, 8.0, 13.0, 14.0], [4, 4, 4, 3]),
        (16, 16, [3.0, 5.0, 5.0, 1.0, 1.0], [16, 13, 13, 15, 15]),
    ],
)
def test_threads_fit_into_what_others_leave(most, cores, taken, expected):
    assert choices(most, cores, taken) == expected


@pytest.mark.parametrize(
    ("cores", "others", "expected"), [(2, 1, 1), (4, 1, 3), (4, 4, 2), (16, 16, 8), (64, 64, 32)]
)
def test_others_that_take_what_is_left_are_not_left_more_and_more(cores, others, expected):
    """All threads of the machine get the same share of its cores, a core each at most."""
    now = Used(0.0, 0.0, 0.0)

    def look(_):
        nonlocal now
        share = min(1.0, cores / (choice.threads + others))
        mine = now.by_this + 0.5 * share * choice.threads
        now = Used(now.time + 0.5, now.by_all + 0.5 * share * (choice.threads + others), mine)
        return now

    choice = ThreadChoice(cores, range(cores), look)
    found = [choice.update() for _ in range(12)]
    assert found[-1] == expected
    assert min(found) == expected


def test_looks_too_close_to_each_other_change_nothing():
    looks = []

    def look(_):
        looks.append(Used(time.monotonic(), 10.0 * len(looks), 0.0))
        return looks[-1]

    choice = ThreadChoice(2, [0, 1], look)
    assert [choice.update() for _ in range(5)] == [2] * 5
    assert len(looks) == 1


def test_a_look_after_a_long_pause_says_nothing_of_the_present():
    scripted = iter([Used(t, 1.0 * t, 0.0) for t in (0.0, 0.5, 600.0, 600.5, 601.0)])
    choice = ThreadChoice(2, [0, 1], lambda cores: next(scripted))
    assert [choice.update() for _ in range(5)] == [2, 2, 2, 2, 1]


def test_all_threads_compute_where_the_system_does_not_say(monkeypatch, tmp_path):
    monkeypatch.setattr(crowding, "STATISTICS", tmp_path / "missing")
    assert used([0]) is None
    choice = ThreadChoice(2, [0, 1])
    assert [choice.update(), choice.update()] == [2, 2]


def test_only_work_on_the_given_cores_counts(monkeypatch, tmp_path):
    text = (
        "cpu  999 0 0 0 0 0 0 0 0 0\n"
        "cpu0 100 10 20 5000 300 4 5 6 77 0\n"
        "cpu1 200 0 0 5000 0 0 0 0 0 0\n"
        "cpu10 999 0 0 0 0 0 0 0 0 0\n"
        "intr 1 2 3\n"
    )
    statistics = tmp_path / "stat"
    statistics.write_text(text)
    monkeypatch.setattr(crowding, "STATISTICS", statistics)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert used([0]).by_all == pytest.approx(135 * tick, rel=1e-12)  # none of low priority
    assert used([0, 1]).by_all == pytest.approx(335 * tick, rel=1e-12)
    monkeypatch.setattr(os, "getpriority", lambda which, who: 10)
    assert used([0]).by_all == pytest.approx(145 * tick, rel=1e-12)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="Linux alone says what cores do")
def test_time_of_this_process_grows_with_its_work():
    cores = os.sched_getaffinity(0)
    before = used(cores)
    sum(range(3_000_000))
    after = used(cores)
    assert after.by_this > before.by_this
    assert after.by_all >= before.by_all


def test_a_backend_uses_fewer_threads_and_says_so_once(monkeypatch):
    backend = CpuBackend(min(2, numba.config.NUMBA_NUM_THREADS), makes_way=True)
    if not backend.makes_way:
        pytest.skip("one core")
    scripted = iter([1, 2, 1])
    choice = backend._choice
    monkeypatch.setattr(
        choice, "update", lambda: setattr(choice, "threads", next(scripted)) or choice.threads
    )
    said = [backend.make_way(), backend.make_way(), backend.make_way()]
    assert "1 thread computes" in said[0] and "compute.threads" in said[0]
    assert said[1:] == ["", ""]
    assert numba.get_num_threads() == 1
    CpuBackend(backend.threads)

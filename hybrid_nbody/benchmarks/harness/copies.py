"""Copies of the bodies to and from a GPU, from pageable and from pinned memory of the host."""

from dataclasses import dataclass

import numpy as np

from hybrid_nbody.benchmarks.harness.measure import timings

NUMBERS_PER_BODY = 7
"""x, y, z, vx, vy, vz, mass, in float32."""


def pageable(backend, count):
    """Return an array of `count` float32 in ordinary memory."""
    return np.zeros(count, np.float32)


def pinned(backend, count):
    """Return an array of `count` float32 in memory that the system never moves."""
    return np.frombuffer(backend.cupy.cuda.alloc_pinned_memory(4 * count), np.float32, count)


def to_device(backend, host, device):
    """Copy `host` up."""
    device.set(host, stream=backend.stream)


def from_device(backend, host, device):
    """Copy `device` down."""
    device.get(out=host, stream=backend.stream)


@dataclass(frozen=True)
class Copy:
    """One kind of copy: its name, which way, and in which memory of the host."""

    name: str
    move: object
    memory: object


COPIES = (
    Copy("to the device, pageable memory", to_device, pageable),
    Copy("to the device, pinned memory", to_device, pinned),
    Copy("from the device, pageable memory", from_device, pageable),
    Copy("from the device, pinned memory", from_device, pinned),
)


def copy_row(copy: Copy, backend, number: int, repeats: int, step: float, stop) -> dict:
    """Return the row of a copy of `number` bodies, beside a step that takes `step` seconds."""
    count = NUMBERS_PER_BODY * number
    host = copy.memory(backend, count)
    device = backend.zeros(count, "f4")
    host[:] = 1
    copy.move(backend, host, device)
    taken = timings(backend, lambda: copy.move(backend, host, device), repeats, stop)
    rates = {"bytes_per_s": host.nbytes / taken.median, "share_of_step": taken.median / step}
    return {"rung": copy.name, "device": backend.kind, **taken.columns, **rates}

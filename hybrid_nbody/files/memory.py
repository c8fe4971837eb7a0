"""The memory of this machine."""

from pathlib import Path


def available_memory() -> int:
    """Return the bytes of memory that are available to programs on this machine."""
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(facts["MemAvailable"].split()[0]) * 1024

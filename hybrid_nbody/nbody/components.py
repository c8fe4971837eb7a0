"""The components of the bodies of a run, by their names: which ids are whose."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.thinning import chosen_bodies

if TYPE_CHECKING:
    from hybrid_nbody.files.run import Run

NUMBER_OF_KIND = {"two-body": 2, "figure-eight": 3, "lagrange-triangle": 3, "solar-system": 9}
"""Bodies of the kinds that have no key for it; those of a file are counted there."""

Entry = Mapping[str, Any]


def number_in_disc(n: int, disc_bodies: float) -> int:
    """Return how many of the bodies of a galaxy are in its disc."""
    return min(max(round(disc_bodies * n), 1), n - 1)


def components_of(bodies: Entry | Sequence[Entry], number: int) -> dict[str, range]:
    """Return the ids of each component, which follow each other in the order of the list.

    Parameters
    ----------
    bodies : mapping or sequence of mappings
        The section ``bodies`` of a configuration, such as ``run.config["bodies"]``.
    number : int
        Number of all bodies, from which that of a file follows.

    Returns
    -------
    dict of str to range
        By name; a component without one is called ``PLACE KIND``, such as ``0 plummer``. A galaxy
        has two, ``NAME/disc`` and ``NAME/halo``.

    Raises
    ------
    InputError
        If more than one component is a file.
    """
    entries = [bodies] if isinstance(bodies, Mapping) else list(bodies)
    known = sum(_number(entry) or 0 for entry in entries)
    if sum(_number(entry) is None for entry in entries) > 1:
        raise InputError("bodies: more than one component is a file, whose numbers are not known")
    found: dict[str, range] = {}
    first = 0
    for place, entry in enumerate(entries):
        for name, count in _parts(place, entry, number - known):
            found[name] = range(first, first + count)
            first += count
    return found


def components_in(run: "Run") -> dict[str, range]:
    """Return the ids of each component of a run with frames, as `components_of`.

    Raises
    ------
    InputError
        As there; also if frames hold some bodies alone and one component is a file: how many bodies
        that has is not known.
    """
    bodies = run.config["bodies"]
    entries = [bodies] if isinstance(bodies, Mapping) else list(bodies)
    chosen = chosen_bodies(run.config)
    if chosen and len(entries) > 1 and any(_number(entry) is None for entry in entries):
        raise InputError(
            f"the frames hold some bodies alone ({chosen}): how many a file has is not known"
        )
    return components_of(bodies, int(run.id.max()) + 1)


def _parts(place: int, entry: Entry, rest: int) -> Iterator[tuple[str, int]]:
    """Yield the name of each part of a component, and the number of its bodies."""
    name = entry.get("name") or f"{place} {entry['kind']}"
    number = _number(entry)
    if entry["kind"] == "galaxy" and number is not None:
        in_disc = number_in_disc(number, entry["disc_bodies"])
        yield f"{name}/disc", in_disc
        yield f"{name}/halo", number - in_disc
    else:
        yield name, rest if number is None else number


def _number(entry: Entry) -> int | None:
    """Return the number of bodies of a component, None for those of a file."""
    number: int | None = entry.get("n", NUMBER_OF_KIND.get(entry["kind"]))
    return number

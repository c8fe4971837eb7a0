"""Bodies of several components: where they are, in which order, and that ranks change nothing."""

import numpy as np
import pytest
from support import configs
from support.ranks import on_threads

from hybrid_nbody.config.loader import plain_values
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody import drawn
from hybrid_nbody.nbody.components import components_of
from hybrid_nbody.nbody.composed import Composed, Placement
from hybrid_nbody.nbody.drawn import BLOCK
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.starting import initial_bodies, on_all_ranks
from hybrid_nbody.parallel.partition import Partition

NAMES = ("position", "velocity", "mass", "id")
HEAD = "model: nbody\nseed: 5\ntime: {dt: 1e-3, steps: 1}\n"
NUMBER = BLOCK + 300


def config_of(*components, centred=False):
    """Return the configuration of a list of components."""
    lines = "".join(f"  - {{{component}}}\n" for component in components)
    return configs.loads(f"{HEAD}centred: {str(centred).lower()}\nbodies:\n{lines}", "test.yaml")


def all_of(config, communicator):
    """Return all bodies of a configuration, on one rank."""
    source = on_all_ranks(initial_bodies(config), communicator)
    return source.rows(0, len(source))


def test_components_follow_each_other_with_seeds_of_their_own(alone):
    config = config_of(
        "kind: plummer, n: 100", "kind: plummer, n: 50", "kind: plummer, n: 9, seed: 5"
    )
    bodies = all_of(config, alone)
    parts = (plummer(100, seed=5), plummer(50, seed=6), plummer(9, seed=5))
    expected = np.concatenate([part.position for part in parts])
    np.testing.assert_array_equal(bodies.position, expected)
    np.testing.assert_array_equal(bodies.mass, np.repeat([1 / 100, 1 / 50, 1 / 9], [100, 50, 9]))
    np.testing.assert_array_equal(bodies.id, np.arange(159))


def test_one_component_as_a_list_is_the_mapping(alone):
    """Bodies without a place of their own are what they are as a single mapping, to the bit."""
    mapping = configs.loads(HEAD + "bodies: {kind: plummer, n: 300}\n", "test.yaml")
    found = initial_bodies(config_of("kind: plummer, n: 300"))
    assert not isinstance(found, Composed)
    np.testing.assert_array_equal(all_of(mapping, alone).velocity, found.all().velocity)
    np.testing.assert_array_equal(found.all().velocity, plummer(300, seed=5).velocity)


def test_mass_and_scale_of_a_plummer_sphere(alone):
    bodies = all_of(config_of("kind: plummer, n: 300, mass: 8, scale: 2"), alone)
    unit = plummer(300, seed=5)
    scale = 2 / (3 * np.pi / 16)
    assert bodies.mass.sum() == pytest.approx(8, rel=1e-13, abs=0)
    np.testing.assert_allclose(bodies.position, scale * unit.position, rtol=1e-12, atol=1e-14)
    speed = np.sqrt(8 / scale)
    np.testing.assert_allclose(bodies.velocity, speed * unit.velocity, rtol=1e-12, atol=1e-14)


def test_a_component_is_turned_then_moved(alone):
    place = "rotation: [0, 0, 90], offset: [1, 2, 3], velocity: [0, 0, 5]"
    bodies = all_of(config_of(f"kind: two-body, {place}"), alone)
    np.testing.assert_allclose(bodies.position, [[1, 1.5, 3], [1, 2.5, 3]], rtol=0, atol=1e-15)
    speed = np.sqrt(2) / 2
    expected = [[speed, 0, 5], [-speed, 0, 5]]
    np.testing.assert_allclose(bodies.velocity, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("rotation", [(30.0, 0.0, 0.0), (10.0, -50.0, 200.0), (0.0, 0.0, 720.0)])
def test_a_rotation_is_one(rotation):
    """Its axis stays, its matrix is orthogonal, and its trace is that of the angle."""
    matrix = Placement(rotation).matrix
    angle = np.radians(np.linalg.norm(rotation))
    np.testing.assert_allclose(matrix @ rotation, rotation, rtol=0, atol=1e-12)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), rtol=0, atol=1e-15)
    assert np.linalg.det(matrix) == pytest.approx(1, rel=0, abs=1e-15)
    assert np.trace(matrix) == pytest.approx(1 + 2 * np.cos(angle), rel=0, abs=1e-14)


def test_the_centre_of_the_whole_is_put_at_rest_where_that_is_asked_for(alone):
    parts = (
        "kind: plummer, n: 3000, mass: 3, offset: [4, 0, 0], velocity: [0, 1, 0]",
        "kind: random-square, n: 2000, offset: [0, 8, 0]",
    )
    there = all_of(config_of(*parts), alone)
    centred = all_of(config_of(*parts, centred=True), alone)
    assert np.average(there.position, axis=0, weights=there.mass)[0] > 3
    for name in ("position", "velocity"):
        values = getattr(centred, name)
        centre = np.average(values, axis=0, weights=centred.mass)
        np.testing.assert_allclose(centre, 0, rtol=0, atol=1e-13)
        moved = values - getattr(there, name)
        np.testing.assert_allclose(moved, moved[0] + 0 * moved, rtol=0, atol=1e-14)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("centred", [False, True])
def test_ranks_get_the_bodies_of_one(alone, size, centred):
    """With shares in the ratio 0 : 1 : 2 : 3, and a component that ends within a block."""
    parts = (
        f"kind: plummer, n: {NUMBER}, rotation: [20, 30, 40], offset: [1, 2, 3]",
        "kind: random-square, n: 7",
        f"kind: random-box, n: {NUMBER}, velocity: [1, 0, 0]",
    )
    config = config_of(*parts, centred=centred)
    whole = all_of(config, alone)
    shares = Partition.weighted(len(whole), [*range(size)])

    def own_rows(rank):
        source = on_all_ranks(initial_bodies(config) if rank.is_root else None, rank)
        own = shares.share(rank.rank)
        return own, source.rows(own.start, own.stop), source.masses()

    for own, found, masses in on_threads(size, own_rows):
        np.testing.assert_array_equal(masses, whole.mass)
        for name in NAMES:
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[own])


KINDS = (
    "hernquist, n: {n}",
    "nfw, n: {n}",
    "king, n: {n}",
    "galaxy, n: {n}",
    "binaries, n: {n}, semi_major_axes: [1e-3, 1e-2]",
)


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_draw_the_bodies_of_one(alone, kind):
    """Each kind, of more than a block, by 3 ranks with shares in the ratio 0 : 1 : 2."""
    config = config_of(f"kind: {kind.format(n=NUMBER)}")
    whole = all_of(config, alone)
    assert len(np.unique(whole.position[:, 0])) == NUMBER
    shares = Partition.weighted(NUMBER, [0, 1, 2])

    def own_rows(rank):
        source = on_all_ranks(initial_bodies(config) if rank.is_root else None, rank)
        own = shares.share(rank.rank)
        return own, source.rows(own.start, own.stop)

    for own, found in on_threads(3, own_rows):
        for name in NAMES:
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[own])


@pytest.mark.mpi
def test_ranks_share_components_that_the_root_holds(communicator, alone):
    """A few bodies by formulas beside drawn ones; the last rank asks for all, others for theirs."""
    config = config_of(
        "kind: two-body, offset: [5, 0, 0]", "kind: plummer, n: 50", "kind: figure-eight"
    )
    initial = initial_bodies(config) if communicator.is_root else None
    source = on_all_ranks(initial, communicator)
    is_last = communicator.rank == communicator.size - 1
    first = 0 if is_last else communicator.rank
    found = source.rows(first, 55)
    assert len(source) == 55
    expected = all_of(config, alone)
    for name in NAMES:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name)[first:])


def test_what_stands_for_all_bodies_has_the_same_share_of_each(alone, monkeypatch):
    config = config_of("kind: plummer, n: 3000", "kind: two-body", "kind: random-box, n: 1000")
    monkeypatch.setattr(drawn, "SAMPLE", 400)
    found = initial_bodies(config).sample()
    numbers = [np.sum(found.id < 3000), np.sum(found.id < 3002), len(found)]
    assert numbers == [300, 302, 402]
    whole = all_of(config, alone)
    np.testing.assert_array_equal(found.mass, whole.mass[found.id])


OWN = """
import numpy as np

def ring(n, seed):
    angle = 2 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1), np.zeros((n, 3)), np.ones(n)
"""


def test_a_function_of_ones_own_beside_the_yaml_file(alone, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    own = "kind: python, path: own.py, function: ring, n: 4, offset: [5, 0, 0]"
    text = f"{HEAD}bodies:\n  - {{kind: two-body}}\n  - {{{own}}}\n"
    (tmp_path / "run.yaml").write_text(text)
    bodies = all_of(configs.load(tmp_path / "run.yaml"), alone)
    expected = [[6, 0, 0], [5, 1, 0], [4, 0, 0], [5, -1, 0]]
    np.testing.assert_allclose(bodies.position[2:], expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(bodies.id, np.arange(6))


def test_the_bodies_of_a_file_keep_their_identities_where_it_is_moved(alone, tmp_path):
    position = np.diag([1.0, 2.0, 3.0])
    arrays = {"position": position, "velocity": 0 * position, "mass": np.ones(3)}
    np.savez(tmp_path / "own.npz", **arrays, id=np.array([7, 42, 9]))
    moved = f"{HEAD}bodies: {{kind: file, path: own.npz, offset: [5, 0, 0]}}\n"
    (tmp_path / "run.yaml").write_text(moved)
    bodies = all_of(configs.load(tmp_path / "run.yaml"), alone)
    np.testing.assert_array_equal(bodies.position, position + [5, 0, 0])
    np.testing.assert_array_equal(bodies.id, [7, 42, 9])


# ---- Names ---------------------------------------------------------------------------------------


def test_ids_of_components_by_their_names(alone):
    """They are those of the bodies that were made, told apart by their masses."""
    config = config_of(
        "kind: galaxy, name: left, n: 100, disc_bodies: 0.3",
        "kind: solar-system, name: planets",
        "kind: plummer, n: 50, mass: 7",
    )
    bodies = all_of(config, alone)
    found = components_of(plain_values(config.bodies), len(bodies))
    numbers = {"left/disc": 30, "left/halo": 70, "planets": 9, "2 plummer": 50}
    assert {name: len(ids) for name, ids in found.items()} == numbers
    of_name = {name: bodies.mass[ids.start : ids.stop] for name, ids in found.items()}
    assert of_name["left/disc"].sum() == pytest.approx(0.1, rel=1e-12, abs=0)
    assert of_name["left/halo"].sum() == pytest.approx(0.9, rel=1e-12, abs=0)
    assert of_name["planets"].max() == 1
    assert of_name["2 plummer"].sum() == pytest.approx(7, rel=1e-12, abs=0)


def test_a_file_has_the_bodies_that_are_left():
    file = {"kind": "file", "path": "a.csv"}
    sphere = {"kind": "plummer", "n": 10, "name": "sphere"}
    found = components_of([file, sphere], 25)
    assert found == {"0 file": range(15), "sphere": range(15, 25)}
    assert components_of(file, 25) == {"0 file": range(25)}
    with pytest.raises(InputError, match="more than one component is a file"):
        components_of([file, file], 25)

"""The boundary: what six faces say about the ghosts of a field, and what is refused."""

import pytest

from hybrid_nbody.fluid.grid import COPY, FACES, SCALAR, Boundary, Face, Ghost, Ghosts
from hybrid_nbody.fluid.stencil import diffusion


def test_walls_impose_what_their_conditions_say():
    boundary = Boundary.of_axes(("free-slip", "no-slip", "periodic"))
    assert [ghosts.axis_signs for ghosts in boundary.velocity_ghosts] == [
        (-1, -1, 1),
        (1, -1, 1),
        (1, -1, 1),
    ]
    assert boundary.scalar_ghosts == SCALAR
    assert boundary.periodic == (False, False, True)
    assert not any(any(ghosts.offsets) for ghosts in boundary.velocity_ghosts)


def test_a_wall_that_moves_imposes_its_velocity_halfway_to_the_ghost():
    still, lid = Face("no-slip"), Face("no-slip", (3.0, 0.0, 0.5))
    u, _, w = Boundary((still,) * 5 + (lid,)).velocity_ghosts
    assert u == Ghosts(*[Ghost(-1)] * 5, Ghost(-1, 6.0))
    assert w.offsets == (0, 0, 0, 0, 0, 1.0)
    cell = 0.7
    assert 0.5 * (cell + u.z_high.sign * cell + u.z_high.offset) == pytest.approx(3.0)


def test_a_free_slip_wall_imposes_the_normal_component_alone():
    u, v, w = Boundary((Face("free-slip", (1.0, 2.0, 4.0)),) * 6).velocity_ghosts
    assert u == Ghosts(Ghost(-1, 2.0), Ghost(-1, 2.0), COPY, COPY, COPY, COPY)
    assert v.y_low == Ghost(-1, 4.0)
    assert w.z_high == Ghost(-1, 8.0)
    assert w.x_low == COPY


def test_an_axis_is_periodic_at_both_faces_or_at_none():
    wall, around = Face("no-slip"), Face("periodic")
    with pytest.raises(ValueError, match="only one of the faces y- and y\\+ is periodic"):
        Boundary((wall, wall, around, wall, wall, wall))


def test_unknown_conditions_and_missing_faces_are_refused():
    with pytest.raises(
        ValueError, match="'sticky' is not a boundary condition; .* free-slip, no-slip, periodic"
    ):
        Face("sticky")
    with pytest.raises(ValueError, match=f"six faces \\({FACES[0]}, .*not 2"):
        Boundary((Face("no-slip"),) * 2)


def test_relaxation_with_ghosts_in_the_diagonal_needs_equal_signs_at_opposite_faces():
    floor = Ghosts(y_low=Ghost(-1))
    assert len(diffusion(0.5, floor).fixed_ghost_factors) == 8
    with pytest.raises(ValueError, match="behind y- and y\\+ have different signs.*use red-black"):
        diffusion(0.5, floor).relaxation_factors()

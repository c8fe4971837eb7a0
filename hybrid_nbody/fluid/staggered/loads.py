"""Forces on obstacles: the pressure on their closed areas, and the friction of the fluid.

They are what the fluid loses in a step. Faces that are mostly closed are held at the velocity of
the wall: it takes what pressure and lift do to their open parts, which counts as friction.
"""

from dataclasses import dataclass

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS
from hybrid_nbody.fluid.staggered.step import Stepper

Three = tuple[float, float, float]
Arm = tuple[float, float, float, int, float, float]

ONE: Arm = (0.0, 0.0, 0.0, 0, -1.0, 4.0)
"""The arm of a force itself."""

FAR = 1e30
"""The period of an axis that is not periodic, in cells."""


@dataclass(frozen=True)
class Load:
    """What the fluid does to an obstacle.

    Attributes
    ----------
    name : str
        That of the obstacle.
    pressure, friction : tuple of float
        Forces over the density of the fluid, length^4 / time^2; their sum is the force.
    torque : tuple of float
        About the centre of the obstacle, of both, length^5 / time^2.
    """

    name: str
    pressure: Three
    friction: Three
    torque: Three

    @property
    def force(self) -> Three:
        """Return the whole force."""
        x, y, z = (a + b for a, b in zip(self.pressure, self.friction, strict=True))
        return x, y, z


def loads(stepper: Stepper, time: float) -> list[Load]:
    """Return the forces on all obstacles, the same bits on any number of ranks; collective.

    Parameters
    ----------
    stepper : Stepper
        With a pressure that belongs to its velocity: after a step.
    time : float
        The present one.
    """
    solids = stepper.solids
    return [_Scales(stepper, number, time).load() for number in range(len(solids.obstacles))]


@dataclass(frozen=True)
class _Scales:
    """What weighs the forces on one obstacle."""

    stepper: Stepper
    number: int
    time: float

    def load(self) -> Load:
        """Return the forces."""
        square = self.stepper.grid.spacing**2
        pressure = [square * self._pressure(axis, ONE) for axis in AXES]
        viscous = self._viscous
        friction = [self._friction(axis, ONE) if viscous else 0.0 for axis in AXES]
        name = self.stepper.solids.obstacles[self.number].name
        return Load(name, _three(pressure), _three(friction), self._torque())

    @property
    def _viscous(self) -> float:
        """Return what a difference of velocities beside each other gives."""
        return self.stepper.physics.viscosity * self.stepper.grid.spacing

    def _torque(self) -> Three:
        """Return the torque: arms by forces, in the order y z, z x, x y less the other way."""
        found = []
        for axis in AXES:
            following, last = (axis + 1) % 3, (axis + 2) % 3
            found.append(self._moment(following, last) - self._moment(last, following))
        return _three(
            [own + more for own, more in zip(found, self._torque_of_turning(), strict=True)]
        )

    def _torque_of_turning(self) -> list[float]:
        """Return what friction lacks at a wall that turns, where the gradient has a second part.

        Friction sums the differences of each component across the wall. The stress has the
        transposed gradient too, which along a wall that turns with `w` is n x w for its normal n:
        the torque is the integral of n (r w) - w (r n) over the surface.
        """
        obstacle = self.stepper.solids.obstacles[self.number]
        turns = obstacle.rotation
        if not any(turns) or not self._viscous or obstacle.wall == "free-slip":
            return [0.0, 0.0, 0.0]
        cube = self.stepper.physics.viscosity * self.stepper.grid.spacing**3
        areas = [[-cube * self._closed(of, self._arm(to)) for to in AXES] for of in AXES]
        trace = sum(areas[axis][axis] for axis in AXES)
        return [
            sum(area * turn for area, turn in zip(areas[axis], turns, strict=True))
            - turns[axis] * trace
            for axis in AXES
        ]

    def _moment(self, along: int, of: int) -> float:
        """Return the sum of forces of an axis times their arms along another one."""
        h = self.stepper.grid.spacing
        arm = self._arm(along)
        total = h**3 * self._pressure(of, arm)
        if self._viscous:
            total += h * self._friction(of, arm)
        return total

    def _arm(self, axis: int) -> Arm:
        """Return the arm from the obstacle's centre to a cell, along an axis, in cells."""
        grid = self.stepper.grid
        z, y, x = (float(step) for step in STEPS[axis])
        centre = self.stepper.solids.obstacles[self.number].centre_at(self.time)[axis]
        cells = grid.cells[axis]
        place = centre / grid.spacing
        if grid.periodic[axis]:
            place %= cells
        edge = float(cells) if grid.periodic[axis] else FAR
        return z, y, x, grid.first, place + 0.5, edge

    def _pressure(self, axis: int, arm: Arm) -> float:
        """Return the sum of the pressure over closed faces."""
        return self._over_closed(self.stepper.state.pressure, axis, arm)

    def _closed(self, axis: int, arm: Arm) -> float:
        """Return the sum of arms over closed faces; against the normal they count as positive."""
        ones = self.stepper.cell_scratch
        self.stepper.grid.program.run("set_to", self.stepper.grid.everywhere, ones, 1.0)
        return self._over_closed(ones, axis, arm)

    def _over_closed(self, field: Array, axis: int, arm: Arm) -> float:
        """Return the sum of a field over closed faces."""
        stepper = self.stepper
        solids = stepper.solids
        given = (field, solids.openings[axis], solids.owner, float(self.number))
        region = stepper.grid.region
        return stepper.grid.total("pressure_moment", region, *given, *STEPS[axis], *arm)

    def _friction(self, axis: int, arm: Arm) -> float:
        """Return the force along walls, and on the open parts of faces that they hold."""
        square = self.stepper.grid.spacing**2
        return self._viscous * self._pulled(axis, arm) + square * self._held(axis, arm)

    def _pulled(self, axis: int, arm: Arm) -> float:
        """Return the sum of differences of a component to closed faces."""
        stepper = self.stepper
        solids = stepper.solids
        walls = (solids.openings[axis], solids.reach[axis], solids.moving, solids.velocity[axis])
        given = (stepper.state.velocity[axis], *walls, solids.owner, float(self.number))
        region = stepper.grid.inner_faces(axis)
        return stepper.grid.total("friction_moment", region, *given, *arm)

    def _held(self, axis: int, arm: Arm) -> float:
        """Return the sum of pressure differences and lift over the open parts of held faces."""
        stepper = self.stepper
        total = self._over_held(stepper.state.pressure, (1.0, -1.0), axis, arm)
        for name, lift in stepper.physics.lift.items():
            half = 0.5 * lift[axis] * stepper.grid.spacing
            if half:
                total += self._over_held(stepper.state.scalars[name], (half, half), axis, arm)
        return total

    def _over_held(self, field: Array, factors: tuple[float, float], axis: int, arm: Arm) -> float:
        """Return the sum of factors times a field in both cells beside held faces."""
        stepper = self.stepper
        solids = stepper.solids
        low = tuple(-step for step in STEPS[axis])
        walls = (solids.openings[axis], solids.reach[axis], solids.owner, float(self.number))
        region = stepper.grid.inner_faces(axis)
        return stepper.grid.total("held_moment", region, field, *factors, *walls, *low, *arm)


def _three(values: list[float]) -> Three:
    x, y, z = values
    return x, y, z

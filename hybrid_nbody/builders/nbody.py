"""Builds the N-body model of a configuration."""

from functools import partial

from hybrid_nbody.analysis.bodies_file import read_bodies
from hybrid_nbody.builders.common import CHANGEABLE, Built, check_weights, placement_lines, plural, shares
from hybrid_nbody.nbody import initial_conditions
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.model import NBodyModel
from hybrid_nbody.nbody.trial import compile_kernels, measured_weights
from hybrid_nbody.parallel.exchange import AllgatherExchange, choose_transport
from hybrid_nbody.parallel.placement import place
from hybrid_nbody.parallel.scatter import broadcast_array, scatter_rows

NEEDS_G = ("plummer", "uniform-sphere", "two-body", "figure-eight", "lagrange-triangle")
NEEDS_SEED = ("plummer", "uniform-sphere", "cold-sphere", "random-box")


class NBodyBuilder:
    """From a configuration to bodies on all ranks; `FluidBuilder` has the same methods.

    Parameters
    ----------
    config : NBodyConfig
    communicator : Communicator
        Every rank calls together.

    Attributes
    ----------
    changeable : tuple of str
        Keys that a resumed run may change.
    """

    changeable = (*CHANGEABLE, "time.max_energy_error")

    def __init__(self, config, communicator):
        self.config, self.communicator = config, communicator

    @staticmethod
    def resolved(config):
        """Return the configuration with all that a restart needs: a checkpoint holds the bodies."""
        return config

    def check(self) -> None:
        """Check what can be checked before anything is made.

        Raises
        ------
        InputError
            On every rank.
        """
        check_weights(self.config, self.communicator.size)

    def initial(self) -> Bodies:
        """Return all bodies; on the root alone.

        Raises
        ------
        InputError
            If a file of bodies is missing or wrong.
        """
        return initial_bodies(self.config)

    def fresh(self, bodies: Bodies | None) -> Built:
        """Return a model at its initial state; the root passes all bodies, the other ranks None."""
        communicator = self.communicator
        number = communicator.broadcast(len(bodies) if communicator.is_root else 0)
        placement, exchange = self._arrange(number)

        def rows(name, shape, dtype="f8"):
            return scatter_rows(getattr(bodies, name, None), shape, dtype, exchange.partition, communicator)

        mass = broadcast_array(bodies.mass if bodies else None, (number,), "f8", communicator)
        ids = rows("id", (number,), "i8")
        model = self._model(placement, exchange, mass, ids)
        model.begin(Bodies(rows("position", (number, 3)), rows("velocity", (number, 3)), model.own_mass, ids))
        return Built(model, placement, exchange)

    def restored(self, saved) -> Built:
        """Return a model at the state of a checkpoint; every rank reads its own rows."""
        placement, exchange = self._arrange(saved.number)
        start, stop = exchange.own.start, exchange.own.stop
        mass = saved.rows("bodies/mass", 0, saved.number)
        model = self._model(placement, exchange, mass, saved.rows("bodies/id", start, stop))
        model.restore(lambda name: saved.rows(name, start, stop), saved.scalars)
        return Built(model, placement, exchange)

    def lines(self, built: Built) -> list[str]:
        """Say what runs where."""
        gravity, time_axis, total = self.config.gravity, self.config.time, built.exchange.partition.total
        title = self.config.title or "hybrid_nbody"
        force = f"{gravity.solver} gravity, {gravity.precision} precision, softening {gravity.softening:g}"
        bodies = partial(plural, one="body", many="bodies")
        return [
            f"{title}: {bodies(total)}, {time_axis.total_steps} steps of {time_axis.dt:g}",
            f"{time_axis.integrator}, {force}",
            *placement_lines(built, bodies),
        ]

    def _arrange(self, number):
        """Choose devices, compile kernels, share `number` bodies out and connect the ranks."""
        compute, gravity, communicator = self.config.compute, self.config.gravity, self.communicator
        placement = place(compute.backend, compute.threads, communicator)
        physics = (placement.backend, gravity.precision, gravity.softening)
        communicator.first_on_node(lambda: compile_kernels(*physics))
        partition = shares(self.config, number, communicator.size, lambda: measured_weights(*physics, communicator))
        transport = choose_transport(compute.transport, placement.backend, communicator, placement.shared_gpus)
        return placement, AllgatherExchange(transport, partition, communicator.rank)

    def _model(self, placement, exchange, mass, ids):
        """Return the model, its bodies not yet in place."""
        gravity, time_axis = self.config.gravity, self.config.time
        return NBodyModel(
            placement.backend,
            self.communicator,
            exchange,
            mass,
            ids,
            integrator=time_axis.integrator,
            dt=time_axis.dt,
            precision=gravity.precision,
            softening=gravity.softening,
            G=gravity.G,
        )


def initial_bodies(config) -> Bodies:
    """Return the bodies that a configuration asks for.

    Raises
    ------
    InputError
        If a file of bodies is missing or wrong.
    """
    choice = config.bodies
    if choice.kind == "file":
        table = read_bodies(choice.path)
        return Bodies(table.position, table.velocity, table.mass, table.id)
    arguments = {name: value for name, value in choice if name != "kind"}
    arguments |= {"G": config.gravity.G} if choice.kind in NEEDS_G else {}
    arguments |= {"seed": config.seed} if choice.kind in NEEDS_SEED else {}
    return getattr(initial_conditions, choice.kind.replace("-", "_"))(**arguments)

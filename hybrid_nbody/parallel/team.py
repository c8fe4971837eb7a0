"""Some of the ranks, which work while the others wait."""

from collections.abc import Callable
from typing import Any

from hybrid_nbody.errors import HybridNBodyError
from hybrid_nbody.parallel.communicator import Communicator


class Team:
    """The first ranks of all, which do what is asked for while the others wait.

    All ranks call every method.

    Parameters
    ----------
    world : Communicator
        All ranks.
    ranks : int
        How many of them belong to the team.

    Attributes
    ----------
    belongs : bool
        Whether this rank does.
    group : Communicator
        The ranks of the team, or the others.
    """

    def __init__(self, world: Communicator, ranks: int):
        self.world = world
        self.ranks = ranks
        self.belongs = world.rank < ranks
        self.group = world
        if ranks < world.size:
            self.group = Communicator(world.comm.Split(int(not self.belongs), world.rank))

    def do(self, action: Callable[[], Any]) -> Any:
        """Return the result of `action`, None outside the team; raise its error on every rank."""
        result = error = None
        try:
            result = action() if self.belongs else None
        except HybridNBodyError as caught:
            if not caught.shared:
                raise
            error = caught
        error = self.world.broadcast(error)
        if error is not None:
            raise error.on_all_ranks()
        return result

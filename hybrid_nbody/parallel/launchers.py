"""What the launchers of MPI programs tell the processes that they start."""

import os

from hybrid_nbody.errors import InputError

# Of each launcher: the environment variables with the number of ranks and the rank of a process.
OPEN_MPI = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun")
LAUNCHERS = (
    ("PMI_SIZE", "PMI_RANK", "MPICH's mpirun"),
    OPEN_MPI,
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"),
)


def promised_ranks() -> int:
    """Return the number of ranks that a launcher says it has started; 1 without a launcher."""
    words = [os.environ.get(size, "") for size, _, _ in LAUNCHERS]
    return max([1, *(int(word) for word in words if word.isdecimal())])


def promised_rank() -> int:
    """Return the rank that a launcher says this process is; 0 without a launcher."""
    words = [os.environ.get(rank, "") for _, rank, _ in LAUNCHERS]
    return max([0, *(int(word) for word in words if word.isdecimal())])


def refuse_several_without_mpi(error: Exception) -> None:
    """Refuse to run N copies of a job of one rank where MPI could not be loaded.

    Raises
    ------
    InputError
        If a launcher has started several ranks. Only its rank 0 carries a message.
    """
    promised = promised_ranks()
    if promised > 1 and promised_rank() > 0:
        raise InputError("")
    if promised > 1:
        raise InputError(
            f"{promised} ranks were started, but no MPI library could be loaded "
            f"({str(error).splitlines()[0]}); install one beside Python: "
            "pip install 'hybrid_nbody[mpich]'"
        )

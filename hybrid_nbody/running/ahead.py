"""What every run needs, made ready while MPI starts: modules, and the only GPU."""

import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from hybrid_nbody.backends.waking import WakingGpu, has_nvidia_driver
from hybrid_nbody.parallel.launchers import promised_ranks


@contextmanager
def importing_ahead(
    file: str | None = None, overrides: Sequence[str] = (), waking: WakingGpu | None = None
) -> Iterator[None]:
    """Import what a run needs in a thread beside the block, and end with both done.

    The block must not import modules. What fails here fails again, and is told, where it is used.
    From here on no garbage is collected, see `collect_garbage`.

    Parameters
    ----------
    file : str, optional
        The configuration: whether it asks for a GPU is read there.
    overrides : sequence of str
        What replaces keys of it.
    waking : WakingGpu, optional
        What makes a context on that GPU, after the block and beside the last imports.
    """
    gc.disable()
    imports = _Imports(file, overrides)
    imports.start()
    try:
        yield
    finally:
        if waking and imports.takes_gpu():
            waking.make_context()
        imports.join()
        if waking:
            waking.wait()


def collect_garbage() -> None:
    """Collect garbage again if `importing_ahead` has ended that, but for what is there already.

    Modules stay, and looking through them takes a tenth of the time that it takes to import them.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def free_model() -> None:
    """Free the memory of a model that nobody holds any more: its parts refer to each other.

    It may be among what was there when garbage began to be collected.
    """
    gc.unfreeze()
    gc.collect()


class _Imports(threading.Thread):
    """Imports what a run needs, CuPy too where there is a GPU."""

    def __init__(self, file: str | None, overrides: Sequence[str]) -> None:
        super().__init__(name="imports")
        self._file = file
        self._overrides = overrides
        self._takes_gpu = False
        self._has_read = threading.Event()

    def takes_gpu(self) -> bool:
        """Return whether the run computes on a GPU, where it can, once that is known."""
        self._has_read.wait()
        return self._takes_gpu

    def run(self) -> None:
        """Import, and read the configuration in between."""
        with suppress(Exception):
            import hybrid_nbody.running.start  # noqa: F401

            self._takes_gpu = _takes_gpu(self._file, self._overrides)
        self._has_read.set()
        if has_nvidia_driver():
            with suppress(Exception):
                from hybrid_nbody.backends.gpu import visible_gpus

                visible_gpus()


def _takes_gpu(file: str | None, overrides: Sequence[str]) -> bool:
    """Return whether the only rank of a run computes on a GPU, where one can be used."""
    if file is None or promised_ranks() > 1:
        return False
    from hybrid_nbody.config.loader import unchecked
    from hybrid_nbody.running.models import MODELS

    compute = unchecked(file, overrides, models=MODELS).get("compute") or {}
    return compute.get("backend", "auto") in ("auto", "gpu", "hybrid")

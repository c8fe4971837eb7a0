"""The caches of compiled kernels: folders of Numba and of CuPy."""

import atexit
import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hybrid_nbody.files.atomic import reason

cache_faults: list[str] = []
"""What is wrong with the caches of compiled kernels, to be told once a run."""


def replace_unwritable_cache(variable: str, folder: str | Path) -> None:
    """Keep compiled kernels for this process alone where their cache cannot be written.

    Parameters
    ----------
    variable : str
        The variable of the environment that names the cache.
    folder : str or Path
        The cache that is used now.
    """
    why = _why_unwritable(Path(folder))
    if not why:
        return
    note_unwritable_cache(variable, folder, why)
    with suppress(OSError):
        own = tempfile.mkdtemp(prefix="hybrid_nbody-kernels-")
        atexit.register(shutil.rmtree, own, ignore_errors=True)
        os.environ[variable] = own


def note_unwritable_cache(variable: str, folder: str | Path, why: str) -> None:
    """Note, once, why a cache cannot be written; parameters as in `replace_unwritable_cache`."""
    fault = (
        f"the cache of kernels, {folder}, cannot be written ({why}): they are compiled at every "
        f"start; set {variable} to a folder that can be written"
    )
    if fault not in cache_faults:
        cache_faults.append(fault)


def digest_of_kernels(package: Path = Path(__file__).parents[1]) -> str:
    """Return a digest of the sources of all compiled functions, in 16 hexadecimal digits.

    Numba compiles a function again if its own file has changed, but not if one of those that are
    linked into it has, or a constant of another module.

    Parameters
    ----------
    package : Path
        The folder of this package.
    """
    models = [kernels.parent for kernels in package.glob("*/kernels")]
    digest = hashlib.sha256()
    for folder in sorted([package / "backends", *models]):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cupy_cache() -> str:
    """Return the folder where CuPy keeps compiled kernels."""
    return os.environ.get("CUPY_CACHE_DIR") or os.path.expanduser("~/.cupy/kernel_cache")


def _why_unwritable(folder: Path) -> str:
    """Return why no file can be made in a folder; empty if one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return reason(error)

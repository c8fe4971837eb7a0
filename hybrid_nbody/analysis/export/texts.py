"""What an export says about where it came from."""

import numpy as np

from hybrid_nbody import __version__
from hybrid_nbody.files.names import EXPORT


def mark(file, source):
    """Store in an HDF5 file what it is and what it was made from; it is not one that this program reads again."""
    texts = {"format": EXPORT, "program_version": __version__, "title": source.title}
    file.attrs.update(
        {name: np.bytes_(text.encode()) if text else "" for name, text in texts.items()}
    )

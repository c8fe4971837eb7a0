"""Seals: the digest of every byte of a file, in its first 512 bytes, which HDF5 leaves to us."""

import hashlib
import re
from pathlib import Path

import h5py

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.hdf5 import check_regular_file, open_hdf5, reading

SEAL_BYTES = 512
"""Bytes at the start of a sealed HDF5 file, its user block."""

READ_BYTES = 4 << 20
"""Bytes read at a time."""

LINE = re.compile(rb"hybrid_nbody \w+, sha256 ([0-9a-f]{64})\n\0*")


def seal_block(kind: str, digest: str) -> bytes:
    """Return the first bytes of a sealed file: a line of text, then zeros."""
    return f"hybrid_nbody {kind}, sha256 {digest}\n".encode().ljust(SEAL_BYTES, b"\0")


def digest_of(path: Path) -> str:
    """Return the SHA-256 digest of every byte after the seal, in hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        file.seek(SEAL_BYTES)
        while piece := file.read(READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def stated_digest(path: Path, kind: str) -> str:
    """Return the digest that the seal of a file states; empty if the seal is damaged.

    Raises
    ------
    FileError
        The file has no seal of this kind.
    OSError
        It cannot be read.
    """
    with open(path, "rb") as file:
        head = file.read(SEAL_BYTES)
    if not is_sealed(head, kind):
        raise FileError(f"{path}: not a {kind} of hybrid_nbody, or its beginning is damaged")
    found = LINE.fullmatch(head)
    return found[1].decode() if found else ""


def check_seal(path: Path, kind: str) -> str:
    """Return the digest of a file after checking that every byte is as it was written.

    This comes before HDF5 sees the file: damaged tables can make HDF5 hang.

    Raises
    ------
    FileError
        The file is not of this kind, or is damaged.
    OSError
        It cannot be read.
    """
    stated = stated_digest(path, kind)
    if digest_of(path) != stated:
        raise FileError(f"{path}: damaged: its contents do not match its digest")
    return stated


def open_sealed(path: Path, kind: str, digest: str | None = None) -> h5py.File:
    """Open a sealed file for reading after checking every byte of it.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        What it is: a checkpoint, trajectory, head or part.
    digest : str, optional
        The digest that it must have, if another file says so.

    Raises
    ------
    FileError
        It is missing, of another kind, damaged, or another file than that one.
    """
    with reading(path):
        check_regular_file(path)
        found = check_seal(path, kind)
    if digest not in (None, found):
        raise FileError(f"{path}: another {kind} than the one that belongs here")
    return open_hdf5(path)


def first_bytes(path: Path, number: int) -> bytes:
    """Return the first bytes of a file."""
    with open(path, "rb") as file:
        return file.read(number)


def is_sealed(head: bytes, kind: str) -> bool:
    """Return whether a file that starts with `head` has a seal of a kind, even a damaged one."""
    return head.startswith(f"hybrid_nbody {kind}, sha256 ".encode())

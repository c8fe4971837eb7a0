"""Seals: the digest of every byte of a file, in its first 512 bytes, which HDF5 leaves to us."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import h5py

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.hdf5 import check_regular_file, open_hdf5, reading

SEAL_BYTES = 512
"""Bytes at the start of a sealed HDF5 file, its user block."""

READ_BYTES = 1 << 20
"""Bytes read at a time: they stay in a core's cache."""

BLOCK_BYTES = 16 << 20
"""Bytes of a block of a long file; threads compute the digests of several at a time."""

THREADS = 4
"""Threads that compute the digest of a file."""

WHOLE = "sha256"
"""Name of the SHA-256 digest of all bytes in one go: that of a file of one block or less."""

IN_BLOCKS = "sha256-16MiB"
"""Name of the SHA-256 digest of the SHA-256 digests of the blocks of a file."""

LINE = re.compile(rb"hybrid_nbody \w+, (sha256|sha256-16MiB) ([0-9a-f]{64})\n\0*")


def seal_block(path: Path, kind: str, digest: str) -> bytes:
    """Return the first bytes of a sealed file: a line of text, then zeros."""
    line = f"hybrid_nbody {kind}, {algorithm_for(path)} {digest}\n"
    return line.encode().ljust(SEAL_BYTES, b"\0")


def algorithm_for(path: Path) -> str:
    """Return the name of the digest that a file is sealed with."""
    return WHOLE if path.stat().st_size <= SEAL_BYTES + BLOCK_BYTES else IN_BLOCKS


def digest_of(path: Path, algorithm: str) -> str:
    """Return the digest of every byte after the seal, in hexadecimal digits."""
    if algorithm == WHOLE:
        return _digest_between(path, SEAL_BYTES, path.stat().st_size).hex()
    starts = range(SEAL_BYTES, path.stat().st_size, BLOCK_BYTES)
    with ThreadPoolExecutor(THREADS) as threads:
        digests = list(threads.map(partial(_digest_of_block, path), starts))
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _digest_of_block(path: Path, start: int) -> bytes:
    return _digest_between(path, start, start + BLOCK_BYTES)


def _digest_between(path: Path, start: int, stop: int) -> bytes:
    """Return the SHA-256 digest of the bytes from `start` to `stop`, or to the end of the file."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(READ_BYTES))
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while number := file.readinto(buffer[: stop - file.tell()]):
            digest.update(buffer[:number])
    return digest.digest()


def stated_digest(path: Path, kind: str) -> str:
    """Return the digest that the seal of a file states; empty if the seal is damaged.

    Raises
    ------
    FileError
        The file has no seal of this kind.
    OSError
        It cannot be read.
    """
    return _stated(path, kind)[1]


def _stated(path: Path, kind: str) -> tuple[str, str]:
    """Return the algorithm and the digest that the seal of a file states."""
    head = first_bytes(path, SEAL_BYTES)
    if not is_sealed(head, kind):
        raise FileError(f"{path}: not a {kind} of hybrid_nbody, or its beginning is damaged")
    found = LINE.fullmatch(head)
    return (found[1].decode(), found[2].decode()) if found else (WHOLE, "")


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
    algorithm, stated = _stated(path, kind)
    if digest_of(path, algorithm) != stated:
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
    beginnings = [f"hybrid_nbody {kind}, {name} ".encode() for name in (WHOLE, IN_BLOCKS)]
    return head.startswith(tuple(beginnings))

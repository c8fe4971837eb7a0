"""Seals of files: digests in one go and in blocks, and what they find."""

import hashlib

import h5py
import numpy as np
import pytest

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.seals import (
    BLOCK_BYTES,
    SEAL_BYTES,
    check_seal,
    open_sealed,
    stated_digest,
)
from hybrid_nbody.output.sealing import raw_data, write_sealed


def write(path, size):
    """Write a sealed file with that many bytes of numbers."""
    values = np.random.default_rng(3).integers(0, 256, size, np.uint8)
    write_sealed(path, "part", {"values": raw_data(values)}, lambda file: None)
    return values


@pytest.mark.parametrize("size", [100, BLOCK_BYTES, 2 * BLOCK_BYTES + 7])
def test_a_digest_is_that_of_the_documents(tmp_path, size):
    path = tmp_path / "a.h5"
    values = write(path, size)
    content = path.read_bytes()
    algorithm, stated = content[:SEAL_BYTES].rstrip(b"\0").split()[2:]
    rest = content[SEAL_BYTES:]
    blocks = [rest[start : start + BLOCK_BYTES] for start in range(0, len(rest), BLOCK_BYTES)]
    in_blocks = hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks))
    expected = {b"sha256": hashlib.sha256(rest), b"sha256-16MiB": in_blocks}[algorithm]
    assert stated.decode() == expected.hexdigest() == check_seal(path, "part")
    assert (algorithm == b"sha256") == (len(rest) <= BLOCK_BYTES)
    with open_sealed(path, "part") as file:
        np.testing.assert_array_equal(file["values"][:], values)


@pytest.mark.parametrize("place", [SEAL_BYTES, SEAL_BYTES + BLOCK_BYTES, -1])
def test_a_flipped_bit_in_any_block_is_found(tmp_path, place):
    path = tmp_path / "a.h5"
    write(path, 2 * BLOCK_BYTES)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        check_seal(path, "part")


def test_swapped_blocks_are_found(tmp_path):
    path = tmp_path / "a.h5"
    write(path, 3 * BLOCK_BYTES)
    content = path.read_bytes()
    first, second, third = (SEAL_BYTES + k * BLOCK_BYTES for k in range(3))
    path.write_bytes(
        content[:first] + content[second:third] + content[first:second] + content[third:]
    )
    with pytest.raises(FileError, match="damaged"):
        check_seal(path, "part")


def test_a_long_file_of_an_older_version_is_read(tmp_path):
    """They have one digest of all bytes."""
    path = tmp_path / "old.h5"
    with h5py.File(path, "w", userblock_size=SEAL_BYTES) as file:
        file["values"] = np.ones(BLOCK_BYTES, np.uint16)
    content = path.read_bytes()[SEAL_BYTES:]
    line = f"hybrid_nbody checkpoint, sha256 {hashlib.sha256(content).hexdigest()}\n"
    path.write_bytes(line.encode().ljust(SEAL_BYTES, b"\0") + content)
    assert check_seal(path, "checkpoint") == stated_digest(path, "checkpoint")

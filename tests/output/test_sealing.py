"""The file in memory that holds the tables of an HDF5 file: it reads as any other."""

import io

from hypothesis import given
from hypothesis import strategies as st

from hybrid_nbody.output.sealing import SparseFile

WRITES = st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=12)), max_size=12)


@given(WRITES, st.integers(0, 60), st.integers(0, 30))
def test_it_reads_what_was_written_last(writes, first, number):
    sparse, whole = SparseFile(), io.BytesIO()
    for place, data in writes:
        for file in (sparse, whole):
            file.seek(place)
            file.write(data)
    length = max((place + len(data) for place, data in writes if data), default=0)
    content = whole.getvalue()[:length].ljust(first + number, b"\0")
    buffer = bytearray(number)
    sparse.seek(first)
    sparse.readinto(buffer)
    assert bytes(buffer) == content[first : first + number]
    assert bytes(whole.getvalue()) == replayed(sparse, len(whole.getvalue()))


def replayed(sparse, length):
    """Return the file that its pieces make, in their order."""
    file = io.BytesIO(bytes(length))
    for place, piece in sparse.pieces:
        file.seek(place)
        file.write(piece)
    return file.getvalue()

"""What a GPU queues, and in which order."""

import numpy as np
import pytest
from support.bodies import make_backend

PARTS = {
    "all": lambda array: array,
    "a column": lambda array: array[:, 1],
    "some rows": lambda array: array[::2],
    "turned over": lambda array: array.T,
}


@pytest.mark.gpu
@pytest.mark.parametrize("part", PARTS)
def test_downloads_leave_the_stream_on_which_work_is_queued(part):
    """CuPy's own download of an array with gaps would leave another one as the current stream."""
    backend = make_backend("gpu")
    host = np.arange(12.0).reshape(3, 4)
    rows = PARTS[part](backend.upload(host))
    expected = PARTS[part](host)
    np.testing.assert_array_equal(backend.download(rows), expected)
    with backend.to_host(rows) as staged:
        np.testing.assert_array_equal(staged, expected)
    assert backend.cupy.cuda.get_current_stream() == backend.stream

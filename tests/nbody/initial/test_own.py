"""Bodies that a function of one's own makes, and what is wrong with those that do not."""

import numpy as np
import pytest

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.initial.own import bodies_of_function

GOOD = """
import numpy as np

def bodies(n, seed):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 3)), np.zeros((n, 3)), np.ones(n)

def short(n, seed):
    return np.zeros((n - 1, 3)), np.zeros((n, 3)), np.ones(n)

def negative(n, seed):
    return np.zeros((n, 3)), np.zeros((n, 3)), -np.ones(n)

def endless(n, seed):
    return np.full((n, 3), np.inf), np.zeros((n, 3)), np.ones(n)

def two(n, seed):
    return np.zeros((n, 3)), np.zeros((n, 3))

def faulty(n, seed):
    return 1 / 0
"""


@pytest.fixture
def script(tmp_path):
    """Return the name of a file with functions."""
    path = tmp_path / "own.py"
    path.write_text(GOOD)
    return str(path)


def test_bodies_are_those_of_the_function(script):
    bodies = bodies_of_function(script, "bodies", 5, 7)
    expected = np.random.default_rng(7).normal(size=(5, 3))
    np.testing.assert_array_equal(bodies.position, expected)
    np.testing.assert_array_equal(bodies.id, np.arange(5))


WRONG = {
    "missing": r"has no function missing; it has: bodies, short",
    "short": r"returned positions of shape \(4, 3\); must be \(5, 3\)",
    "negative": "returned negative masses",
    "endless": "returned positions that are not finite",
    "two": r"failed: ValueError: not enough values.*it must return positions \(n, 3\)",
    "faulty": r"function faulty\(n=5, seed=7\) failed: ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_function_that_does_not_do_is_refused(script, name):
    with pytest.raises(InputError, match=WRONG[name]):
        bodies_of_function(script, name, 5, 7)


def test_a_file_that_cannot_be_run_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none.py: cannot be read: No such file"):
        bodies_of_function(str(tmp_path / "none.py"), "bodies", 5, 7)
    (tmp_path / "bad.py").write_text("def bodies(:")
    with pytest.raises(InputError, match=r"bad.py: raised SyntaxError"):
        bodies_of_function(str(tmp_path / "bad.py"), "bodies", 5, 7)

"""What was measured on a device comes back as it was kept; what is damaged is as good as none."""

import json

import pytest

from hybrid_nbody.backends import tuning
from hybrid_nbody.nbody.kernels.gpu.layout import (
    DEFAULTS,
    MOST_FEW,
    Tuning,
    keep_tuning,
    tuning_for,
)

MODEL = "NVIDIA Test (80 GB)"
MEASURED = Tuning(few=64, targets=((1024, 2), (65536, 6)), jerk_targets=4)
KEPT = MEASURED.as_dict()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_what_is_kept_comes_back():
    path = keep_tuning(MODEL, "single", MEASURED)
    assert tuning_for(MODEL, "single") == MEASURED
    assert tuning_for(MODEL, "double") == DEFAULTS["double"]
    assert tuning_for("another GPU", "single") == DEFAULTS["single"]
    assert path.name == "tuning-nvidia-test-80-gb.json"
    assert list(path.parent.iterdir()) == [path]


def test_other_entries_stay():
    tuning.store(MODEL, "something else", {"value": 1})
    keep_tuning(MODEL, "single", MEASURED)
    keep_tuning(MODEL, "double", MEASURED)
    assert tuning.load(MODEL, "something else") == {"value": 1}
    assert tuning_for(MODEL, "single") == MEASURED


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"gravity-single": 3}', b'{"gravity-single": []}']
)
def test_a_damaged_file_gives_the_defaults_and_is_replaced(content):
    path = keep_tuning(MODEL, "single", MEASURED)
    path.write_bytes(content)
    assert tuning_for(MODEL, "single") == DEFAULTS["single"]
    keep_tuning(MODEL, "single", MEASURED)
    assert tuning_for(MODEL, "single") == MEASURED


def test_an_entry_that_is_no_table_is_as_good_as_none():
    path = tuning.store(MODEL, "numbers", {"value": 1})
    path.write_text('{"numbers": [1]}')
    assert tuning.load(MODEL, "numbers") is None


@pytest.mark.parametrize(
    "damage",
    [
        {"few": -1},
        {"few": MOST_FEW + 1},
        {"few": "64"},
        {"few": True},
        {"few": None},
        {"targets": []},
        {"targets": 4},
        {"targets": [[1024]]},
        {"targets": [[1024, 1, 1]]},
        {"targets": [[1024, 0]]},
        {"targets": [[1024, 9]]},
        {"targets": [[1024, 1.5]]},
        {"targets": [[0, 1]]},
        {"targets": [[2048, 1], [1024, 2]]},
        {"jerk_targets": 0},
        {"jerk_targets": 99},
    ],
    ids=str,
)
def test_a_damaged_entry_gives_the_defaults(damage):
    tuning.store(MODEL, "gravity-single", KEPT | damage)
    assert tuning_for(MODEL, "single") == DEFAULTS["single"]


@pytest.mark.parametrize("missing", KEPT)
def test_an_entry_that_lacks_a_key_gives_the_defaults(missing):
    tuning.store(
        MODEL, "gravity-single", {key: value for key, value in KEPT.items() if key != missing}
    )
    assert tuning_for(MODEL, "single") == DEFAULTS["single"]


def test_every_default_can_be_kept():
    for precision, default in DEFAULTS.items():
        assert Tuning.from_dict(json.loads(json.dumps(default.as_dict()))) == default
        keep_tuning(MODEL, precision, default)


def test_a_cache_that_cannot_be_written(cache):
    (cache / "hybrid_nbody").write_text("a file where the folder should be")
    with pytest.raises(OSError):
        keep_tuning(MODEL, "single", MEASURED)
    assert tuning_for(MODEL, "single") == DEFAULTS["single"]

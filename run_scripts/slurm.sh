#!/usr/bin/env bash
# A run under Slurm, one rank a GPU, that outlives the time limit and preemption: two minutes before the end it writes a
# checkpoint and goes back into the queue, and the next start resumes it. Submit from the repository:
#     sbatch run_scripts/slurm.sh input/plummer.yaml output/long-run [arguments of hybrid_nbody run]
# Submitting the same line again continues the run in that directory. Options on sbatch's line override those below.
#SBATCH --job-name=hybrid_nbody
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%j.log
set -euo pipefail

# Slurm runs a copy of this file, so the repository is where sbatch was called.
cd "${SLURM_SUBMIT_DIR:?this script is for sbatch: sbatch run_scripts/slurm.sh FILE.yaml DIRECTORY}"
# shellcheck source=run_scripts/common.sh
source run_scripts/common.sh
[ $# -ge 2 ] || fail "usage: sbatch run_scripts/slurm.sh FILE.yaml DIRECTORY [arguments of hybrid_nbody run]"
file="$1" directory="$2"
shift 2
STOPPED_EARLY=75 # the program's exit status for "checkpoint written, resume me"

# Nothing is installed on a compute node: quickstart.sh, or pip, made the environment beforehand.
find_environment
installed hybrid_nbody || fail "hybrid_nbody is not installed in $ENVIRONMENT: run quickstart.sh on a login node first"

# What to do: resume where there is a checkpoint; start anew where a requeued job was stopped before its first one.
if compgen -G "$directory/checkpoint-*.h5" >/dev/null; then
    task=(resume "$directory")
else
    task=(run "$file" --set "output.directory='$directory'" "$@")
    [ "${SLURM_RESTART_COUNT:-0}" = 0 ] || task+=(--overwrite)
fi

# All GPUs and cores of a node are shown to all its ranks; the program places and shares them out.
# --wait: if a rank crashes the others follow; --kill-on-bad-exit would also cut short ranks that end with status 75.
# SRUN_MPI: see srun --mpi=list; pmi2 is for the extra mpich, pmix for Open MPI.
srun --mpi="${SRUN_MPI:-pmi2}" --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=none --wait=60 \
    "$PYTHON" -m hybrid_nbody "${task[@]}" &
srun=$!

# B: sends the signal to this shell alone; srun passes on to the ranks what it receives.
trap 'interrupted=yes; kill -USR1 "$srun"' USR1
trap 'interrupted=yes; kill -TERM "$srun"' TERM

interrupted=yes
while [ "$interrupted" = yes ]; do # a signal ends `wait` early
    interrupted=no status=0
    wait "$srun" || status=$?
done

if [ "$status" = "$STOPPED_EARLY" ]; then
    note "Stopped early with a checkpoint: back into the queue"
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"

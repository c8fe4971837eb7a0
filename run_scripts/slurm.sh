#!/usr/bin/env bash
# A run under Slurm, one rank a GPU, that outlives the time limit and preemption: two minutes before the limit it writes a
# checkpoint and goes back into the queue, and the next start resumes it. Submit from the repository:
#     sbatch run_scripts/slurm.sh input/plummer.yaml output/long-run [arguments of hybrid_nbody run]
# Submitting the same line again continues the run in that directory. Options on sbatch's line override those below.
# SRUN_MPI=…: see srun --mpi=list. SRUN_FLAGS="…": more flags for srun. NODE_FOLDER=…: for caches, /tmp.
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
# shellcheck source=run_scripts/cluster.sh
source run_scripts/cluster.sh
prepare "$@" # passes signals on: --signal=B: reaches this shell alone

# What srun and the MPI library speak with each other: pmix with Open MPI, pmi2 with MPICH.
pmi_of_library() {
    local library
    library="$("$PYTHON" -c 'import mpi4py; mpi4py.rc.initialize = False
from mpi4py import MPI; print(MPI.Get_library_version())')" || fail "mpi4py finds no MPI library: load its module"
    case "$library" in *"Open MPI"*) echo pmix ;; *) echo pmi2 ;; esac
}

# Every rank has cores of its own and sees all GPUs of its node, of which it takes the one of its local rank: GPUs that
# do not see each other could not exchange over NVLink. --kill-on-bad-exit: no rank outlives another.
read -ra more <<<"${SRUN_FLAGS:-}"
pmi="${SRUN_MPI:-$(pmi_of_library)}"
LAUNCH=(srun --mpi="$pmi" --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores --gpu-bind=none
    --kill-on-bad-exit=1 "${more[@]}" run_scripts/slurm_rank.sh)

# A rank that stopped early leaves this file; see slurm_rank.sh.
mkdir -p output
export STOPPED_MARK="$PWD/output/.stopped-$SLURM_JOB_ID"
rm -f "$STOPPED_MARK"

examine
choose_task
# A requeued job that was stopped before its first checkpoint has nothing to resume.
[ "${TASK[0]}" = resume ] || [ "${SLURM_RESTART_COUNT:-0}" = 0 ] || TASK+=(--overwrite)
run_ranks

if [ -e "$STOPPED_MARK" ]; then
    STATUS="$STOPPED_EARLY"
    if grep -q TERM "$STOPPED_MARK"; then asked_to_stop=TERM; fi
    rm -f "$STOPPED_MARK"
fi
# TERM is scancel's, and a job that was cancelled stays so, or preemption's, after which Slurm itself requeues.
if [ "$STATUS" = "$STOPPED_EARLY" ] && [ "$asked_to_stop" != TERM ]; then
    note "Back into the queue"
    scontrol requeue "$SLURM_JOB_ID" || note "error: not requeued: submit the same line again" >&2
fi
finish

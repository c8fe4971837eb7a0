#!/usr/bin/env bash
# Run under Slurm with one rank per GPU, across time limits and preemptions: two minutes before the limit the run writes a
# checkpoint and the job is requeued; the next start resumes the run. Submit from the repository:
#     sbatch run_scripts/slurm.sh input/plummer.yaml output/long-run [arguments of hybrid_nbody run]
# Submit the same line again to continue the run in that directory. Options of sbatch override those below.
# SRUN_MPI=…: see srun --mpi=list. SRUN_FLAGS="…": more flags for srun. NODE_FOLDER=…: folder for caches (/tmp).
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
prepare "$@" # forwards signals: --signal=B: reaches only this shell

# Print the interface between srun and the MPI library: pmix for Open MPI, pmi2 for MPICH.
pmi_of_library() {
    local library
    library="$("$PYTHON" -c 'import mpi4py; mpi4py.rc.initialize = False
from mpi4py import MPI; print(MPI.Get_library_version())')" || fail "mpi4py finds no MPI library: load its module"
    case "$library" in *"Open MPI"*) echo pmix ;; *) echo pmi2 ;; esac
}

# Each rank has its own cores, sees all GPUs of its node and takes the one that matches its local rank: GPUs that cannot
# see each other could not exchange over NVLink. --kill-on-bad-exit ends all ranks when one fails.
read -ra more <<<"${SRUN_FLAGS:-}"
pmi="${SRUN_MPI:-$(pmi_of_library)}"
LAUNCH=(srun --mpi="$pmi" --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores --gpu-bind=none
    --kill-on-bad-exit=1 "${more[@]}" run_scripts/slurm_rank.sh)

# A rank that stopped early writes this file; see slurm_rank.sh.
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
# TERM comes from scancel, after which the job stays cancelled, or from preemption, after which Slurm itself requeues.
if [ "$STATUS" = "$STOPPED_EARLY" ] && [ "$asked_to_stop" != TERM ]; then
    note "Requeueing the job"
    scontrol requeue "$SLURM_JOB_ID" || note "error: the job could not be requeued: submit the same line again" >&2
fi
finish

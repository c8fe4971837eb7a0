#!/usr/bin/env bash
# Run with Open MPI's mpirun on one or more hosts, one rank per GPU or, without GPUs, one for every few cores:
#     ./run_scripts/openmpi.sh input/plummer.yaml output/long-run [arguments of hybrid_nbody run]
# The same command resumes the run in that directory. The hosts come from the scheduler (PBS, Slurm, LSF, SGE) or from
# HOSTFILE=…, one per line; they must be reachable by ssh and see the same files. RANKS_PER_NODE=… sets the ranks per node,
# CORES_PER_RANK=… the cores per rank without GPUs (4), BIND=yes binds each rank to its own cores, MPIRUN_FLAGS="…" adds
# flags. USR1 or TERM sent to this script stops the run with a checkpoint and exit status 75.
set -euo pipefail
# shellcheck source=run_scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=run_scripts/cluster.sh
source "$ROOT/run_scripts/cluster.sh"
prepare "$@"
find_launcher '*@(Open MPI|OpenRTE)*' mpich.sh

find_hosts
each="$(ranks_per_node)"
# By default Open MPI allows one rank per core and binds each rank, with all its threads, to one core.
LAUNCH=("$LAUNCHER" --allow-run-as-root -n $((${#NAMES[@]} * each)))
[ "${NAMES[*]}" = localhost ] || LAUNCH+=(--host "$(printf "%s:$each," "${NAMES[@]}" | sed 's/,$//')")
if [ "${BIND:-no}" = no ]; then
    LAUNCH+=(--map-by "ppr:$each:node:oversubscribe" --bind-to none)
else
    LAUNCH+=(--map-by "ppr:$each:node:pe=$(cores_of_rank "$each")" --bind-to core)
fi
# Other hosts receive only the variables named here.
for name in PATH LD_LIBRARY_PATH PYTHONPATH PYTHONNOUSERSITE TMPDIR CUPY_CACHE_DIR NUMBA_CACHE_DIR NUMBA_NUM_THREADS; do
    [ -z "${!name:-}" ] || LAUNCH+=(-x "$name")
done
read -ra more <<<"${MPIRUN_FLAGS:-}"
LAUNCH+=("${more[@]}")

note "$(counted ${#NAMES[@]} host) (${NAMES[*]}), $(counted "$each" rank) a host"
examine
choose_task
run_ranks
finish

#!/usr/bin/env bash
# Run with MPICH's mpirun on one or more hosts, one rank per GPU or, without GPUs, one for every few cores:
#     ./run_scripts/mpich.sh input/plummer.yaml output/long-run [arguments of hybrid_nbody run]
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
find_launcher '*HYDRA*' openmpi.sh

find_hosts
each="$(ranks_per_node)"
# MPICH forwards this shell's environment to all hosts, allows more ranks than cores, and binds no rank by default.
LAUNCH=("$LAUNCHER" -n $((${#NAMES[@]} * each)) -ppn "$each")
[ "${NAMES[*]}" = localhost ] || LAUNCH+=(-hosts "$(IFS=,; echo "${NAMES[*]}")")
[ "${BIND:-no}" = no ] || LAUNCH+=(-bind-to "core:$(cores_of_rank "$each")")
read -ra more <<<"${MPIRUN_FLAGS:-}"
LAUNCH+=("${more[@]}")

note "$(counted ${#NAMES[@]} host) (${NAMES[*]}), $(counted "$each" rank) a host"
examine
choose_task
run_ranks
finish

#!/usr/bin/env bash
# A run under MPICH's mpirun, on one host or several, one rank a GPU or, without GPUs, one for every few cores:
#     ./run_scripts/mpich.sh input/plummer.yaml output/long-run [arguments of hybrid_nbody run]
# The same command goes on with the run in that directory. The hosts are those of the scheduler (PBS, Slurm, LSF, SGE), or
# of HOSTFILE=…, a host a line; they are reached by ssh and see the same files. RANKS_PER_NODE=… sets the ranks of a node,
# CORES_PER_RANK=… the cores of a rank without GPUs (4), BIND=yes ties each rank to cores of its own, MPIRUN_FLAGS="…" adds
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
# MPICH passes the variables of this shell on to all hosts, starts more ranks than cores, and binds nothing by itself.
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

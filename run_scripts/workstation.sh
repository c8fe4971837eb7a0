#!/usr/bin/env bash
# Run on one machine with one rank per GPU or, without GPUs, one rank for every few cores.
#     ./run_scripts/workstation.sh input/plummer.yaml --overwrite
# RANKS=… sets the number of ranks, CORES_PER_RANK=… the cores per rank on a machine without GPUs (default 4).
set -euo pipefail
# shellcheck source=run_scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -gt 0 ] || fail "usage: ${0##*/} FILE.yaml [arguments of hybrid_nbody run]"
# The working directory stays the caller's, because the arguments may hold relative paths.
# shellcheck disable=SC2119
use_environment

gpus="$(gpu_count)"
cores="$(core_count)"
few="${CORES_PER_RANK:-4}"
if [ "$gpus" -gt 0 ]; then default="$gpus"; else default=$(((cores + few - 1) / few)); fi
ranks="${RANKS:-$default}"

# The program itself assigns each rank its GPU, or cores/ranks threads.
note "$(counted "$gpus" GPU), $(counted "$cores" core): $(counted "$ranks" rank)"
exec "${MPIRUN[@]}" -n "$ranks" "$PYTHON" -m hybrid_nbody run "$@"

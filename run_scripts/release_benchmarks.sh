#!/usr/bin/env bash
# Run the benchmarks of a release on this machine (a few minutes) and keep them in benchmarks/results/.
#     ./run_scripts/release_benchmarks.sh DEVICE       DEVICE names the machine in the files, such as h200 or two-cores
#     RANKS=4 ./run_scripts/release_benchmarks.sh h200 ranks of `bench scaling` (default: one per GPU, or 2)
# Compare them with the previous release: hybrid-nbody bench compare OLD.json NEW.json
set -euo pipefail
# shellcheck source=run_scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# = 1 ] || refuse "release_benchmarks.sh takes one argument, the name of the machine, such as h200 or two-cores"
[[ "$1" =~ ^[a-z0-9]+(-[a-z0-9]+)*$ ]] || refuse "DEVICE must be words of a-z and 0-9 joined by hyphens (got '$1')"
DEVICE=$1
cd "$ROOT"
# shellcheck disable=SC2119
use_environment
RELEASE="$("$PYTHON" -c 'import hybrid_nbody; print(hybrid_nbody.__version__)')"
OUTPUT="$(mktemp -d)"
trap 'rm -rf "$OUTPUT"' EXIT

# Run a benchmark with the launcher given before -- and keep its JSON: measure sizes "$PYTHON" -- --repeats 5
measure() {
    local name=$1 target="benchmarks/results/$RELEASE-$DEVICE-$1.json"
    shift
    local start=()
    while [ "$1" != -- ]; do start+=("$1"); shift; done
    shift
    heading "bench $name $*"
    (cd "$OUTPUT" && "${start[@]}" -m hybrid_nbody bench "$name" --output "$name" "$@")
    cp "$OUTPUT/$name/$name.json" "$target"
    note "kept: $target"
}

GPUS="$( (nvidia-smi --list-gpus 2>/dev/null || true) | grep -c '^GPU ' || true)"
if [ "$GPUS" -gt 0 ]; then
    RANKS="${RANKS:-$GPUS}"
    measure sizes "$PYTHON" -- --backend gpu --sizes 4096,65536,1048576
    measure limits "$PYTHON" --
    measure fluid "$PYTHON" -- --parts phases --backend gpu --sizes 84,168,336
    measure scaling "${MPIRUN[@]}" -n "$RANKS" "$PYTHON" -- --bodies 131072 --cells 256
else
    RANKS="${RANKS:-2}"
    measure sizes "$PYTHON" -- --backend cpu --sizes 1024,4096,16384
    measure fluid "$PYTHON" -- --parts phases --backend cpu --sizes 42
    measure scaling "${MPIRUN[@]}" -n "$RANKS" "$PYTHON" -- --threads 1 --bodies 4096 --cells 32
fi

#!/usr/bin/env bash
# Sets up an environment and runs every check: style, types, layers, documents, the tests on 1, 2, 3 and 4 ranks.
#     ./run_scripts/test.sh                       everything
#     ./run_scripts/test.sh tests/output -k disk  these tests only; arguments go to pytest
# The first failure ends the run with its message and a non-zero status. Takes the active environment, else makes .venv.
# At the end every stage's time is printed; each stage of tests names its slowest ones.
set -euo pipefail
# shellcheck source=run_scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Seconds after which a stage is stopped: a test hangs. A stage takes two thirds of them or less.
ONE_RANK_LIMIT=1500
MPI_LIMIT=400
NO_TESTS=5 # pytest's exit status when nothing was selected
WORKERS=2  # processes that share the files of tests: most tests keep one core busy
SLOWEST=10 # tests that a stage names, with their seconds

TIMES=()   # a line for each stage

# stage TITLE LIMIT COMMAND…: run it under its limit and give back its status.
stage() {
    local title="$1" limit="$2" status interrupted=yes pid
    shift 2
    heading "$title"
    # timeout leaves the terminal's process group, so a Ctrl-C has to be passed on. -m: the job in the background keeps
    # its own handling of Ctrl-C, which programs under test rely on.
    set -m
    timeout --kill-after=10 "$limit" "$@" &
    pid=$!
    set +m
    trap 'interrupted=yes; kill -INT "$pid"' INT
    trap 'interrupted=yes; kill -TERM "$pid"' TERM
    while [ "$interrupted" = yes ]; do # a signal ends `wait` early
        interrupted=no status=0
        wait "$pid" || status=$?
    done
    trap - INT TERM
    [ "$status" != 124 ] || note "error: still running after $limit s: stopped" >&2
    return "$status"
}

stop() {
    note "error: $1: failed with status $2" >&2
    exit "$2"
}

check() {
    local start=$SECONDS
    stage "$@" || stop "$1" $?
    note_time "$1" "$start"
}

# A check on the other core: `start_beside` lets it run beside what follows, `await_beside` prints what it said.
start_beside() {
    BESIDE_TITLE="$1" BESIDE_START=$SECONDS BESIDE_OUTPUT="$(mktemp)"
    shift
    timeout --kill-after=10 "$@" >"$BESIDE_OUTPUT" 2>&1 &
    BESIDE=$!
    trap 'kill "$BESIDE" 2>/dev/null; rm -f "$BESIDE_OUTPUT"' EXIT
}

await_beside() {
    local status=0
    heading "$BESIDE_TITLE"
    wait "$BESIDE" || status=$?
    cat "$BESIDE_OUTPUT"
    rm -f "$BESIDE_OUTPUT"
    trap - EXIT
    [ "$status" = 0 ] || stop "$BESIDE_TITLE" "$status"
    note_time "$BESIDE_TITLE, beside the checks before it" "$BESIDE_START"
}

note_time() { TIMES+=("$(printf '%5d s  %s' $((SECONDS - $2)) "$1")"); }

# Every test marked `mpi`, on that many ranks. A test that hangs there ends the run sooner than on one rank.
check_on_ranks() {
    local ranks="$1" title="Tests on $1 ranks" status=0 start=$SECONDS
    shift
    stage "$title" "$MPI_LIMIT" "${MPIRUN[@]}" -n "$ranks" \
        "$PYTHON" -m pytest -p no:cacheprovider -o faulthandler_timeout=150 \
        --durations="$SLOWEST" "$@" || status=$?
    # A selection of the user's may hold no MPI test; the whole suite without one would be a mistake.
    if [ "$status" = "$NO_TESTS" ] && [ $# -gt 0 ]; then
        note "(none of the tests selected runs on several ranks)"
        return
    fi
    [ "$status" = 0 ] || stop "$title" "$status"
    note_time "$title" "$start"
}

cd "$ROOT"
unset PYTHONDONTWRITEBYTECODE # hundreds of processes load the same modules
export PIP_NO_COMPILE=no      # which is pip's --no-compile: the checks load a small part of what is installed
use_environment test docs
note_time "Installation" 0

start_beside "Types: mypy" 240 mypy
start=$SECONDS
try_extra readers # the package needs none of them, nor do the checks
note_time "Installation of readers, beside mypy" "$start"
check "Style: ruff check" 60 ruff check .
check "Style: ruff format" 60 ruff format --check .
check "Layers: import-linter" 60 lint-imports --no-logo --no-cache
check "Style in figures" 60 "$PYTHON" run_scripts/metrics.py
check "Documents: sphinx" 180 sphinx-build -q -W --keep-going docs docs/_build
await_beside
# Workers get whole files, in the order of tests/conftest.py: a file's tests share runs and compiled code.
check "Tests on one rank" "$ONE_RANK_LIMIT" \
    "$PYTHON" -m pytest --numprocesses "$WORKERS" --dist loadfile --no-loadscope-reorder \
    --durations="$SLOWEST" "$@"
for ranks in 2 3 4; do
    check_on_ranks "$ranks" "$@"
done
heading "All tests passed, on 1, 2, 3 and 4 ranks"
printf '%s\n' "${TIMES[@]}"
printf '%5d s  in all\n' "$SECONDS"

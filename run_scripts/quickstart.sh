#!/usr/bin/env bash
# From a fresh machine to a picture: sets up an environment, runs input/plummer.yaml and plots the result.
#     ./run_scripts/quickstart.sh             a rank on each core, 8 at most; RANKS=2 ./run_scripts/quickstart.sh for 2
# Needs only Python 3.11 or newer. Uses the active environment, or else creates .venv.
set -euo pipefail
# shellcheck source=run_scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

RUN=output/plummer # the output directory in input/plummer.yaml

CORES="$(nproc)" # those that this process may use
RANKS="${RANKS:-$((CORES < 8 ? CORES : 8))}" # more have too few of its 8192 bodies each
[[ "$RANKS" =~ ^[1-9][0-9]*$ ]] || fail "RANKS must be a whole number, at least 1 (got '$RANKS')"
[ $# = 0 ] || fail "quickstart.sh takes no arguments; run a file of your own with hybrid-nbody FILE.yaml"
cd "$ROOT"
# shellcheck disable=SC2119
use_environment

heading "Running input/plummer.yaml on $(counted "$RANKS" rank)"
"${MPIRUN[@]}" -n "$RANKS" "$PYTHON" -m hybrid_nbody input/plummer.yaml --overwrite

heading "Contents of $RUN"
"$PYTHON" -m hybrid_nbody info "$RUN"

heading "Drawing the energies and the bodies"
"$PYTHON" -m hybrid_nbody plot "$RUN" --kind overview

heading "Done"
note "The run is in $ROOT/$RUN. Its picture:"
ls "$ROOT/$RUN"/*.png
if [ "$ENVIRONMENT" = "$ROOT/.venv" ]; then
    note "To work in this environment: source .venv/bin/activate"
fi

#!/usr/bin/env bash
# From a fresh machine to a picture: sets up an environment, runs the main job and plots it.
#     ./run_scripts/quickstart.sh             4 ranks; RANKS=2 ./run_scripts/quickstart.sh for another number
# Needs Python 3.11 or newer and nothing else. Takes the active environment if there is one, else makes .venv.
set -euo pipefail
# shellcheck source=run_scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

RUN=output/plummer # where input/plummer.yaml writes to

[[ "${RANKS:-4}" =~ ^[1-9][0-9]*$ ]] || fail "RANKS must be a whole number, at least 1 (got '$RANKS')"
[ $# = 0 ] || fail "quickstart.sh takes no arguments; run a file of your own with hybrid-nbody FILE.yaml"
cd "$ROOT"
# shellcheck disable=SC2119
use_environment

heading "The main job on ${RANKS:-4} ranks"
"${MPIRUN[@]}" -n "${RANKS:-4}" "$PYTHON" -m hybrid_nbody input/plummer.yaml --overwrite

heading "What is in $RUN"
"$PYTHON" -m hybrid_nbody info "$RUN"

heading "The picture of the energies and of the bodies"
"$PYTHON" -m hybrid_nbody plot "$RUN" --kind overview

heading "Done"
note "The run is in $ROOT/$RUN, its picture is"
ls "$ROOT/$RUN"/*.png
if [ "$ENVIRONMENT" = "$ROOT/.venv" ]; then
    note "To go on by hand: source .venv/bin/activate"
fi

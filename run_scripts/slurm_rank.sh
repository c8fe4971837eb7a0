#!/usr/bin/env bash
# One rank under srun --kill-on-bad-exit=1, which ends the others as soon as one ends with anything but 0. slurm.sh starts:
#     srun … run_scripts/slurm_rank.sh PROGRAM…
# Status 75, "stopped early", becomes 0, so that no rank is cut short in its last moments; $STOPPED_MARK tells slurm.sh, with
# the signal. So does USR1 that came before the program was up. When a rank was killed, the others are killed at once: srun
# asks them to end first, and makes them only after KillWait (30 s); but they wait for the one that is gone.
set -uo pipefail
signal=""
trap 'signal=USR1' USR1 # Slurm signals all processes of a step; the program deals with it
trap 'signal=TERM' TERM

"$@"
status=$?
if [ "$status" = 75 ] || [ "$status" = $((128 + $(kill -l USR1))) ]; then
    echo "$signal" >>"$STOPPED_MARK" && status=0
elif [ "$status" -gt 128 ]; then
    printf 'hybrid_nbody: error: rank %s on %s was killed by signal %s: all ranks end\n' \
        "${SLURM_PROCID:-?}" "$(hostname)" "$((status - 128))" >&2
    scancel --signal=KILL "$SLURM_JOB_ID.$SLURM_STEP_ID"
fi
exit "$status"

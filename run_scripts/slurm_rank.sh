#!/usr/bin/env bash
# Run one rank under srun --kill-on-bad-exit=1, which ends all ranks as soon as one exits with a status other than 0:
#     srun … run_scripts/slurm_rank.sh PROGRAM…
# Status 75 (stopped early) becomes 0, so that no rank is killed while it finishes; $STOPPED_MARK tells slurm.sh about it and
# names the signal. USR1 before the program has started is treated the same way. When a rank was killed, the others, which
# wait for it, are killed at once: srun would first ask them to end and kill them only after KillWait (30 s).
set -uo pipefail
signal=""
trap 'signal=USR1' USR1 # Slurm signals all processes of a step; the program handles it
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

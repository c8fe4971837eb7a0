# Shared by the scripts for clusters: hosts, caches of a node, doctor, start or resume, exit status.
# Source it after common.sh. The sourcing script sets LAUNCH, the command that starts a program on all ranks.
# shellcheck shell=bash

STOPPED_EARLY=75 # the program's exit status for "checkpoint written, resume me"
LAUNCH=()        # set by slurm.sh, mpich.sh, openmpi.sh
launcher=""      # process id of the launcher during a run
asked_to_stop=no interrupted=no

# read_arguments FILE.yaml DIRECTORY [arguments of hybrid_nbody run]
read_arguments() {
    [ $# -ge 2 ] && [[ "$1" != -* && "$2" != -* ]] ||
        fail "usage: ${0##*/} FILE.yaml DIRECTORY [arguments of hybrid_nbody run]"
    FILE="$1" DIRECTORY="$2"
    shift 2
    ARGUMENTS=("$@")
}

# Use the existing environment: nothing is installed on compute nodes.
ready_environment() {
    find_environment
    export PATH="$ENVIRONMENT/bin:$PATH"
    installed hybrid_nbody || fail "hybrid_nbody is not installed in $ENVIRONMENT: run quickstart.sh on a login node first"
}

# Cache compiled kernels on each node: home folders are slow network file systems shared with other nodes, and a job's own
# $TMPDIR is deleted after the job, so that kernels would be compiled again. Numba's cache follows TMPDIR.
use_node_caches() {
    export TMPDIR="${NODE_FOLDER:-/tmp}"
    export CUPY_CACHE_DIR="${CUPY_CACHE_DIR:-$TMPDIR/hybrid_nbody-$UID/cupy}"
}

# ---- Hosts --------------------------------------------------------------------------------------------------------

# Print the hosts of this job, one per line: from HOSTFILE (first word of each line), from the scheduler, or localhost.
hosts() {
    if [ -n "${HOSTFILE:-}" ]; then
        sed 's/[#:[:space:]].*//' "$HOSTFILE" | sed '/^$/d'
    elif [ -n "${PBS_NODEFILE:-}" ]; then
        cat "$PBS_NODEFILE"
    elif [ -n "${SLURM_JOB_NODELIST:-}" ]; then
        scontrol show hostnames "$SLURM_JOB_NODELIST"
    elif [ -n "${LSB_HOSTS:-}" ]; then
        tr ' ' '\n' <<<"$LSB_HOSTS"
    elif [ -n "${PE_HOSTFILE:-}" ]; then
        cut -d ' ' -f 1 "$PE_HOSTFILE"
    else
        echo localhost
    fi | awk '!seen[$0]++'
}

# Put the hosts of this job into NAMES. Refuse an empty list (status 2) rather than run on this host alone.
find_hosts() {
    local list
    if [ -n "${HOSTFILE:-}" ]; then
        [ -e "$HOSTFILE" ] || refuse "HOSTFILE: $HOSTFILE: no such file"
        [ -r "$HOSTFILE" ] && [ ! -d "$HOSTFILE" ] || refuse "HOSTFILE: $HOSTFILE: not a readable file"
    fi
    list="$(hosts)" && [ -n "$list" ] || refuse "${HOSTFILE:-the list of the scheduler}: names no host"
    mapfile -t NAMES <<<"$list"
}

# Print the ranks per node: RANKS_PER_NODE, else one per GPU of this node, else one for every CORES_PER_RANK cores (4).
ranks_per_node() {
    local gpus few="${CORES_PER_RANK:-4}"
    gpus="$(gpu_count)"
    if [ -n "${RANKS_PER_NODE:-}" ]; then
        [[ "$RANKS_PER_NODE" =~ ^[1-9][0-9]*$ ]] || fail "RANKS_PER_NODE must be a whole number, at least 1"
        echo "$RANKS_PER_NODE"
    elif [ "$gpus" -gt 0 ]; then
        echo "$gpus"
    else
        echo $((($(core_count) + few - 1) / few))
    fi
}

# Print the number of cores to bind each rank to: cores_of_rank RANKS_PER_NODE
cores_of_rank() {
    local cores
    cores="$(core_count)"
    [ "$cores" -ge "$1" ] || fail "$1 ranks cannot be bound to $cores cores: start fewer ranks, or set BIND=no"
    echo $((cores / $1))
}

# Put mpirun into LAUNCHER; refuse that of another MPI: find_launcher 'pattern of its --version' 'script for the other MPI'
find_launcher() {
    LAUNCHER="$ENVIRONMENT/bin/mpirun"
    [ -x "$LAUNCHER" ] || LAUNCHER="$(command -v mpirun)" || fail "no mpirun was found: load the module of your MPI"
    # shellcheck disable=SC2053 # a pattern
    [[ "$("$LAUNCHER" --version 2>&1)" == $1 ]] || fail "$LAUNCHER belongs to another MPI: use run_scripts/$2"
}

# ---- The run ------------------------------------------------------------------------------------------------------

# Run doctor on the ranks of the run; end here if something is wrong.
examine() {
    local status=0
    heading "Checking the machines: hybrid-nbody doctor"
    "${LAUNCH[@]}" "$PYTHON" -m hybrid_nbody doctor || status=$?
    [ "$asked_to_stop" = no ] || return 0
    if [ "$status" != 0 ]; then
        note "error: doctor ended with status $status: fix what it reports as wrong, or see the messages above" >&2
        exit "$status"
    fi
}

# Put the command into TASK: resume if there is a checkpoint, else run.
choose_task() {
    if compgen -G "$DIRECTORY/checkpoint-*.h5" >/dev/null; then
        TASK=(resume "$DIRECTORY")
    else
        TASK=(run "$FILE" --set "output.directory='$DIRECTORY'" "${ARGUMENTS[@]}")
    fi
}

# Forward USR1 and TERM to the launcher as USR1, which all launchers pass on to their ranks.
pass_signals_on() {
    local name
    for name in USR1 TERM; do
        # shellcheck disable=SC2064 # expand $name now
        trap "asked_to_stop=$name interrupted=yes; [ -z \"\$launcher\" ] || kill -USR1 \"\$launcher\"" "$name"
    done
}

# Parse the arguments and set up the environment: prepare FILE.yaml DIRECTORY [arguments of hybrid_nbody run]
prepare() {
    read_arguments "$@"
    pass_signals_on
    ready_environment
    use_node_caches
}

# Start the ranks, wait for them and put their status into STATUS. Start nothing if asked to stop already.
run_ranks() {
    STATUS="$STOPPED_EARLY"
    [ "$asked_to_stop" = no ] || return 0
    heading "hybrid-nbody ${TASK[*]}"
    "${LAUNCH[@]}" "$PYTHON" -m hybrid_nbody "${TASK[@]}" &
    launcher=$! interrupted=yes
    while [ "$interrupted" = yes ]; do # a signal ends `wait` early
        interrupted=no STATUS=0
        wait "$launcher" || STATUS=$?
    done
    launcher=""
    # A signal that arrived before the program handled signals has killed it; earlier files are intact.
    if [ "$asked_to_stop" != no ] && [ $((STATUS % 128)) = "$(kill -l USR1)" ]; then STATUS="$STOPPED_EARLY"; fi
}

# Report how the run ended and what to do next; exit with its status.
finish() {
    case "$STATUS" in
        0) note "Finished: $DIRECTORY" ;;
        "$STOPPED_EARLY") note "Stopped early; the same command continues $DIRECTORY" ;;
        *) died >&2 ;;
    esac
    exit "$STATUS"
}

died() {
    note "error: the run ended with status $STATUS: see the message above, its own or the launcher's"
    if compgen -G "$DIRECTORY/checkpoint-*.h5" >/dev/null; then
        note "If a rank was killed or a node failed, the same command continues from the newest checkpoint in $DIRECTORY"
    fi
}

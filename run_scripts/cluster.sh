# What the scripts for clusters share: the hosts, the caches of a node, doctor first, first start or resume, the end.
# Sourced after common.sh, not run. The script that sources it puts what starts a program on all ranks into LAUNCH.
# shellcheck shell=bash

STOPPED_EARLY=75 # the program's exit status for "checkpoint written, resume me"
LAUNCH=()        # set by slurm.sh, mpich.sh, openmpi.sh
launcher=""      # its process, while a run is on
asked_to_stop=no interrupted=no

# read_arguments FILE.yaml DIRECTORY [arguments of hybrid_nbody run]
read_arguments() {
    [ $# -ge 2 ] && [[ "$1" != -* && "$2" != -* ]] ||
        fail "usage: ${0##*/} FILE.yaml DIRECTORY [arguments of hybrid_nbody run]"
    FILE="$1" DIRECTORY="$2"
    shift 2
    ARGUMENTS=("$@")
}

# The environment that was made beforehand: nothing is installed on compute nodes.
ready_environment() {
    find_environment
    export PATH="$ENVIRONMENT/bin:$PATH"
    installed hybrid_nbody || fail "hybrid_nbody is not installed in $ENVIRONMENT: run quickstart.sh on a login node first"
}

# Compiled kernels are kept on each node: home folders are network file systems, slow and shared with other nodes. A
# job's own $TMPDIR would be gone with the job, and everything compiled anew. Numba's cache follows TMPDIR by itself.
use_node_caches() {
    export TMPDIR="${NODE_FOLDER:-/tmp}"
    export CUPY_CACHE_DIR="${CUPY_CACHE_DIR:-$TMPDIR/hybrid_nbody-$UID/cupy}"
}

# ---- Hosts --------------------------------------------------------------------------------------------------------

# The hosts of this job, one a line: those of HOSTFILE (the first word of a line), of the scheduler, or this one alone.
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

# Put the hosts of this job into NAMES. A list that names none would start a run on this host alone: refused, status 2.
find_hosts() {
    local list
    if [ -n "${HOSTFILE:-}" ]; then
        [ -e "$HOSTFILE" ] || refuse "HOSTFILE: $HOSTFILE: no such file"
        [ -r "$HOSTFILE" ] && [ ! -d "$HOSTFILE" ] || refuse "HOSTFILE: $HOSTFILE: not a file that can be read"
    fi
    list="$(hosts)" && [ -n "$list" ] || refuse "${HOSTFILE:-the list of the scheduler}: no host is named in it"
    mapfile -t NAMES <<<"$list"
}

# Ranks of a node: RANKS_PER_NODE, else one a GPU of this node, else one for every CORES_PER_RANK cores (4).
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

# The cores of a rank where each has its own: cores_of_rank RANKS_OF_A_NODE
cores_of_rank() {
    local cores
    cores="$(core_count)"
    [ "$cores" -ge "$1" ] || fail "$1 ranks cannot be bound to $cores cores: fewer ranks, or BIND=no"
    echo $((cores / $1))
}

# Put the launcher in LAUNCHER, and refuse that of another MPI: find_launcher 'pattern of its --version' 'the right script'
find_launcher() {
    LAUNCHER="$ENVIRONMENT/bin/mpirun"
    [ -x "$LAUNCHER" ] || LAUNCHER="$(command -v mpirun)" || fail "no mpirun was found: load the module of your MPI"
    # shellcheck disable=SC2053 # a pattern
    [[ "$("$LAUNCHER" --version 2>&1)" == $1 ]] || fail "$LAUNCHER is of another MPI: use run_scripts/$2"
}

# ---- The run ------------------------------------------------------------------------------------------------------

# Look at the machines as the run will see them; end here if something is wrong.
examine() {
    local status=0
    heading "Looking at the machines: hybrid-nbody doctor"
    "${LAUNCH[@]}" "$PYTHON" -m hybrid_nbody doctor || status=$?
    [ "$asked_to_stop" = no ] || return 0
    if [ "$status" != 0 ]; then
        note "error: doctor ended with status $status: set right what it calls wrong, or what stands above" >&2
        exit "$status"
    fi
}

# Put into TASK what there is to do: resume where there is a checkpoint, else start.
choose_task() {
    if compgen -G "$DIRECTORY/checkpoint-*.h5" >/dev/null; then
        TASK=(resume "$DIRECTORY")
    else
        TASK=(run "$FILE" --set "output.directory='$DIRECTORY'" "${ARGUMENTS[@]}")
    fi
}

# Signals that ask for an end go on to the launcher as USR1, which all launchers pass on to their ranks.
pass_signals_on() {
    local name
    for name in USR1 TERM; do
        # shellcheck disable=SC2064 # the name of now
        trap "asked_to_stop=$name interrupted=yes; [ -z \"\$launcher\" ] || kill -USR1 \"\$launcher\"" "$name"
    done
}

# What comes first: prepare FILE.yaml DIRECTORY [arguments of hybrid_nbody run]
prepare() {
    read_arguments "$@"
    pass_signals_on
    ready_environment
    use_node_caches
}

# Start the ranks and wait for their end; its status is put into STATUS. Asked to stop already: nothing is started.
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
    # A signal that came before the program was up has ended it; a file that it wrote before is as good as it was.
    if [ "$asked_to_stop" != no ] && [ $((STATUS % 128)) = "$(kill -l USR1)" ]; then STATUS="$STOPPED_EARLY"; fi
}

# Say how it ended and what to do next, and end with the run's status.
finish() {
    case "$STATUS" in
        0) note "Finished: $DIRECTORY" ;;
        "$STOPPED_EARLY") note "Stopped early; the same command goes on with $DIRECTORY" ;;
        *) died >&2 ;;
    esac
    exit "$STATUS"
}

died() {
    note "error: the run ended with status $STATUS: its message, or the launcher's, stands above."
    if compgen -G "$DIRECTORY/checkpoint-*.h5" >/dev/null; then
        note "If a rank was killed or a node failed, the same command goes on from the newest checkpoint in $DIRECTORY"
    fi
}

# Shared by the scripts of this folder: Python, an environment with the package, and the right mpirun. To be sourced:
#     source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
#     use_environment test        # extras besides MPI and CUDA
# It sets $ROOT, the repository; $PYTHON, the environment's Python; "${MPIRUN[@]}", the launcher with its flags.
# shellcheck shell=bash

ROOT="$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OLDEST_PYTHON=11 # 3.11
STAMP=.hybrid_nbody-installed
[ -n "${HOME:-}" ] || export HOME=~ # Open MPI needs it; ~ expands to the account's home folder
export PYTHONNOUSERSITE=1 # keep packages in the user's home out of the environment

heading() { printf '\n==== %s ====\n' "$*"; }
note() { printf '%s\n' "$*"; }
complain() { printf 'error: %s\n' "$*" >&2; }
fail() { complain "$@"; exit 1; }
refuse() { complain "$@"; exit 2; } # bad input

# Print a number and a noun, in the plural unless it is 1: counted 4 rank
counted() { if [ "$1" = 1 ]; then echo "1 $2"; else echo "$1 $2s"; fi; }

# ---- Python and the environment ----------------------------------------------------------------------------------

# Put the Python of the active environment, or of .venv in the repository, into PYTHON.
find_environment() {
    ENVIRONMENT="${VIRTUAL_ENV:-${CONDA_PREFIX:-}}"
    if [ -n "$ENVIRONMENT" ]; then
        note "Using the active environment $ENVIRONMENT"
    else
        ENVIRONMENT="$ROOT/.venv"
        make_venv
    fi
    PYTHON="$ENVIRONMENT/bin/python"
    [ -x "$PYTHON" ] || fail "the active environment $ENVIRONMENT has no bin/python: deactivate it or repair it"
    new_enough "$PYTHON" || fail "the environment $ENVIRONMENT has $("$PYTHON" --version 2>&1)," \
        "but Python 3.$OLDEST_PYTHON or newer is needed: deactivate it, or activate a newer one"
    has_pip || fail "the environment $ENVIRONMENT has no pip: run '$PYTHON -m ensurepip', or deactivate it"
}

# Create .venv unless a complete one exists. An interrupted one has no pip or is marked "unfinished" (see install_package);
# a copied or moved one names another folder.
make_venv() {
    local base found
    if PYTHON="$ENVIRONMENT/bin/python" has_pip && new_enough "$ENVIRONMENT/bin/python" && ! unfinished &&
        grep -qF "$ENVIRONMENT" "$ENVIRONMENT/bin/activate"; then
        return
    fi
    found="$(python3 --version 2>/dev/null)" || found="no Python"
    base="$(find_python)" || fail "Python 3.$OLDEST_PYTHON or newer is needed, but python3 is $found:" \
        "install a newer one, or activate an environment that has it"
    "$base" -c 'import venv, ensurepip' 2>/dev/null || fail "$base cannot create virtual environments:" \
        "install its venv module (Debian and Ubuntu: the package python3-venv), or activate an environment"
    heading "Creating the virtual environment .venv with $("$base" --version)"
    "$base" -m venv --clear "$ENVIRONMENT"
}

# Print the first Python that is new enough: python3, else a newer one by its full name.
find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

new_enough() { "$1" -c "import sys; sys.exit(sys.version_info < (3, $OLDEST_PYTHON))" 2>/dev/null; }
has_pip() { "$PYTHON" -m pip --version >/dev/null 2>&1; }

# ---- What to install ----------------------------------------------------------------------------------------------

# Print the MPI extra; none if the environment has an MPI, because two in one environment would conflict.
mpi_extra() {
    if [ -x "$ENVIRONMENT/bin/mpirun" ] && ! installed mpich; then return; fi
    if ! installed mpich && command -v mpirun >/dev/null && "$PYTHON" -c 'from mpi4py import MPI' 2>/dev/null; then
        return
    fi
    echo mpich
}

installed() { "$PYTHON" -c "import importlib.metadata as m; m.version('$1')" 2>/dev/null; }

# Print the CUDA extra that fits the driver, if any. CUDA 13 compiles only for compute capability 7.5 and newer.
cuda_extra() {
    local version oldest extra=""
    version="$(driver_cuda_version)"
    oldest="$(compute_capabilities | sort -n | head -n 1)"
    if [ "$version" -ge 13 ] && [ "${oldest:-0}" -ge 75 ]; then
        extra=cuda13
    elif [ "$version" -ge 12 ]; then
        extra=cuda12
    elif [ "$version" -gt 0 ]; then
        note "The NVIDIA driver is too old for CUDA 12 (it supports CUDA $version): the GPU will not be used" >&2
    fi
    [ -z "$extra" ] || other_cupy "cupy-${extra}x" || echo "$extra"
}

# Return true if another CuPy is installed: two in one environment break each other, so that one is kept.
other_cupy() {
    local name
    for name in cupy cupy-cuda11x cupy-cuda12x cupy-cuda13x; do
        if [ "$name" != "$1" ] && installed "$name"; then return; fi
    done
    return 1
}

# Print the newest major version of CUDA that the driver supports, from nvidia-smi's header; 0 without a working driver.
driver_cuda_version() {
    local version
    version="$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Z ]* Version: *\([0-9][0-9]*\).*/\1/p' | head -n 1)" || true
    echo "${version:-0}"
}

# Print the compute capability of each GPU without its point: 75, 90, ...
compute_capabilities() {
    { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true; } | sed -n 's/^\([0-9]*\)\.\([0-9]\).*/\1\2/p'
}

# ---- Installing, once ---------------------------------------------------------------------------------------------

# Install the package, editable, with the given extras and those that suit the machine.
# A stamp in the environment records what was installed. During an installation it says "unfinished", because pip would
# accept packages that an interrupted installation left half copied.
install_package() {
    local wanted repair=""
    wanted="$(mpi_extra) $(cuda_extra) $*"
    if stamp_covers "$wanted"; then
        return
    fi
    wanted="$(all_extras "$wanted")"
    if unfinished; then repair=--force-reinstall; fi
    echo unfinished >"$ENVIRONMENT/$STAMP"
    heading "Installing hybrid_nbody with the extras: ${wanted:-none} (a few minutes)"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check ${repair:+"$repair"} \
        --editable "$ROOT${wanted:+[${wanted// /,}]}" ||
        fail "the installation failed; see pip's message above. Fix the cause and run this again; no clean-up is needed"
    printf '%s\n%s\n' "$(fingerprint)" "$wanted" >"$ENVIRONMENT/$STAMP"
}

# Install an extra if all its packages have wheels for this machine; otherwise the tests that need it are skipped.
try_extra() {
    if stamp_covers "$1"; then return; fi
    heading "Installing the extra $1"
    if timeout 180 "$PYTHON" -m pip install --quiet --disable-pip-version-check --only-binary :all: --editable "${ROOT}[$1]"
    then
        printf '%s\n%s\n' "$(fingerprint)" "$(all_extras "$1")" >"$ENVIRONMENT/$STAMP"
    else
        note "(not installed, see pip's message above; the tests that need it are skipped)"
    fi
}

unfinished() { [ "$(stamp_line 1)" = unfinished ]; }
stamp_line() { [ ! -f "$ENVIRONMENT/$STAMP" ] || sed -n "$1p" "$ENVIRONMENT/$STAMP"; }

# Return true if the stamp matches this checkout, its set-up files and this Python, and has every extra wanted.
stamp_covers() {
    local extra
    [ "$(stamp_line 1)" = "$(fingerprint)" ] || return 1
    for extra in $1; do
        [[ " $(stamp_line 2) " == *" $extra "* ]] || return 1
    done
}

# Print the extras wanted and those already installed, so that scripts with different needs keep each other's extras.
all_extras() { { stamp_line 2; echo "$1"; } | tr ' ' '\n' | sort -u | sed '/^$/d' | tr '\n' ' ' | sed 's/ $//'; }

fingerprint() {
    { cat "$ROOT/setup.cfg" "$ROOT/pyproject.toml"; echo "$ROOT"; "$PYTHON" -VV; } | cksum
}

# ---- MPI ----------------------------------------------------------------------------------------------------------

# Put the launcher and its flags into MPIRUN: the environment's own, else the one on the PATH.
find_mpirun() {
    local launcher="$ENVIRONMENT/bin/mpirun"
    [ -x "$launcher" ] || launcher="$(command -v mpirun)" ||
        fail "no mpirun was found: install an MPI, for example by '$PYTHON -m pip install mpich'"
    MPIRUN=("$launcher")
    case "$("$launcher" --version 2>&1)" in
        # Open MPI refuses root and more ranks than cores, and binds each rank, with all its threads, to one core.
        *"Open MPI"* | *OpenRTE*) MPIRUN+=(--allow-run-as-root --oversubscribe --bind-to none) ;;
    esac
}

# Refuse an mpirun that does not belong to mpi4py's MPI: it fails, or starts N programs of one rank each.
check_mpi() {
    local ranks
    ranks="$("${MPIRUN[@]}" -n 2 "$PYTHON" -c 'from mpi4py import MPI; print(MPI.COMM_WORLD.size)')" || ranks=""
    [ "$(tr -d '[:space:]' <<<"$ranks")" = 22 ] ||
        fail "'${MPIRUN[*]} -n 2' does not start two ranks (see its message above, if any)." \
            "If it belongs to another MPI than the one mpi4py found, put the right one first on the PATH," \
            "or deactivate the environment and let this script install MPICH in its own"
}

# Everything above, in order.
use_environment() {
    find_environment
    export PATH="$ENVIRONMENT/bin:$PATH"
    install_package "$@"
    find_mpirun
    check_mpi
}

# Print the numbers of GPUs and of processor cores that this job may use.
gpu_count() {
    if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
        tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c '^ *[^- ]' || true
    else
        { nvidia-smi -L 2>/dev/null || true; } | grep -c '^GPU' || true
    fi
}
core_count() { "$PYTHON" -c 'import os; print(len(os.sched_getaffinity(0)))'; }

# hybrid_nbody in a container, for CPUs or for NVIDIA GPUs:
#
#     docker build -t hybrid_nbody .
#     docker build -t hybrid_nbody:cuda13 --build-arg VARIANT=cuda13 .        # or cuda12, for older drivers and GPUs
#
# Without a command it runs the main job on 4 ranks. Any other command takes its place:
#
#     docker run --rm --init --shm-size=1g hybrid_nbody
#     docker run --rm --init --shm-size=1g --gpus all hybrid_nbody:cuda13 \
#         mpirun -n 2 python -m hybrid_nbody input/plummer.yaml
#
# To keep the results and to own them: -v "$PWD/output:/simulation/output" --user "$(id -u):$(id -g)".
# --shm-size: the ranks of one container talk through shared memory, and Docker's 64 MB are too little.

# The GPU variants need no other base: CUDA comes as wheels with the extra, the driver from the host.
FROM python:3.12-slim

# Numba's threads on OpenMP.
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*

# The dependencies, from the set-up files alone: a change of the program does not install them anew.
ARG VARIANT=cpu
ENV PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /opt/hybrid_nbody
COPY setup.cfg pyproject.toml README.md LICENSE ./
COPY hybrid_nbody/__init__.py hybrid_nbody/
RUN case "$VARIANT" in \
        cpu) extras=mpich ;; \
        cuda12 | cuda13) extras="mpich,$VARIANT" ;; \
        *) echo "VARIANT is cpu, cuda12 or cuda13, not '$VARIANT'" >&2; exit 2 ;; \
    esac && \
    pip install ".[$extras]"

# The program itself.
COPY input input
COPY hybrid_nbody hybrid_nbody
RUN pip install --no-deps --force-reinstall . && rm -rf build *.egg-info

# Nobody runs a simulation as root. Output and caches can be written by any user, for `docker run --user`, and the name
# is set for users that the container does not know.
RUN useradd --create-home nbody && install --directory --mode=1777 /simulation /simulation/output
ENV USER=nbody MPLCONFIGDIR=/tmp/matplotlib CUPY_CACHE_DIR=/tmp/cupy \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /simulation
COPY input input
USER nbody

CMD ["mpirun", "-n", "4", "python", "-m", "hybrid_nbody", "input/plummer.yaml"]

# hybrid_nbody in a container, for CPUs or for NVIDIA GPUs:
#
#     docker build -t hybrid_nbody .
#     docker build -t hybrid_nbody:cuda13 --build-arg VARIANT=cuda13 .        # or cuda12 for older drivers and GPUs
#
# By default it runs input/plummer.yaml on 4 ranks; any other command replaces this:
#
#     docker run --rm --init --shm-size=1g hybrid_nbody
#     docker run --rm --init --shm-size=1g --gpus all hybrid_nbody:cuda13 \
#         mpirun -n 2 python -m hybrid_nbody input/plummer.yaml
#
# To keep the results as your own files: -v "$PWD/output:/simulation/output" --user "$(id -u):$(id -g)".
# --shm-size: ranks in one container communicate through shared memory, and Docker's default of 64 MB is too small.

# The GPU variants use the same base: the extra installs CUDA as wheels, and the host provides the driver.
FROM python:3.12-slim

# OpenMP, for Numba's threads.
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*

# Install the dependencies from the set-up files alone, so that changes to the program do not reinstall them.
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

# Do not run as root. For `docker run --user`, output and caches are writable by any user, and USER is set for users
# that the container does not know.
RUN useradd --create-home nbody && install --directory --mode=1777 /simulation /simulation/output
ENV USER=nbody MPLCONFIGDIR=/tmp/matplotlib CUPY_CACHE_DIR=/tmp/cupy \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /simulation
COPY input input
USER nbody

CMD ["mpirun", "-n", "4", "python", "-m", "hybrid_nbody", "input/plummer.yaml"]

"""External fields: what acts on each body for itself, beside the forces between bodies.

A field is one function of scalars, in Python, that Numba compiles for CPU threads and
``translation`` turns into CUDA::

    def field(position, velocity, mass, time, parameters):
        ...
        return ax, ay, az, potential

``potentials`` holds those of the package.
"""

// The grid of all kernels of the fluid: the memory of its cells, and their neighbours.
//
// Compiled with -DREAL (float or double), -DNX, -DNY, -DNZ (cells of the grid), -DFIRST and
// -DPLANES (of this rank), -DHALO (planes of colours beyond each end), -DPITCH (of a row of a
// colour) and -DPERIODIC_X, _Y, _Z (0 or 1).

#pragma once

typedef REAL Real;

#include "boundary.cuh"

#define LANES 32
#define HALF ((NX + 1) / 2)  // most cells of one colour in a row
#define PLANE (NY * NX)
#define COLOUR_PLANE (NY * PITCH)
#define COLOUR ((long long)(PLANES + 2 * HALO) * COLOUR_PLANE)
#define FULL_GRID (PLANES == NZ)  // this rank owns all planes, and z wraps here if it is periodic
#define WALL_BELOW (!PERIODIC_Z && FIRST == 0)
#define WALL_ABOVE (!PERIODIC_Z && FIRST + PLANES == NZ)

// By default that of this thread.
struct Cell {
    int x, y, z;
    __device__ Cell()
        : x(blockIdx.x * blockDim.x + threadIdx.x),
          y(blockIdx.y * blockDim.y + threadIdx.y),
          z(blockIdx.z) {}
    __device__ Cell(int x, int y, int z) : x(x), y(y), z(z) {}
    __device__ bool inside() const { return x < NX && y < NY; }
};

// Values of cells, as an array of fields or of colours.
struct Field {
    Real *value;
    __device__ static long long index(const Cell &c) {
        return (long long)(c.z + 1) * PLANE + c.y * NX + c.x;
    }
    __device__ Real &operator()(const Cell &c) const { return value[index(c)]; }
};
struct Colours {
    Real *value;
    __device__ static long long index(const Cell &c) {
        int colour = (c.x + c.y + FIRST + c.z) & 1;
        return colour * COLOUR + ((long long)(c.z + HALO) * NY + c.y) * PITCH + c.x / 2;
    }
    __device__ Real &operator()(const Cell &c) const { return value[index(c)]; }
};

// --- neighbours ---

__device__ inline int wrap(int i, int size) { return (i % size + size) % size; }

// The cell beside another one on an axis of `size` cells; behind a wall the cell itself, of which
// `ghost` is made then.
__device__ inline int beside(int i, int step, int size, bool wraps, bool wall, const Ghost &face,
                             Ghost *ghost) {
    int to = i + step;
    if (to >= 0 && to < size) return to;
    if (wraps) return to < 0 ? size - 1 : 0;
    if (!wall) return to;  // a halo plane
    *ghost = face;
    return i;
}

template <class Array>
__device__ inline Real next_to(const Array &f, Cell c, int axis, int step, const Ghosts &ghosts) {
    Ghost ghost = Ghost::copy(), face = ghosts.behind(axis, step > 0);
    if (axis == X) c.x = beside(c.x, step, NX, PERIODIC_X, true, face, &ghost);
    if (axis == Y) c.y = beside(c.y, step, NY, PERIODIC_Y, true, face, &ghost);
    if (axis == Z)
        c.z = beside(c.z, step, PLANES, PERIODIC_Z && FULL_GRID, step < 0 ? WALL_BELOW : WALL_ABOVE,
                     face, &ghost);
    return ghost.of(f(c));
}

// --- maxima ---

// The bits of a number that is not negative: they sort as the numbers do, and a NaN comes last.
__device__ inline int bits(float x) { return __float_as_int(x); }
__device__ inline long long bits(double x) { return __double_as_longlong(x); }
__device__ inline void raise_maximum(float *maximum, float x) {
    atomicMax((int *)maximum, bits(x));
}
__device__ inline void raise_maximum(double *maximum, double x) {
    atomicMax((long long *)maximum, bits(x));
}

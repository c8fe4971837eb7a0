// Advection on a GPU: the thread of a cell traces its fluid back to the departure point.
//
// Compiled with the macros of ``grid.cuh``, -DGHOSTS_U, _V and _W (see ``boundary.cuh``). Memory
// traffic of a cell: 5 numbers (three velocities, the source once, the result), or 6 for a velocity
// that carries itself.

#include "grid.cuh"

// The planes of an array: `count` of them, from global plane `first` on.
struct Source {
    int first, count;
};

// The two cells of an axis around a point: the lower one, and the point's distance from it in
// cells.
struct Bracket {
    int low;
    Real fraction;
    __device__ bool within(int size) const { return low >= 0 && low + 1 < size; }
};

// Unlike with fmax and fmin a NaN stays one.
__device__ inline Real clamp(Real value, Real low, Real high) {
    Real raised = value < low ? low : value;
    return raised > high ? high : raised;
}

// Defined for all numbers, unlike a cast: the nearest int for numbers too large, some int for NaN.
__device__ inline int floor_to_int(float x) { return __float2int_rd(x); }
__device__ inline int floor_to_int(double x) { return __double2int_rd(x); }
#define FARTHEST (1 << 30)  // steps around a periodic axis, so that their sum with a cell is an int

// The cells around the point `distance` cells from cell i. The point itself is never computed: it
// would round more the larger i is.
__device__ inline Bracket bracket(int i, int size, Real distance, bool wall) {
    if (wall) distance = clamp(distance, (Real)-0.5 - i, size - (Real)0.5 - i);
    int steps =
        wall ? floor_to_int(distance) : min(max(floor_to_int(distance), -FARTHEST), FARTHEST);
    return {i + steps, distance - floor(distance)};
}

// The cell to read for one that may lie beyond the end of an axis; `ghost` becomes what is made of
// it.
__device__ inline int stored_cell(int i, int size, bool wall, bool wraps, int axis,
                                  const Ghosts &ghosts, Ghost &ghost) {
    if (wraps) return wrap(i, size);
    if (!wall || (i >= 0 && i < size)) return i;
    ghost.mirror(ghosts.behind(axis, i >= size));
    return i < 0 ? 0 : size - 1;
}

// The 8 cells around the point from which fluid comes, that moves by `scale` times the velocity, in
// cells.
struct DeparturePoint {
    Bracket x, y, z;
    __device__ DeparturePoint(const Cell &c, Real u, Real v, Real w, Real scale)
        : x(bracket(c.x, NX, -scale * u, !PERIODIC_X)),
          y(bracket(c.y, NY, -scale * v, !PERIODIC_Y)),
          z(bracket(FIRST + c.z, NZ, -scale * w, !PERIODIC_Z)) {}

    __device__ Real cell_at(const Source &source, const Real *from, int dx, int dy, int dz,
                            const Ghosts &ghosts) const {
        Ghost ghost = Ghost::copy();
        int i = stored_cell(x.low + dx, NX, !PERIODIC_X, PERIODIC_X, X, ghosts, ghost);
        int j = stored_cell(y.low + dy, NY, !PERIODIC_Y, PERIODIC_Y, Y, ghosts, ghost);
        int k =
            stored_cell(z.low + dz, NZ, !PERIODIC_Z, PERIODIC_Z && FULL_GRID, Z, ghosts, ghost) -
            source.first;
        k = min(max(k, 0), source.count - 1);  // NaN must not lead out of the array
        return ghost.of(from[(long long)k * PLANE + j * NX + min(max(i, 0), NX - 1)]);
    }

    // The values of an array with the planes of `source` in those cells; fast where no cell is a
    // ghost.
    __device__ void neighbours(const Source &source, const Real *from, const Ghosts &ghosts,
                            Real *value) const {
        int plane = z.low - source.first;
        bool inside = x.within(NX) && y.within(NY) && plane >= 0 && plane + 1 < source.count;
        inside = inside && (z.within(NZ) || (PERIODIC_Z && !FULL_GRID));
        const Real *first = from + (long long)plane * PLANE + y.low * NX + x.low;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (inside) value[i] = first[i / 4 * PLANE + i / 2 % 2 * NX + i % 2];
        if (!inside)
            for (int i = 0; i < 8; ++i)
                value[i] = cell_at(source, from, i % 2, i / 2 % 2, i / 4, ghosts);
    }
};

// Of two equal values this returns the same value to the last bit.
__device__ inline Real lerp(Real a, Real b, Real fraction) { return fma(fraction, b - a, a); }

__device__ inline Real trilinear(const Real *value, const DeparturePoint &point) {
    Real row[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) row[i] = lerp(value[2 * i], value[2 * i + 1], point.x.fraction);
    return lerp(lerp(row[0], row[1], point.y.fraction), lerp(row[2], row[3], point.y.fraction),
                point.z.fraction);
}

extern "C" __global__ void advect(const Real *__restrict__ source, int first, int count,
                                  Real *__restrict__ out, const Real *__restrict__ u,
                                  const Real *__restrict__ v, const Real *__restrict__ w,
                                  Real scale, GHOSTS) {
    Cell c;
    long long at = Field::index(c);
    if (!c.inside()) return;
    DeparturePoint point(c, u[at], v[at], w[at], scale);
    Real value[8];
    point.neighbours({first, count}, source, THE_GHOSTS, value);
    out[at] = trilinear(value, point);
}

// The velocity carries itself: one trace for all components.
extern "C" __global__ void advect_velocity(Real *__restrict__ out_u, Real *__restrict__ out_v,
                                           Real *__restrict__ out_w, const Real *__restrict__ u,
                                           const Real *__restrict__ v, const Real *__restrict__ w,
                                           Real scale) {
    Cell c;
    long long at = Field::index(c);
    if (!c.inside()) return;
    DeparturePoint point(c, u[at], v[at], w[at], scale);
    Source planes = {FIRST - 1, PLANES + 2};
    Real value[8];
    point.neighbours(planes, u, velocity_ghosts(0), value);
    out_u[at] = trilinear(value, point);
    point.neighbours(planes, v, velocity_ghosts(1), value);
    out_v[at] = trilinear(value, point);
    point.neighbours(planes, w, velocity_ghosts(2), value);
    out_w[at] = trilinear(value, point);
}

// MacCormack: subtract half the error of going there and back, within the values around the
// departure point.
extern "C" __global__ void correct(const Real *__restrict__ source,
                                   const Real *__restrict__ forward, int first, int count,
                                   Real *__restrict__ out, const Real *__restrict__ u,
                                   const Real *__restrict__ v, const Real *__restrict__ w,
                                   Real scale, GHOSTS) {
    Cell c;
    long long at = Field::index(c);
    if (!c.inside()) return;
    Source planes = {first, count};
    Ghosts source_ghosts = THE_GHOSTS;
    DeparturePoint there(c, u[at], v[at], w[at], scale), back(c, u[at], v[at], w[at], -scale);
    Real value[8];
    back.neighbours(planes, forward, source_ghosts, value);
    long long here = (long long)(FIRST + c.z - first) * PLANE + c.y * NX + c.x;
    Real corrected = fma((Real)0.5, source[here] - trilinear(value, back), forward[here]);
    there.neighbours(planes, source, source_ghosts, value);
    Real least = value[0], most = value[0];
#pragma unroll
    for (int i = 1; i < 8; ++i) least = fmin(least, value[i]), most = fmax(most, value[i]);
    out[at] = clamp(corrected, least, most);
}

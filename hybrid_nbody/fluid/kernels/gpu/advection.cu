// Advection on a GPU: a thread a cell traces back where its fluid comes from.
//
// Compiled with the macros of ``grid.cuh``, -DGHOSTS_U, _V and _W (see ``boundary.cuh``). Numbers of
// memory a cell: 5, three velocities, the source once and the result; or 6 for a velocity that carries itself.

#include "grid.cuh"

// The planes that are there: `count` of them, from global plane `first` on.
struct Source { int first, count; };

// Two cells beside each other on an axis, the first one `low`, and how far the point lies beyond it.
struct Between {
    int low;
    Real part;
    __device__ bool within(int size) const { return low >= 0 && low + 1 < size; }
};

// Unlike with fmax and fmin a NaN stays one.
__device__ inline Real at_least(Real value, Real low) { return value < low ? low : value; }
__device__ inline Real at_most(Real value, Real high) { return value > high ? high : value; }

// Defined for all numbers, unlike a cast: the nearest int for those that are too large, some int for a NaN.
__device__ inline int rounded_down(float x) { return __float2int_rd(x); }
__device__ inline int rounded_down(double x) { return __double2int_rd(x); }
#define FARTHEST (1 << 30)  // steps around a periodic axis, so that their sum with a cell is an int

// The point `distance` cells from cell i. That point is never written down: it would round more the larger i is.
__device__ inline Between between(int i, int size, Real distance, bool wall) {
    if (wall) distance = at_most(at_least(distance, (Real)-0.5 - i), size - (Real)0.5 - i);
    int steps = wall ? rounded_down(distance) : min(max(rounded_down(distance), -FARTHEST), FARTHEST);
    return {i + steps, distance - floor(distance)};
}

// The same of a cell that may lie beyond the end of an axis: the cell to read, of which `ghost` is made then.
__device__ inline int read_for(int i, int size, bool wall, bool wraps, int axis, const Ghosts &ghosts, Ghost &ghost) {
    if (wraps) return wrapped(i, size);
    if (!wall || (i >= 0 && i < size)) return i;
    ghost.mirror(ghosts.behind(axis, i >= size));
    return i < 0 ? 0 : size - 1;
}

// The 8 cells around the point from which fluid comes that moves by `scale` times the velocity, in cells.
struct Around {
    Between x, y, z;
    __device__ Around(const Cell &c, Real u, Real v, Real w, Real scale)
        : x(between(c.x, NX, -scale * u, !PERIODIC_X)), y(between(c.y, NY, -scale * v, !PERIODIC_Y)),
          z(between(FIRST + c.z, NZ, -scale * w, !PERIODIC_Z)) {}

    __device__ Real cell(const Source &source, const Real *from, int dx, int dy, int dz, const Ghosts &ghosts) const {
        Ghost ghost = Ghost::copy();
        int i = read_for(x.low + dx, NX, !PERIODIC_X, PERIODIC_X, X, ghosts, ghost);
        int j = read_for(y.low + dy, NY, !PERIODIC_Y, PERIODIC_Y, Y, ghosts, ghost);
        int k = read_for(z.low + dz, NZ, !PERIODIC_Z, PERIODIC_Z && WHOLE, Z, ghosts, ghost) - source.first;
        k = min(max(k, 0), source.count - 1);  // a NaN must not lead out of the array
        return ghost.of(from[(long long)k * PLANE + j * NX + min(max(i, 0), NX - 1)]);
    }

    // The values of an array with the planes of `source`: as they lie in memory where that is simple.
    __device__ void values(const Source &source, const Real *from, const Ghosts &ghosts, Real *value) const {
        int plane = z.low - source.first;
        bool plain = x.within(NX) && y.within(NY) && plane >= 0 && plane + 1 < source.count;
        plain = plain && (z.within(NZ) || (PERIODIC_Z && !WHOLE));
        const Real *first = from + (long long)plane * PLANE + y.low * NX + x.low;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (plain) value[i] = first[i / 4 * PLANE + i / 2 % 2 * NX + i % 2];
        if (!plain)
            for (int i = 0; i < 8; ++i) value[i] = cell(source, from, i % 2, i / 2 % 2, i / 4, ghosts);
    }
};

// Of equal values this makes the same value to the last bit.
__device__ inline Real blend(Real a, Real b, Real part) { return fma(part, b - a, a); }

__device__ inline Real interpolated(const Real *value, const Around &point) {
    Real row[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) row[i] = blend(value[2 * i], value[2 * i + 1], point.x.part);
    return blend(blend(row[0], row[1], point.y.part), blend(row[2], row[3], point.y.part), point.z.part);
}

extern "C" __global__ void advect(const Real *__restrict__ source, int first, int count, Real *__restrict__ out,
                                  const Real *__restrict__ u, const Real *__restrict__ v, const Real *__restrict__ w,
                                  Real scale, GHOSTS) {
    Cell c;
    long long at = Field::place(c);
    if (!c.inside()) return;
    Around point(c, u[at], v[at], w[at], scale);
    Real value[8];
    point.values({first, count}, source, THE_GHOSTS, value);
    out[at] = interpolated(value, point);
}

// The velocity carries itself: one trace for all components.
extern "C" __global__ void advect_velocity(Real *__restrict__ out_u, Real *__restrict__ out_v, Real *__restrict__ out_w,
                                           const Real *__restrict__ u, const Real *__restrict__ v,
                                           const Real *__restrict__ w, Real scale) {
    Cell c;
    long long at = Field::place(c);
    if (!c.inside()) return;
    Around point(c, u[at], v[at], w[at], scale);
    Source planes = {FIRST - 1, PLANES + 2};
    Real value[8];
    point.values(planes, u, velocity_ghosts(0), value);
    out_u[at] = interpolated(value, point);
    point.values(planes, v, velocity_ghosts(1), value);
    out_v[at] = interpolated(value, point);
    point.values(planes, w, velocity_ghosts(2), value);
    out_w[at] = interpolated(value, point);
}

// MacCormack: half the error of going there and back is taken off, within the values around the source.
extern "C" __global__ void correct(const Real *__restrict__ source, const Real *__restrict__ forward, int first, int count,
                                   Real *__restrict__ out, const Real *__restrict__ u, const Real *__restrict__ v,
                                   const Real *__restrict__ w, Real scale, GHOSTS) {
    Cell c;
    long long at = Field::place(c);
    if (!c.inside()) return;
    Source planes = {first, count};
    Ghosts ghosts = THE_GHOSTS;
    Around there(c, u[at], v[at], w[at], scale), back(c, u[at], v[at], w[at], -scale);
    Real value[8];
    back.values(planes, forward, ghosts, value);
    long long here = (long long)(FIRST + c.z - first) * PLANE + c.y * NX + c.x;
    Real corrected = fma((Real)0.5, source[here] - interpolated(value, back), forward[here]);
    there.values(planes, source, ghosts, value);
    Real least = value[0], most = value[0];
#pragma unroll
    for (int i = 1; i < 8; ++i) least = fmin(least, value[i]), most = fmax(most, value[i]);
    out[at] = at_most(at_least(corrected, least), most);
}

// The parts of a fluid step that go cell by cell on a GPU, and sums over cells.
//
// Compiled with the macros of ``grid.cuh``, -DGHOSTS_U, _V, _W (see
// ``boundary.cuh``) and -DSUM_THREADS (of a block that sums).

#include "grid.cuh"

// The next cell minus the previous one.
template <class Array>
__device__ inline Real difference(const Array &f, const Cell &c, int axis, const Ghosts &ghosts) {
    return next_to(f, c, axis, 1, ghosts) - next_to(f, c, axis, -1, ghosts);
}

// --- fields and colours ---

// Two cells beside each other in x, one of each colour, that a thread takes apart or puts together.
struct CellPair {
    int x, y;
    bool inside, second;          // whether there is one, and it has a second cell
    long long cell, index[2];     // of the first cell in a field, and of both in colours
    __device__ CellPair(int z) {
        int c = blockIdx.x * blockDim.x + threadIdx.x;
        x = 2 * c, y = blockIdx.y * blockDim.y + threadIdx.y;
        int colour = (y + FIRST + z) & 1;
        inside = c < HALF && y < NY, second = inside && x + 1 < NX;
        cell = (long long)(z + 1) * PLANE + y * NX + 2 * c;
        for (int i = 0; i < 2; ++i)
            index[i] = (colour ^ i) * COLOUR + ((long long)(z + HALO) * NY + y) * PITCH + c;
    }
};

extern "C" __global__ void split(const Real *__restrict__ field, Real *__restrict__ colours) {
    CellPair p(blockIdx.z);
    if (p.inside) colours[p.index[0]] = field[p.cell];
    if (p.second) colours[p.index[1]] = field[p.cell + 1];
}

extern "C" __global__ void split_twice(const Real *__restrict__ field, Real *__restrict__ first,
                                       Real *__restrict__ second) {
    CellPair p(blockIdx.z);
    if (p.inside) first[p.index[0]] = second[p.index[0]] = field[p.cell];
    if (p.second) first[p.index[1]] = second[p.index[1]] = field[p.cell + 1];
}

extern "C" __global__ void split_sum(const Real *__restrict__ field, Real factor,
                                     const Real *__restrict__ other, Real *__restrict__ colours) {
    CellPair p(blockIdx.z);
    if (p.inside) colours[p.index[0]] = fma(factor, other[p.cell], field[p.cell]);
    if (p.second) colours[p.index[1]] = fma(factor, other[p.cell + 1], field[p.cell + 1]);
}

// Halo planes included.
extern "C" __global__ void merge(const Real *__restrict__ colours, Real *__restrict__ field) {
    CellPair p((int)blockIdx.z - 1);
    if (p.inside) field[p.cell] = colours[p.index[0]];
    if (p.second) field[p.cell + 1] = colours[p.index[1]];
}

// --- the elements of a box in fields with ghosts ---

// Rows and columns of the fields, and where the first element is in them.
struct Frame {
    int rows, columns, k, j, i;
    __device__ long long plane() const { return (long long)rows * columns; }
    __device__ long long place(const CellPair &p, int z) const {
        return (z + k) * plane() + (long long)(p.y + j) * columns + p.x + i;
    }
};

// The neighbours of an element less six times this.
__device__ inline Real spread(const Real *a, long long place, const Frame &frame) {
    Real in_plane =
        a[place - 1] + a[place + 1] + a[place - frame.columns] + a[place + frame.columns];
    return in_plane + a[place - frame.plane()] + a[place + frame.plane()] - 6 * a[place];
}

// What flows out of a cell.
__device__ inline Real outflow(const Real *u, const Real *v, const Real *w, long long place,
                               const Frame &frame) {
    return (u[place + 1] - u[place]) + (v[place + frame.columns] - v[place]) +
           (w[place + frame.plane()] - w[place]);
}

extern "C" __global__ void split_spread(const Real *__restrict__ a, Real ratio, Frame frame,
                                        Real *__restrict__ b) {
    CellPair p(blockIdx.z);
    long long place = frame.place(p, blockIdx.z);
    if (p.inside) b[p.index[0]] = ratio * spread(a, place, frame);
    if (p.second) b[p.index[1]] = ratio * spread(a, place + 1, frame);
}

extern "C" __global__ void split_divergence(const Real *__restrict__ u, const Real *__restrict__ v,
                                            const Real *__restrict__ w, Real factor, Frame frame,
                                            Real *__restrict__ b) {
    CellPair p(blockIdx.z);
    long long place = frame.place(p, blockIdx.z);
    if (p.inside) b[p.index[0]] = factor * outflow(u, v, w, place, frame);
    if (p.second) b[p.index[1]] = factor * outflow(u, v, w, place + 1, frame);
}

extern "C" __global__ void merge_into(const Real *__restrict__ colours, Frame frame,
                                      Real *__restrict__ field) {
    CellPair p(blockIdx.z);
    long long place = frame.place(p, blockIdx.z);
    if (p.inside) field[place] = colours[p.index[0]];
    if (p.second) field[place + 1] = colours[p.index[1]];
}

extern "C" __global__ void merge_onto(const Real *__restrict__ colours, Frame frame,
                                      Real *__restrict__ field) {
    CellPair p(blockIdx.z);
    long long place = frame.place(p, blockIdx.z);
    if (p.inside) field[place] += colours[p.index[0]];
    if (p.second) field[place + 1] += colours[p.index[1]];
}

// --- projection ---

extern "C" __global__ void divergence(Field u, Field v, Field w, Real factor, Colours out) {
    Cell c;
    if (!c.inside()) return;
    Real in_plane =
        difference(u, c, 0, velocity_ghosts(0)) + difference(v, c, 1, velocity_ghosts(1));
    out(c) = factor * (in_plane + difference(w, c, 2, velocity_ghosts(2)));
}

extern "C" __global__ void subtract_gradient(Field u, Field v, Field w, Colours p, Real factor) {
    Cell c;
    if (!c.inside()) return;
    Real in_x = difference(p, c, 0, scalar_ghosts()), in_y = difference(p, c, 1, scalar_ghosts()),
         in_z = difference(p, c, 2, scalar_ghosts());
    Real old_u = u(c), old_v = v(c),
         old_w = w(c);  // all reads first: writes could change what follows
    u(c) = fma(-factor, in_x, old_u);
    v(c) = fma(-factor, in_y, old_v);
    w(c) = fma(-factor, in_z, old_w);
}

// --- forces and sources ---

extern "C" __global__ void buoyancy(Field u, Field v, Field w, Field density, Real in_x, Real in_y,
                                    Real in_z) {
    Cell c;
    if (!c.inside()) return;
    Real here = density(c), old_u = u(c), old_v = v(c), old_w = w(c);
    u(c) = fma(in_x, here, old_u);
    v(c) = fma(in_y, here, old_v);
    w(c) = fma(in_z, here, old_w);
}

struct Vector {
    Real x, y, z;
};

__device__ inline Real length_of(const Vector &a) {
    return sqrt(fma(a.x, a.x, fma(a.y, a.y, a.z * a.z)));
}

__device__ inline Vector curl(Field u, Field v, Field w, const Cell &c, Real factor) {
    return {factor *
                (difference(w, c, 1, velocity_ghosts(2)) - difference(v, c, 2, velocity_ghosts(1))),
            factor *
                (difference(u, c, 2, velocity_ghosts(0)) - difference(w, c, 0, velocity_ghosts(2))),
            factor * (difference(v, c, 0, velocity_ghosts(1)) -
                      difference(u, c, 1, velocity_ghosts(0)))};
}

extern "C" __global__ void curl_length(Field u, Field v, Field w, Real factor, Field out) {
    Cell c;
    if (c.inside()) out(c) = length_of(curl(u, v, w, c, factor));
}

// Vorticity confinement: `strength` times (the direction in which |curl| grows) x curl.
extern "C" __global__ void confine(Field u, Field v, Field w, Field length, Real factor,
                                   Real strength, Field new_u, Field new_v, Field new_w) {
    Cell c;
    if (!c.inside()) return;
    Vector rotation = curl(u, v, w, c, factor);
    Vector slope = {factor * difference(length, c, 0, scalar_ghosts()),
                    factor * difference(length, c, 1, scalar_ghosts()),
                    factor * difference(length, c, 2, scalar_ghosts())};
    Real size = length_of(slope);
    Real scale = size == 0 ? 0 : strength / size;
    new_u(c) = fma(scale, slope.y * rotation.z - slope.z * rotation.y, u(c));
    new_v(c) = fma(scale, slope.z * rotation.x - slope.x * rotation.z, v(c));
    new_w(c) = fma(scale, slope.x * rotation.y - slope.y * rotation.x, w(c));
}

// keep * cell + value: keep is 1 to add and 0 to set.
__device__ inline void update(Real &cell, Real keep, Real value) {
    cell = keep == 0 ? value : cell + value;
}

extern "C" __global__ void update_box(Field field, int x0, int x1, int y0, int y1, int z0, int z1,
                                      Real keep, Real value) {
    Cell c;
    int z = FIRST + c.z;
    if (c.inside() && c.x >= x0 && c.x < x1 && c.y >= y0 && c.y < y1 && z >= z0 && z < z1)
        update(field(c), keep, value);
}

__device__ inline double square(double x) { return __dmul_rn(x, x); }

// Each operation is rounded, as NumPy does it: kernels on CPUs choose the same cells.
extern "C" __global__ void update_sphere(Field field, double x, double y, double z,
                                         double radius_squared, Real keep, Real value) {
    Cell c;
    double in_plane = __dadd_rn(square(c.x - x), square(c.y - y));
    bool within = __dadd_rn(in_plane, square(FIRST + c.z - z)) <= radius_squared;
    if (c.inside() && within) update(field(c), keep, value);
}

// --- over all cells ---

__device__ inline Real maximum(Real a, Real b) { return bits(a) > bits(b) ? a : b; }

// Several blocks share a plane. A warp raises the maximum once, unless it sees one that is high
// enough.
template <class Array>
__device__ inline void find_largest(const Array &f, Real *largest) {
    Real most = 0;
    for (int i = blockIdx.x * SUM_THREADS + threadIdx.x; i < PLANE; i += gridDim.x * SUM_THREADS)
        most = maximum(fabs(f(Cell(i % NX, i / NX, blockIdx.y))), most);
    for (int distance = 16; distance > 0; distance /= 2)
        most = maximum(most, __shfl_xor_sync(~0u, most, distance));
    if (threadIdx.x % 32 == 0 && bits(most) > bits(*largest)) raise_maximum(largest, most);
}
extern "C" __global__ void largest(Field field, Real *largest) { find_largest(field, largest); }
extern "C" __global__ void largest_in_colours(Colours colours, Real *largest) {
    find_largest(colours, largest);
}

extern "C" __global__ void take_limit(Real factor, const Real *largest, Real *limit) {
    *limit = factor * *largest;
}

// Sum a plane in an order that depends on its cells alone: every SUM_THREADS-th cell in a thread,
// then pairs of threads.
struct Identity {
    __device__ static double of(double value) { return value; }
};
struct Square {
    __device__ static double of(double value) { return value * value; }
};

__device__ inline double weight_at_walls(const Cell &c) {
    double in_x = 1 + !PERIODIC_X * ((c.x == 0) + (c.x == NX - 1)),
           in_y = 1 + !PERIODIC_Y * ((c.y == 0) + (c.y == NY - 1));
    return in_x * in_y;
}

template <class Term>
__device__ inline void sum_plane(Field field, bool ghosts, double *sums) {
    __shared__ double part[SUM_THREADS];
    double sum = 0;
    for (int i = threadIdx.x; i < PLANE; i += SUM_THREADS) {
        Cell c(i % NX, i / NX, blockIdx.x);
        double term = Term::of(field(c));
        sum += ghosts ? weight_at_walls(c) * term : term;
    }
    part[threadIdx.x] = sum;
    for (int half = SUM_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] += part[0];
}
extern "C" __global__ void plane_sums(Field field, double *sums) {
    sum_plane<Identity>(field, false, sums);
}
extern "C" __global__ void plane_sums_with_ghosts(Field field, double *sums) {
    sum_plane<Identity>(field, true, sums);
}
extern "C" __global__ void plane_squares(Field field, double *sums) {
    sum_plane<Square>(field, false, sums);
}

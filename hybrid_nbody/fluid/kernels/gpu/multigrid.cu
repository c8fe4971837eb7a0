// Multigrid on a GPU: coarse grids, restriction to the next grid, and prolongation back.
//
// A coarse grid is a field with a halo plane at each end, not stored by colour: it has an eighth of
// the cells at most. Its axes x and y wrap around; the coupling to a cell behind a wall is 0.
// Tables are those of coarsening.py.
//
// Compiled with the macros of ``grid.cuh`` and -DSUM_THREADS (of a block that sums).

#include "solve.cuh"

#define TAPS 3  // most fine cells in a coarse one

// A field: planes -1 ... planes.
struct Grid {
    int columns, rows, planes;
    __device__ long long at(int x, int y, int z) const {
        return ((long long)(z + 1) * rows + y) * columns + x;
    }
    __device__ bool has(const Cell &c) const { return c.x < columns && c.y < rows && c.z < planes; }
};
#define GRID int columns, int rows, int planes
#define THE_GRID {columns, rows, planes}

struct System {
    Real shift, neighbour;
};

// --- coarse grids ---

// Factors of the cell before and behind along an axis, and of the cell itself.
struct Couplings {
    const Real *factor;
    int number;
    __device__ Real before(int i) const { return factor[i]; }
    __device__ Real behind(int i) const { return factor[number + i]; }
    __device__ Real diagonal(int i) const { return factor[2 * number + i]; }
};
struct AllCouplings {
    Couplings x, y, z;
    __device__ AllCouplings(const Grid &g, const Real *x, const Real *y, const Real *z)
        : x{x, g.columns}, y{y, g.rows}, z{z, g.planes} {}
    __device__ Real diagonal(const Cell &c) const {
        return x.diagonal(c.x) + (y.diagonal(c.y) + z.diagonal(c.z));
    }
};

__device__ inline Real residual(const Cell &c, const Grid &g, const Real *x, const Real *b,
                                const System &s, const AllCouplings &of) {
    int left = c.x ? c.x - 1 : g.columns - 1, right = c.x + 1 < g.columns ? c.x + 1 : 0;
    int front = c.y ? c.y - 1 : g.rows - 1, back = c.y + 1 < g.rows ? c.y + 1 : 0;
    Real here = x[g.at(c.x, c.y, c.z)];
    Real along_x =
        of.x.before(c.x) * x[g.at(left, c.y, c.z)] + of.x.behind(c.x) * x[g.at(right, c.y, c.z)];
    Real along_y =
        of.y.before(c.y) * x[g.at(c.x, front, c.z)] + of.y.behind(c.y) * x[g.at(c.x, back, c.z)];
    Real along_z = of.z.before(c.z) * x[g.at(c.x, c.y, c.z - 1)] +
                   of.z.behind(c.z) * x[g.at(c.x, c.y, c.z + 1)];
    Real around = (along_x + along_y) + along_z - of.diagonal(c) * here;
    return (b[g.at(c.x, c.y, c.z)] - s.shift * here) + s.neighbour * around;
}

#define COARSE_EQUATION                                                                           \
    const Real *x, const Real *b, Real shift, Real neighbour, const Real *of_x, const Real *of_y, \
        const Real *of_z

extern "C" __global__ void sweep(int colour, GRID, Real *x, const Real *b, Real shift,
                                 Real neighbour, const Real *of_x, const Real *of_y,
                                 const Real *of_z, const int *control) {
    if (control[DONE]) return;
    Grid g = THE_GRID;
    Cell pair;
    Cell c(2 * pair.x + ((colour + pair.y + pair.z) & 1), pair.y, pair.z);
    if (!g.has(c)) return;
    System s = {shift, neighbour};
    AllCouplings of(g, of_x, of_y, of_z);
    x[g.at(c.x, c.y, c.z)] += residual(c, g, x, b, s, of) / (shift + neighbour * of.diagonal(c));
}

// --- to the coarser grid ---

// The fine cells that each of `number` coarse ones covers, and which part of it.
struct Averaging {
    const unsigned *index;
    const Real *weight;
    int number;
};

template <class Residual>
__device__ inline Real average(const Cell &to, const Averaging &along_x, const Averaging &along_y,
                               const Residual &residual) {
    Real total = 0;
    for (int j = 0; j < TAPS; ++j) {
        Real share = along_y.weight[j * along_y.number + to.y], row = 0;
        if (share > 0)
#pragma unroll
            for (int i = 0; i < TAPS; ++i) {
                Real part = along_x.weight[i * along_x.number + to.x];
                int from = along_x.index[i * along_x.number + to.x];
                if (part > 0)
                    row +=
                        part * residual(from, (int)along_y.index[j * along_y.number + to.y], to.z);
            }
        total += share * row;
    }
    return total;
}

#define AVERAGING \
    const unsigned *index_x, const Real *weight_x, const unsigned *index_y, const Real *weight_y

extern "C" __global__ void restrict_rows(GRID, COARSE_EQUATION, AVERAGING, int to_columns,
                                        int to_rows, Real *averages, const int *control) {
    if (control[DONE]) return;
    Grid g = THE_GRID, to_grid = {to_columns, to_rows, planes};
    Cell to;
    if (!to_grid.has(to)) return;
    System s = {shift, neighbour};
    AllCouplings of(g, of_x, of_y, of_z);
    auto value = [&](int i, int j, int k) { return residual(Cell(i, j, k), g, x, b, s, of); };
    averages[to_grid.at(to.x, to.y, to.z)] =
        average(to, {index_x, weight_x, to_columns}, {index_y, weight_y, to_rows}, value);
}

extern "C" __global__ void restrict_planes(GRID, const Real *averages, const unsigned *index,
                                          const Real *weight, Real *coarse, const int *control) {
    if (control[DONE]) return;
    Grid g = THE_GRID;
    Cell c;
    if (!g.has(c)) return;
    Real total = 0;
    for (int i = 0; i < TAPS; ++i) {
        Real part = weight[i * planes + c.z];
        if (part > 0) total += part * averages[g.at(c.x, c.y, (int)index[i * planes + c.z] - 1)];
    }
    coarse[g.at(c.x, c.y, c.z)] = total;
}

// Subtract their average from `number` values. One block.
extern "C" __global__ void subtract_mean(int number, Real *values, const int *control) {
    __shared__ double part[SUM_THREADS];
    if (control[DONE]) return;
    double sum = 0;
    for (int i = threadIdx.x; i < number; i += SUM_THREADS) sum += values[i];
    part[threadIdx.x] = sum;
    for (int half = SUM_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    Real average = part[0] / number;
    for (int i = threadIdx.x; i < number; i += SUM_THREADS) values[i] -= average;
}

// --- the finest grid, by colour ---

struct Finest {
    Colours x, b;
    Equation e;
    __device__ Real along(int axis, const Cell &c) const {
        return next_to(x, c, axis, -1, e.ghosts) + next_to(x, c, axis, 1, e.ghosts);
    }
    // At index `from` of a row in the order of even, then odd x. Zero where all cells are equal and
    // b is shift * x.
    __device__ Real operator()(int from, int j, int k) const {
        Cell c(2 * (from % HALF) + from / HALF, j, k);
        Real here = x(c), around = along(0, c) + along(1, c);
        around = (around - 4 * here) + (along(2, c) - 2 * here);
        return (b(c) - e.shift * here) + e.neighbour * around;
    }
};

extern "C" __global__ void restrict_finest_rows(Colours x, Colours b, EQUATION, AVERAGING,
                                                   int to_columns, int to_rows, Real *averages,
                                                   const int *control) {
    if (control[DONE]) return;
    Grid to_grid = {to_columns, to_rows, PLANES};
    Cell to;
    if (!to_grid.has(to)) return;
    Finest residual = {x, b, THE_EQUATION};
    averages[to_grid.at(to.x, to.y, to.z)] =
        average(to, {index_x, weight_x, to_columns}, {index_y, weight_y, to_rows}, residual);
}

// --- back to the finer grid ---

// The two coarse cells around each fine one.
struct Interpolation {
    const unsigned *lower, *upper;
    const Real *lower_weight, *upper_weight;
};
#define ALONG(axis)                                                                              \
    const unsigned *lower_##axis, const unsigned *upper_##axis, const Real *lower_weight_##axis, \
        const Real *upper_weight_##axis
#define THE(axis) {lower_##axis, upper_##axis, lower_weight_##axis, upper_weight_##axis}

__device__ inline Real between(const Interpolation &along, int i, Real lower, Real upper) {
    return along.lower_weight[i] * lower + along.upper_weight[i] * upper;
}

// At index i of the table of x, in row j of plane k; the table of z counts halo planes.
__device__ inline Real prolonged(const Grid &g, const Real *coarse, const Interpolation &along_x,
                                   const Interpolation &along_y, const Interpolation &along_z,
                                   int i, int j, int k) {
    Real value[2][2];
    for (int y = 0; y < 2; ++y)
        for (int z = 0; z < 2; ++z) {
            int row = y ? along_y.upper[j] : along_y.lower[j],
                plane = (int)(z ? along_z.upper[k] : along_z.lower[k]) - 1;
            value[z][y] = between(along_x, i, coarse[g.at(along_x.lower[i], row, plane)],
                                  coarse[g.at(along_x.upper[i], row, plane)]);
        }
    return between(along_z, k, between(along_y, j, value[0][0], value[0][1]),
                   between(along_y, j, value[1][0], value[1][1]));
}

extern "C" __global__ void prolong(GRID, const Real *coarse, ALONG(x), ALONG(y), ALONG(z),
                                   int fine_columns, int fine_rows, int fine_planes, Real *x,
                                   const int *control) {
    if (control[DONE]) return;
    Grid g = THE_GRID, fine = {fine_columns, fine_rows, fine_planes};
    Cell c;
    if (fine.has(c))
        x[fine.at(c.x, c.y, c.z)] += prolonged(g, coarse, THE(x), THE(y), THE(z), c.x, c.y, c.z);
}

extern "C" __global__ void prolong_to_finest(GRID, const Real *coarse, ALONG(x), ALONG(y), ALONG(z),
                                           Real tolerance, Colours x, int *control) {
    if (control[DONE]) return;
    Grid g = THE_GRID;
    Cell c;
    bool changed = false;
    if (c.inside()) {
        Real change =
            prolonged(g, coarse, THE(x), THE(y), THE(z), c.x % 2 * HALF + c.x / 2, c.y, c.z);
        x(c) += change;
        changed = fabs(change) > tolerance;
    }
    raise_flag(changed, control + CHANGED);
}

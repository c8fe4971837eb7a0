// From positions to keys along a Morton curve, and from sorted keys to the cells of an octree.
//
// All cells follow from the keys at once. A body's leaf is one level below the lowest cell that
// holds it and more than CAPACITY bodies, which shows in a window of CAPACITY bodies to each side.
// The cells that start at a body are those of the levels between what it shares with the body before
// and its leaf.

#include "tree.cuh"

#define THREADS 256
#define SCANNERS 1024  // threads that add up what blocks have counted
#define LEAST_EXTENT 0x1p-958  // as in cube.py

// Fill the rows of bodies but for their masses: positions, and lengths of accelerations.
extern "C" __global__ void fill_rows(int number, const double *position, const double *acceleration,
                                     double length, double unit, double *rows) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    double *row = rows + 5 * (size_t)i, square[3];
    for (int axis = 0; axis < 3; ++axis) {
        row[axis] = position[3 * (size_t)i + axis] / length;
        double part = acceleration[3 * (size_t)i + axis] / unit;  // its square stays in range
        square[axis] = __dmul_rn(part, part);
    }
    row[4] = sqrt(__dadd_rn(square[0], __dadd_rn(square[1], square[2])));
}

// Each block: the lowest and highest coordinates of some of the bodies.
extern "C" __global__ void find_box(int number, int columns, const double *rows, double *box) {
    __shared__ double all[6][THREADS];
    double low[3], high[3];
    for (int axis = 0; axis < 3; ++axis) low[axis] = INFINITY, high[axis] = -INFINITY;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < number; i += gridDim.x * THREADS)
        for (int axis = 0; axis < 3; ++axis) {
            double x = rows[(size_t)columns * i + axis];
            // a comparison with NaN is false, so that it takes the place of any number and stays
            low[axis] = low[axis] <= x || low[axis] != low[axis] ? low[axis] : x;
            high[axis] = high[axis] >= x || high[axis] != high[axis] ? high[axis] : x;
        }
    for (int axis = 0; axis < 3; ++axis)
        all[axis][threadIdx.x] = low[axis], all[3 + axis][threadIdx.x] = high[axis];
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            for (int k = 0; k < 6; ++k) {
                double a = all[k][threadIdx.x], b = all[k][threadIdx.x + half];
                all[k][threadIdx.x] = (k < 3 ? a <= b : a >= b) || a != a ? a : b;
            }
    }
    if (threadIdx.x < 6) box[6 * blockIdx.x + threadIdx.x] = all[threadIdx.x][0];
}

__device__ inline unsigned long long interleaved(unsigned long long cell) {
    cell = (cell | cell << 32) & 0x1F00000000FFFFull;
    cell = (cell | cell << 16) & 0x1F0000FF0000FFull;
    cell = (cell | cell << 8) & 0x100F00F00F00F00Full;
    cell = (cell | cell << 4) & 0x10C30C30C30C30C3ull;
    return (cell | cell << 2) & 0x1249249249249249ull;
}

// The smallest power of two that is not smaller than x > 0.
__device__ inline double power_from(double x) {
    int exponent;
    double part = frexp(x, &exponent);
    return ldexp(1.0, part == 0.5 ? exponent - 1 : exponent);
}

// The distance from |x| to the next larger number.
__device__ inline double spacing(double x) { return ldexp(1.0, max(ilogb(x), -1022) - 52); }

// Set the root: see `cube.cube_around`. Return whether it holds all bodies.
__device__ inline bool set_root(Tree *tree, const double *low, const double *high) {
    double extent = 0, largest = 0;
    for (int axis = 0; axis < 3; ++axis) {
        if (!isfinite(high[axis] - low[axis])) return false;
        extent = fmax(extent, high[axis] - low[axis]);
        largest = fmax(largest, fmax(fabs(low[axis]), fabs(high[axis])));
    }
    double edge = power_from(fmax(fmax(extent, 4 * spacing(largest)), LEAST_EXTENT));
    for (; isfinite(edge); edge *= 2) {
        bool holds = true;
        for (int axis = 0; axis < 3; ++axis) {
            tree->corner[axis] = floor(low[axis] / (edge / 2)) * (edge / 2);
            holds &= high[axis] < tree->corner[axis] + edge;
        }
        if (!holds) continue;
        tree->edge = edge;
        return true;
    }
    return false;
}

// Set the root around boxes of some bodies each; a warp takes a coordinate.
extern "C" __global__ void find_root(Tree *tree, int boxes, const double *box) {
    __shared__ double corners[6];
    int k = warp_of_block();
    double value = box[k];
    auto outer = [k](double a, double b) { return (k < 3 ? a <= b : a >= b) || a != a ? a : b; };
    for (int i = lane(); i < boxes; i += LANES) value = outer(value, box[6 * i + k]);
    value = over_warp(value, outer);
    if (lane() == 0) corners[k] = value;
    __syncthreads();
    if (threadIdx.x == 0) tree->report[FINITE] = set_root(tree, corners, corners + 3);
}

extern "C" __global__ void find_keys(const Tree *tree, int number, int columns, const double *rows,
                                     unsigned long long *keys) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    const double *row = rows + (size_t)columns * i;
    double scale = (1 << LEVELS) / tree->edge;  // smallest cells of a length
    unsigned long long a = (row[0] - tree->corner[0]) * scale, b = (row[1] - tree->corner[1]) * scale;
    unsigned long long c = (row[2] - tree->corner[2]) * scale;
    keys[i] = interleaved(a) | interleaved(b) << 1 | interleaved(c) << 2;
}

// The first column of `rows` is x; the fifth, if there is one, the last acceleration.
extern "C" __global__ void sort_bodies(const Tree *tree, int columns, const double *rows,
                                       const int *order) {
    const Tree t = *tree;
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= t.bodies) return;
    const double *row = rows + (size_t)columns * order[i];
    t.at[i] = {row[0], row[1], row[2], row[3]};
    t.acceleration[i] = columns > 4 ? row[4] : 1;
}

// Find the place of each body along the curve.
extern "C" __global__ void find_places(int number, const int *order, int *places) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < number) places[order[i]] = i;
}

// Bring rows along the curve into the order that bodies came in; a thread takes a number. Where
// coordinates are not finite, nor is the result.
extern "C" __global__ void unsort(const Tree *tree, long long numbers, int columns,
                                  const double *sums, const int *places, double *result) {
    long long k = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (k >= numbers) return;
    int body = k / columns, column = k % columns;
    double sum = sums[columns * (size_t)places[body] + column] + 0.0;  // never -0.0
    result[k] = tree->report[FINITE] ? sum : NAN;
}

// The number of digits that two keys begin with.
__device__ inline int shared_digits(unsigned long long a, unsigned long long b) {
    return a == b ? LEVELS : (__clzll(a ^ b) - 1) / 3;
}

// The highest level on which a cell with this acceleration is not too wide; `reach`: the edge of the
// root over the width of a cell with an acceleration of 1.
__device__ inline int wanted_level(double acceleration, double reach) {
    double ratio = reach * sqrt(acceleration);
    return ratio > 1 ? min(LEVELS, ilogb(ratio) + 1) : 0;
}

// The level of a body's leaf, from the first level on whose cells are not crowded: a cell is divided
// if it is too wide for all of its bodies, unless there is but one.
__device__ inline int leaf_level(const unsigned long long *keys, const unsigned char *wanted,
                                 int here, int lowest, int highest, int level) {
    for (; level < LEVELS && wanted[here] > level; ++level) {
        int mates = 0;
        bool wide = true;
        for (int k = here - 1; k >= lowest && shared_digits(keys[k], keys[here]) >= level; --k)
            ++mates, wide &= wanted[k] > level;
        for (int k = here + 1; k <= highest && shared_digits(keys[k], keys[here]) >= level; ++k)
            ++mates, wide &= wanted[k] > level;
        if (mates == 0 || !wide) break;
    }
    return level;
}

// The level of the part that holds body i; 0 where there are no parts.
__device__ inline int level_of_part(int parts, const int *ends, const unsigned char *levels, int i) {
    int part = first_above(ends, 0, parts, i);
    return part < parts ? levels[part] : 0;
}

// leaf[i]: the level of body i's leaf; above[i]: that of the last cell that holds the body before it,
// too. The cells between start at body i; counts[level][block]: how many of a level start at those of
// a block.
//
// Whatever cell is not crowded has at most CAPACITY bodies, which a window of CAPACITY bodies to each
// side holds. Cells that other ranks share are crowded: no leaf is above the part that it lies in.
extern "C" __global__ void find_levels(const Tree *tree, int number, const unsigned long long *keys,
                                       const double *rows, int columns, const int *order,
                                       int parts, const int *part_ends,
                                       const unsigned char *part_levels, int shared,
                                       signed char *above, unsigned char *leaf, int *counts) {
    __shared__ unsigned long long some[THREADS + 2 * CAPACITY];
    __shared__ unsigned char wanted[THREADS + 2 * CAPACITY];
    __shared__ signed char crowded[THREADS + CAPACITY];
    __shared__ int of_block[LEVELS + 1];
    int origin = blockIdx.x * THREADS - CAPACITY, i = blockIdx.x * THREADS + threadIdx.x;
    double reach = tree->width > 0 ? tree->edge / tree->width : 0;
    for (int k = threadIdx.x; k < THREADS + 2 * CAPACITY; k += THREADS) {
        int body = min(max(origin + k, 0), number - 1);
        some[k] = keys[body];
        wanted[k] = 0;
        if (reach > 0 && body == origin + k)
            wanted[k] = wanted_level(rows[(size_t)columns * order[body] + 4], reach);
    }
    if (threadIdx.x <= LEVELS) of_block[threadIdx.x] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < THREADS + CAPACITY; k += THREADS) {
        bool inside = origin + k >= 0 && origin + k + CAPACITY < number;
        crowded[k] = inside ? shared_digits(some[k], some[k + CAPACITY]) : -1;
    }
    __syncthreads();
    if (i < number) {
        int deepest = -1;
        for (int k = 0; k <= CAPACITY; ++k) deepest = max(deepest, (int)crowded[threadIdx.x + k]);
        int here = threadIdx.x + CAPACITY, least = level_of_part(parts, part_ends, part_levels, i);
        int level = min(LEVELS, max(deepest + 1, least));
        int last = i ? shared_digits(some[here - 1], some[here]) : shared;
        int lowest = max(here - CAPACITY, -origin);
        int highest = min(here + CAPACITY, number - 1 - origin);
        level = leaf_level(some, wanted, here, lowest, highest, level);
        above[i] = last;
        leaf[i] = level;
        for (int l = last + 1; l <= level; ++l) atomicAdd(of_block + l, 1);
    }
    __syncthreads();
    if (threadIdx.x <= LEVELS) counts[threadIdx.x * gridDim.x + blockIdx.x] = of_block[threadIdx.x];
}

// Replace the counts of a level by how many cells start at the bodies of the blocks before; a block
// takes a level.
extern "C" __global__ void scan_levels(Tree *tree, int blocks, int *counts) {
    __shared__ int sums[SCANNERS];
    int *of_level = counts + (size_t)blockIdx.x * blocks, before = 0;
    for (int start = 0; start < blocks; start += SCANNERS) {
        int k = start + threadIdx.x, own = k < blocks ? of_level[k] : 0;
        sums[threadIdx.x] = own;
        for (int distance = 1; distance < SCANNERS; distance *= 2) {
            __syncthreads();
            int other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
            __syncthreads();
            sums[threadIdx.x] += other;
        }
        __syncthreads();
        if (k < blocks) of_level[k] = before + sums[threadIdx.x] - own;
        before += sums[SCANNERS - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0) tree->report[COUNTS + blockIdx.x] = before;
}

// Number the cells of a rank that has all bodies; none if there is no memory for them, or bodies are
// nowhere. A thread does so.
extern "C" __global__ void number_cells(Tree *tree) {
    const long long *counts = tree->report + COUNTS;
    bool fits = tree->report[FINITE];
    for (int level = 0; level <= LEVELS; ++level) fits &= counts[level] <= tree->most[level];
    int cells = 0;
    for (int level = 0; level <= LEVELS; ++level) {
        tree->own_first[level] = tree->own_before[level] = tree->base[level] = cells;
        if (fits) cells += counts[level];
    }
    tree->own_before[LEVELS + 1] = tree->cells = tree->own = cells;
    *tree->used = 0;
}

__device__ inline unsigned long long below(int level) {
    return (1ull << 3 * (LEVELS - level)) - 1;  // the digits below a level
}

// Which threads of each warp of a block have a cell of each level that starts at their body.
typedef unsigned Starts[LEVELS + 1][THREADS / LANES];

// The number of cells of a level that start at the bodies of a block before this thread's.
__device__ inline int started_before(const Starts &starts, int level) {
    int warp = warp_of_block(), number = __popc(starts[level][warp] & ((1u << lane()) - 1));
    for (int k = 0; k < warp; ++k) number += __popc(starts[level][k]);
    return number;
}

// Make the cells that start at a body. Those of a level are numbered along the curve: the parent of the
// highest one is the last cell that started before.
extern "C" __global__ void make_cells(const Tree *tree, const signed char *above,
                                      const unsigned char *leaf, const int *counts) {
    const Tree t = *tree;
    __shared__ Starts starts;
    int i = blockIdx.x * THREADS + threadIdx.x;
    bool valid = i < t.bodies;
    int last = valid ? above[i] : LEVELS, deepest = valid ? leaf[i] : 0;
    for (int l = 0; l <= LEVELS; ++l) {
        unsigned mask = __ballot_sync(ALL_LANES, last < l && l <= deepest);
        if (lane() == 0) starts[l][warp_of_block()] = mask;
    }
    __syncthreads();
    if (!valid || t.own == 0 || last >= deepest) return;
    unsigned long long key = t.keys[i];
    int behind = t.bodies, parent = -1;
    for (int l = max(last, 0); l <= deepest; ++l) {
        int before = counts[(size_t)l * gridDim.x + blockIdx.x] + started_before(starts, l);
        int cell = tree->base[l] + before;
        if (l == last) {
            parent = cell - 1;
            continue;
        }
        behind = first_above(t.keys, i, behind, key | below(l));
        t.first[cell] = t.origin + i;
        t.last[cell] = behind == t.bodies ? tree->ends[l] : t.origin + behind;
        t.place[cell] = i;
        t.level[cell] = l;
        t.child[cell] = t.end[cell] = 0;
        t.parent[cell] = parent;
        parent = cell;
    }
}

// Tell the parent of a cell if this is its first or last child.
__device__ inline void link(const Tree &t, int cell) {
    int parent = t.parent[cell];
    if (parent < 0) return;
    if (t.first[cell] == t.first[parent]) t.child[parent] = cell;
    if (t.last[cell] == t.last[parent]) t.end[parent] = cell + 1;
}

extern "C" __global__ void link_cells(const Tree *tree) {
    const Tree t = *tree;
    int cell = blockIdx.x * THREADS + threadIdx.x;
    if (cell < t.cells) link(t, cell);
}

// The same for this rank's cells that are its alone.
extern "C" __global__ void link_whole_cells(const Tree *tree) {
    const Tree t = *tree;
    int k = blockIdx.x * THREADS + threadIdx.x, level = 0;
    if (k >= t.own) return;
    while (tree->own_before[level + 1] <= k) ++level;
    int cell = tree->own_first[level] + k - tree->own_before[level];
    if (level > 0 && is_whole(t, cell)) link(t, cell);
}

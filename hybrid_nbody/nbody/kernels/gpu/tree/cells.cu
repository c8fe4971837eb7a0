// From positions to keys along a Morton curve, and from sorted keys to the cells of an octree.
//
// All cells follow from the keys at once. A body's leaf is one level below the lowest cell that
// holds it and more than CAPACITY bodies, which shows in a window of CAPACITY bodies to each side.
// The cells that start at a body are those of the levels between what it shares with the body before
// and its leaf.

#include "tree.cuh"

#define THREADS 256

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

// `scale` is the number of the smallest cells along an edge, over its length.
extern "C" __global__ void find_keys(int number, int columns, const double *rows, double x,
                                     double y, double z, double scale, unsigned long long *keys) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    const double *row = rows + (size_t)columns * i;
    unsigned long long a = (row[0] - x) * scale, b = (row[1] - y) * scale, c = (row[2] - z) * scale;
    keys[i] = interleaved(a) | interleaved(b) << 1 | interleaved(c) << 2;
}

// The first column of `rows` is x; the fifth, if there is one, the last acceleration.
extern "C" __global__ void sort_bodies(const Tree *tree, int columns, const double *rows,
                                       const long long *order) {
    const Tree t = *tree;
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= t.bodies) return;
    const double *row = rows + columns * order[i];
    t.at[i] = {row[0], row[1], row[2], row[3]};
    t.acceleration[i] = columns > 4 ? row[4] : 1;
}

extern "C" __global__ void unsort(int number, int columns, const double *sums,
                                  const long long *order, double *result) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    for (int c = 0; c < columns; ++c)
        result[columns * order[i] + c] = sums[columns * (size_t)i + c] + 0.0;  // never -0.0
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

// starts[i]: the number of cells that start at body i; leaf[i]: the level of its leaf.
//
// Whatever cell is not crowded has at most CAPACITY bodies, which a window of CAPACITY bodies to each
// side holds. `reach` is that of `wanted_level`; 0: any width will do. Cells that other ranks share
// are crowded: part[i] is the level of the part that holds body i, and `shared` that of `Tree`.
extern "C" __global__ void find_levels(int number, const unsigned long long *keys,
                                       const double *rows, int columns, const long long *order,
                                       double reach, const unsigned char *part, int shared,
                                       int *starts, unsigned char *leaf, int *histogram) {
    __shared__ unsigned long long some[THREADS + 2 * CAPACITY];
    __shared__ unsigned char wanted[THREADS + 2 * CAPACITY];
    __shared__ signed char crowded[THREADS + CAPACITY];
    __shared__ int counts[LEVELS + 1];
    int origin = blockIdx.x * THREADS - CAPACITY, i = blockIdx.x * THREADS + threadIdx.x;
    for (int k = threadIdx.x; k < THREADS + 2 * CAPACITY; k += THREADS) {
        int body = min(max(origin + k, 0), number - 1);
        some[k] = keys[body];
        wanted[k] = 0;
        if (reach > 0 && body == origin + k)
            wanted[k] = wanted_level(rows[columns * order[body] + 4], reach);
    }
    if (threadIdx.x <= LEVELS) counts[threadIdx.x] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < THREADS + CAPACITY; k += THREADS) {
        bool inside = origin + k >= 0 && origin + k + CAPACITY < number;
        crowded[k] = inside ? shared_digits(some[k], some[k + CAPACITY]) : -1;
    }
    __syncthreads();
    if (i < number) {
        int deepest = -1;
        for (int k = 0; k <= CAPACITY; ++k) deepest = max(deepest, (int)crowded[threadIdx.x + k]);
        int here = threadIdx.x + CAPACITY, level = min(LEVELS, max(deepest + 1, (int)part[i]));
        int above = i ? shared_digits(some[here - 1], some[here]) : shared;
        int lowest = max(here - CAPACITY, -origin);
        int highest = min(here + CAPACITY, number - 1 - origin);
        level = leaf_level(some, wanted, here, lowest, highest, level);
        starts[i] = max(0, level - above);
        leaf[i] = level;
        for (int l = above + 1; l <= level; ++l) atomicAdd(counts + l, 1);
    }
    __syncthreads();
    if (threadIdx.x <= LEVELS && counts[threadIdx.x])
        atomicAdd(histogram + threadIdx.x, counts[threadIdx.x]);
}

// The first body from `from` on that does not share `level` digits with `key`, or the first that
// does.
__device__ inline int bound(const unsigned long long *keys, int from, int to,
                            unsigned long long key, bool beyond) {
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (beyond ? keys[middle] <= key : keys[middle] < key)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

__device__ inline unsigned long long below(int level) {
    return (1ull << 3 * (LEVELS - level)) - 1;  // the digits below a level
}

// offset[i]: the number of cells that start at the bodies before i. Fill levels in that order.
extern "C" __global__ void list_levels(int bodies, const int *offset, const unsigned char *leaf,
                                       unsigned char *levels) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= bodies) return;
    for (int k = offset[i]; k < offset[i + 1]; ++k) levels[k] = leaf[i] - (offset[i + 1] - 1 - k);
}

// `order` sorts the cells that start here by levels; number[k] becomes that of cell k.
extern "C" __global__ void number_cells(const Tree *tree, int cells, const unsigned char *levels,
                                        const long long *order, int *number) {
    int k = blockIdx.x * THREADS + threadIdx.x;
    if (k < cells) number[order[k]] = k + tree->shift[levels[order[k]]];
}

extern "C" __global__ void make_cells(const Tree *tree, const int *offset, const unsigned char *leaf,
                                      const int *number) {
    const Tree t = *tree;
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= t.bodies) return;
    unsigned long long key = t.keys[i];
    int behind = t.bodies, highest = leaf[i] - (offset[i + 1] - offset[i]) + 1;
    for (int l = highest; l <= leaf[i]; ++l) {
        int k = offset[i + 1] - 1 - (leaf[i] - l), cell = number[k];
        behind = bound(t.keys, i, behind, key | below(l), true);
        t.first[cell] = t.origin + i;
        t.last[cell] = behind == t.bodies ? tree->ends[l] : t.origin + behind;
        t.place[cell] = i;
        t.level[cell] = l;
        t.child[cell] = t.end[cell] = 0;
        if (l > highest) {
            t.parent[cell] = number[k - 1];
        } else if (l > 0) {
            int start = bound(t.keys, 0, i, key & ~below(l - 1), false);
            bool started_before = start == 0 && l - 1 <= t.shared;
            t.parent[cell] = started_before ? tree->own_first[l - 1]
                                            : number[offset[start + 1] - 1 - (leaf[start] - (l - 1))];
        } else {
            t.parent[cell] = -1;
        }
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

// The same for cells of a level from `from` on, those that are this rank's alone.
extern "C" __global__ void link_whole_cells(const Tree *tree, int from, int number) {
    const Tree t = *tree;
    int k = blockIdx.x * THREADS + threadIdx.x;
    if (k < number && is_whole(t, from + k)) link(t, from + k);
}

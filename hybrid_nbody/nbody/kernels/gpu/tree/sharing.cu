// What ranks need of each other: where octants of cells begin, the rows of cells, and the bodies of
// nearby leaves; and which cells of a tree that each of them has whole are whose.

#include "tree.cuh"

#define THREADS 256

// bounds[9 * k ...]: where the octants of bodies first[k] ... last[k] - 1 begin, and where they end.
extern "C" __global__ void find_child_bounds(int number, const unsigned long long *keys,
                                             const int *first, const int *last, int level,
                                             int *bounds) {
    int k = blockIdx.x * THREADS + threadIdx.x;
    if (k >= number) return;
    int low = first[k], bit = 3 * (LEVELS - 1 - level);
    bounds[9 * k] = low, bounds[9 * k + 8] = last[k];
    for (int digit = 1; digit < 8; ++digit) {
        int high = last[k];
        while (low < high) {
            int middle = low + (high - low) / 2;
            if ((keys[middle] >> bit & 7) < digit)
                low = middle + 1;
            else
                high = middle;
        }
        bounds[9 * k + digit] = low;
    }
}

#define MOST_BOUNDS 2048  // as in device_tree.py

// Count the keys from each of some bounds to the next; the first bound is 0.
extern "C" __global__ void count_between(int number, const unsigned long long *keys, int bounds,
                                         const unsigned long long *bound, int *counts) {
    __shared__ int of_block[MOST_BOUNDS];
    for (int k = threadIdx.x; k < bounds; k += THREADS) of_block[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < number; i += gridDim.x * THREADS) {
        unsigned long long key = keys[i];
        int low = 0, high = bounds;  // the last bound that is not larger lies between
        while (high - low > 1) {
            int middle = (low + high) / 2;
            if (bound[middle] <= key)
                low = middle;
            else
                high = middle;
        }
        atomicAdd(of_block + low, 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < bounds; k += THREADS)
        if (of_block[k]) atomicAdd(counts + k, of_block[k]);
}

// Find the number of cuts that are not behind a key: the rank that takes it.
extern "C" __global__ void find_ranks(int number, const unsigned long long *keys, int cuts,
                                      const unsigned long long *cut, unsigned long long *ranks) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    ranks[i] = first_above(cut, 0, cuts, keys[i]);
}

// A cell as other ranks get it.
struct Row {
    Point centre;
    double box[6];
    float summary[SUMMARY];
    float multipole[PITCH];
    int cell, first, last, parent, level;
    float tolerance;
};

// Fill rows first ... last - 1 of the cells that start on this rank. A warp takes one of its cells;
// there are a few warps more than rows, for cells that start on other ranks and have none.
extern "C" __global__ void __launch_bounds__(WARPS *LANES)
    pack_cells(const Tree *tree, int first, int last, Row *rows) {
    const Tree t = *tree;
    int own = first + warp_of_grid();
    if (own >= t.own) return;
    int cell = own_cell(tree, own), start = t.first[cell];
    // cells that start on others come first on their levels, as many as there are shared levels
    int number = own - min((int)t.level[cell], t.shared) - 1;
    if (start < t.origin || number < first || number >= last) return;
    Row &row = rows[number - first];
    for (int k = lane(); k < PITCH; k += LANES)
        row.multipole[k] = t.multipole[(size_t)cell * PITCH + k];
    if (lane() < SUMMARY) row.summary[lane()] = t.summary[(size_t)cell * SUMMARY + lane()];
    if (lane() < 6) row.box[lane()] = t.box[6 * (size_t)cell + lane()];
    if (lane() > 0) return;
    row.centre = t.centre[cell], row.tolerance = t.tolerance[cell];
    row.cell = cell, row.first = start, row.last = t.last[cell];
    row.parent = t.parent[cell], row.level = t.level[cell];
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES)
    unpack_cells(const Tree *tree, int number, const Row *rows) {
    const Tree t = *tree;
    if (warp_of_grid() >= number) return;
    const Row &row = rows[warp_of_grid()];
    int cell = row.cell;
    for (int k = lane(); k < PITCH; k += LANES)
        t.multipole[(size_t)cell * PITCH + k] = row.multipole[k];
    if (lane() < SUMMARY) t.summary[(size_t)cell * SUMMARY + lane()] = row.summary[lane()];
    if (lane() < 6) t.box[6 * (size_t)cell + lane()] = row.box[lane()];
    if (lane() > 0) return;
    t.centre[cell] = row.centre, t.tolerance[cell] = row.tolerance;
    t.first[cell] = row.first, t.last[cell] = row.last;
    t.parent[cell] = row.parent, t.level[cell] = row.level;
    t.child[cell] = t.end[cell] = 0;
}

// Set wanted[leaf] for the leaves of other ranks that are nearby; a warp takes a cell.
extern "C" __global__ void __launch_bounds__(WARPS *LANES)
    mark_nearby(const Tree *tree, unsigned char *wanted) {
    const Tree t = *tree;
    if (warp_of_grid() >= t.own) return;
    int cell = own_cell(tree, warp_of_grid());
    const int *segment = segment_at(t, t.nearby[cell]);
    for (; segment; segment = segment_at(t, segment[0]))
        for (int k = lane(); k < segment[1]; k += LANES) {
            int leaf = segment[2 + k];
            if (!is_whole(t, leaf)) wanted[leaf] = 1;
        }
}

// sizes[0][r][cell]: how many bodies of a cell this rank sends to rank r, which wants them; in
// sizes[1][r][cell], how many it gets of rank r, whose first body is starts[r].
extern "C" __global__ void size_messages(const Tree *tree, int rank, int ranks, const int *starts,
                                         const unsigned char *wanted, int *sizes) {
    int cell = blockIdx.x * THREADS + threadIdx.x, cells = tree->cells;
    if (cell >= cells) return;
    int first = tree->first[cell], size = tree->last[cell] - first;
    bool own = is_whole(*tree, cell), wants = wanted[(size_t)rank * cells + cell];
    for (int r = 0; r < ranks; ++r) {
        bool asked = own && r != rank && wanted[(size_t)r * cells + cell];
        bool here = wants && first >= starts[r] && first < starts[r + 1];
        sizes[(size_t)r * cells + cell] = asked ? size : 0;
        sizes[(size_t)(ranks + r) * cells + cell] = here ? size : 0;
    }
}

// Copy the bodies that others want of this rank's cells. ends[r][cell]: where they end among all
// that are sent. A warp takes a cell.
extern "C" __global__ void __launch_bounds__(WARPS *LANES)
    fill_messages(const Tree *tree, int rank, int ranks, const unsigned char *wanted,
                  const int *ends, Near *bodies, Low *low) {
    const Tree t = *tree;
    if (warp_of_grid() >= t.own) return;
    int cell = own_cell(tree, warp_of_grid());
    if (!is_leaf(t, cell) || !is_whole(t, cell)) return;
    int size = t.last[cell] - t.first[cell];
    for (int r = 0; r < ranks; ++r) {
        if (r == rank || !wanted[(size_t)r * t.cells + cell]) continue;
        int start = ends[(size_t)r * t.cells + cell] - size;
        for (int k = lane(); k < size; k += LANES) {
            int body = t.place[cell] + k;
            bodies[start + k] = t.near[body];
            low[start + k] = low_of(t.at[body], t.centre[cell], t.near[body]);
        }
    }
}

// Set the places of the leaves that this rank gets; they lie behind its own bodies.
extern "C" __global__ void place_messages(const Tree *tree, int rank, int ranks,
                                          const unsigned char *wanted, const int *ends) {
    int cell = blockIdx.x * THREADS + threadIdx.x, cells = tree->cells;
    if (cell >= cells || !wanted[(size_t)rank * cells + cell]) return;
    const int *arriving = ends + (size_t)ranks * cells;
    for (int r = 0; r < ranks; ++r) {
        const int *end = arriving + (size_t)r * cells + cell;
        if (end[0] > end[-1]) tree->place[cell] = tree->bodies + end[-1] - arriving[-1];
    }
}

// Fill the work for each body, in pairs of bodies: a source of an expansion is worth `pairs` of them.
extern "C" __global__ void __launch_bounds__(WARPS *LANES)
    count_work(const Tree *tree, double pairs, double *work) {
    const Tree t = *tree;
    if (warp_of_grid() >= t.own) return;
    int cell = own_cell(tree, warp_of_grid());
    if (!is_leaf(t, cell)) return;
    int near = 0, far = 0, size = t.last[cell] - t.first[cell];
    const int *segment = segment_at(t, t.nearby[cell]);
    for (; segment; segment = segment_at(t, segment[0]))
        for (int k = lane(); k < segment[1]; k += LANES) {
            int leaf = segment[2 + k];
            near += t.last[leaf] - t.first[leaf];
        }
    segment = segment_at(t, t.distant[cell]);
    for (; segment; segment = segment_at(t, segment[0])) far += segment[1];
    near = over_warp(near, [](int a, int b) { return a + b; });
    for (int k = lane(); k < size; k += LANES)
        work[t.place[cell] + k] = 1 + near + ceil(pairs * far / size);
}

// The first body of the leaf that holds a body, of a tree that has all bodies.
__device__ inline int start_of_leaf(const Tree &t, int body) {
    if (body >= t.bodies) return t.bodies;
    int cell = 0;
    while (!is_leaf(t, cell)) cell = first_above(t.last, t.child[cell], t.end[cell], body);
    return t.first[cell];
}

// Take the cells that hold bodies of this rank's share of a tree that it has whole, if there is memory
// for them; report how many there are on each level. Shares begin at the leaves that hold the bodies
// `cuts`; bounds[rank]: at which body. A thread takes a level.
extern "C" __global__ void take_share(Tree *tree, int rank, int ranks, const int *cuts, int *bounds) {
    __shared__ int counts[LEVELS + 1];
    const Tree t = *tree;
    int level = threadIdx.x;
    for (int k = threadIdx.x; k <= ranks; k += blockDim.x)
        bounds[k] = t.cells > 0 ? start_of_leaf(t, cuts[k]) : 0;
    __syncthreads();
    int begin = bounds[rank], end = bounds[rank + 1], first = 0;
    bool fits = true;
    if (level <= LEVELS) {
        int from = tree->base[level], to = level < LEVELS ? tree->base[level + 1] : t.cells;
        first = first_above(t.last, from, to, begin);
        int behind = first_above(t.first, first, to, end - 1);
        counts[level] = begin < end ? behind - first : 0;
        tree->report[SHARE + level] = counts[level];
        fits = counts[level] <= tree->most_taken[level];
    }
    fits = __syncthreads_and(fits);
    if (level > LEVELS) return;
    int before = 0;
    for (int above = 0; fits && above < level; ++above) before += counts[above];
    tree->own_first[level] = first;
    tree->own_before[level] = before;
    if (level < LEVELS) return;
    tree->own = tree->own_before[LEVELS + 1] = fits ? before + counts[LEVELS] : 0;
}

// Gather the sums at this rank's bodies, from `first` on, from the ranks that have summed them; a thread
// takes a number. Where coordinates are not finite, nor is the result.
extern "C" __global__ void gather_sums(const Tree *tree, int first, long long numbers, int columns,
                                       const int *places, const int *bounds,
                                       const double *const *sums, double *result) {
    long long k = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (k >= numbers) return;
    result[k] = NAN;
    if (!tree->report[FINITE]) return;
    int place = places[first + k / columns], rank = 0;
    while (place >= bounds[rank + 1]) ++rank;
    result[k] = __ldcg(sums[rank] + columns * (size_t)place + k % columns) + 0.0;  // never -0.0
}

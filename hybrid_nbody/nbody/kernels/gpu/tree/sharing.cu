// What ranks need of each other: where eighths of cells begin, the rows of cells, and the bodies of
// nearby leaves.

#include "tree.cuh"

#define THREADS 256

// bounds[9 * k ...]: where the eighths of bodies first[k] ... last[k] - 1 begin, and where they end.
extern "C" __global__ void find_eighths(int number, const unsigned long long *keys, const int *first,
                                        const int *last, int level, int *bounds) {
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

// A cell as other ranks get it.
struct Row {
    Point centre;
    double box[6];
    float summary[SUMMARY];
    Real multipole[PITCH];
    int cell, first, last, parent, level;
    float tolerance;
};

// Fill the rows of this rank's cells; those of cells that start on another one are left out. A warp
// takes a cell.
extern "C" __global__ void __launch_bounds__(WARPS *LANES) pack_cells(const Tree *tree, Row *rows) {
    const Tree t = *tree;
    if (warp_of_grid() >= t.own) return;
    int cell = own_cell(tree, warp_of_grid()), first = t.first[cell];
    if (first < t.origin) return;
    // cells that start on others come first on their levels, as many as there are shared levels
    Row &row = rows[warp_of_grid() - min((int)t.level[cell], t.shared) - 1];
    for (int k = lane(); k < PITCH; k += LANES)
        row.multipole[k] = t.multipole[(size_t)cell * PITCH + k];
    if (lane() < SUMMARY) row.summary[lane()] = t.summary[(size_t)cell * SUMMARY + lane()];
    if (lane() < 6) row.box[lane()] = t.box[6 * (size_t)cell + lane()];
    if (lane() > 0) return;
    row.centre = t.centre[cell], row.tolerance = t.tolerance[cell];
    row.cell = cell, row.first = first, row.last = t.last[cell];
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

// Copy the bodies of leaves; those of leaf k are from offset[k] on. A warp takes a leaf.
extern "C" __global__ void __launch_bounds__(WARPS *LANES)
    copy_bodies(const Tree *tree, int number, const int *leaves, const int *offset, Near *bodies) {
    const Tree t = *tree;
    if (warp_of_grid() >= number) return;
    int leaf = leaves[warp_of_grid()], size = t.last[leaf] - t.first[leaf];
    for (int k = lane(); k < size; k += LANES)
        bodies[offset[warp_of_grid()] + k] = t.near[t.place[leaf] + k];
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

// Each cell finds the sources that it can see as a whole; a warp takes a cell, a lane a source.
//
// A cell tests the sources that its parent could not accept. One that is accepted is distant; one
// that is not is opened until it is no larger than the cell, and waits for the cell's children;
// leaves that a leaf cannot accept are nearby. Where a source is not accepted because the cell is too
// large for it, its parts are no better: with few bodies in all, it waits for the cell's children too,
// and for a leaf all leaves within it are nearby. The order of a list follows from the tree alone.
//
// Cells take their turns in far and near field by the length of their lists: a long one that came last
// would keep the device waiting.
//
// Compiled with -DMOST_EDGES and -DSMALL; see `expansions.py`.

#include "tree.cuh"

#define SEGMENT 256  // sources that are collected before they are written
// Sources that wait for their test are taken one by one from a height on: what they open then, level
// after level, adds 7 at most for each, until all below are done.
#define CHILDREN 8
#define HIGH 768
#define STACK (HIGH + (CHILDREN - 1) * (LANES + LEVELS + 1))

// A list of a cell's sources, written in segments.
struct List {
    int *some;         // SEGMENT sources that are not written yet
    int *link;         // where the number of the next segment is written
    int count = 0;

    __device__ List(int *memory, int *head) : some(memory), link(head) {
        if (lane() == 0) *link = -1;
    }

    // Append the sources of the lanes where `wanted`.
    __device__ void append(const Tree &t, bool wanted, int source) {
        unsigned mask = __ballot_sync(ALL_LANES, wanted);
        int number = __popc(mask);
        if (number == 0) return;
        if (count + number > SEGMENT) write(t);
        int before = __popc(mask & ((1u << lane()) - 1));
        if (wanted) some[count + before] = source;
        count += number;
        __syncwarp();
    }

    // Write what is collected as a segment; nothing if the pool is full.
    __device__ void write(const Tree &t) {
        if (count == 0) return;
        unsigned long long place = 0, units = (count + 2 + UNIT - 1) / UNIT;
        if (lane() == 0) place = atomicAdd(t.used, units);
        place = __shfl_sync(ALL_LANES, place, 0);
        if (place + units <= t.units) {
            int *at = t.pool + UNIT * place;
            for (int k = lane(); k < count; k += LANES) at[2 + k] = some[k];
            if (lane() == 0) at[0] = -1, at[1] = count, *link = place;
            link = at;
        }
        count = 0;
        __syncwarp();
    }
};

struct Target {
    Point centre;
    int cell, first, last, level;
    float radius, edge, error;
    bool leaf;
};

// A source that is marked, as one of whose leaves all are nearby, or one without its mark.
__device__ inline int marked(int source) { return -1 - source; }
__device__ inline int unmarked(int source) { return max(source, -1 - source); }

// What is known of a source, all of which is on its way at once.
struct Source {
    int first, last, child, end, level;
    float x, y, z;  // from there to the target
    float row[SUMMARY];
};

__device__ inline Source source_at(const Tree &t, const Target &target, int source) {
    Source s = {t.first[source], t.last[source], t.child[source], t.end[source], t.level[source]};
    const float4 *rows = (const float4 *)(t.summary + (size_t)source * SUMMARY);
    Point from = t.centre[source];
    for (int k = 0; k < SUMMARY / 4; ++k) {
        float4 four = rows[k];
        s.row[4 * k] = four.x, s.row[4 * k + 1] = four.y;
        s.row[4 * k + 2] = four.z, s.row[4 * k + 3] = four.w;
    }
    s.x = (float)(target.centre.x - from.x), s.y = (float)(target.centre.y - from.y);
    s.z = (float)(target.centre.z - from.z);
    return s;
}

// Whether the expansion of a source is accurate enough for a target; if not, whether the target is so
// much too large that its parts would be no better.
struct Verdict {
    bool accepted, hopeless;
};

// The error is that of Dehnen, Comput. Astrophys. Cosmol. 1:1, 2014, eq. 13 and 15, with the softened
// distance.
__device__ inline Verdict verdict(const Tree &t, const Target &target, const Source &s) {
    float inverse = rsqrtf(s.x * s.x + s.y * s.y + s.z * s.z + (float)t.eps2);
    float own = target.radius * inverse, edge = s.row[EDGE] * inverse, scale = edge, total = s.row[0];
    for (int k = 1; k <= ORDER; ++k) {
        total = total * own + s.row[k] * scale;
        scale *= edge;
    }
    float size = target.radius + s.row[RADIUS], limit = target.error * size;
    float estimate = 8 * fmaxf(target.radius, s.row[RADIUS]) * inverse * inverse * total;
    bool is_far = size * inverse < (float)t.angle;
    bool in_range = fmaxf(target.edge * inverse, edge) < MOST_EDGES;
    bool overlaps = s.first < target.last && target.first < s.last;
    bool is_small = s.row[RADIUS] <= SMALL * target.radius;
    bool is_worse = estimate > (float)t.hopeless * limit;
    bool accepted = is_far & in_range & (estimate <= limit) & !overlaps;
    bool hopeless = is_small & is_worse;
    return {accepted, hopeless};
}

// Sort the lanes' sources: into the lists, or their children onto the stack; return its height. Where
// `source` is marked, its leaves are all nearby.
__device__ inline int test(const Tree &t, const Target &target, bool valid, int source, List &far,
                           List &near, List &waits, int *stack, int height) {
    bool one_by_one = source < 0;
    source = unmarked(source);
    Source s = source_at(t, target, source);
    Verdict found = verdict(t, target, s);
    bool accepted = valid & found.accepted & !one_by_one;
    bool leaf = valid & (s.end == 0);
    bool small = valid & (leaf | found.hopeless | (s.level > target.level));
    bool opened = valid & !accepted & !leaf & (target.leaf | !small);
    far.append(t, accepted, source);
    near.append(t, valid && !accepted && leaf && target.leaf, source);
    waits.append(t, valid && !accepted && small && !target.leaf, source);
    int children = opened ? s.end - s.child : 0;
    int place = children;  // children of the lanes up to this one
    for (int distance = 1; distance < LANES; distance *= 2) {
        int other = __shfl_up_sync(ALL_LANES, place, distance);
        if (lane() >= distance) place += other;
    }
    int added = __shfl_sync(ALL_LANES, place, LANES - 1);
    place += height - children;
    bool marks = one_by_one | found.hopeless;
    for (int k = 0; k < children; ++k) stack[place + k] = marks ? marked(s.child + k) : s.child + k;
    __syncwarp();
    return height + added;
}

// A warp takes a cell of this rank of a level.
extern "C" __global__ void __launch_bounds__(WARPS *LANES) find_sources(const Tree *tree, int level) {
    const Tree t = *tree;
    __shared__ int stacks[WARPS][STACK], memory[WARPS][3][SEGMENT];
    if (warp_of_grid() >= own_count(tree, level)) return;
    int warp = warp_of_block(), cell = tree->own_first[level] + warp_of_grid();
    int *stack = stacks[warp];
    Target target = {t.centre[cell], cell, t.first[cell], t.last[cell], t.level[cell]};
    target.radius = target.centre.mass, target.edge = (float)edge_of(t, cell);
    target.error = (float)(t.error * t.tolerance[cell]);
    target.leaf = is_leaf(t, cell);
    List far(memory[warp][0], t.distant + cell), near(memory[warp][1], t.nearby + cell);
    List waits(memory[warp][2], t.waiting + cell);
    const int *segment = segment_at(t, cell ? t.waiting[t.parent[cell]] : -1);
    int read = 0, height = 0;
    if (cell == 0) stack[height++] = 0;
    __syncwarp();
    while (true) {
        int count = height > HIGH ? 1 : min(height, LANES);
        bool valid = lane() < count;
        int source = 0;
        if (height == 0) {
            if (!segment) break;
            int left = segment[1] - read;
            count = min(left, LANES);
            valid = lane() < count;
            if (valid) source = segment[2 + read + lane()];
            read += count;
            if (count == left) segment = segment_at(t, segment[0]), read = 0;
        } else {
            if (valid) source = stack[height - count + lane()];
            height -= count;
        }
        __syncwarp();
        height = test(t, target, valid, source, far, near, waits, stack, height);
    }
    far.write(t), near.write(t), waits.write(t);
}

// ---- The order in which cells take turns ----------------------------------------------------------------

// Numbers of cells in each class of far and near lists.
typedef int Counts[2][CLASSES];

// The class of a list by its length, the longest first; from class to class lengths fall by a factor of 1.4.
__device__ inline int class_of(const Tree &t, int first) {
    int length = 0;
    const int *segment = segment_at(t, first);
    for (; segment; segment = segment_at(t, segment[0])) length += segment[1];
    return max(0, CLASSES - 1 - (int)(2 * log2f(length + 1.f)));
}

// This rank's k-th cell, of one thread.
__device__ inline int cell_of_thread(const Tree *tree, int k) {
    int level = first_above(tree->own_before, 0, LEVELS + 1, k) - 1;
    return tree->own_first[level] + k - tree->own_before[level];
}

// The classes of the two lists of a cell, and how many cells of its block were counted in each before it.
struct Classes {
    int number[2], before[2];
};

// Count the cells of a block by the classes of their lists; return those of this rank's k-th cell.
__device__ inline Classes count_classes(const Tree *tree, int k, Counts &counts) {
    Classes found = {};
    int *all = counts[0];
    for (int c = threadIdx.x; c < 2 * CLASSES; c += blockDim.x) all[c] = 0;
    __syncthreads();
    if (k < tree->own) {
        int cell = cell_of_thread(tree, k);
        const int *first[2] = {tree->distant, tree->nearby};
        for (int list = 0; list < 2; ++list) {
            found.number[list] = class_of(*tree, first[list][cell]);
            found.before[list] = atomicAdd(&counts[list][found.number[list]], 1);
        }
    }
    __syncthreads();
    return found;
}

// Count the cells of each class.
extern "C" __global__ void count_lists(const Tree *tree) {
    __shared__ Counts counts;
    count_classes(tree, blockIdx.x * blockDim.x + threadIdx.x, counts);
    const int *all = counts[0];
    for (int c = threadIdx.x; c < 2 * CLASSES; c += blockDim.x)
        if (all[c]) atomicAdd(&tree->classes[c], all[c]);
}

// Give the cells their turns, class by class.
extern "C" __global__ void order_by_length(const Tree *tree) {
    __shared__ Counts counts, starts;
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    Classes found = count_classes(tree, k, counts);
    int *given = tree->classes + 2 * CLASSES;  // turns of each class that other blocks have taken
    for (int c = threadIdx.x; c < 2 * CLASSES; c += blockDim.x) {
        int start = 0;
        for (int other = c / CLASSES * CLASSES; other < c; ++other) start += tree->classes[other];
        starts[c / CLASSES][c % CLASSES] = start + atomicAdd(&given[c], counts[c / CLASSES][c % CLASSES]);
    }
    __syncthreads();
    if (k >= tree->own) return;
    tree->far_order[starts[0][found.number[0]] + found.before[0]] = k;
    tree->near_order[starts[1][found.number[1]] + found.before[1]] = k;
}

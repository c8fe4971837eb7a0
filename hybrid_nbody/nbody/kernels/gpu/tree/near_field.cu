// The sum over pairs of bodies in nearby leaves: a block takes a leaf, each of its warps some of the
// nearby ones, a lane one or two of its bodies. Sums over a source leaf are of type Real, their total
// is double.

#include "tree.cuh"

#define TARGETS 2  // bodies of a lane
#define BLOCKS (sizeof(Real) == 4 ? 8 : 4)  // of a multiprocessor: some work while others wait

__device__ inline float inverse_root(float x) { return rsqrtf(x); }
__device__ inline double inverse_root(double x) { return rsqrt(x); }

// Return 1 / u for the softened distance; 0 for bodies at one place without softening.
__device__ inline Real inverse_distance(Real square) {
    Real inverse = inverse_root(square);
    return UNSOFTENED && square == 0 ? 0 : inverse;
}

// Add the forces of `count` bodies of the tile to those at N places.
template <int N, bool potentials>
__device__ inline void add_tile(const Near *tile, int count, int self, const Real (&x)[N][3],
                                Real eps2, double (&total)[N][3]) {
    Real sum[N][3] = {};
#pragma unroll 4
    for (int k = 0; k < count; ++k) {
        Near s = tile[k];
#pragma unroll
        for (int n = 0; n < N; ++n) {
            Real dx = s.x - x[n][0], dy = s.y - x[n][1], dz = s.z - x[n][2];
            Real inverse = inverse_distance(dx * dx + dy * dy + dz * dz + eps2);
            if (potentials) {
                sum[n][0] += k == self + n * LANES ? 0 : s.mass * inverse;
            } else {
                Real weight = s.mass * inverse * (inverse * inverse);
                sum[n][0] += weight * dx, sum[n][1] += weight * dy, sum[n][2] += weight * dz;
            }
        }
    }
#pragma unroll
    for (int n = 0; n < N; ++n)
        for (int axis = 0; axis < 3; ++axis) total[n][axis] += (double)sum[n][axis];
}

// A leaf nearby: where its bodies are, and the way there.
struct Leaf {
    int begin, size;
    Real dx, dy, dz;
};

__device__ inline Leaf leaf_of(const Tree &t, const Point &centre, int leaf) {
    Point from = t.centre[leaf];
    return {t.place[leaf], t.last[leaf] - t.first[leaf], (Real)(from.x - centre.x),
            (Real)(from.y - centre.y), (Real)(from.z - centre.z)};
}

// What a warp shares: some of the leaves nearby, and bodies of one of them.
struct Shared {
    Leaf leaves[LANES];
    Near tile[LANES];
};

// Add the bodies of the first leaves, in tiles, to those at N places. The bodies of a tile are on their
// way while those of the one before are summed.
template <int N, bool potentials>
__device__ inline void add_some(const Tree &t, Shared &shared, int number, int first,
                                const Real (&x)[N][3], double (&total)[N][3]) {
    int begin = shared.leaves[0].begin, left = shared.leaves[0].size, k = 0;
    Near body = lane() < left ? t.near[begin + lane()] : Near{};
    while (k < number) {
        const Leaf &leaf = shared.leaves[k];
        int count = min(LANES, left), self = first + lane() - begin;
        __syncwarp();
        if (lane() < count)
            shared.tile[lane()] = {body.x + leaf.dx, body.y + leaf.dy, body.z + leaf.dz, body.mass};
        __syncwarp();
        begin += count, left -= count;
        if (left == 0 && ++k < number) begin = shared.leaves[k].begin, left = shared.leaves[k].size;
        if (lane() < left) body = t.near[begin + lane()];
        add_tile<N, potentials>(shared.tile, count, self, x, (Real)t.eps2, total);
    }
}

typedef double Totals[WARPS][TARGETS * LANES][3];

// Add the forces of all nearby leaves at the bodies of one from `first` on, N for each lane.
template <int N, bool potentials>
__device__ inline void add_leaves(const Tree &t, int cell, int first, int last, Shared &shared,
                                  Totals &totals) {
    Point centre = t.centre[cell];
    int turn = warp_of_block();  // of the first leaf that this warp takes of those to come
    Real x[N][3];
    double total[N][3] = {};
#pragma unroll
    for (int n = 0; n < N; ++n) {
        Near body = t.near[min(first + lane() + n * LANES, last - 1)];
        x[n][0] = body.x, x[n][1] = body.y, x[n][2] = body.z;
    }
    const int *segment = segment_at(t, t.nearby[cell]);
    for (; segment; segment = segment_at(t, segment[0])) {
        int count = segment[1];
        for (; turn < count; turn += WARPS * LANES) {
            int k = turn + WARPS * lane();
            __syncwarp();
            if (k < count) shared.leaves[lane()] = leaf_of(t, centre, segment[2 + k]);
            __syncwarp();
            int number = min(LANES, (count - turn + WARPS - 1) / WARPS);
            add_some<N, potentials>(t, shared, number, first, x, total);
        }
        turn = (turn - count) % WARPS;
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < N; ++n)
        for (int axis = 0; axis < 3; ++axis)
            totals[warp_of_block()][lane() + n * LANES][axis] = total[n][axis];
    __syncthreads();
    constexpr int components = potentials ? 1 : 3;
    for (int k = threadIdx.x; k < components * min(N * LANES, last - first); k += WARPS * LANES) {
        double sum = t.sums[components * (size_t)first + k];
        for (int warp = 0; warp < WARPS; ++warp)
            sum += totals[warp][k / components][k % components];
        t.sums[components * (size_t)first + k] = sum;
    }
}

template <bool potentials>
__device__ inline void add_near_field(const Tree *tree) {
    const Tree t = *tree;
    __shared__ Shared of_warps[WARPS];
    __shared__ Totals totals;
    if (blockIdx.x >= t.own) return;
    int cell = own_cell(tree, blockIdx.x);
    if (!is_leaf(t, cell)) return;
    Shared &shared = of_warps[warp_of_block()];
    int first = t.place[cell], last = first + t.last[cell] - t.first[cell];
    for (; last - first > LANES; first += TARGETS * LANES)
        add_leaves<TARGETS, potentials>(t, cell, first, last, shared, totals);
    if (first < last) add_leaves<1, potentials>(t, cell, first, last, shared, totals);
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES, BLOCKS) add_nearby_accelerations(const Tree *tree) {
    add_near_field<false>(tree);
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES, BLOCKS) add_nearby_potentials(const Tree *tree) {
    add_near_field<true>(tree);
}

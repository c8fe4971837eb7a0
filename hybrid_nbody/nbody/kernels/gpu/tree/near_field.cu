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

// Add the bodies of a nearby leaf, in tiles, to those at N places about the centre of another.
template <int N, bool potentials>
__device__ inline void add_leaf(const Tree &t, const Point &centre, int leaf, int first, Near *tile,
                                const Real (&x)[N][3], double (&total)[N][3]) {
    Point from = t.centre[leaf];
    Real dx = (Real)(from.x - centre.x), dy = (Real)(from.y - centre.y);
    Real dz = (Real)(from.z - centre.z);
    int begin = t.place[leaf], end = begin + t.last[leaf] - t.first[leaf];
    for (int start = begin; start < end; start += LANES) {
        int count = min(LANES, end - start);
        __syncwarp();
        if (lane() < count) {
            Near s = t.near[start + lane()];
            tile[lane()] = {s.x + dx, s.y + dy, s.z + dz, s.mass};
        }
        __syncwarp();
        add_tile<N, potentials>(tile, count, first + lane() - start, x, (Real)t.eps2, total);
    }
}

typedef double Totals[WARPS][TARGETS * LANES][3];

// Add the forces of all nearby leaves at the bodies of one from `first` on, N for each lane.
template <int N, bool potentials>
__device__ inline void add_leaves(const Tree &t, int cell, int first, int last, Near *tile,
                                  Totals &totals) {
    Point centre = t.centre[cell];
    int turn = 0;
    Real x[N][3];
    double total[N][3] = {};
#pragma unroll
    for (int n = 0; n < N; ++n) {
        Near body = t.near[min(first + lane() + n * LANES, last - 1)];
        x[n][0] = body.x, x[n][1] = body.y, x[n][2] = body.z;
    }
    for (int segment = t.nearby[cell]; segment >= 0; segment = t.pool[segment])
        for (int k = 0; k < t.pool[segment + 1]; ++k)
            if (turn++ % WARPS == warp_of_block())
                add_leaf<N, potentials>(t, centre, t.pool[segment + 2 + k], first, tile, x, total);
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
    __shared__ Near tiles[WARPS][LANES];
    __shared__ Totals totals;
    if (blockIdx.x >= t.own) return;
    int cell = own_cell(tree, blockIdx.x);
    if (!is_leaf(t, cell)) return;
    Near *tile = tiles[warp_of_block()];
    int first = t.place[cell], last = first + t.last[cell] - t.first[cell];
    for (; last - first > LANES; first += TARGETS * LANES)
        add_leaves<TARGETS, potentials>(t, cell, first, last, tile, totals);
    if (first < last) add_leaves<1, potentials>(t, cell, first, last, tile, totals);
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES, BLOCKS) add_nearby_accelerations(const Tree *tree) {
    add_near_field<false>(tree);
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES, BLOCKS) add_nearby_potentials(const Tree *tree) {
    add_near_field<true>(tree);
}

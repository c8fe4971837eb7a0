// The sum over pairs of bodies in nearby leaves: a block takes a leaf, each of its warps some of the
// nearby ones, a lane one or two of its bodies. Sums over a source leaf are of type Real, their total
// is double. Where the rounding of places to float would count, and always with CLOSELY, the differences of
// low parts, what it took, are added to those of places.

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

// The leaf that a block takes, in shared memory: few of its warps' steps ask for it.
struct Target {
    Point centre;
    float allowed;  // error of an acceleration
};

// The n-th body of a lane, of `first` ... `last` - 1.
__device__ inline int body_of_lane(int n, int first, int last) {
    return min(first + lane() + n * LANES, last - 1);
}

// A leaf nearby: where its bodies are, the way there, and whether low parts of places count.
struct Leaf {
    int begin, size, cell;
    bool is_close;
    Real dx, dy, dz;
};

// Whether low parts count in the forces of a leaf: each is off by the rounding of the distance between the
// farthest bodies, about. With CLOSELY they do, however large an error is allowed.
__device__ inline bool is_close(const Tree &t, const Target &target, int leaf, const Point &from) {
    if (sizeof(Real) == 8) return false;
    if (CLOSELY) return true;
    float rounding = 0x1p-24f * (float)(target.centre.mass + from.mass);
    float weight = t.summary[(size_t)leaf * SUMMARY + CLOSENESS];
    return rounding * weight > target.allowed;
}

__device__ inline Leaf leaf_of(const Tree &t, const Target &target, int leaf) {
    Point from = t.centre[leaf], centre = target.centre;
    return {t.place[leaf], t.last[leaf] - t.first[leaf], leaf, is_close(t, target, leaf, from),
            (Real)(from.x - centre.x), (Real)(from.y - centre.y), (Real)(from.z - centre.z)};
}

// What a warp shares: some of the leaves nearby, and bodies of one of them.
struct Shared {
    Leaf leaves[LANES];
    Near tile[LANES];
    Low low[LANES];
};

// Add the forces of `count` bodies of the tile to those at N places; with `closely` their low parts
// are added to differences.
template <int N, bool potentials, bool closely>
__device__ inline void add_tile(const Shared &shared, int count, int self, const Real (&x)[N][3],
                                const Low (&low)[N], Real eps2, double (&total)[N][3]) {
    Real sum[N][3] = {};
#pragma unroll 4
    for (int k = 0; k < count; ++k) {
        Near s = shared.tile[k];
        Low l = closely ? shared.low[k] : Low{};
#pragma unroll
        for (int n = 0; n < N; ++n) {
            Real dx = s.x - x[n][0], dy = s.y - x[n][1], dz = s.z - x[n][2];
            if (closely) dx += l.x - low[n].x, dy += l.y - low[n].y, dz += l.z - low[n].z;
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

// Put a coordinate of a source, about the centre of the targets, into the tile.
__device__ inline void split(double x, Real &high, Real &low) {
    high = (Real)x;
    low = (Real)(x - high);
}

// Put a source into the tile, with low parts. They are found alike on all ranks.
__device__ inline void put_closely(const Tree &t, const Point &centre, const Leaf &leaf, int body,
                                   const Near &near, Shared &shared) {
    Point from = t.centre[leaf.cell];
    Low own = body < t.bodies ? low_of(t.at[body], from, near) : t.low[body - t.bodies];
    Near &source = shared.tile[lane()];
    Low &low = shared.low[lane()];
    split((double)near.x + own.x + (from.x - centre.x), source.x, low.x);
    split((double)near.y + own.y + (from.y - centre.y), source.y, low.y);
    split((double)near.z + own.z + (from.z - centre.z), source.z, low.z);
    source.mass = near.mass;
}

// Add the forces of a tile whose low parts count.
template <int N, bool potentials>
__device__ inline void add_closely(const Tree &t, const Point &centre, int first, int last,
                                   const Shared &shared, int count, int self, const Real (&x)[N][3],
                                   double (&total)[N][3]) {
    Low low[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
        int body = body_of_lane(n, first, last);
        low[n] = low_of(t.at[body], centre, t.near[body]);
    }
    add_tile<N, potentials, true>(shared, count, self, x, low, (Real)t.eps2, total);
}

// Add the bodies of the first leaves, in tiles, to those at N places. The bodies of a tile are on their
// way while those of the one before are summed.
template <int N, bool potentials>
__device__ inline void add_some(const Tree &t, const Target &target, Shared &shared, int number,
                                int first, int last, const Real (&x)[N][3], double (&total)[N][3]) {
    int begin = shared.leaves[0].begin, left = shared.leaves[0].size, k = 0;
    Near body = lane() < left ? t.near[begin + lane()] : Near{};
    const Low nothing[N] = {};
    while (k < number) {
        const Leaf &leaf = shared.leaves[k];
        int count = min(LANES, left), self = first + lane() - begin;
        bool closely = sizeof(Real) == 4 && (CLOSELY || leaf.is_close);
        __syncwarp();
        if (lane() < count) {
            if (closely)
                put_closely(t, target.centre, leaf, begin + lane(), body, shared);
            else
                shared.tile[lane()] = {body.x + leaf.dx, body.y + leaf.dy, body.z + leaf.dz, body.mass};
        }
        __syncwarp();
        begin += count, left -= count;
        if (left == 0 && ++k < number) begin = shared.leaves[k].begin, left = shared.leaves[k].size;
        if (lane() < left) body = t.near[begin + lane()];
        if (closely)
            add_closely<N, potentials>(t, target.centre, first, last, shared, count, self, x, total);
        else
            add_tile<N, potentials, false>(shared, count, self, x, nothing, (Real)t.eps2, total);
    }
}

typedef double Totals[WARPS][TARGETS * LANES][3];

// Add the forces of all nearby leaves at the bodies of one from `first` on, N for each lane.
template <int N, bool potentials>
__device__ inline void add_leaves(const Tree &t, int cell, const Target &target, int first, int last,
                                  Shared &shared, Totals &totals) {
    int turn = warp_of_block();  // of the first leaf that this warp takes of those to come
    Real x[N][3];
    double total[N][3] = {};
#pragma unroll
    for (int n = 0; n < N; ++n) {
        Near body = t.near[body_of_lane(n, first, last)];
        x[n][0] = body.x, x[n][1] = body.y, x[n][2] = body.z;
    }
    const int *segment = segment_at(t, t.nearby[cell]);
    for (; segment; segment = segment_at(t, segment[0])) {
        int count = segment[1];
        for (; turn < count; turn += WARPS * LANES) {
            int k = turn + WARPS * lane();
            __syncwarp();
            if (k < count) shared.leaves[lane()] = leaf_of(t, target, segment[2 + k]);
            __syncwarp();
            int number = min(LANES, (count - turn + WARPS - 1) / WARPS);
            add_some<N, potentials>(t, target, shared, number, first, last, x, total);
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
    __shared__ Target target;
    if (blockIdx.x >= t.own) return;
    int cell = own_cell(tree, t.near_order[blockIdx.x]);
    if (!is_leaf(t, cell)) return;
    Shared &shared = of_warps[warp_of_block()];
    int first = t.place[cell], last = first + t.last[cell] - t.first[cell];
    if (threadIdx.x == 0) target = {t.centre[cell], (float)(t.error * t.tolerance[cell])};
    __syncthreads();
    for (; last - first > LANES; first += TARGETS * LANES)
        add_leaves<TARGETS, potentials>(t, cell, target, first, last, shared, totals);
    if (first < last) add_leaves<1, potentials>(t, cell, target, first, last, shared, totals);
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES, BLOCKS) add_nearby_accelerations(const Tree *tree) {
    add_near_field<false>(tree);
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES, BLOCKS) add_nearby_potentials(const Tree *tree) {
    add_near_field<true>(tree);
}

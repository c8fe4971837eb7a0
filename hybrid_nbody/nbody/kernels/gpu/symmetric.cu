// The pair force on a GPU, each pair of bodies computed once, in float32.
//
// Bodies lie in slots, CHUNK for each chunk, as `pack` of pair_force.cu leaves them. A tile is the
// pairs of some bodies of a chunk, its targets, with all bodies of the same or of another chunk,
// its sources. A warp takes it: each lane keeps several targets, and one source of a run of 32.
// After every step the sums of a source move on to the next lane, with other targets; after 32
// steps they are back. What a run adds to a source and a tile to a target is summed in float32,
// then split into multiples of several units, whose sums in float64 are exact (`exact_sums.py`): no
// order of the tiles, and no share of them among GPUs, changes a bit.
//
// Compiled with -DCHUNK, -DTARGETS and -DJERK_TARGETS (of a lane), -DTHREADS (of a block, whose warps
// have nothing to do with each other), and -DSHORT: 1 if many chunks are short. Their empty slots,
// which add nothing, are left out then, by runs of sources, and by halves of the targets of a lane.
// -DMOST_MOVES: kicks and drifts between two forces.

#include "motion.cuh"

#define RUN 32
#define RUNS (CHUNK / RUN)
#define ALL_LANES 0xffffffffu
#define FAR 1e18f  // so far away that accelerations vanish

struct __align__(16) Body { float x, y, z, mass; };
struct __align__(16) MovingBody { Body at; float vx, vy, vz, unused; };
struct Vector { float x, y, z; };
// Powers of two that bodies are multiplied with, to stay within float32.
struct Units { float length, mass, speed; };

__device__ inline const Body &body_of(const Body &b) { return b; }
__device__ inline const Body &body_of(const MovingBody &b) { return b.at; }
__device__ inline Body &body_of(Body &b) { return b; }
__device__ inline Body &body_of(MovingBody &b) { return b.at; }

__device__ inline Body in_units(const Body &b, const Units &u) {
    return {b.x * u.length, b.y * u.length, b.z * u.length, b.mass * u.mass};
}
__device__ inline MovingBody in_units(const MovingBody &b, const Units &u) {
    return {in_units(b.at, u), b.vx * u.speed, b.vy * u.speed, b.vz * u.speed};
}

__device__ inline Vector difference(const Body &s, const Body &t) {
    return {s.x - t.x, s.y - t.y, s.z - t.z};
}
__device__ inline float dot(const Vector &a, const Vector &b) {
    return fmaf(a.x, b.x, fmaf(a.y, b.y, a.z * b.z));
}
__device__ inline float inverse_root(const Vector &d, float eps2) {
    return rsqrtf(fmaf(d.x, d.x, fmaf(d.y, d.y, fmaf(d.z, d.z, eps2))));
}
__device__ inline void add(float weight, const Vector &d, float *sum) {
    sum[0] = fmaf(weight, d.x, sum[0]);
    sum[1] = fmaf(weight, d.y, sum[1]);
    sum[2] = fmaf(weight, d.z, sum[2]);
}

// Contributions of a pair to the sums of its target and of its source.

template <bool EQUAL_MASSES>
struct Acceleration {
    typedef Body Stored;
    static const int components = 3, words = 3, targets = TARGETS, least_blocks = 4;
    // Where masses are left out, slots without a body are far away.
    __device__ static Body prepared(Body b) {
        if (EQUAL_MASSES && b.mass == 0) b.x = FAR;
        return b;
    }
    __device__ static void add_pair(const Body &s, const Body &t, float eps2, float *to_target,
                                    float *to_source) {
        Vector d = difference(s, t);
        float inverse = inverse_root(d, eps2), cube = inverse * (inverse * inverse);
        add(EQUAL_MASSES ? cube : cube * s.mass, d, to_target);
        add(EQUAL_MASSES ? -cube : -cube * t.mass, d, to_source);
    }
};

struct Potential {
    typedef Body Stored;
    static const int components = 1, words = 2, targets = TARGETS, least_blocks = 5;
    __device__ static Body prepared(const Body &b) { return b; }
    __device__ static void add_pair(const Body &s, const Body &t, float eps2, float *to_target,
                                    float *to_source) {
        float inverse = inverse_root(difference(s, t), eps2);
        to_target[0] = fmaf(-s.mass, inverse, to_target[0]);
        to_source[0] = fmaf(-t.mass, inverse, to_source[0]);
    }
};

// The jerk is the time derivative of the acceleration: m (dv / r^3 - 3 (d . dv) d / r^5).
struct AccelerationAndJerk {
    typedef MovingBody Stored;
    static const int components = 6, words = 4, targets = JERK_TARGETS, least_blocks = 4;
    __device__ static MovingBody prepared(const MovingBody &b) { return b; }
    __device__ static void add_pair(const MovingBody &s, const MovingBody &t, float eps2,
                                    float *to_target, float *to_source) {
        Vector d = difference(s.at, t.at), dv = {s.vx - t.vx, s.vy - t.vy, s.vz - t.vz};
        float inverse = inverse_root(d, eps2), square = inverse * inverse, cube = inverse * square;
        float approach = -3.0f * square * dot(d, dv);
        Vector change = {fmaf(approach, d.x, dv.x), fmaf(approach, d.y, dv.y),
                         fmaf(approach, d.z, dv.z)};
        add(cube * s.at.mass, d, to_target);
        add(cube * s.at.mass, change, to_target + 3);
        add(-cube * t.at.mass, d, to_source);
        add(-cube * t.at.mass, change, to_source + 3);
    }
};

// Sums of every slot: row c * words + w counts component c in unit w.
struct Sums {
    int slots;
    double *rows;
    double rounders[4];  // 1.5 * 2^52 of each unit
};

// A number plus and minus its rounder is rounded to a multiple of the unit; what is left has fewer
// digits. Two units leave nothing, unless softening is tiny.
template <class Sum>
__device__ inline void add_exactly(double value, const Sums &sums, double *sum) {
#pragma unroll
    for (int word = 0; word < Sum::words; ++word) {
        if (word >= 2 && value == 0) return;
        double multiple = (value + sums.rounders[word]) - sums.rounders[word];
        atomicAdd(sum + (size_t)word * sums.slots, multiple);
        value -= multiple;
    }
}

template <class Sum>
__device__ inline void add_to_slot(const Sums &sums, int slot, int component, double value) {
    add_exactly<Sum>(value, sums, sums.rows + (size_t)component * Sum::words * sums.slots + slot);
}

// Move a body, stored about the origin of its chunk, to where it is from another origin; `high` +
// `low` lead there.
template <class Stored>
__device__ inline void move(Stored *body, const float *high, const float *low) {
    Body &b = body_of(*body);
    b.x = (b.x + low[0]) + high[0], b.y = (b.y + low[1]) + high[1], b.z = (b.z + low[2]) + high[2];
    // Kept, where the compiler would sooner add again.
    asm volatile("" : "+f"(b.x), "+f"(b.y), "+f"(b.z));
}

// Sum over a run of sources, each of which lies in `tile` twice, at `N` targets of a lane. Sources of
// another chunk get their sums in `to_source`. Among the sources of its own chunk a target's first one is itself if it is
// number `self` of its lane.
template <class Sum, int N, bool OTHER_CHUNK>
__device__ inline void sum_run(const typename Sum::Stored *tile, const typename Sum::Stored *t,
                               int self, float eps2, float (*to_targets)[Sum::components],
                               float *to_source) {
    int next_lane = threadIdx.x + 1;
#pragma unroll 4
    for (int step = 0; step < RUN; ++step) {
        typename Sum::Stored s = tile[step];
#pragma unroll
        for (int k = 0; k < N; ++k)
            if (OTHER_CHUNK || step > 0 || k != self)
                Sum::add_pair(s, t[k], eps2, to_targets[k], to_source);
        if (OTHER_CHUNK)
            for (int c = 0; c < Sum::components; ++c)
                to_source[c] = __shfl_sync(ALL_LANES, to_source[c], next_lane);
    }
}

// Sum over the first runs of sources of a chunk: the others are empty.
template <class Sum, int N, bool OTHER_CHUNK>
__device__ inline void sum_chunk(int chunk, int runs, int first_target, const typename Sum::Stored *t,
                                 float eps2, const Units &units, const typename Sum::Stored *packed,
                                 typename Sum::Stored *tile, const Sums &sums,
                                 float (*to_targets)[Sum::components]) {
    int lane = threadIdx.x % RUN;
#pragma unroll 1
    for (int run = 0; run < runs; ++run) {
        int slot = chunk * CHUNK + run * RUN + lane;
        __syncwarp();
        tile[lane] = tile[lane + RUN] = Sum::prepared(in_units(packed[slot], units));
        __syncwarp();
        float part[N][Sum::components] = {}, to_source[Sum::components] = {};
        sum_run<Sum, N, OTHER_CHUNK>(tile + lane, t, run - first_target / RUN, eps2, part,
                                     to_source);
        for (int k = 0; k < N; ++k)
            for (int c = 0; c < Sum::components; ++c) to_targets[k][c] += part[k][c];
        if (OTHER_CHUNK)
            for (int c = 0; c < Sum::components; ++c) add_to_slot<Sum>(sums, slot, c, to_source[c]);
    }
}

// Sum over the first runs of a chunk of sources at `N` targets of a lane, from `slot` on.
template <class Sum, int N>
__device__ inline void sum_targets(int slot, int first_target, bool other_chunk, int other,
                                   int runs, float eps2, const Units &units, const float *high,
                                   const float *low, const typename Sum::Stored *packed,
                                   typename Sum::Stored *tile, const Sums &sums) {
    float to_targets[N][Sum::components] = {};
    typename Sum::Stored t[N];
    for (int k = 0; k < N; ++k)
        t[k] = Sum::prepared(in_units(packed[slot + k * RUN], units)), move(&t[k], high, low);
    if (!other_chunk)
        sum_chunk<Sum, N, false>(other, runs, first_target, t, eps2, units, packed, tile, sums,
                                 to_targets);
    else
        sum_chunk<Sum, N, true>(other, runs, first_target, t, eps2, units, packed, tile, sums,
                                to_targets);
    for (int k = 0; k < N; ++k)
        for (int c = 0; c < Sum::components; ++c)
            add_to_slot<Sum>(sums, slot + k * RUN, c, to_targets[k][c]);
}

// Bodies fill the first runs of a chunk. Where few chunks are short, all runs of all are taken.
__device__ inline int filled_runs(const int *starts, int chunk) {
    return SHORT ? (starts[chunk + 1] - starts[chunk] + RUN - 1) / RUN : RUNS;
}

template <class Sum>
__device__ inline void sum_tile(int chunk, int other, int first_target, float eps2,
                                const Units &units, const int *starts, const double *origin,
                                const typename Sum::Stored *packed, typename Sum::Stored *tile,
                                const Sums &sums) {
    const int most = Sum::targets;
    int slot = chunk * CHUNK + first_target + threadIdx.x % RUN;
    float high[3], low[3];
    for (int axis = 0; axis < 3; ++axis) {
        double shift = (origin[3 * chunk + axis] - origin[3 * other + axis]) * units.length;
        high[axis] = (float)shift, low[axis] = (float)(shift - high[axis]);
    }
    int runs = filled_runs(starts, other), left = filled_runs(starts, chunk) - first_target / RUN;
    if (SHORT && left <= 0) return;
    if (SHORT && left <= most / 4)
        sum_targets<Sum, most / 4>(slot, first_target, chunk != other, other, runs, eps2, units,
                                   high, low, packed, tile, sums);
    else if (SHORT && left <= most / 2)
        sum_targets<Sum, most / 2>(slot, first_target, chunk != other, other, runs, eps2, units,
                                   high, low, packed, tile, sums);
    else
        sum_targets<Sum, most>(slot, first_target, chunk != other, other, runs, eps2, units, high,
                               low, packed, tile, sums);
}

// Of n chunks, taken in a circle, each is paired with itself and with the next n / 2; if n is even,
// only the first half is paired with the last of these. Counted round after round of the circle,
// that is n (n + 1) / 2 pairs of chunks.
__device__ inline long long pairs_of_chunks(long long chunks) { return chunks * (chunks + 1) / 2; }

// Return the next tile, for a warp that is done with one.
__device__ inline long long next_tile(unsigned long long *taken) {
    unsigned long long next = threadIdx.x % RUN == 0 ? atomicAdd(taken, 1ull) : 0;
    return __shfl_sync(ALL_LANES, next, 0);
}

// Sum over the tiles of a share [first, last) of `number`.
template <class Sum>
__device__ inline void sum_tiles(long long first, long long last, long long number, float eps2,
                                 const Units &units, int chunks, const int *starts,
                                 const double *origin, const typename Sum::Stored *packed, typename Sum::Stored *tile,
                                 unsigned long long *taken, const Sums &sums) {
    const int groups = CHUNK / (RUN * Sum::targets);
    long long tiles = pairs_of_chunks(chunks) * groups;
    long long start = tiles * first / number, stop = tiles * last / number;
    for (long long i = start + next_tile(taken); i < stop; i = start + next_tile(taken)) {
        long long pair = i / groups;
        int chunk = pair % chunks, other = (chunk + pair / chunks) % chunks;
        sum_tile<Sum>(chunk, other, i % groups * RUN * Sum::targets, eps2, units, starts, origin,
                      packed, tile, sums);
    }
}

#define PAIR_KERNEL(name, Sum)                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, Sum::least_blocks)                       \
        name(int first, int last, int number, float eps2, float length, float mass,                \
             const float *speed, const int *chunks, const int *starts, const double *origin,       \
             const Sum::Stored *packed, double r0, double r1, double r2, double r3, int slots,     \
             unsigned long long *taken, double *rows) {                                            \
        __shared__ Sum::Stored tiles[2 * THREADS];                                                 \
        Sum::Stored *tile = tiles + threadIdx.x / RUN * 2 * RUN;                                   \
        sum_tiles<Sum>(first, last, number, eps2, {length, mass, *speed}, chunks[0], starts,       \
                       origin, packed, tile, taken, {slots, rows, {r0, r1, r2, r3}});                      \
    }

typedef Acceleration<false> AnyMasses;
typedef Acceleration<true> EqualMasses;
PAIR_KERNEL(accelerations, AnyMasses)
PAIR_KERNEL(accelerations_of_equal_masses, EqualMasses)
PAIR_KERNEL(accelerations_and_jerks, AccelerationAndJerk)
PAIR_KERNEL(potentials, Potential)

// Bring the sums of the slots into the order of the bodies, totals[body][row], and clear them.
extern "C" __global__ void gather(int slots, int number_of_rows, const int *order,
                                  const int *chunks, const int *starts, unsigned long long *taken,
                                  double *rows, double *totals) {
    int slot = blockIdx.x * THREADS + threadIdx.x, chunk = slot / CHUNK;
    if (slot == 0) *taken = 0;
    if (chunk >= chunks[0]) return;  // nothing was added there
    int source_index = starts[chunk] + slot % CHUNK;
    bool filled = source_index < starts[chunk + 1];
    for (int row = 0; row < number_of_rows; ++row) {
        double *sum = rows + (size_t)row * slots + slot;
        if (filled) totals[(size_t)order[source_index] * number_of_rows + row] = *sum;
        *sum = 0;
    }
}

extern "C" __global__ void combine(int size, int words, double scale, const double *totals,
                                   double *result) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= size) return;
    double total = 0;  // the finest first
    for (int word = words - 1; word >= 0; --word) total += totals[(size_t)i * words + word];
    result[i] = scale * total;
}

// Return the complete sum of a component in a slot, and clear it; `sum` is where its first word lies.
__device__ inline double taken_sum(double *sum, int words, int slots) {
    double total = 0;  // the finest first
    for (int word = words - 1; word >= 0; --word) {
        total += sum[(size_t)word * slots];
        sum[(size_t)word * slots] = 0;
    }
    return total;
}

// Do the work of `gather` and of `combine`, and kick and drift until the next force. Neighbouring
// threads move the coordinates of a body; `copied` are its motions where a step ends.
extern "C" __global__ void gather_and_move(int slots, int words, double scale, const int *order,
                                           const int *chunks, const int *starts,
                                           const __grid_constant__ Moves moves,
                                           unsigned long long *taken, double *rows,
                                           double *acceleration, double *position,
                                           double *velocity, double *copied_position,
                                           double *copied_velocity) {
    __shared__ double pulls[3 * THREADS];
    __shared__ int bodies[THREADS];
    int slot = blockIdx.x * THREADS + threadIdx.x, chunk = slot / CHUNK;
    if (slot == 0) *taken = 0;
    if (chunk >= chunks[0]) return;  // the whole block: nothing was added there
    int source_index = starts[chunk] + slot % CHUNK;
    bodies[threadIdx.x] = source_index < starts[chunk + 1] ? order[source_index] : -1;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        double *sum = rows + (size_t)axis * words * slots + slot;
        pulls[3 * threadIdx.x + axis] = scale * taken_sum(sum, words, slots);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 3 * THREADS; i += THREADS) {
        int body = bodies[i / 3];
        if (body < 0) continue;
        size_t at = 3 * (size_t)body + i % 3;
        acceleration[at] = pulls[i];
        move_at({position + at, velocity + at}, pulls[i], moves,
                {copied_position + at, copied_velocity + at});
    }
}

// Find the largest component of all velocities times a factor; `largest` holds its bits, which are
// ordered as the numbers are.
extern "C" __global__ void find_largest_speed(int size, double speeds, const double *velocity,
                                              unsigned *largest) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    float speed = i < size ? (float)fabs(speeds * velocity[i]) : 0.0f;
    for (int step = RUN / 2; step > 0; step /= 2)
        speed = fmaxf(speed, __shfl_xor_sync(ALL_LANES, speed, step));
    if (threadIdx.x % RUN == 0) atomicMax(largest, __float_as_uint(speed));
}

// Choose the power of two that makes the largest component of a velocity less than 1, which bounds
// the jerks.
extern "C" __global__ void set_speed_unit(double length, unsigned *largest, float *unit,
                                          double *jerk_factor) {
    int power = ilogb(fmaxf(__uint_as_float(*largest), 1e-30f)) + 1;
    *unit = ldexpf(1.0f, -power), *jerk_factor = ldexp(length, power);
    *largest = 0;
}

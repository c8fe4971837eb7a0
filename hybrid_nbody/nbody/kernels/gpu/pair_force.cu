// The pair force on a GPU.
//
// Sources come in pieces (at most PIECE of them, of one chunk), each stored about its chunk's
// origin; every PARTS-th piece belongs to one part. A warp takes 32 x TARGETS targets and one part:
// its lanes load a run of 32 sources into shared memory, then every lane adds all of them to the
// sums of its own targets. A run is summed in Real, a piece in Real, a part in double; the parts of
// a target are added up last. This order depends on the sources alone: not on the GPU, the ranks or
// TARGETS.
//
// Compiled with -DSINGLE, -DMIXED or -DDOUBLE, and with -DPIECE, -DPIECES (in a chunk), -DPARTS,
// -DTARGETS and -DJERK_TARGETS (of a lane), -DTHREADS (of a block, whose warps have nothing to do
// with each other), -DFEW_BODIES, -DFEW_THREADS and -DFEW_SLOTS (of the block that steps a few
// bodies, or 0), -DMOST_MOVES (kicks and drifts between two forces) and -DUNSOFTENED (true or false).
// `lengths`, `masses` and `speeds` are the factors that bring positions, masses and velocities to
// the units of the kernels (`units.py`).

#define RUN 32  // sources that a warp loads at once: one for each lane
#define ALL_LANES 0xffffffffu

#if defined(DOUBLE)

typedef double Real;
#define FAR 1e150  // where padding lies: no weight, yet no overflow

__device__ inline double inverse_sqrt_seed(double x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));  // about 20 bits
    return y;
}
// Both expand (1 - e)^(-1/2) and (1 - e)^(-3/2) around the seed y, with e = 1 - x y^2, to the
// second order.
__device__ inline double inverse_sqrt(double x) {
    double y = inverse_sqrt_seed(x), e = fma(-x, y * y, 1.0);
    return fma(y * e, fma(0.375, e, 0.5), y);
}
__device__ inline double scaled_inverse_cube(double scale, double x) {
    double y = inverse_sqrt_seed(x), square = y * y;
    double e = fma(-x, square, 1.0), cube = scale * y * square;
    return fma(cube * e, fma(1.875, e, 1.5), cube);
}

#else

typedef float Real;
#define FAR 1e18f

__device__ inline float inverse_sqrt(float x) { return rsqrtf(x); }
__device__ inline float scaled_inverse_cube(float scale, float x) {
    float y = rsqrtf(x);
    return scale * y * (y * y);
}

#endif

// Keep a number in a register: the compiler would compute a target's offset anew for every run.
__device__ inline float kept(float x) {
    asm volatile("" : "+f"(x));
    return x;
}
__device__ inline double kept(double x) {
    asm volatile("" : "+d"(x));
    return x;
}

struct Vector { Real x, y, z; };

#if defined(MIXED)

// Each coordinate is the sum of two floats: a difference keeps about 48 bits of the positions.
struct __align__(16) Source { float x, y, z, mass, x_low, y_low, z_low, unused; };
struct Target { float x, y, z, x_low, y_low, z_low; };

__device__ inline float low_part(double value) { return (float)(value - (double)(float)value); }

__device__ inline Source make_source(double x, double y, double z, double mass) {
    return {(float)x, (float)y, (float)z, (float)mass, low_part(x), low_part(y), low_part(z), 0.0f};
}
__device__ inline void set_coordinate(Source *source, int axis, double x) {
    ((float *)source)[axis] = (float)x, ((float *)source)[axis + 4] = low_part(x);
}
__device__ inline Target make_target(double x, double y, double z) {
    return {kept((float)x),    kept((float)y),    kept((float)z),
            kept(low_part(x)), kept(low_part(y)), kept(low_part(z))};
}
__device__ inline Vector difference(const Source &s, const Target &t) {
    return {(s.x - t.x) + (s.x_low - t.x_low), (s.y - t.y) + (s.y_low - t.y_low),
            (s.z - t.z) + (s.z_low - t.z_low)};
}

#else

struct __align__(16) Source { Real x, y, z, mass; };
struct Target { Real x, y, z; };

__device__ inline Source make_source(double x, double y, double z, double mass) {
    return {(Real)x, (Real)y, (Real)z, (Real)mass};
}
__device__ inline void set_coordinate(Source *source, int axis, double x) {
    ((Real *)source)[axis] = (Real)x;
}
__device__ inline Target make_target(double x, double y, double z) {
    return {kept((Real)x), kept((Real)y), kept((Real)z)};
}
__device__ inline Vector difference(const Source &s, const Target &t) {
    return {s.x - t.x, s.y - t.y, s.z - t.z};
}

#endif

struct __align__(16) MovingSource { Source at; Real vx, vy, vz, unused; };
struct MovingTarget { Target at; Real vx, vy, vz; };

__device__ inline Real softened_square(const Vector &d, Real eps2) {
    return fma(d.x, d.x, fma(d.y, d.y, fma(d.z, d.z, eps2)));
}

__device__ inline void add(Real weight, const Vector &d, Real *sum) {
    sum[0] = fma(weight, d.x, sum[0]);
    sum[1] = fma(weight, d.y, sum[1]);
    sum[2] = fma(weight, d.z, sum[2]);
}

// A target as it is kept while a lane walks through the pieces.
struct Body { double x, y, z; Real vx, vy, vz; };

// The targets. Lanes take them in the order of the sources: the bodies of a warp are among those of
// a few runs.
struct Targets {
    int number;
    const double *position, *velocity;
    const int *index;   // of each among the sources; -1 where it is none
    const int *bodies;  // sorted by this index
    double lengths, speeds;
    __device__ Body body(int i) const {
        const double *p = position + 3 * i, *v = velocity + 3 * i;
        return {lengths * p[0],          lengths * p[1],          lengths * p[2],
                (Real)(speeds * v[0]), (Real)(speeds * v[1]), (Real)(speeds * v[2])};
    }
};

__device__ inline Target about(const double *origin, const Body &b) {
    return make_target(b.x - origin[0], b.y - origin[1], b.z - origin[2]);
}

// Contributions of one source to the sums of one target. `excludes_self`: a body must be left out
// of its own sum; with softening its force on itself is exactly zero.

template <bool EQUAL_MASSES, bool EXCLUDES_SELF>
struct Acceleration {
    typedef Source From;
    typedef Target To;
    static const int components = 3, unrolled = RUN;
    static const bool excludes_self = EXCLUDES_SELF;
    __device__ static Target target(const Body &b, const double *origin) {
        return about(origin, b);
    }
    __device__ static void add_source(const Source &s, const Target &t, Real eps2, Real *sum) {
        Vector d = difference(s, t);
        add(scaled_inverse_cube(EQUAL_MASSES ? (Real)1 : s.mass, softened_square(d, eps2)), d, sum);
    }
};

struct Potential {
    typedef Source From;
    typedef Target To;
    static const int components = 1, unrolled = RUN;
    static const bool excludes_self = true;
    __device__ static Target target(const Body &b, const double *origin) {
        return about(origin, b);
    }
    __device__ static void add_source(const Source &s, const Target &t, Real eps2, Real *sum) {
        sum[0] = fma(-s.mass, inverse_sqrt(softened_square(difference(s, t), eps2)), sum[0]);
    }
};

// The jerk is the time derivative of the acceleration: m (dv / r^3 - 3 (d . dv) d / r^5).
struct AccelerationAndJerk {
    typedef MovingSource From;
    typedef MovingTarget To;
    static const int components = 6;
    static const int unrolled = JERK_TARGETS > 2 ? RUN / 2 : RUN;  // more exceeds the registers
    static const bool excludes_self = UNSOFTENED;
    __device__ static MovingTarget target(const Body &b, const double *origin) {
        return {about(origin, b), b.vx, b.vy, b.vz};
    }
    __device__ static void add_source(const MovingSource &s, const MovingTarget &t, Real eps2,
                                      Real *sum) {
        Vector d = difference(s.at, t.at), dv = {s.vx - t.vx, s.vy - t.vy, s.vz - t.vz};
        Real inverse = inverse_sqrt(softened_square(d, eps2)), square = inverse * inverse;
        Real weight = s.at.mass * inverse * square;
        Real approach = (Real)-3 * square * fma(d.x, dv.x, fma(d.y, dv.y, d.z * dv.z));
        add(weight, d, sum);
        add(weight, {fma(approach, d.x, dv.x), fma(approach, d.y, dv.y), fma(approach, d.z, dv.z)},
            sum + 3);
    }
};

// The sources that `pack` stores: piece q of chunk c in the slots from (c * PIECES + q) * PIECE on.
template <class From>
struct Sources {
    const int *chunks;  // in use
    const int *starts;  // of the chunks
    const double *origin;
    const From *packed;
    __device__ int pieces() const { return chunks[0] * PIECES; }
    __device__ int start(int piece) const {
        return starts[piece / PIECES] + piece % PIECES * PIECE;
    }
    __device__ int size(int piece) const {
        return min(PIECE, starts[piece / PIECES + 1] - start(piece));
    }
};

// Add a run of sources to the sums of a lane's targets.
template <class Sum, int N>
__device__ inline void add_run(const typename Sum::From *tile, const typename Sum::To *t, Real eps2,
                               Real (*sum)[Sum::components]) {
#pragma unroll Sum::unrolled
    for (int j = 0; j < RUN; ++j)
#pragma unroll
        for (int k = 0; k < N; ++k) Sum::add_source(tile[j], t[k], eps2, sum[k]);
}

// The same where targets of the warp may be among the sources: `self[k]` is the index in the run.
template <class Sum, int N>
__device__ inline void add_run_without_self(const typename Sum::From *tile,
                                            const typename Sum::To *t, const int *self, Real eps2,
                                            Real (*sum)[Sum::components]) {
#pragma unroll 1
    for (int j = 0; j < RUN; ++j)
#pragma unroll
        for (int k = 0; k < N; ++k)
            if (j != self[k]) Sum::add_source(tile[j], t[k], eps2, sum[k]);
}

template <class Sum, int N>
__device__ inline void add_piece(const Sources<typename Sum::From> &sources, int piece,
                                 const int *index, const typename Sum::To *t, Real eps2,
                                 typename Sum::From *tile, double (*total)[Sum::components]) {
    int lane = threadIdx.x % RUN, start = sources.start(piece), size = sources.size(piece);
    const typename Sum::From *packed = sources.packed + (size_t)piece * PIECE;
    Real sum[N][Sum::components] = {};
    for (int first = 0; first < size; first += RUN) {
        __syncwarp();
        tile[lane] = packed[first + lane];
        __syncwarp();
        Real part[N][Sum::components] = {};
        int self[N];
        bool finds_self = false;
        for (int k = 0; k < N; ++k) {
            self[k] = index[k] - start - first;
            finds_self = finds_self || (unsigned)self[k] < RUN;
        }
        if (Sum::excludes_self && __any_sync(ALL_LANES, finds_self))
            add_run_without_self<Sum, N>(tile, t, self, eps2, part);
        else
            add_run<Sum, N>(tile, t, eps2, part);
        for (int k = 0; k < N; ++k)
            for (int c = 0; c < Sum::components; ++c) sum[k][c] += part[k][c];
    }
    for (int k = 0; k < N; ++k)
        for (int c = 0; c < Sum::components; ++c) total[k][c] += (double)sum[k][c];
}

// One warp: sum one part of the sources at one group of 32 x N targets into
// partial[part][component][target], the targets in the order in which lanes take them.
template <class Sum, int N>
__device__ inline void sum_part(int part, int group, const Targets &targets,
                                const Sources<typename Sum::From> &sources, Real eps2,
                                typename Sum::From *tile, double *partial) {
    int first = group * RUN * N + threadIdx.x % RUN, index[N];
    Body body[N];
    for (int k = 0; k < N; ++k) {
        // Beyond the last target, repeat it: all lanes load sources.
        int i = targets.bodies[min(first + k * RUN, targets.number - 1)];
        body[k] = targets.body(i);
        index[k] = targets.index[i];
    }
    double total[N][Sum::components] = {};
    for (int piece = part, end = sources.pieces(); piece < end; piece += PARTS) {
        if (sources.size(piece) <= 0) continue;  // the chunk ends before
        typename Sum::To t[N];
        for (int k = 0; k < N; ++k)
            t[k] = Sum::target(body[k], sources.origin + 3 * (piece / PIECES));
        add_piece<Sum, N>(sources, piece, index, t, eps2, tile, total);
    }
    for (int k = 0; k < N; ++k)
        if (first + k * RUN < targets.number)
            for (int c = 0; c < Sum::components; ++c) {
                size_t row = (size_t)part * Sum::components + c;
                partial[row * targets.number + first + k * RUN] = total[k][c];
            }
}

// Fill one slot; beyond the end of a chunk, with a source that weighs nothing. A chunk's origin is
// its middle body where offsets are single, else zero.
__device__ inline bool pack_slot(int slot, double lengths, double masses, const double *position,
                                 const double *mass, const int *order, const int *starts,
                                 double *origin, Source *source, int *body) {
    int chunk = slot / (PIECE * PIECES), k = slot % (PIECE * PIECES);
    int start = starts[chunk], size = starts[chunk + 1] - start;
    double o[3] = {0, 0, 0};
    *body = -1;
    if (size == 0) return false;  // chunks that are not in use
#if defined(SINGLE)
    int middle = order[start + size / 2];
    for (int axis = 0; axis < 3; ++axis) o[axis] = lengths * position[3 * middle + axis];
#endif
    if (k < 3) origin[3 * chunk + k] = o[k];
    *source = make_source(FAR, 0, 0, 0);
    if (k >= size) return true;
    *body = order[start + k];
    const double *p = position + 3 * *body;
    *source = make_source(lengths * p[0] - o[0], lengths * p[1] - o[1], lengths * p[2] - o[2],
                          masses * mass[*body]);
    return true;
}

extern "C" __global__ void pack(int slots, double lengths, double masses, const double *position,
                                const double *mass, const int *order, const int *starts,
                                double *origin, Source *packed) {
    int slot = blockIdx.x * THREADS + threadIdx.x, body;
    Source s;
    if (slot >= slots) return;
    if (pack_slot(slot, lengths, masses, position, mass, order, starts, origin, &s, &body))
        packed[slot] = s;
}

extern "C" __global__ void pack_moving(int slots, double lengths, double masses,
                                       const double *position, const double *mass,
                                       const int *order, const int *starts, double *origin,
                                       double speeds, const double *velocity,
                                       MovingSource *packed) {
    int slot = blockIdx.x * THREADS + threadIdx.x, body;
    MovingSource s = {};
    if (slot >= slots ||
        !pack_slot(slot, lengths, masses, position, mass, order, starts, origin, &s.at, &body))
        return;
    if (body >= 0) {
        const double *v = velocity + 3 * body;
        s.vx = (Real)(speeds * v[0]), s.vy = (Real)(speeds * v[1]), s.vz = (Real)(speeds * v[2]);
    }
    packed[slot] = s;
}

// Bound to one block a multiprocessor, the compiler uses all registers to keep more interactions in
// flight. Four targets in single precision fit into those that four blocks leave, or five where
// potentials are summed.
#define BLOCKS_OF_FOUR_TARGETS(blocks) (sizeof(Source) == 16 && TARGETS == 4 ? blocks : 1)
#define SUM_KERNEL(name, Sum, N, LEAST_BLOCKS)                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, LEAST_BLOCKS)                            \
        name(int number, const double *position, const double *velocity, const int *index,         \
             const int *bodies, double lengths, double speeds, Real eps2, const int *chunks,       \
             const int *starts, const double *origin, const Sum::From *packed,                     \
             double *partial) {                                                                    \
        __shared__ Sum::From tiles[THREADS];                                                       \
        Sum::From *tile = tiles + threadIdx.x / RUN * RUN;                                         \
        unsigned warp = (blockIdx.x * THREADS + threadIdx.x) / RUN;                                \
        unsigned groups = (number + RUN * N - 1) / (RUN * N);                                      \
        if (warp < groups * PARTS)                                                                 \
            sum_part<Sum, N>(warp / groups, warp % groups,                                         \
                             {number, position, velocity, index, bodies, lengths, speeds},         \
                             {chunks, starts, origin, packed}, eps2, tile, partial);               \
    }

typedef Acceleration<false, UNSOFTENED> AnyMasses;
typedef Acceleration<true, UNSOFTENED> EqualMasses;
SUM_KERNEL(accelerations, AnyMasses, TARGETS, BLOCKS_OF_FOUR_TARGETS(4))
SUM_KERNEL(accelerations_of_equal_masses, EqualMasses, TARGETS, 1)
SUM_KERNEL(accelerations_and_jerks, AccelerationAndJerk, JERK_TARGETS, 1)
SUM_KERNEL(potentials, Potential, TARGETS, BLOCKS_OF_FOUR_TARGETS(5))

#include "totals.cuh"
#include "moves.cuh"

#if FEW_BODIES  // as many as fit into the shared memory of one block
#include "few_bodies.cuh"
#endif

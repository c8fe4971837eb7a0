// The pair force on a GPU. One thread a target; a block walks through the sources chunk by chunk, each chunk
// staged in shared memory. A chunk is stored about its own origin, summed in Real, then added to double, in an order that
// depends on the sources alone.
//
// Compiled with -DSINGLE, -DMIXED or -DDOUBLE, and with -DCHUNK: the most sources in a chunk, the threads of a block.

#if defined(DOUBLE)
typedef double Real;
#else
typedef float Real;
#endif

__device__ inline float inverse_sqrt(float x) { return rsqrtf(x); }
__device__ inline double inverse_sqrt(double x) { return rsqrt(x); }

#if defined(MIXED)

// Each coordinate is the sum of two floats, so a difference of two keeps about 48 bits of the positions.
struct __align__(16) Source { float x, y, z, mass, x_low, y_low, z_low, unused; };
struct Target { float x, y, z, x_low, y_low, z_low; };

__device__ inline float low_part(double value) { return (float)(value - (double)(float)value); }

__device__ inline Source make_source(double x, double y, double z, double mass) {
    return {(float)x, (float)y, (float)z, (float)mass, low_part(x), low_part(y), low_part(z), 0.0f};
}
__device__ inline Target make_target(double x, double y, double z) {
    return {(float)x, (float)y, (float)z, low_part(x), low_part(y), low_part(z)};
}
__device__ inline void difference(const Source &s, const Target &t, Real &dx, Real &dy, Real &dz) {
    dx = (s.x - t.x) + (s.x_low - t.x_low);
    dy = (s.y - t.y) + (s.y_low - t.y_low);
    dz = (s.z - t.z) + (s.z_low - t.z_low);
}

#else

struct __align__(16) Source { Real x, y, z, mass; };
struct Target { Real x, y, z; };

__device__ inline Source make_source(double x, double y, double z, double mass) {
    return {(Real)x, (Real)y, (Real)z, (Real)mass};
}
__device__ inline Target make_target(double x, double y, double z) { return {(Real)x, (Real)y, (Real)z}; }
__device__ inline void difference(const Source &s, const Target &t, Real &dx, Real &dy, Real &dz) {
    dx = s.x - t.x;
    dy = s.y - t.y;
    dz = s.z - t.z;
}

#endif

// One block packs one chunk. Single precision takes the chunk's middle body as its origin, the others zero.
extern "C" __global__ void pack(const double *position, const double *mass, const int *order, const int *starts,
                                double *origin, Source *source) {
    int start = starts[blockIdx.x], end = starts[blockIdx.x + 1], k = start + threadIdx.x;
    if (start == end) return;
    double o[3] = {0, 0, 0};
#if defined(SINGLE)
    for (int axis = 0; axis < 3; ++axis) o[axis] = position[3 * order[(start + end) / 2] + axis];
#endif
    if (threadIdx.x < 3) origin[3 * blockIdx.x + threadIdx.x] = o[threadIdx.x];
    if (k >= end) return;
    const double *p = position + 3 * order[k];
    source[k] = make_source(p[0] - o[0], p[1] - o[1], p[2] - o[2], mass[order[k]]);
}

// What one source adds to the sums of a target: three components of acceleration, or the potential.
struct Acceleration {
    static const int components = 3;
    __device__ static void add(const Source &s, const Target &t, Real eps2, Real *sum) {
        Real dx, dy, dz;
        difference(s, t, dx, dy, dz);
        Real inverse = inverse_sqrt(dx * dx + (dy * dy + (dz * dz + eps2)));
        Real weight = s.mass * inverse * (inverse * inverse);
        sum[0] += weight * dx;
        sum[1] += weight * dy;
        sum[2] += weight * dz;
    }
};

struct Potential {
    static const int components = 1;
    __device__ static void add(const Source &s, const Target &t, Real eps2, Real *sum) {
        Real dx, dy, dz;
        difference(s, t, dx, dy, dz);
        sum[0] -= s.mass * inverse_sqrt(dx * dx + (dy * dy + (dz * dz + eps2)));
    }
};

// Add sources first to last - 1 of the chunk in shared memory. SkipSelf leaves out the target itself, `self`.
template <class Sum, bool SkipSelf>
__device__ inline void add_sources(const Source *tile, int first, int last, int self, const Target &t, Real eps2,
                                   Real *sum) {
#pragma unroll
    for (int j = first; j < last; ++j)
        if (!SkipSelf || j != self) Sum::add(tile[j], t, eps2, sum);
}

// Sum a chunk in runs: a long chain of float additions would round once for every far source that it adds to a near one.
template <class Sum, bool SkipSelf>
__device__ inline void sum_chunk(const Source *tile, int size, int self, const Target &t, Real eps2, Real *sum) {
    const int RUN = 32;
    for (int first = 0; first < size; first += RUN) {
        Real part[Sum::components] = {};
        if (first + RUN <= size)
            add_sources<Sum, SkipSelf>(tile + first, 0, RUN, self - first, t, eps2, part);
        else
            add_sources<Sum, SkipSelf>(tile, first, size, self, t, eps2, part);
        for (int k = 0; k < Sum::components; ++k) sum[k] += part[k];
    }
}

template <class Sum, bool SkipSelf>
__device__ inline void sum_sources(int chunks, int targets, const double *position, const int *place, double G, Real eps2,
                                   const int *starts, const double *origin, const Source *source, double *result) {
    __shared__ Source tile[CHUNK];
    int i = blockIdx.x * CHUNK + threadIdx.x;
    int mine = min(i, targets - 1);  // threads beyond the last target repeat it: they help to stage tiles
    const double *p = position + 3 * mine;
    double total[Sum::components] = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
        int start = starts[chunk], size = starts[chunk + 1] - start;
        if (size == 0) break;  // unused chunks come last
        const double *o = origin + 3 * chunk;
        __syncthreads();
        if (threadIdx.x < size) tile[threadIdx.x] = source[start + threadIdx.x];
        __syncthreads();
        Target t = make_target(p[0] - o[0], p[1] - o[1], p[2] - o[2]);
        Real sum[Sum::components] = {};
        sum_chunk<Sum, SkipSelf>(tile, size, place[mine] - start, t, eps2, sum);
        for (int k = 0; k < Sum::components; ++k) total[k] += (double)sum[k];
    }
    if (i < targets)
        for (int k = 0; k < Sum::components; ++k) result[Sum::components * i + k] = G * total[k];
}

#define SUM_KERNEL(name, Sum, skip_self)                                                                             \
    extern "C" __global__ void __launch_bounds__(CHUNK)                                                              \
        name(int chunks, int targets, const double *position, const int *place, double G, Real eps2,                 \
             const int *starts, const double *origin, const Source *source, double *result) {                        \
        sum_sources<Sum, skip_self>(chunks, targets, position, place, G, eps2, starts, origin, source, result);      \
    }

// With softening a body's force on itself is exactly zero and needs no test.
SUM_KERNEL(accelerations_softened, Acceleration, false)
SUM_KERNEL(accelerations_unsoftened, Acceleration, true)
SUM_KERNEL(potentials, Potential, true)

extern "C" __global__ void add_scaled(int size, double *result, double factor, const double *increment) {
    int i = blockIdx.x * CHUNK + threadIdx.x;
    if (i < size) result[i] += factor * increment[i];
}

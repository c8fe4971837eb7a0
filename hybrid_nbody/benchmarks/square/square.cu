// Gravity in a plane: N threads against N x N threads, two layouts, and four memories to read the sources from.
//
// Every kernel does the kick of a step, v += dt a(x), for all n bodies; `drift_*` then does x += dt v. The gravitational
// constant is part of the masses. Compiled with -DBLOCK, the threads of a block, and -DUNROLL, of the loop over sources.

struct Body { float x, y, vx, vy, mass; };
struct Source { float x, y, mass; };

// --- where a source is read from ---------------------------------------------------------------------------------------

struct StructsGlobal {
    const Body *bodies;
    __device__ Source operator[](int j) const { return {bodies[j].x, bodies[j].y, bodies[j].mass}; }
};

struct StructsReadOnly {  // through the read-only path of the cache
    const Body *bodies;
    __device__ Source operator[](int j) const {
        return {__ldg(&bodies[j].x), __ldg(&bodies[j].y), __ldg(&bodies[j].mass)};
    }
};

struct StructsTexture {
    cudaTextureObject_t floats;  // five a body
    __device__ Source operator[](int j) const {
        return {tex1Dfetch<float>(floats, 5 * j), tex1Dfetch<float>(floats, 5 * j + 1),
                tex1Dfetch<float>(floats, 5 * j + 4)};
    }
};

struct ArraysGlobal {
    const float *x, *y, *mass;
    __device__ Source operator[](int j) const { return {x[j], y[j], mass[j]}; }
};

struct ArraysReadOnly {
    const float *x, *y, *mass;
    __device__ Source operator[](int j) const { return {__ldg(x + j), __ldg(y + j), __ldg(mass + j)}; }
};

struct ArraysTexture {
    cudaTextureObject_t x, y, mass;
    __device__ Source operator[](int j) const {
        return {tex1Dfetch<float>(x, j), tex1Dfetch<float>(y, j), tex1Dfetch<float>(mass, j)};
    }
};

// --- where velocities are -----------------------------------------------------------------------------------------------

struct StructsVelocity {
    Body *bodies;
    __device__ float *x(int i) const { return &bodies[i].vx; }
    __device__ float *y(int i) const { return &bodies[i].vy; }
};

struct ArraysVelocity {
    float *vx, *vy;
    __device__ float *x(int i) const { return vx + i; }
    __device__ float *y(int i) const { return vy + i; }
};

// --- the sums -------------------------------------------------------------------------------------------------------------

__device__ inline void add(Source source, float x, float y, float eps2, float2 &a) {
    float dx = source.x - x, dy = source.y - y;
    float inverse = rsqrtf(dx * dx + dy * dy + eps2);
    float weight = source.mass * inverse * inverse * inverse;
    a.x += weight * dx;
    a.y += weight * dy;
}

// N threads: each sums over all sources for its own body.
template <class Sources, class Velocity>
__device__ void by_threads(int n, float eps2, float dt, Sources sources, Velocity velocity) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n) return;
    Source own = sources[i];
    float2 a = {0, 0};
#pragma unroll UNROLL
    for (int j = 0; j < n; ++j) add(sources[j], own.x, own.y, eps2, a);
    *velocity.x(i) += dt * a.x;
    *velocity.y(i) += dt * a.y;
}

// N threads; those of a block fetch a tile of sources into shared memory, one each, and all read it there.
template <class Sources, class Velocity>
__device__ void by_threads_shared(int n, float eps2, float dt, Sources sources, Velocity velocity) {
    __shared__ Source tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    Source own = sources[min(i, n - 1)];
    float2 a = {0, 0};
    for (int first = 0; first < n; first += BLOCK) {
        int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? sources[j] : Source{0, 0, 0};
        __syncthreads();
#pragma unroll UNROLL
        for (int k = 0; k < BLOCK; ++k) add(tile[k], own.x, own.y, eps2, a);
        __syncthreads();
    }
    if (i >= n) return;
    *velocity.x(i) += dt * a.x;
    *velocity.y(i) += dt * a.y;
}

// N x N threads: each takes one pair and adds to the velocity atomically. Threads side by side have targets side by side.
template <class Sources, class Velocity>
__device__ void by_pairs(int n, float eps2, float dt, Sources sources, Velocity velocity) {
    int i = blockIdx.x * BLOCK + threadIdx.x, j = blockIdx.y;
    if (i >= n) return;
    Source own = sources[i];
    float2 a = {0, 0};
    add(sources[j], own.x, own.y, eps2, a);
    atomicAdd(velocity.x(i), dt * a.x);
    atomicAdd(velocity.y(i), dt * a.y);
}

// N x N threads; those of a block have one target, stage their results in shared memory and add them once.
template <class Sources, class Velocity>
__device__ void by_pairs_shared(int n, float eps2, float dt, Sources sources, Velocity velocity) {
    __shared__ float2 staged[BLOCK];
    int i = blockIdx.y, j = blockIdx.x * BLOCK + threadIdx.x;
    Source own = sources[i];
    float2 a = {0, 0};
    if (j < n) add(sources[j], own.x, own.y, eps2, a);
    staged[threadIdx.x] = a;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        staged[threadIdx.x].x += staged[threadIdx.x + half].x;
        staged[threadIdx.x].y += staged[threadIdx.x + half].y;
    }
    if (threadIdx.x) return;
    atomicAdd(velocity.x(i), dt * staged[0].x);
    atomicAdd(velocity.y(i), dt * staged[0].y);
}

// --- the kernels ------------------------------------------------------------------------------------------------------------

#define KERNEL(name, how, memory)                                                                                      \
    extern "C" __global__ void name##_structs_##memory(int n, float eps2, float dt, Body *bodies,                       \
                                                       cudaTextureObject_t floats) {                                    \
        how(n, eps2, dt, STRUCTS_##memory, StructsVelocity{bodies});                                                    \
    }                                                                                                                  \
    extern "C" __global__ void name##_arrays_##memory(int n, float eps2, float dt, float *x, float *y, float *vx,       \
                                                      float *vy, float *mass, cudaTextureObject_t of_x,                 \
                                                      cudaTextureObject_t of_y, cudaTextureObject_t of_mass) {          \
        how(n, eps2, dt, ARRAYS_##memory, ArraysVelocity{vx, vy});                                                      \
    }

#define STRUCTS_global StructsGlobal{bodies}
#define STRUCTS_read_only StructsReadOnly{bodies}
#define STRUCTS_texture StructsTexture{floats}
#define STRUCTS_shared StructsGlobal{bodies}
#define ARRAYS_global ArraysGlobal{x, y, mass}
#define ARRAYS_read_only ArraysReadOnly{x, y, mass}
#define ARRAYS_texture ArraysTexture{of_x, of_y, of_mass}
#define ARRAYS_shared ArraysGlobal{x, y, mass}

KERNEL(threads, by_threads, global)
KERNEL(threads, by_threads, read_only)
KERNEL(threads, by_threads, texture)
KERNEL(threads, by_threads_shared, shared)
KERNEL(pairs, by_pairs, global)
KERNEL(pairs, by_pairs, read_only)
KERNEL(pairs, by_pairs, texture)
KERNEL(pairs, by_pairs_shared, shared)

extern "C" __global__ void drift_structs(int n, float dt, Body *bodies) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n) return;
    bodies[i].x += dt * bodies[i].vx;
    bodies[i].y += dt * bodies[i].vy;
}

extern "C" __global__ void drift_arrays(int n, float dt, float *x, float *y, const float *vx, const float *vy) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n) return;
    x[i] += dt * vx[i];
    y[i] += dt * vy[i];
}

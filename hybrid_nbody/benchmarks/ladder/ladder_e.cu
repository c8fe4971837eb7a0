// Ladder E: one change a rung, from one GPU thread to unrolled tiles of fused multiply-adds.
//
// Every kernel does the kick of a step, v += dt a(x), for bodies 0 to targets - 1; `drift.cu` then does x += dt v. Arrays
// are padded to whole blocks with bodies without mass. Compiled with -DBLOCK and -DUNROLL. Compilers unroll loops by
// themselves, so those of the rungs before "unroll 8" say `unroll 1`.

struct Body { float x, y, z, vx, vy, vz, mass; };
struct Parameters { float eps2, dt; int n, targets; };

__constant__ Parameters constants;

// What one source adds to the acceleration of a target: with the exact root and division ...
__device__ inline void add(float dx, float dy, float dz, float mass, float eps2, float3 &a) {
    float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + eps2);
    float weight = mass * inverse * inverse * inverse;
    a.x += weight * dx;
    a.y += weight * dy;
    a.z += weight * dz;
}

// ... with the reciprocal root ...
__device__ inline void add_rsqrt(float dx, float dy, float dz, float mass, float eps2, float3 &a) {
    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + eps2);
    float weight = mass * inverse * inverse * inverse;
    a.x += weight * dx;
    a.y += weight * dy;
    a.z += weight * dz;
}

// ... and with the terms arranged for three fused multiply-adds.
__device__ inline void add_fused(float dx, float dy, float dz, float mass, float eps2, float3 &a) {
    float inverse = rsqrtf(dx * dx + (dy * dy + (dz * dz + eps2)));
    float weight = mass * inverse * (inverse * inverse);
    a.x += weight * dx;
    a.y += weight * dy;
    a.z += weight * dz;
}

__device__ inline void kick(Body &body, float dt, const float3 &a) {
    body.vx += dt * a.x;
    body.vy += dt * a.y;
    body.vz += dt * a.z;
}

// The whole double loop in one GPU thread.
extern "C" __global__ void one_thread(const Parameters *parameters, Body *bodies) {
#pragma unroll 1
    for (int i = 0; i < parameters->targets; ++i) {
        Body own = bodies[i];
        float3 a = {0, 0, 0};
#pragma unroll 1
        for (int j = 0; j < parameters->n; ++j)
            if (i != j)
                add(bodies[j].x - own.x, bodies[j].y - own.y, bodies[j].z - own.z, bodies[j].mass, parameters->eps2, a);
        kick(bodies[i], parameters->dt, a);
    }
}

// N threads, one a body.
extern "C" __global__ void thread_a_body(const Parameters *parameters, Body *bodies) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= parameters->targets) return;
    Body own = bodies[i];
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < parameters->n; ++j)
        if (i != j)
            add(bodies[j].x - own.x, bodies[j].y - own.y, bodies[j].z - own.z, bodies[j].mass, parameters->eps2, a);
    kick(bodies[i], parameters->dt, a);
}

// Scalar arrays instead of structs.
extern "C" __global__ void scalar_arrays(const Parameters *parameters, const float *x, const float *y, const float *z,
                                         float *vx, float *vy, float *vz, const float *mass) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= parameters->targets) return;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < parameters->n; ++j)
        if (i != j) add(x[j] - own_x, y[j] - own_y, z[j] - own_z, mass[j], parameters->eps2, a);
    vx[i] += parameters->dt * a.x;
    vy[i] += parameters->dt * a.y;
    vz[i] += parameters->dt * a.z;
}

// The parameters in constant memory.
extern "C" __global__ void constant_parameters(const float *x, const float *y, const float *z, float *vx, float *vy,
                                               float *vz, const float *mass) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= constants.targets) return;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < constants.n; ++j)
        if (i != j) add(x[j] - own_x, y[j] - own_y, z[j] - own_z, mass[j], constants.eps2, a);
    vx[i] += constants.dt * a.x;
    vy[i] += constants.dt * a.y;
    vz[i] += constants.dt * a.z;
}

// The reciprocal root.
extern "C" __global__ void reciprocal_root(const float *x, const float *y, const float *z, float *vx, float *vy,
                                           float *vz, const float *mass) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= constants.targets) return;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < constants.n; ++j)
        if (i != j) add_rsqrt(x[j] - own_x, y[j] - own_y, z[j] - own_z, mass[j], constants.eps2, a);
    vx[i] += constants.dt * a.x;
    vy[i] += constants.dt * a.y;
    vz[i] += constants.dt * a.z;
}

// Two loops, before and after the body itself, instead of `if (i != j)`.
extern "C" __global__ void two_loops(const float *x, const float *y, const float *z, float *vx, float *vy, float *vz,
                                     const float *mass) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= constants.targets) return;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < i; ++j) add_rsqrt(x[j] - own_x, y[j] - own_y, z[j] - own_z, mass[j], constants.eps2, a);
#pragma unroll 1
    for (int j = i + 1; j < constants.n; ++j)
        add_rsqrt(x[j] - own_x, y[j] - own_y, z[j] - own_z, mass[j], constants.eps2, a);
    vx[i] += constants.dt * a.x;
    vy[i] += constants.dt * a.y;
    vz[i] += constants.dt * a.z;
}

// A block stages its sources in shared memory.
struct Tile { float x[BLOCK], y[BLOCK], z[BLOCK], mass[BLOCK]; };

__device__ inline void stage(Tile &tile, int j, const float *x, const float *y, const float *z, const float *mass) {
    __syncthreads();
    tile.x[threadIdx.x] = x[j];
    tile.y[threadIdx.x] = y[j];
    tile.z[threadIdx.x] = z[j];
    tile.mass[threadIdx.x] = mass[j];
    __syncthreads();
}

// Blocking in shared memory. The rung "unroll 8" is this kernel with UNROLL 8.
extern "C" __global__ void __launch_bounds__(BLOCK) blocked(const float *x, const float *y, const float *z, float *vx,
                                                            float *vy, float *vz, const float *mass) {
    __shared__ Tile tile;
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
    for (int start = 0; start < constants.n; start += BLOCK) {
        stage(tile, start + threadIdx.x, x, y, z, mass);
#pragma unroll UNROLL
        for (int j = 0; j < BLOCK; ++j)
            if (i != start + j)
                add_rsqrt(tile.x[j] - own_x, tile.y[j] - own_y, tile.z[j] - own_z, tile.mass[j], constants.eps2, a);
    }
    if (i >= constants.targets) return;
    vx[i] += constants.dt * a.x;
    vy[i] += constants.dt * a.y;
    vz[i] += constants.dt * a.z;
}

// Without the `if`: softening makes a body's force on itself exactly zero.
extern "C" __global__ void __launch_bounds__(BLOCK)
    blocked_without_if(const float *x, const float *y, const float *z, float *vx, float *vy, float *vz, const float *mass) {
    __shared__ Tile tile;
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
    for (int start = 0; start < constants.n; start += BLOCK) {
        stage(tile, start + threadIdx.x, x, y, z, mass);
#pragma unroll UNROLL
        for (int j = 0; j < BLOCK; ++j)
            add_rsqrt(tile.x[j] - own_x, tile.y[j] - own_y, tile.z[j] - own_z, tile.mass[j], constants.eps2, a);
    }
    if (i >= constants.targets) return;
    vx[i] += constants.dt * a.x;
    vy[i] += constants.dt * a.y;
    vz[i] += constants.dt * a.z;
}

// The terms rearranged. "unroll 128" is this kernel with UNROLL 128, "flush denormals" that with -ftz=true.
extern "C" __global__ void __launch_bounds__(BLOCK) blocked_fused(const float *x, const float *y, const float *z, float *vx,
                                                                  float *vy, float *vz, const float *mass) {
    __shared__ Tile tile;
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
    for (int start = 0; start < constants.n; start += BLOCK) {
        stage(tile, start + threadIdx.x, x, y, z, mass);
#pragma unroll UNROLL
        for (int j = 0; j < BLOCK; ++j)
            add_fused(tile.x[j] - own_x, tile.y[j] - own_y, tile.z[j] - own_z, tile.mass[j], constants.eps2, a);
    }
    if (i >= constants.targets) return;
    vx[i] += constants.dt * a.x;
    vy[i] += constants.dt * a.y;
    vz[i] += constants.dt * a.z;
}

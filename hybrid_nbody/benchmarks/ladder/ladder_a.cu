// Ladder A: from one thread a body on an array of structs to unrolled tiles with fast math.
//
// Every kernel does the kick of a step, v += dt a(x), for bodies 0 to targets - 1; `drift.cu` then does x += dt v. Arrays
// are padded to whole blocks with bodies without mass. Compiled with -DBLOCK, the threads of a block, and -DUNROLL. Compilers
// unroll loops by themselves, so those of the rungs before "unrolled tiles" say `unroll 1`.

struct Body { float x, y, z, vx, vy, vz, mass; };

// What one source adds to the acceleration of a target: with the exact root and division, and with the fast one.
__device__ inline void add(float dx, float dy, float dz, float mass, float eps2, float3 &a) {
    float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + eps2);
    float weight = mass * inverse * inverse * inverse;
    a.x += weight * dx;
    a.y += weight * dy;
    a.z += weight * dz;
}

__device__ inline void add_fast(float dx, float dy, float dz, float mass, float eps2, float3 &a) {
    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + eps2);
    float weight = mass * inverse * inverse * inverse;
    a.x += weight * dx;
    a.y += weight * dy;
    a.z += weight * dz;
}

// One thread a body; its own position is read from global memory for every pair. Without `volatile` the compiler would keep
// it in a register by itself, which is the next rung.
extern "C" __global__ void structs(int n, int targets, float eps2, float dt, Body *bodies) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= targets) return;
    const volatile Body &own = bodies[i];
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < n; ++j)
        add(bodies[j].x - own.x, bodies[j].y - own.y, bodies[j].z - own.z, bodies[j].mass, eps2, a);
    bodies[i].vx += dt * a.x;
    bodies[i].vy += dt * a.y;
    bodies[i].vz += dt * a.z;
}

// The own position in registers.
extern "C" __global__ void registers(int n, int targets, float eps2, float dt, Body *bodies) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= targets) return;
    float x = bodies[i].x, y = bodies[i].y, z = bodies[i].z;
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < n; ++j) add(bodies[j].x - x, bodies[j].y - y, bodies[j].z - z, bodies[j].mass, eps2, a);
    bodies[i].vx += dt * a.x;
    bodies[i].vy += dt * a.y;
    bodies[i].vz += dt * a.z;
}

// A struct of arrays.
extern "C" __global__ void arrays(int n, int targets, float eps2, float dt, const float *x, const float *y,
                                  const float *z, float *vx, float *vy, float *vz, const float *mass) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= targets) return;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < n; ++j) add(x[j] - own_x, y[j] - own_y, z[j] - own_z, mass[j], eps2, a);
    vx[i] += dt * a.x;
    vy[i] += dt * a.y;
    vz[i] += dt * a.z;
}

// Arrays of float3: 12 bytes, loaded number by number.
extern "C" __global__ void float3_vectors(int n, int targets, float eps2, float dt, const float3 *position,
                                          float3 *velocity, const float *mass) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= targets) return;
    float3 own = position[i], a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < n; ++j) {
        float3 p = position[j];
        add(p.x - own.x, p.y - own.y, p.z - own.z, mass[j], eps2, a);
    }
    velocity[i].x += dt * a.x;
    velocity[i].y += dt * a.y;
    velocity[i].z += dt * a.z;
}

// Arrays of float4: 16 bytes in one load, the mass in the 4th component.
extern "C" __global__ void float4_vectors(int n, int targets, float eps2, float dt, const float4 *position,
                                          float4 *velocity) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= targets) return;
    float4 own = position[i];
    float3 a = {0, 0, 0};
#pragma unroll 1
    for (int j = 0; j < n; ++j) {
        float4 p = position[j];
        add(p.x - own.x, p.y - own.y, p.z - own.z, p.w, eps2, a);
    }
    velocity[i].x += dt * a.x;
    velocity[i].y += dt * a.y;
    velocity[i].z += dt * a.z;
}

// The block stages a tile of sources in shared memory. The rung "unrolled tiles" is this kernel with a larger UNROLL.
extern "C" __global__ void __launch_bounds__(BLOCK)
    tiles(int n, int targets, float eps2, float dt, const float4 *position, float4 *velocity) {
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 own = position[i];
    float3 a = {0, 0, 0};
    for (int start = 0; start < n; start += BLOCK) {
        __syncthreads();
        tile[threadIdx.x] = position[start + threadIdx.x];
        __syncthreads();
#pragma unroll UNROLL
        for (int j = 0; j < BLOCK; ++j)
            add(tile[j].x - own.x, tile[j].y - own.y, tile[j].z - own.z, tile[j].w, eps2, a);
    }
    if (i >= targets) return;
    velocity[i].x += dt * a.x;
    velocity[i].y += dt * a.y;
    velocity[i].z += dt * a.z;
}

// The same with the fast reciprocal root; compiled with -ftz=true, which makes that one instruction.
extern "C" __global__ void __launch_bounds__(BLOCK)
    fast_tiles(int n, int targets, float eps2, float dt, const float4 *position, float4 *velocity) {
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 own = position[i];
    float3 a = {0, 0, 0};
    for (int start = 0; start < n; start += BLOCK) {
        __syncthreads();
        tile[threadIdx.x] = position[start + threadIdx.x];
        __syncthreads();
#pragma unroll UNROLL
        for (int j = 0; j < BLOCK; ++j)
            add_fast(tile[j].x - own.x, tile[j].y - own.y, tile[j].z - own.z, tile[j].w, eps2, a);
    }
    if (i >= targets) return;
    velocity[i].x += dt * a.x;
    velocity[i].y += dt * a.y;
    velocity[i].z += dt * a.z;
}

// The same with plain floats instead of float4, in global and in shared memory.
extern "C" __global__ void __launch_bounds__(BLOCK)
    fast_plain_tiles(int n, int targets, float eps2, float dt, const float *x, const float *y, const float *z, float *vx,
                     float *vy, float *vz, const float *mass) {
    __shared__ float tile_x[BLOCK], tile_y[BLOCK], tile_z[BLOCK], tile_mass[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float own_x = x[i], own_y = y[i], own_z = z[i];
    float3 a = {0, 0, 0};
    for (int start = 0; start < n; start += BLOCK) {
        __syncthreads();
        tile_x[threadIdx.x] = x[start + threadIdx.x];
        tile_y[threadIdx.x] = y[start + threadIdx.x];
        tile_z[threadIdx.x] = z[start + threadIdx.x];
        tile_mass[threadIdx.x] = mass[start + threadIdx.x];
        __syncthreads();
#pragma unroll UNROLL
        for (int j = 0; j < BLOCK; ++j)
            add_fast(tile_x[j] - own_x, tile_y[j] - own_y, tile_z[j] - own_z, tile_mass[j], eps2, a);
    }
    if (i >= targets) return;
    vx[i] += dt * a.x;
    vy[i] += dt * a.y;
    vz[i] += dt * a.z;
}

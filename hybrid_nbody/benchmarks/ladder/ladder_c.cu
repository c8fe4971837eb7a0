// Ladder C: p x p tiles in shared memory, the mass in the 4th component of the position.
//
// Every kernel does the kick of a step, v += dt a(x), for bodies 0 to targets - 1; `drift.cu` then does x += dt v. Arrays
// are padded to whole blocks with bodies without mass. Compiled with -DBLOCK, the p of a tile, and -DUNROLL.

__device__ inline void add(const float4 &source, const float4 &own, float eps2, float3 &a) {
    float dx = source.x - own.x, dy = source.y - own.y, dz = source.z - own.z;
    float inverse = rsqrtf(dx * dx + (dy * dy + (dz * dz + eps2)));
    float weight = source.w * inverse * (inverse * inverse);
    a.x += weight * dx;
    a.y += weight * dy;
    a.z += weight * dz;
}

// Without tiles: every thread reads every source from global memory.
extern "C" __global__ void untiled(int n, int targets, float eps2, float dt, const float4 *position, float4 *velocity) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= targets) return;
    float4 own = position[i];
    float3 a = {0, 0, 0};
#pragma unroll UNROLL
    for (int j = 0; j < n; ++j) add(position[j], own, eps2, a);
    velocity[i].x += dt * a.x;
    velocity[i].y += dt * a.y;
    velocity[i].z += dt * a.z;
}

// p threads walk through tiles of p sources.
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
        for (int j = 0; j < BLOCK; ++j) add(tile[j], own, eps2, a);
    }
    if (i >= targets) return;
    velocity[i].x += dt * a.x;
    velocity[i].y += dt * a.y;
    velocity[i].z += dt * a.z;
}

// Several threads a body: block (b, k) takes every gridDim.y-th tile from the k-th on, and the parts are added atomically.
extern "C" __global__ void __launch_bounds__(BLOCK)
    split_tiles(int n, int targets, float eps2, float dt, const float4 *position, float4 *velocity) {
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 own = position[i];
    float3 a = {0, 0, 0};
    for (int start = blockIdx.y * BLOCK; start < n; start += gridDim.y * BLOCK) {
        __syncthreads();
        tile[threadIdx.x] = position[start + threadIdx.x];
        __syncthreads();
#pragma unroll UNROLL
        for (int j = 0; j < BLOCK; ++j) add(tile[j], own, eps2, a);
    }
    if (i >= targets) return;
    atomicAdd(&velocity[i].x, dt * a.x);
    atomicAdd(&velocity[i].y, dt * a.y);
    atomicAdd(&velocity[i].z, dt * a.z);
}

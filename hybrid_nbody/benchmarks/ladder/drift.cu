// The drift of a step, x += dt v, for bodies 0 to targets - 1 in each way of storing bodies that the ladders have.

struct Body { float x, y, z, vx, vy, vz, mass; };

__device__ inline int thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void drift_structs(int targets, float dt, Body *bodies) {
    int i = thread();
    if (i >= targets) return;
    bodies[i].x += dt * bodies[i].vx;
    bodies[i].y += dt * bodies[i].vy;
    bodies[i].z += dt * bodies[i].vz;
}

extern "C" __global__ void drift_arrays(int targets, float dt, float *x, float *y, float *z, const float *vx,
                                        const float *vy, const float *vz) {
    int i = thread();
    if (i >= targets) return;
    x[i] += dt * vx[i];
    y[i] += dt * vy[i];
    z[i] += dt * vz[i];
}

extern "C" __global__ void drift_float3(int targets, float dt, float3 *position, const float3 *velocity) {
    int i = thread();
    if (i >= targets) return;
    position[i].x += dt * velocity[i].x;
    position[i].y += dt * velocity[i].y;
    position[i].z += dt * velocity[i].z;
}

extern "C" __global__ void drift_float4(int targets, float dt, float4 *position, const float4 *velocity) {
    int i = thread();
    if (i >= targets) return;
    position[i].x += dt * velocity[i].x;
    position[i].y += dt * velocity[i].y;
    position[i].z += dt * velocity[i].z;
}

// Whole steps of a few bodies in one block, which holds them in its shared memory: the last part of
// pair_force.cu.

#pragma once

__device__ inline void copy_in(int size, double *to, const double *from) {
    for (int i = threadIdx.x; i < size; i += FEW_THREADS) to[i] = from[i];
}

// Take whole steps: every stage as its kernel does, with a barrier instead of the next launch.
template <class Sum>
__device__ inline void run_stages(int steps, int stages, const int *actions, const double *lengths,
                                  int number, int slots, double *positions, double *velocities,
                                  double *accelerations, const double *mass, const int *order,
                                  const Targets &all, double masses, double scale, Real eps2,
                                  const int *chunks, const int *starts) {
    __shared__ double position[3 * FEW_BODIES], velocity[3 * FEW_BODIES];
    __shared__ double acceleration[3 * FEW_BODIES], origin[6];
    __shared__ double partial[PARTS * 3 * FEW_BODIES];
    __shared__ Source packed[FEW_SLOTS], tiles[FEW_THREADS];
    Source *tile = tiles + threadIdx.x / RUN * RUN;
    int warps = (number + RUN - 1) / RUN * PARTS, body, size = 3 * number;
    Targets targets = {number,     position,    velocity,  all.index,
                       all.bodies, all.lengths, all.speeds};
    copy_in(size, position, positions);
    copy_in(size, velocity, velocities);
    copy_in(size, acceleration, accelerations);
    for (int stage = 0; steps > 0; stage = stage + 1 < stages ? stage + 1 : (--steps, 0)) {
        int action = actions[stage];
        double length = lengths[stage];
        if (action == FORCE) {  // in the other stages a thread meets its own numbers alone
            __syncthreads();
            for (int slot = threadIdx.x; slot < slots; slot += FEW_THREADS)
                pack_slot(slot, all.lengths, masses, position, mass, order, starts, origin,
                          packed + slot, &body);
            __syncthreads();
            for (int warp = threadIdx.x / RUN; warp < warps; warp += FEW_THREADS / RUN)
                sum_part<Sum, 1>(warp % PARTS, warp / PARTS, targets,
                                 {chunks, starts, origin, packed}, eps2, tile, partial);
            __syncthreads();
        }
        for (int i = threadIdx.x; i < size; i += FEW_THREADS) {
            if (action == KICK) add_scaled_at(i, velocity, length, acceleration);
            if (action == DRIFT) add_scaled_at(i, position, length, velocity);
            if (action == FORCE)
                combine_parts(i, 3, number, all.bodies, scale, partial, acceleration);
        }
        if (action == FORCE) __syncthreads();
    }
    __syncthreads();
    copy_in(size, positions, position);
    copy_in(size, velocities, velocity);
    copy_in(size, accelerations, acceleration);
}

#define RUN_KERNEL(name, Sum)                                                                      \
    extern "C" __global__ void __launch_bounds__(FEW_THREADS, 1)                                   \
        name(int steps, int stages, const int *actions, const double *lengths, int number,         \
             int slots, double *position, double *velocity, double *acceleration,                  \
             const double *mass, const int *order, const int *index, const int *bodies,            \
             double per_length, double masses, double scale, Real eps2, const int *chunks,         \
             const int *starts) {                                                                  \
        run_stages<Sum>(steps, stages, actions, lengths, number, slots, position, velocity,        \
                        acceleration, mass, order,                                                 \
                        {number, position, velocity, index, bodies, per_length, 1.0}, masses,      \
                        scale, eps2, chunks, starts);                                              \
    }

RUN_KERNEL(run_steps, AnyMasses)
RUN_KERNEL(run_steps_of_equal_masses, EqualMasses)

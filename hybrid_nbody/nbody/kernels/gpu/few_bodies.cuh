// Whole steps of a few bodies in one block, which holds them in its shared memory: the last part of
// pair_force.cu.

#pragma once

__device__ inline void copy_scaled(int size, double factor, double *to, const double *from) {
    for (int i = threadIdx.x; i < size; i += FEW_THREADS) to[i] = factor * from[i];
}

// Where positions and velocities are copied to after every `interval` steps, the first time `since`
// steps sooner.
struct Copies {
    int interval, since;
    double *position, *velocity;
};

// Copy what this thread has moved itself, and go on to the memory of the next copy.
__device__ inline void take_copy(Copies &copies, int size, double unit, const double *position,
                                 const double *velocity) {
    copy_scaled(size, unit, copies.position, position);
    copy_scaled(size, unit, copies.velocity, velocity);
    copies.position += size;
    copies.velocity += size;
    copies.since = 0;
}

// Take whole steps: every stage as its kernel does, with a barrier instead of the next launch.
// Positions, velocities and accelerations are held in the kernels' unit of length meanwhile.
template <class Sum>
__device__ inline void run_stages(int steps, int stages, const int *actions, const double *lengths,
                                  int number, int slots, double *positions, double *velocities,
                                  double *accelerations, const double *mass, const int *order,
                                  const Targets &all, double unit, double masses, double scale,
                                  Real eps2, const int *chunks, const int *starts, Copies copies) {
    __shared__ double position[3 * FEW_BODIES], velocity[3 * FEW_BODIES];
    __shared__ double acceleration[3 * FEW_BODIES], scaled_mass[FEW_BODIES], origin[6];
    __shared__ double partial[PARTS * 3 * FEW_BODIES];
    __shared__ Source packed[FEW_SLOTS], tiles[FEW_THREADS];
    Source *tile = tiles + threadIdx.x / RUN * RUN;
    int warps = (number + RUN - 1) / RUN * PARTS, body, size = 3 * number;
    Targets targets = {number, position, velocity, all.index, all.bodies, 1.0, 1.0};
    copy_scaled(size, all.lengths, position, positions);
    copy_scaled(size, all.lengths, velocity, velocities);
    copy_scaled(size, all.lengths, acceleration, accelerations);
    copy_scaled(number, masses, scaled_mass, mass);
    while (steps > 0) {
        int now = min(steps, copies.interval - copies.since);
        steps -= now;
        copies.since += now;
        for (int stage = 0; now > 0; stage = stage + 1 < stages ? stage + 1 : (--now, 0)) {
            int action = actions[stage];
            double length = lengths[stage];
            if (action == FORCE) {  // in the other stages a thread meets its own numbers alone
                __syncthreads();
                for (int slot = threadIdx.x; slot < slots; slot += FEW_THREADS)
                    pack_slot(slot, 1.0, 1.0, position, scaled_mass, order, starts, origin,
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
                    combine_parts(i / number, i % number, 3, number, all.bodies,
                                  all.lengths * scale, partial, acceleration);
            }
            if (action == FORCE) __syncthreads();
        }
        if (copies.since == copies.interval) take_copy(copies, size, unit, position, velocity);
    }
    __syncthreads();
    copy_scaled(size, unit, positions, position);
    copy_scaled(size, unit, velocities, velocity);
    copy_scaled(size, unit, accelerations, acceleration);
}

#define RUN_KERNEL(name, Sum)                                                                      \
    extern "C" __global__ void __launch_bounds__(FEW_THREADS, 1)                                   \
        name(int steps, int stages, const int *actions, const double *lengths, int number,         \
             int slots, double *position, double *velocity, double *acceleration,                  \
             const double *mass, const int *order, const int *index, const int *bodies,            \
             double per_length, double unit, double masses, double scale, Real eps2,               \
             const int *chunks, const int *starts, int interval, int since,                        \
             double *copied_position, double *copied_velocity) {                                   \
        run_stages<Sum>(steps, stages, actions, lengths, number, slots, position, velocity,        \
                        acceleration, mass, order,                                                 \
                        {number, position, velocity, index, bodies, per_length, 1.0}, unit,        \
                        masses, scale, eps2, chunks, starts,                                       \
                        {interval, since, copied_position, copied_velocity});                      \
    }

RUN_KERNEL(run_steps, AnyMasses)
RUN_KERNEL(run_steps_of_equal_masses, EqualMasses)

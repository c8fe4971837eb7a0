// Kicks and drifts between two forces; included by ``pair_force.cu``.

#include "motion.cuh"

__device__ inline void add_scaled_at(int i, double *result, double factor,
                                     const double *increment) {
    result[i] = fma(factor, increment[i], result[i]);
}

extern "C" __global__ void add_scaled(int size, double *result, double factor,
                                      const double *increment) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < size) add_scaled_at(i, result, factor, increment);
}

// The motions of the middle bodies of the chunks, middles[chunk][axis]: every source of a chunk is
// packed about its middle body, which other threads move meanwhile.
extern "C" __global__ void keep_middles(int chunks, const double *position, const double *velocity,
                                        const int *order, const int *starts, Motion *middles) {
    int i = blockIdx.x * THREADS + threadIdx.x, chunk = i / 3, axis = i % 3;
    if (chunk >= chunks) return;
    int start = starts[chunk], size = starts[chunk + 1] - start;
    if (size == 0) return;
    int at = 3 * order[start + size / 2] + axis;
    middles[i] = {position[at], velocity[at]};
}

// Takes positions and velocities as they are where a step ends.
struct Copied { double *position, *velocity; };

// Add up the parts, as `combine` does, kick and drift until the next force, and pack for it, as
// `pack` does. A thread moves one coordinate, the axis along y, of the body of a slot; those beyond
// the slots move bodies without mass. The middle bodies are read in `middles` and written in `next`.
template <bool COPY>
__device__ inline void
    combine_move_and_pack_slot(int slots, int targets, double lengths, double scale,
                               const int *order, const int *chunks, const int *starts,
                               const double *partial, const Moves &moves, double *position,
                               double *velocity, double *acceleration, const Motion *middles,
                               Motion *next, double *origin, Source *packed, Copied copied) {
    int slot = blockIdx.x * THREADS + threadIdx.x, axis = blockIdx.y;
    int chunk = slot / (PIECE * PIECES), k = slot % (PIECE * PIECES);
    bool is_source = slot < slots;
    int start = starts[is_source ? chunk : chunks[0]];
    int size = is_source ? starts[chunk + 1] - start : targets - start;
    if (!is_source) k = slot - slots;
    if (k >= size) return;
    int at = 3 * order[start + k] + axis, first = axis * targets + start, sums = 3 * targets;
    Motion body = {position[at], velocity[at]};
    double a = scale * sum_of_parts(first + k, sums, partial), o = 0;
#if defined(SINGLE)
    int middle = size / 2, of_middle = is_source ? 3 * chunk + axis : 0;
    Motion m = middles[of_middle];
    double pull = scale * sum_of_parts(first + middle, sums, partial);
    o = lengths * moved(m, pull, moves).x;
#endif
    if (COPY) {
        Motion copy;
        body = moved(body, a, moves, &copy);
        copied.position[at] = copy.x, copied.velocity[at] = copy.v;
    } else {
        body = moved(body, a, moves);
    }
    position[at] = body.x, velocity[at] = body.v, acceleration[at] = a;
    if (!is_source) return;
#if defined(SINGLE)
    if (k == middle) next[of_middle] = body;
#endif
    if (k == 0) origin[3 * chunk + axis] = o;
    set_coordinate(packed + slot, axis, lengths * body.x - o);
}

#define MOVE_KERNEL(name, COPY)                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                       \
        name(int slots, int targets, double lengths, double scale, const int *order,               \
             const int *chunks, const int *starts, const double *partial,                          \
             const __grid_constant__ Moves moves, double *position, double *velocity,              \
             double *acceleration, const Motion *middles, Motion *next, double *origin,            \
             Source *packed, double *copied_position, double *copied_velocity) {                   \
        combine_move_and_pack_slot<COPY>(slots, targets, lengths, scale, order, chunks, starts,    \
                                         partial, moves, position, velocity, acceleration,         \
                                         middles, next, origin, packed,                            \
                                         {copied_position, copied_velocity});                      \
    }

MOVE_KERNEL(combine_move_and_pack, false)
MOVE_KERNEL(combine_move_copy_and_pack, true)

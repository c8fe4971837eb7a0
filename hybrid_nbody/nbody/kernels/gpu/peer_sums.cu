// Sums over pairs that GPUs of one host add up in each other's memory.
//
// Compiled with -DCHUNK, -DTHREADS and -DMOST_MOVES, as ``symmetric.cu``, and -DRANKS, the GPUs.

#include "motion.cuh"
#include "peer_barrier.cuh"

// Return a sum of all ranks; `at` is where its first word lies. Adding is exact but for the words.
template <int WORDS>
__device__ inline double total_of(const double *const *sums, size_t at, int slots) {
    double total = 0;  // the finest first
#pragma unroll
    for (int word = WORDS - 1; word >= 0; --word) {
        double sum = 0;
#pragma unroll
        for (int rank = 0; rank < RANKS; ++rank)
            sum += __ldcg(sums[rank] + at + (size_t)word * slots);
        total += sum;
    }
    return total;
}

// Return the rank that owns a body, from the first body of each rank.
__device__ inline int owner_of(int body, const int *first_bodies) {
    int rank = 0;
    while (body >= first_bodies[rank + 1]) ++rank;
    return rank;
}

// What all ranks have: sums by slot, results by body, and the first body of each of them.
struct Shares {
    const double *const *sums;
    double *const *results;
    const int *first_bodies;
    __device__ double *result_of(int body, int components) const {
        int owner = owner_of(body, first_bodies);
        return results[owner] + (size_t)(body - first_bodies[owner]) * components;
    }
};

// Return the body in a slot of this rank's share of the chunks; -1 if there is none.
__device__ inline int body_in(int slot_of_share, int rank, const int *order, const int *chunks,
                              const int *starts, int *slot) {
    long long number = chunks[0];
    int first = number * rank / RANKS * CHUNK, last = number * (rank + 1) / RANKS * CHUNK;
    *slot = first + slot_of_share;
    if (*slot >= last) return -1;
    int chunk = *slot / CHUNK, source_index = starts[chunk] + *slot % CHUNK;
    return source_index < starts[chunk + 1] ? order[source_index] : -1;
}

// Add up the sums in the slots of a block, and write the results to where the bodies' owners have
// them: neighbouring threads write the components of a body.
template <int COMPONENTS, int WORDS>
__device__ inline void add_up(const PeerBarrier &barrier, int slots, double scale, const int *order,
                              const int *chunks, const int *starts, const Shares &shares) {
    __shared__ double totals[COMPONENTS * THREADS];
    __shared__ double *results[THREADS];
    begin_together(barrier);
    int slot, body = body_in(blockIdx.x * THREADS + threadIdx.x, barrier.rank, order, chunks, starts,
                             &slot);
    results[threadIdx.x] = body < 0 ? nullptr : shares.result_of(body, COMPONENTS);
#pragma unroll
    for (int c = 0; c < COMPONENTS; ++c) {
        size_t at = (size_t)c * WORDS * slots + slot;
        double total = body < 0 ? 0 : total_of<WORDS>(shares.sums, at, slots);
        totals[threadIdx.x * COMPONENTS + c] = scale * total;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < COMPONENTS * THREADS; i += THREADS) {
        double *result = results[i / COMPONENTS];
        if (result) result[i % COMPONENTS] = totals[i];
    }
    leave_together(barrier, gridDim.x);
}

#define ADD_UP_KERNEL(name, COMPONENTS, WORDS)                                                     \
    extern "C" __global__ void                                                                     \
        name(const __grid_constant__ PeerBarrier barrier, int slots, double scale,                 \
             const int *order, const int *chunks, const int *starts, const double *const *sums,    \
             double *const *results, const int *first_bodies) {                                    \
        add_up<COMPONENTS, WORDS>(barrier, slots, scale, order, chunks, starts,                    \
                                  {sums, results, first_bodies});                                  \
    }

ADD_UP_KERNEL(add_up_accelerations, 3, 3)
ADD_UP_KERNEL(add_up_accelerations_and_jerks, 6, 4)

// Clear the sums of this rank, and count its tiles from the first one again.
__device__ inline void clear_sums(int slots, int number_of_rows, const int *chunks,
                                  unsigned long long *taken, double *rows) {
    int first = blockIdx.x * THREADS + threadIdx.x, threads = gridDim.x * THREADS;
    int filled = chunks[0] * CHUNK;  // nothing was added beyond
    if (first == 0) *taken = 0;
    for (int row = 0; row < number_of_rows; ++row)
        for (int slot = first; slot < filled; slot += threads)
            rows[(size_t)row * slots + slot] = 0;
}

extern "C" __global__ void clear(int slots, int number_of_rows, const int *chunks,
                                 unsigned long long *taken, double *rows) {
    clear_sums(slots, number_of_rows, chunks, taken, rows);
}

// Kick and drift this rank's bodies, `size` coordinates from `first` on, until the next force, write
// their positions to where the others have them, too, and clear the sums, which all have read. The
// last block that has written positions waits for the other GPUs; the others clear meanwhile.
extern "C" __global__ void move_and_push(int rank, int first, int size,
                                         const __grid_constant__ Moves moves,
                                         double *const *positions, double *velocity,
                                         const double *acceleration, int slots, int number_of_rows,
                                         const int *chunks, unsigned long long *taken, double *rows,
                                         const __grid_constant__ PeerBarrier barrier) {
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < size; i += gridDim.x * THREADS) {
        MotionAt at = {positions[rank] + first + i, velocity + i};
        double x = move_at(at, acceleration[i], moves, at).x;
#pragma unroll
        for (int other = 0; other < RANKS; ++other)
            if (other != rank) positions[other][(size_t)first + i] = x;
    }
    if (is_last_block(barrier, gridDim.x)) wait_for_peers(barrier, 0);
    clear_sums(slots, number_of_rows, chunks, taken, rows);
}

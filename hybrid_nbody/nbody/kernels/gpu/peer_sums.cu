// Sums over pairs that GPUs of one host add up, and rows that they share, in each other's memory.
//
// Compiled with -DCHUNK and -DTHREADS, as ``symmetric.cu``, and -DRANKS, the GPUs.

#include "peer_barrier.cuh"

extern "C" __global__ void barrier(const __grid_constant__ PeerBarrier barrier) {
    wait_for_peers(barrier, 0);
}

// Write this rank's rows, `size` numbers from `first` on, to where the others have them; the last
// block to be done waits for the other GPUs.
extern "C" __global__ void push_rows(int rank, int first, int size, double *const *rows,
                                     const __grid_constant__ PeerBarrier barrier) {
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < size; i += gridDim.x * THREADS) {
        double number = rows[rank][(size_t)first + i];
#pragma unroll
        for (int other = 0; other < RANKS; ++other)
            if (other != rank) rows[other][(size_t)first + i] = number;
    }
    if (is_last_block(barrier, gridDim.x)) wait_for_peers(barrier, 0);
}

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

// Add up the sums in this rank's share of the chunks, and write the results to where the bodies'
// owners have them: component blockIdx.y.
template <int WORDS>
__device__ inline void add_up(int rank, int slots, double scale, const int *order,
                              const int *chunks, const int *starts, const int *first_bodies,
                              const double *const *sums, double *const *results) {
    long long number = chunks[0];
    int first = number * rank / RANKS * CHUNK, last = number * (rank + 1) / RANKS * CHUNK;
    int slot = first + blockIdx.x * THREADS + threadIdx.x, chunk = slot / CHUNK;
    if (slot >= last) return;
    int source_index = starts[chunk] + slot % CHUNK;
    if (source_index >= starts[chunk + 1]) return;
    int component = blockIdx.y, body = order[source_index], owner = owner_of(body, first_bodies);
    double total = total_of<WORDS>(sums, (size_t)component * WORDS * slots + slot, slots);
    size_t row = body - first_bodies[owner];
    results[owner][row * gridDim.y + component] = scale * total;
}

#define ADD_UP(name, WORDS)                                                                        \
    extern "C" __global__ void name(int rank, int slots, double scale, const int *order,           \
                                    const int *chunks, const int *starts, const int *first_bodies, \
                                    const double *const *sums, double *const *results) {           \
        add_up<WORDS>(rank, slots, scale, order, chunks, starts, first_bodies, sums, results);     \
    }

ADD_UP(add_up_3_words, 3)
ADD_UP(add_up_4_words, 4)

// Clear the sums of this rank, and count its tiles from the first one again.
extern "C" __global__ void clear(int slots, int number_of_rows, const int *chunks,
                                 unsigned long long *taken, double *rows) {
    int slot = blockIdx.x * THREADS + threadIdx.x;
    if (slot == 0) *taken = 0;
    if (slot >= chunks[0] * CHUNK) return;  // nothing was added there
    for (int row = 0; row < number_of_rows; ++row) rows[(size_t)row * slots + slot] = 0;
}

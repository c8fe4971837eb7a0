// Rows that GPUs of one host write into each other's memory.
//
// Compiled with -DTHREADS and -DRANKS, the GPUs.

#include "peer_barrier.cuh"

extern "C" __global__ void barrier(const __grid_constant__ PeerBarrier barrier) {
    wait_for_peers(barrier, 0);
}

// Write this rank's rows, `size` numbers from `first` on, to where the others have them; the last
// block to be done waits for the other GPUs.
extern "C" __global__ void push_rows(int rank, long long first, long long size, double *const *rows,
                                     const __grid_constant__ PeerBarrier barrier) {
    long long threads = (long long)gridDim.x * THREADS;
    for (long long i = blockIdx.x * THREADS + threadIdx.x; i < size; i += threads) {
        double number = rows[rank][first + i];
#pragma unroll
        for (int other = 0; other < RANKS; ++other)
            if (other != rank) rows[other][first + i] = number;
    }
    if (is_last_block(barrier, gridDim.x)) wait_for_peers(barrier, 0);
}

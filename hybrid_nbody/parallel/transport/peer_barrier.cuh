// A barrier between GPUs that write signals into each other's memory.
//
// Kernels include it; `peer_barrier.py` fills its structures.

#pragma once

// What a GPU tells another one. The upper 32 bits: the number of the barrier that it has reached.
// The lower ones: what its kernel notes, a bit for each fact; or FAILED and the rank that did not
// answer.
typedef unsigned long long Signal;
#define FAILED 0x80000000u

// What a GPU remembers of its barriers.
struct PeerState {
    unsigned barriers;     // so far
    unsigned blocks_done;  // of the kernel that ends with the next barrier
    unsigned counter;      // for kernels to count in; zero after every barrier
    unsigned failed;       // whether a rank did not answer
};

// Where signals of all GPUs lie: with the GPU that they are for, those of odd barriers after those
// of even ones, so that no next signal replaces one that is still to be read.
struct PeerBarrier {
    volatile Signal *const *signals;  // by rank
    PeerState *state;
    volatile int *missing_rank;  // in the host's memory: 1 + the rank that did not answer
    unsigned long long limit;    // nanoseconds to wait for a rank
    int rank, ranks;
};

__device__ inline unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

#define LOOKS (1 << 16)  // between two looks at the clock: some hundredths of a second

// Wait for the signal of a rank at a barrier; after the limit return one that names this rank.
__device__ inline Signal wait_for_signal(const PeerBarrier &barrier, unsigned number, int rank) {
    const volatile Signal *from = barrier.signals[barrier.rank] + number % 2 * barrier.ranks + rank;
    unsigned long long start = 0;
    for (unsigned looks = 1;; ++looks) {
        Signal signal = *from;
        if (signal >> 32 == number || signal & FAILED) return signal;
        if (looks % LOOKS) continue;
        unsigned long long now = nanoseconds();
        if (start == 0) start = now;
        if (now - start > barrier.limit) return FAILED | (unsigned)rank;
    }
}

// Let the host and all GPUs know which rank did not answer; nobody waits at later barriers.
__device__ inline void give_up(const PeerBarrier &barrier, Signal signal) {
    barrier.state->failed = 1;
    *barrier.missing_rank = 1 + (int)(signal & ~(Signal)FAILED & 0xffffffff);
#pragma unroll 1
    for (int rank = 0; rank < barrier.ranks; ++rank)
        for (int odd = 0; odd < 2; ++odd)
            barrier.signals[rank][odd * barrier.ranks + barrier.rank] = signal;
}

// Wait until all GPUs are here; return the bits that any of them noted, all below FAILED. Called by
// all threads of one block with the same bits, and only once by a kernel.
__device__ inline unsigned wait_for_peers(const PeerBarrier &barrier, unsigned noted) {
    __shared__ unsigned number, failed, all;
    if (threadIdx.x == 0) {
        number = ++barrier.state->barriers;
        failed = barrier.state->failed;
        barrier.state->counter = all = 0;
    }
    __syncthreads();
    __threadfence_system();
    if (threadIdx.x < barrier.ranks && !failed) {
        int to = number % 2 * barrier.ranks + barrier.rank;
        barrier.signals[threadIdx.x][to] = (Signal)number << 32 | noted;
        Signal signal = wait_for_signal(barrier, number, threadIdx.x);
        if (signal & FAILED) give_up(barrier, signal);
        atomicOr(&all, (unsigned)signal);
    }
    __threadfence_system();
    __syncthreads();
    return all;
}

// Wait until all GPUs have launched the kernel. Called by all threads of every block of a kernel that
// ends with `leave_together`.
__device__ inline void begin_together(const PeerBarrier &barrier) {
    __shared__ unsigned number, failed;
    if (threadIdx.x == 0) {
        number = barrier.state->barriers + 1;  // which the last block adds
        failed = barrier.state->failed;
    }
    __syncthreads();
    if (threadIdx.x < barrier.ranks && !failed) {
        int to = number % 2 * barrier.ranks + barrier.rank;
        if (blockIdx.x == 0) {
            __threadfence_system();
            barrier.signals[threadIdx.x][to] = (Signal)number << 32;
        }
        Signal signal = wait_for_signal(barrier, number, threadIdx.x);
        if (signal & FAILED) give_up(barrier, signal);
    }
    __threadfence_system();
    __syncthreads();
}

// Whether the others of `blocks` blocks that end with a barrier are done, so that this one has to
// wait for the other GPUs. Called by all threads of a block after its last write.
__device__ inline bool is_last_block(const PeerBarrier &barrier, unsigned blocks) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        last = atomicInc(&barrier.state->blocks_done, blocks - 1) == blocks - 1;
    }
    __syncthreads();
    return last;
}

// Wait until all GPUs are done with a kernel of `blocks` blocks that they began together. Called by
// all threads of every block, after its last write.
__device__ inline void leave_together(const PeerBarrier &barrier, unsigned blocks) {
    if (!is_last_block(barrier, blocks)) return;
    if (threadIdx.x == 0) ++barrier.state->barriers;  // that at the beginning
    __syncthreads();
    wait_for_peers(barrier, 0);
}

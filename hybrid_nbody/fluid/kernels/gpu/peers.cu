// Planes pushed into the memory of other GPUs, and the barrier between these, for the passes of
// ``red_black_tiles.cu``.
//
// Compiled with the macros of ``grid.cuh``.

#include "peer_barrier.cuh"
#include "peer_planes.cuh"
#include "solve.cuh"

// Wait until all GPUs are here, and set the flags of those iterations of a launch that changed a
// cell anywhere. Called by all threads of one block.
__device__ void agree_on_flags(const PeerBarrier &barrier, int launch, int iterations,
                               int *control) {
    int *flags = flags_of(control, launch);
    unsigned noted = 0;
    for (int i = 0; i < iterations; ++i) noted |= (flags[i] != 0) << i;
    unsigned all = wait_for_peers(barrier, noted);
    for (int i = threadIdx.x; i < iterations; i += blockDim.x) flags[i] = all >> i & 1;
}

extern "C" __global__ void barrier(const __grid_constant__ PeerBarrier barrier, int launch,
                                   int iterations, int *control) {
    agree_on_flags(barrier, launch, iterations, control);
}

extern "C" __global__ void push(const Real *from, int first, int second,
                                const __grid_constant__ PeerHalo to) {
    push_planes(from, first, second, to, blockIdx.x, gridDim.x);
}

// The same; the last block to be done waits for the other GPUs.
extern "C" __global__ void push_and_barrier(const Real *from, int first, int second,
                                            const __grid_constant__ PeerHalo to,
                                            const __grid_constant__ PeerBarrier barrier, int launch,
                                            int iterations, int *control) {
    push_planes(from, first, second, to, blockIdx.x, gridDim.x);
    if (is_last_block(barrier, gridDim.x)) agree_on_flags(barrier, launch, iterations, control);
}

// Planes that a rank writes into the memory of the GPUs of its neighbours: their peer halo.

#pragma once

#include "copies.cuh"

// Colours of the ranks below and above in their GPUs' memory. The addresses are shifted so that a
// plane has the index there that it has here; null where there is no such rank. `colour_`: numbers
// from one colour to the other.
struct PeerHalo {
    Real *below, *above;
    long long colour_below, colour_above;
};

#define UNDER_WAY 4  // pieces of 16 bytes that a thread reads before it writes them

// Where piece `i` of the outermost planes of an array of colours begins: of the lowest planes, or of
// the highest. First come `first` planes of the first colour; `colour` leads from one to the other.
__device__ inline long long piece_at(int i, int first, int second, bool highest, long long colour) {
    const int size = COLOUR_PLANE / AT_ONCE;
    bool other = i >= first * size;
    int planes = other ? second : first;
    long long begin = (long long)(highest ? HALO + PLANES - planes : HALO) * COLOUR_PLANE;
    return begin + other * colour + (long long)(i - other * first * size) * AT_ONCE;
}

// Copy this rank's lowest or highest planes to those of another rank, by `threads` threads.
__device__ inline void push_side(const Real *from, Real *to, long long colour, int first, int second,
                                 bool highest, int thread, int threads) {
    int pieces = (first + second) * (COLOUR_PLANE / AT_ONCE);
    for (int i = thread; i < pieces; i += UNDER_WAY * threads) {
        float4 piece[UNDER_WAY];
#pragma unroll
        for (int k = 0; k < UNDER_WAY; ++k) {
            int number = min(i + k * threads, pieces - 1);
            piece[k] = read_piece(from + piece_at(number, first, second, highest, COLOUR));
        }
#pragma unroll
        for (int k = 0; k < UNDER_WAY; ++k) {
            int number = i + k * threads;
            if (number < pieces)
                *(float4 *)(to + piece_at(number, first, second, highest, colour)) = piece[k];
        }
    }
}

// Copy this rank's lowest and highest planes, `first` of the first colour and `second` of the
// other, into the halos of its neighbours. Called by all threads of `blocks` blocks.
__device__ inline void push_planes(const Real *from, int first, int second, const PeerHalo &to,
                                   int block, int blocks) {
    int thread = block * blockDim.x + threadIdx.x, threads = blocks * blockDim.x;
    if (to.below)
        push_side(from, to.below, to.colour_below, first, second, false, thread, threads);
    if (to.above)
        push_side(from, to.above, to.colour_above, first, second, true, thread, threads);
}

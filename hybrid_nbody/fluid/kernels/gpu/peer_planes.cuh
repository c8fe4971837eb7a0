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

// Copy this rank's lowest and highest planes, `first` of the first colour and `second` of the
// other, into the halos of its neighbours. Called by all threads of `blocks` blocks.
__device__ inline void push_planes(const Real *from, int first, int second, const PeerHalo &to,
                                   int block, int blocks) {
    const int size = COLOUR_PLANE / AT_ONCE;
    for (int i = block * blockDim.x + threadIdx.x; i < (first + second) * size;
         i += blocks * blockDim.x) {
        int colour = i >= first * size, planes = colour ? second : first;
        long long begin = (long long)HALO * COLOUR_PLANE + (i - colour * first * size) * AT_ONCE;
        long long end = begin + (long long)(PLANES - planes) * COLOUR_PLANE;
        if (to.below)
            copy(to.below + colour * to.colour_below + begin, from + colour * COLOUR + begin);
        if (to.above) copy(to.above + colour * to.colour_above + end, from + colour * COLOUR + end);
    }
}

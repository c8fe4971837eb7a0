// Planes that this rank shows the ranks beside it, on GPUs that write into each other's memory.

// Colours of the ranks below and above in their GPUs' memory, moved so that this rank's planes have their own numbers
// there; null where there is no such rank. `colour`: from one to the other.
struct Beyond {
    Real *below, *above;
    long long colour_below, colour_above;
};

#define AT_ONCE (int)(16 / sizeof(Real))
// What other blocks of the same kernel wrote is in the second-level cache.
__device__ inline void copy(Real *to, const Real *from) { *(float4 *)to = __ldcg((const float4 *)from); }

// Copy this rank's first and last planes, `first` of one colour and `second` of the other, to where the ranks beside it look
// for them, 16 bytes at once. Called by all threads of so many blocks.
__device__ inline void show_planes(const Real *from, int first, int second, const Beyond &to, int block, int blocks) {
    const int size = COLOUR_PLANE / AT_ONCE;
    for (int i = block * blockDim.x + threadIdx.x; i < (first + second) * size; i += blocks * blockDim.x) {
        int colour = i >= first * size, planes = colour ? second : first;
        long long begin = (long long)HALO * COLOUR_PLANE + (i - colour * first * size) * AT_ONCE;
        long long end = begin + (long long)(PLANES - planes) * COLOUR_PLANE;
        if (to.below) copy(to.below + colour * to.colour_below + begin, from + colour * COLOUR + begin);
        if (to.above) copy(to.above + colour * to.colour_above + end, from + colour * COLOUR + end);
    }
}

// Sort keys and the numbers of their bodies, a byte of the keys after another from the lowest on:
// blocks count the bytes of their tiles, then move keys and numbers. Keys with the same byte stay in
// their order.

#include "tree.cuh"

#define THREADS 256  // as many as a byte has values
#define BLOCK_WARPS (THREADS / LANES)

typedef unsigned long long Key;

__device__ inline int byte_of(Key key, int bit) { return key >> bit & (THREADS - 1); }

// counts[block][byte]: how many keys of a block's tile have a byte.
extern "C" __global__ void count_bytes(int number, int tile, int bit, const unsigned long long *keys,
                                       int *counts) {
    __shared__ int of_tile[THREADS];
    of_tile[threadIdx.x] = 0;
    __syncthreads();
    int last = min(number, (int)(blockIdx.x + 1) * tile);
    for (int i = blockIdx.x * tile + threadIdx.x; i < last; i += THREADS)
        atomicAdd(of_tile + byte_of(keys[i], bit), 1);
    __syncthreads();
    counts[blockIdx.x * THREADS + threadIdx.x] = of_tile[threadIdx.x];
}

// Return where the first key of this block goes that has this thread's byte.
__device__ inline int place_of_byte(const int *counts, int *sums) {
    int here = 0, all = 0;
#pragma unroll 8
    for (int block = 0; block < gridDim.x; ++block) {
        int number = counts[block * THREADS + threadIdx.x];
        all += number;
        here += block < blockIdx.x ? number : 0;
    }
    sums[threadIdx.x] = all;
    for (int distance = 1; distance < THREADS; distance *= 2) {
        __syncthreads();
        int other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
    }
    return sums[threadIdx.x] - all + here;
}

// Move the keys of a tile, as many at a time as there are threads. At first a body's number is its place.
extern "C" __global__ void move_by_byte(int number, int tile, int bit, const int *counts,
                                        const unsigned long long *keys, const int *bodies,
                                        unsigned long long *moved_keys, int *moved_bodies) {
    __shared__ int sums[THREADS], places[BLOCK_WARPS][THREADS];
    int next = place_of_byte(counts, sums), warp = warp_of_block();
    int last = min(number, (int)(blockIdx.x + 1) * tile);
    for (int start = blockIdx.x * tile; start < last; start += THREADS) {
        for (int k = 0; k < BLOCK_WARPS; ++k) places[k][threadIdx.x] = 0;
        __syncthreads();
        int i = start + threadIdx.x;
        bool valid = i < last;
        Key key = valid ? keys[i] : 0;
        int byte = byte_of(key, bit);
        unsigned alike = __match_any_sync(ALL_LANES, valid ? byte : -1);
        int before = __popc(alike & ((1u << lane()) - 1));
        if (valid && before == 0) places[warp][byte] = __popc(alike);
        __syncthreads();
        for (int k = 0; k < BLOCK_WARPS; ++k) {
            int of_warp = places[k][threadIdx.x];
            places[k][threadIdx.x] = next;
            next += of_warp;
        }
        __syncthreads();
        if (valid) {
            int place = places[warp][byte] + before;
            moved_keys[place] = key;
            moved_bodies[place] = bit ? bodies[i] : i;
        }
        __syncthreads();
    }
}

// Sort keys and the numbers of their bodies, a byte of the keys after another from the lowest on:
// blocks count the bytes of their tiles, then move keys and numbers. Keys with the same byte stay in
// their order.

#include "tree.cuh"

#define THREADS 512
#define BYTES 256  // values of a byte
#define GROUPS (THREADS / BYTES)
#define BLOCK_WARPS (THREADS / LANES)

typedef unsigned long long Key;

__device__ inline int byte_of(Key key, int bit) { return key >> bit & (BYTES - 1); }

// counts[block][byte]: how many keys of a block's tile have a byte.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_bytes(int number, int tile, int bit, const Key *keys, int *counts) {
    __shared__ int of_tile[BYTES];
    if (threadIdx.x < BYTES) of_tile[threadIdx.x] = 0;
    __syncthreads();
    int last = min(number, (int)(blockIdx.x + 1) * tile);
    for (int i = blockIdx.x * tile + threadIdx.x; i < last; i += THREADS)
        atomicAdd(of_tile + byte_of(keys[i], bit), 1);
    __syncthreads();
    if (threadIdx.x < BYTES) counts[blockIdx.x * BYTES + threadIdx.x] = of_tile[threadIdx.x];
}

// How many keys have a byte, as threads have counted.
struct Sums {
    int all[GROUPS][BYTES], before[GROUPS][BYTES];  // those of all blocks, and of the blocks before
    int of_warp[BYTES / LANES];
};

// Return where the first key of this block goes that has this thread's byte; the threads of the first
// group take a byte each, the others help to count.
__device__ inline int place_of_byte(const int *counts, Sums &sums) {
    int byte = threadIdx.x % BYTES, group = threadIdx.x / BYTES, before = 0, all = 0;
#pragma unroll 8
    for (int block = group; block < gridDim.x; block += GROUPS) {
        int number = counts[block * BYTES + byte];
        all += number;
        before += block < blockIdx.x ? number : 0;
    }
    sums.all[group][byte] = all, sums.before[group][byte] = before;
    __syncthreads();
    int end = 0;  // of the keys of the bytes up to this one
    if (group == 0) {
        for (int k = 1; k < GROUPS; ++k) all += sums.all[k][byte], before += sums.before[k][byte];
        end = all;
        for (int distance = 1; distance < LANES; distance *= 2) {
            int other = __shfl_up_sync(ALL_LANES, end, distance);
            if (lane() >= distance) end += other;
        }
        if (lane() == LANES - 1) sums.of_warp[warp_of_block()] = end;
    }
    __syncthreads();
    if (group > 0) return 0;
    for (int warp = 0; warp < warp_of_block(); ++warp) end += sums.of_warp[warp];
    return end - all + before;
}

// Move the keys of a tile, as many at a time as there are threads. At first a body's number is its place.
extern "C" __global__ void __launch_bounds__(THREADS)
    move_by_byte(int number, int tile, int bit, const int *counts, const Key *keys, const int *bodies,
                 Key *moved_keys, int *moved_bodies) {
    __shared__ Sums sums;
    __shared__ int places[BLOCK_WARPS][BYTES];
    int next = place_of_byte(counts, sums), warp = warp_of_block();
    int last = min(number, (int)(blockIdx.x + 1) * tile);
    for (int start = blockIdx.x * tile; start < last; start += THREADS) {
        __syncwarp();
        for (int k = lane(); k < BYTES; k += LANES) places[warp][k] = 0;
        __syncwarp();
        int i = start + threadIdx.x;
        bool valid = i < last;
        Key key = valid ? keys[i] : 0;
        int byte = byte_of(key, bit);
        unsigned alike = __match_any_sync(ALL_LANES, valid ? byte : -1);
        int before = __popc(alike & ((1u << lane()) - 1));
        if (valid && before == 0) places[warp][byte] = __popc(alike);
        __syncthreads();
        if (threadIdx.x < BYTES)
#pragma unroll 8
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
    }
}

// The order of the sources and their chunks, found on the device as `sources.py` finds them on the
// host: every operation is rounded by itself (-fmad=false), so that both are the same.
//
// Compiled with -DCHUNK, -DTHREADS (of a block), -DLEAP, -DSTEPS (most steps of the path whose
// median is taken) and -DWIDE (threads of the kernels that are one block).

#define CELLS 2097151.0  // along an axis: 21 bits
#define TINY 2.2250738585072014e-308

// Combine a number of each thread of a block of WIDE, in all threads.
template <class T, class Operation>
__device__ inline T over_block(T value, Operation combined) {
    __shared__ T all[WIDE];
    __syncthreads();
    all[threadIdx.x] = value;
    for (int half = WIDE / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            all[threadIdx.x] = combined(all[threadIdx.x], all[threadIdx.x + half]);
    }
    __syncthreads();
    return all[0];
}

// Combine the numbers of the threads before this one in a block of WIDE; `none` for the first.
template <class Operation>
__device__ inline int before_in_block(int value, int none, Operation combined) {
    __shared__ int all[WIDE];
    __syncthreads();
    all[threadIdx.x] = value;
    for (int distance = 1; distance < WIDE; distance *= 2) {
        __syncthreads();
        int other = threadIdx.x >= distance ? all[threadIdx.x - distance] : none;
        __syncthreads();
        all[threadIdx.x] = combined(other, all[threadIdx.x]);
    }
    __syncthreads();
    return threadIdx.x ? all[threadIdx.x - 1] : none;
}

// One block: box[axis] is the least coordinate, box[3] the longest edge.
extern "C" __global__ void find_box(int number, const double *position, double *box) {
    double extent = TINY;
    for (int axis = 0; axis < 3; ++axis) {
        double low = position[axis], high = position[axis];
        for (int i = threadIdx.x; i < number; i += WIDE) {
            low = fmin(low, position[3 * (size_t)i + axis]);
            high = fmax(high, position[3 * (size_t)i + axis]);
        }
        low = over_block(low, [](double a, double b) { return fmin(a, b); });
        high = over_block(high, [](double a, double b) { return fmax(a, b); });
        extent = fmax(extent, high - low);
        if (threadIdx.x == 0) box[axis] = low;
    }
    if (threadIdx.x == 0) box[3] = extent;
}

// Move bit k of a number of 21 bits to bit 3 k.
__device__ inline long long interleaved(long long cell) {
    cell = (cell | cell << 32) & 0x1F00000000FFFFll;
    cell = (cell | cell << 16) & 0x1F0000FF0000FFll;
    cell = (cell | cell << 8) & 0x100F00F00F00F00Fll;
    cell = (cell | cell << 4) & 0x10C30C30C30C30C3ll;
    return (cell | cell << 2) & 0x1249249249249249ll;
}

extern "C" __global__ void find_keys(int number, const double *position, const double *box,
                                     long long *keys) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    long long key = 0;
    for (int axis = 0; axis < 3; ++axis) {
        double offset = position[3 * (size_t)i + axis] - box[axis];
        key |= interleaved((long long)(offset / box[3] * CELLS)) << axis;
    }
    keys[i] = key;
}

// Sort the bodies of a rank that owns all: the place of each is the number of those before it.
extern "C" __global__ void sort(int number, const long long *keys, int *order, int *source_index,
                                int *own_order) {
    __shared__ unsigned long long tile[THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x, place = 0;
    unsigned long long key = i < number ? keys[i] : 0;
    for (int first = 0; first < number; first += THREADS) {
        __syncthreads();
        if (first + threadIdx.x < number) tile[threadIdx.x] = keys[first + threadIdx.x];
        __syncthreads();
        int size = min(THREADS, number - first);
#pragma unroll 16
        for (int k = 0; k < size; ++k) place += tile[k] < key + (first + k < i);
    }
    if (i >= number) return;
    order[place] = own_order[place] = i;
    source_index[i] = place;
}

// One block for each stretch of the path from body to body: the ratio of a step to the median of
// its stretch where it leaps, else 0.
extern "C" __global__ void find_leaps(int size, int longer, const double *position,
                                      const int *order, double *ratio) {
    __shared__ double steps[STEPS], low, high;
    int stretch = blockIdx.x, t = threadIdx.x, count = size + (stretch < longer);
    int first = stretch * size + min(stretch, longer);
    double squares[3] = {0, 0, 0};
    if (t < count)
        for (int axis = 0; axis < 3; ++axis) {
            double step = position[3 * (size_t)order[first + t + 1] + axis] -
                          position[3 * (size_t)order[first + t] + axis];
            squares[axis] = step * step;
        }
    double step = sqrt(squares[0] + squares[1] + squares[2]);
    steps[t] = step;
    __syncthreads();
    if (t < count) {
        int place = 0;
        for (int k = 0; k < count; ++k) place += steps[k] < step || (steps[k] == step && k < t);
        if (place == (count - 1) / 2) low = step;
        if (place == count / 2) high = step;
    }
    __syncthreads();
    double typical = (low + high) / 2;
    if (t < count) ratio[first + t] = step > LEAP * typical ? step / fmax(typical, TINY) : 0;
}

// heads[k] tells whether a segment starts at k: after the farthest leaps, N / CHUNK at most.
extern "C" __global__ void find_heads(int number, const double *ratio, unsigned char *heads) {
    __shared__ double tile[THREADS];
    int k = blockIdx.x * THREADS + threadIdx.x, steps = number - 1, farther = 0;
    double mine = k < steps ? ratio[k] : 0;
    if (k == 0) heads[0] = 1;
    if (__syncthreads_or(mine > 0))
        for (int first = 0; first < steps; first += THREADS) {
            __syncthreads();
            if (first + threadIdx.x < steps) tile[threadIdx.x] = ratio[first + threadIdx.x];
            __syncthreads();
            int size = min(THREADS, steps - first);
            for (int j = 0; j < size; ++j)
                farther += tile[j] > mine || (tile[j] == mine && first + j < k);
        }
    if (k < steps) heads[k + 1] = mine > 0 && farther < number / CHUNK;
}

// One block: chunks are full, but end where a segment does; each thread cuts a range of sources.
extern "C" __global__ void cut(int number, int capacity, const unsigned char *heads, int *starts,
                               int *chunks) {
    int range = (number + WIDE - 1) / WIDE, first = min(number, (int)threadIdx.x * range);
    int last = min(number, first + range), latest = 0, count = 0;
    for (int k = first; k < last; ++k) latest = heads[k] ? k : latest;
    int segment = before_in_block(latest, 0, [](int a, int b) { return max(a, b); });
    int head = segment;
    for (int k = first; k < last; ++k) {
        head = heads[k] ? k : head;
        count += (k - head) % CHUNK == 0;
    }
    auto add = [](int a, int b) { return a + b; };
    int chunk = before_in_block(count, 0, add), total = over_block(count, add);
    for (int k = first; k < last; ++k) {
        segment = heads[k] ? k : segment;
        if ((k - segment) % CHUNK == 0) starts[chunk++] = k;
    }
    for (int k = total + threadIdx.x; k <= capacity; k += WIDE) starts[k] = number;
    if (threadIdx.x == 0) chunks[0] = total;
}

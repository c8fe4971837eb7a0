// The first number that is not finite, of each of some arrays.

struct Array {
    const double *numbers;
    long long size;
};

// `first`, in memory of the host, holds the size of each array until a number is found.
extern "C" __global__ void find_bad(int arrays, const Array *array, long long *first) {
    long long start = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (int k = 0; k < arrays; ++k)
        for (long long i = start; i < array[k].size; i += gridDim.x * (long long)blockDim.x)
            if (!isfinite(array[k].numbers[i])) {
                atomicMin(first + k, i);
                break;  // what follows comes later
            }
}

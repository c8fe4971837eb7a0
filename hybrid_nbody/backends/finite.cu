// Whether all numbers of some arrays are finite.

struct Array {
    const double *numbers;
    long long size;
};

extern "C" __global__ void find_bad(int arrays, const Array *array, int *bad) {
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (int k = 0; k < arrays; ++k)
        for (long long i = first; i < array[k].size; i += gridDim.x * (long long)blockDim.x)
            if (!isfinite(array[k].numbers[i])) *bad = 1;
}

// Whether all numbers of an array are finite.

extern "C" __global__ void find_bad(long long size, const double *array, int *bad) {
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (long long i = first; i < size; i += gridDim.x * (long long)blockDim.x)
        if (!isfinite(array[i])) *bad = 1;
}

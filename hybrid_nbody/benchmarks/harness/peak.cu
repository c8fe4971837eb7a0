// What the device can do at most: fused multiply-adds in float32 and float64, reciprocal roots, and copies.
//
// Each arithmetic kernel runs CHAINS independent chains a thread, long enough that the loop's own instructions do not
// count, so that every issue slot is one of the instructions measured. Compiled with -DCHAINS and -DLENGTH, the
// instructions of a chain between two tests of the loop, and with -ftz=true: a reciprocal root is then one instruction.

// x = x * a + x needs two registers besides the result, from two banks; with a tiny `a` it stays finite.
template <class Real>
__device__ inline void multiply_add(int rounds, Real a, Real *result) {
    Real x[CHAINS];
    for (int k = 0; k < CHAINS; ++k) x[k] = a * (threadIdx.x + k);
#pragma unroll 1
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < LENGTH; ++step)
#pragma unroll
            for (int k = 0; k < CHAINS; ++k) x[k] = fma(x[k], a, x[k]);
    Real sum = 0;
    for (int k = 0; k < CHAINS; ++k) sum += x[k];
    if (sum == Real(-1)) *result = sum;  // never: it keeps the chains from being dropped
}

extern "C" __global__ void single_multiply_add(int rounds, float *result) {
    multiply_add<float>(rounds, 1e-12f * (blockIdx.x + 1), result);
}

extern "C" __global__ void double_multiply_add(int rounds, double *result) {
    multiply_add<double>(rounds, 1e-12 * (blockIdx.x + 1), result);
}

extern "C" __global__ void reciprocal_roots(int rounds, float *result) {
    float x[CHAINS];
    for (int k = 0; k < CHAINS; ++k) x[k] = 1.0f + threadIdx.x + k;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < LENGTH; ++step)
#pragma unroll
            for (int k = 0; k < CHAINS; ++k) x[k] = rsqrtf(x[k]);
    float sum = 0;
    for (int k = 0; k < CHAINS; ++k) sum += x[k];
    if (sum == -1.0f) *result = sum;
}

extern "C" __global__ void copy(int size, const float4 *source, float4 *target) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) target[i] = source[i];
}

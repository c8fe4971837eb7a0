// Counts of the bodies in each cell of the unit square; see cpu/kernels.py.
//
// Integers are added atomically: whatever the order, the counts are the same.

extern "C" __global__ void count(int number, const double *position, int cells, int *counts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= number) return;
    double x = position[3 * (size_t)i], y = position[3 * (size_t)i + 1];
    if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1)) return;
    int column = min((int)(x * cells), cells - 1), row = min((int)(y * cells), cells - 1);
    atomicAdd(counts + (size_t)row * cells + column, 1);
}

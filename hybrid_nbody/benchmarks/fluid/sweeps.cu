// Red-black iterations of Poisson's equation on interleaved arrays (nz, ny, nx): two half sweeps, each over every other
// cell. Blocks of threads may have any shape.
//
// A warp reads whole lines and uses half of them, so that an iteration moves 24 bytes a cell: in each half sweep 4 of x
// and 4 of b are read, and 4 of x written. A cell at a wall takes its own value for that of the cell behind it. The
// operations of a cell, and their order, are those of the model: the results have the same bits.
//
// The half sweeps differ in what they note of changes larger than the tolerance. All but the plain one return at once
// when the solve has converged.

struct Grid { int nx, ny, nz; };
#define GRID int nx, int ny, int nz
#define THE_GRID {nx, ny, nz}

enum Word { CHANGED, DONE, COUNT };  // of `control`: whether a cell changed, whether the solve is done, its iterations

// Renew this thread's cell, if it has one, and return the size of its change.
__device__ inline float relax_cell(const Grid &grid, int colour, float *x, const float *b, float factor) {
    int k = blockIdx.z * blockDim.z + threadIdx.z, j = blockIdx.y * blockDim.y + threadIdx.y;
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + ((colour + j + k) & 1);
    if (i >= grid.nx || j >= grid.ny || k >= grid.nz) return 0.0f;
    long long row = grid.nx, plane = row * grid.ny, at = k * plane + j * row + i;
    float own = x[at];
    float left = i > 0 ? x[at - 1] : own, right = i + 1 < grid.nx ? x[at + 1] : own;
    float front = j > 0 ? x[at - row] : own, back = j + 1 < grid.ny ? x[at + row] : own;
    float below = k > 0 ? x[at - plane] : own, above = k + 1 < grid.nz ? x[at + plane] : own;
    float sum = ((left + right) + (front + back)) + (below + above);
    // not contracted: where all cells are equal, the sum of six minus six times one must be exactly zero
    float change = __fmul_rn(__fadd_rn(b[at], __fsub_rn(sum, __fmul_rn(6.0f, own))), factor);
    x[at] = __fadd_rn(own, change);
    return fabsf(change);
}

__device__ inline int thread_of_block() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }

__device__ inline int number_of_block() { return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }

// --- nothing is noted ------------------------------------------------------------------------------------------------

extern "C" __global__ void plain(int colour, GRID, float *x, const float *b, float factor) {
    relax_cell(THE_GRID, colour, x, b, factor);
}

// --- one flag --------------------------------------------------------------------------------------------------------

// Any thread raises it.
extern "C" __global__ void flag_of_threads(int colour, GRID, float *x, const float *b, float factor, float tolerance,
                                           int *control) {
    if (control[DONE]) return;
    if (relax_cell(THE_GRID, colour, x, b, factor) > tolerance) control[CHANGED] = 1;
}

// One thread of a block raises it, unless it sees that another block has done so.
extern "C" __global__ void flag_of_blocks(int colour, GRID, float *x, const float *b, float factor, float tolerance,
                                          int *control) {
    if (control[DONE]) return;
    int changed = __syncthreads_or(relax_cell(THE_GRID, colour, x, b, factor) > tolerance);
    if (changed && thread_of_block() == 0 && !control[CHANGED]) control[CHANGED] = 1;
}

// One thread, after both half sweeps.
extern "C" __global__ void end_iteration(int *control) {
    if (control[DONE]) return;
    control[COUNT] += 1;
    control[DONE] = !control[CHANGED];
    control[CHANGED] = 0;
}

// --- a flag a block, folded by a kernel of one block -----------------------------------------------------------------

extern "C" __global__ void block_flags(int colour, GRID, float *x, const float *b, float factor, float tolerance,
                                       int *control, int *flags) {
    if (control[DONE]) return;
    int changed = __syncthreads_or(relax_cell(THE_GRID, colour, x, b, factor) > tolerance);
    if (thread_of_block() == 0) flags[number_of_block()] = changed | (colour ? flags[number_of_block()] : 0);
}

extern "C" __global__ void fold(int blocks, const int *flags, int *control) {
    if (control[DONE]) return;
    int changed = 0;
    for (int i = threadIdx.x; i < blocks; i += blockDim.x) changed |= flags[i];
    changed = __syncthreads_or(changed);
    if (threadIdx.x > 0) return;
    control[COUNT] += 1;
    control[DONE] = !changed;
}

// --- the largest change, which the host reads after each iteration ---------------------------------------------------

// The bits of numbers that are not negative sort as the numbers do.
extern "C" __global__ void largest(int colour, GRID, float *x, const float *b, float factor, float *most) {
    __shared__ int largest_of_block;
    if (thread_of_block() == 0) largest_of_block = 0;
    __syncthreads();
    float change = relax_cell(THE_GRID, colour, x, b, factor);
    for (int distance = 16; distance > 0; distance /= 2) change = fmaxf(change, __shfl_xor_sync(~0u, change, distance));
    if (thread_of_block() % 32 == 0) atomicMax(&largest_of_block, __float_as_int(change));
    __syncthreads();
    if (thread_of_block() == 0) atomicMax((int *)most, largest_of_block);
}

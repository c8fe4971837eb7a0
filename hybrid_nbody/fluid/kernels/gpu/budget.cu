// The budget of a field on a GPU: sums of its changes, and their correction.
//
// Compiled with the macros of ``grid.cuh`` and -DSUM_THREADS (of a block that sums a plane). The
// columns of sums and the words of the record are those of `CHANGES` and `BUDGET` of the contract.

#include "grid.cuh"

enum Change { GAINED, LOST, SIZE, REST, CHANGES };
enum Word { CUT_GAINS, CUT_LOSSES, LEFT, MADE };
#define ROWS 256  // of sums that a block keeps in shared memory

// Sum over the threads of a block, in pairs.
__device__ inline void store_sum(double own, double *sum) {
    __shared__ double part[SUM_THREADS];
    part[threadIdx.x] = own;
    for (int half = SUM_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *sum = part[0];
    __syncthreads();
}

// The order depends on the cells of a plane alone: every SUM_THREADS-th cell in a thread.
extern "C" __global__ void sum_changes(Field before, Field after, double *sums) {
    double gained = 0, lost = 0, size = 0;
    for (int i = threadIdx.x; i < PLANE; i += SUM_THREADS) {
        Cell c(i % NX, i / NX, blockIdx.x);
        double old = before(c), change = (double)after(c) - old;
        gained += fmax(change, 0.0), lost += fmax(-change, 0.0), size += fabs(old);
    }
    double *row = sums + blockIdx.x * CHANGES;
    store_sum(gained, row + GAINED);
    store_sum(lost, row + LOST);
    store_sum(size, row + SIZE);
}

// The part of changes of one sign that is too much, 1 at most.
__device__ inline double part_to_cut(double excess, double changes) {
    bool some = excess > 0 && isfinite(excess) && changes > 0;
    return some ? fmin(excess / changes, 1.0) : 0.0;
}

// One block; planes are summed in their order, a column in a thread.
extern "C" __global__ void update_budget(const double *sums, double *record) {
    __shared__ double rows[ROWS * CHANGES], total[CHANGES];
    double sum = 0;
    for (int first = 0; first < NZ; first += ROWS) {
        int count = min(ROWS, NZ - first);
        __syncthreads();
        for (int i = threadIdx.x; i < count * CHANGES; i += blockDim.x)
            rows[i] = sums[first * CHANGES + i];
        __syncthreads();
        if (threadIdx.x < CHANGES)
            for (int z = 0; z < count; ++z) sum += rows[z * CHANGES + threadIdx.x];
    }
    if (threadIdx.x < CHANGES) total[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    double made = total[GAINED] - total[LOST], left = record[LEFT] + total[REST];
    record[CUT_GAINS] = part_to_cut(made + left, total[GAINED]);
    record[CUT_LOSSES] = part_to_cut(-(made + left), total[LOST]);
    record[LEFT] = left;
    if (total[SIZE] > 0) record[MADE] += made / total[SIZE];
}

// A cell less a part of its change, not beyond what it was before; NaN stays NaN.
__device__ inline Real with_less_change(Real old, Real now, Real cut_gain, Real cut_loss) {
    Real cut = now < old ? cut_loss : cut_gain, value = fma(-cut, now - old, now);
    bool beyond = now < old ? value > old : value < old;
    return beyond ? old : value;
}

extern "C" __global__ void scale_changes(Field before, Field after, const double *record,
                                         double *sums) {
    Real cut_gain = record[CUT_GAINS], cut_loss = record[CUT_LOSSES];
    double rest = 0;
    for (int i = threadIdx.x; i < PLANE; i += SUM_THREADS) {
        Cell c(i % NX, i / NX, blockIdx.x);
        Real old = before(c), value = with_less_change(old, after(c), cut_gain, cut_loss);
        after(c) = value;
        rest += (double)value - (double)old;
    }
    store_sum(rest, sums + blockIdx.x * CHANGES + REST);
}

// The arithmetic of a cell in linear systems, and the record of a solve on the device.
//
// Compiled with the macros of ``grid.cuh``.

#pragma once

#include "grid.cuh"

// --- arithmetic: the same operations in the same order wherever a cell is updated ---

// Not contracted: where all cells are equal, the sum of six minus six times one must be exactly
// zero.
__device__ inline float minus_six_times(float sum, float x) {
    return __fsub_rn(sum, __fmul_rn(6.0f, x));
}
__device__ inline double minus_six_times(double sum, double x) {
    return __dsub_rn(sum, __dmul_rn(6.0, x));
}
__device__ inline float product(float x, float y) { return __fmul_rn(x, y); }
__device__ inline double product(double x, double y) { return __dmul_rn(x, y); }

// shift * x + neighbour * (6 x - sum of neighbours) = b; offsets of ghosts are in b.
struct Equation {
    Real shift, neighbour;
    Ghosts ghosts;
    __device__ Real ghost(int axis, bool high, Real cell) const {
        return ghosts.behind(axis, high).of(cell);
    }
};

__device__ inline Real residual_of(const Equation &e, Real x, Real b, Real sum) {
    return fma(e.neighbour, minus_six_times(sum, x), fma(-e.shift, x, b));
}
__device__ inline Real sum_of(Real x1, Real x2, Real y1, Real y2, Real z1, Real z2) {
    return ((x1 + x2) + (y1 + y2)) + (z1 + z2);
}

// --- the record of a solve ---

enum Word {  // of `control`; the first ones as in kernels.py
    CHANGED,
    SOLVES,
    ITERATIONS,
    EARLY,  // the last three since the statistics were reset
    DONE,
    COUNT,
    SKIPPED,  // of the present solve
    REDO,
    SOURCE,
    IN_WORK,  // what is left to do after a solve by `relax`: see `end_passes`
    FLAGS     // three times MOST words
};
#define MOST 4  // iterations of a launch

// Launch i of a solve notes here for each of its iterations whether a cell changed by more than the
// tolerance.
__device__ inline int *flags_of(int *control, int launch) {
    return control + FLAGS + launch % 3 * MOST;
}

// Set a flag if the condition holds in a thread of the block: a block writes once, or not at all if
// it sees the flag set. Writes of every warp to one word would take 20 times as long as everything
// else.
__device__ inline void raise_flag(bool condition, int *flag) {
    if (__syncthreads_or(condition) && threadIdx.x == 0 && threadIdx.y == 0 && !*flag) *flag = 1;
}

// The number of the first iteration of a launch that changed nothing; count + 1 if each of the
// `count` changed a cell.
__device__ inline int iterations_needed(int *control, int launch, int count) {
    const volatile int *flags = flags_of(control, launch);
    for (int i = 0; i < count; ++i)
        if (!flags[i]) return i + 1;
    return count + 1;
}

// Count the iterations of a launch that has ended. A launch that had nothing to do has left no
// flags either.
__device__ inline void count_iterations(int *control, int launch, int count) {
    if (count == 0 || control[DONE]) return;
    int some = iterations_needed(control, launch, count);
    control[COUNT] += min(some, count);
    if (some > count) return;
    control[DONE] = 1;
    control[REDO] = some < count ? some : 0;
    control[SOURCE] = launch & 1;
    control[IN_WORK] = (launch + (some < count ? some : 1)) & 1;
}

__device__ inline void begin_launch(int *control, int launch, int previous) {
    count_iterations(control, launch - 1, previous);
    for (int i = 0; i < MOST; ++i) flags_of(control, launch + 1)[i] = 0;
}

__device__ inline void add_solve(int *control, int early) {
    control[SOLVES] += 1;
    control[ITERATIONS] += control[COUNT];
    control[EARLY] += early;
    control[DONE] = control[COUNT] = control[SKIPPED] = control[CHANGED] = 0;
}

// --- asynchronous copies from memory to shared memory; older GPUs wait for each ---

__device__ inline unsigned shared_address(const void *pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ inline void copy_async(Real *to, const Real *from) {
#if __CUDA_ARCH__ < 800
    *to = *from;
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from),
                 "n"(sizeof(Real))
                 : "memory");
#endif
}

__device__ inline void end_async_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait for all groups of copies of the thread but the `number` newest ones.
template <int number>
__device__ inline void wait_for_async_groups_but() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(number) : "memory");
#endif
}

// --- arguments of kernels ---

#define EQUATION Real shift, Real neighbour, GHOSTS
#define THE_EQUATION {shift, neighbour, THE_GHOSTS}

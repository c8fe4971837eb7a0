// Totals of the parts of sums; included by ``pair_force.cu``.

// Add up the parts of the i-th of some sums, always in the same order.
__device__ inline double sum_of_parts(int i, int sums, const double *partial) {
    double total = 0;
    for (int part = 0; part < PARTS; ++part) total += partial[(size_t)part * sums + i];
    return total;
}

// A component of the total at a target.
__device__ inline void combine_parts(int component, int target, int components, int targets,
                                     const int *bodies, double scale, const double *partial,
                                     double *result) {
    double total = sum_of_parts(component * targets + target, components * targets, partial);
    result[components * bodies[target] + component] = scale * total;
}

// A thread for each target and, along y, each component. Bound to one block a multiprocessor, the
// compiler loads all parts before it adds the first: else a third of them, and a thread waits three
// times.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    combine(int targets, const int *bodies, double scale, const double *partial, double *result) {
    int target = blockIdx.x * THREADS + threadIdx.x;
    if (target < targets)
        combine_parts(blockIdx.y, target, gridDim.y, targets, bodies, scale, partial, result);
}

// The same for accelerations and jerks, which are stored apart. `rate` turns the units of a jerk's
// sum into those of the result.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    combine_accelerations_and_jerks(int targets, const int *bodies, double scale, double rate,
                                    const double *partial, double *acceleration, double *jerk) {
    int target = blockIdx.x * THREADS + threadIdx.x, component = blockIdx.y;
    if (target >= targets) return;
    int at = 3 * bodies[target] + component % 3;
    double total = scale * sum_of_parts(component * targets + target, 6 * targets, partial);
    if (component < 3)
        acceleration[at] = total;
    else
        jerk[at] = rate * total;
}

// Totals of the parts of sums; included by ``pair_force.cu``.

// Add up the parts of the i-th of some sums, always in the same order.
__device__ inline double sum_of_parts(int i, int sums, const double *partial) {
    double total = 0;
    for (int part = 0; part < PARTS; ++part) total += partial[(size_t)part * sums + i];
    return total;
}

// `i` counts the targets of one component after those of another.
__device__ inline void combine_parts(int i, int components, int targets, const int *bodies,
                                     double scale, const double *partial, double *result) {
    double total = sum_of_parts(i, components * targets, partial);
    result[components * bodies[i % targets] + i / targets] = scale * total;
}

// Bound to one block a multiprocessor, the compiler loads all parts before it adds the first: else a
// third of them, and a thread waits three times.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    combine(int components, int targets, const int *bodies, double scale, const double *partial,
            double *result) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < components * targets)
        combine_parts(i, components, targets, bodies, scale, partial, result);
}

// The same for accelerations and jerks, which are stored apart. `rate` turns the units of a jerk's
// sum into those of the result.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    combine_accelerations_and_jerks(int targets, const int *bodies, double scale, double rate,
                                    const double *partial, double *acceleration, double *jerk) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= 6 * targets) return;
    int component = i / targets, at = 3 * bodies[i % targets];
    double total = scale * sum_of_parts(i, 6 * targets, partial);
    if (component < 3)
        acceleration[at + component] = total;
    else
        jerk[at + component - 3] = rate * total;
}

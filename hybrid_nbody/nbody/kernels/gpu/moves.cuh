// Kicks and drifts between two forces; included by ``pair_force.cu``.

__device__ inline void add_scaled_at(int i, double *result, double factor,
                                     const double *increment) {
    result[i] = fma(factor, increment[i], result[i]);
}

extern "C" __global__ void add_scaled(int size, double *result, double factor,
                                      const double *increment) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < size) add_scaled_at(i, result, factor, increment);
}

// Kicks and drifts, as an argument of a kernel: from there they are read without waiting.
struct Moves {
    int number, actions[MOST_MOVES];
    double lengths[MOST_MOVES];
};

// Add up the parts, as `combine` does; then kick and drift until the next force. A thread moves one
// coordinate.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    combine_and_move(int targets, const int *bodies, double scale, const double *partial,
                     Moves moves, double *position, double *velocity, double *acceleration) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= 3 * targets) return;
    int at = 3 * bodies[i % targets] + i / targets;
    double x = position[at], v = velocity[at];
    double a = scale * sum_of_parts(i, 3 * targets, partial);
    for (int k = 0; k < moves.number; ++k) {
        if (moves.actions[k] == KICK) v = fma(moves.lengths[k], a, v);
        if (moves.actions[k] == DRIFT) x = fma(moves.lengths[k], v, x);
    }
    position[at] = x, velocity[at] = v, acceleration[at] = a;
}

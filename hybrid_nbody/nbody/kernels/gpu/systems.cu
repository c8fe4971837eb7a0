// Whole steps of many small systems, in double: neighbouring threads of a warp have a body each of a system.
//
// Compiled with -DBODIES (of a system, at most 32) and -DWIDTH (the power of two that holds them).

enum { KICK, DRIFT, FORCE };

struct Vector {
    double x, y, z;
};

__device__ inline void add_scaled(Vector &sum, double factor, const Vector &by) {
    sum.x += factor * by.x, sum.y += factor * by.y, sum.z += factor * by.z;
}

// What a thread's neighbour with another body has.
__device__ inline double of_body(double value, int body) {
    return __shfl_sync(0xffffffff, value, body, WIDTH);
}

// The acceleration of a thread's body by all others of its system.
__device__ inline Vector attraction(int body, const Vector &at, double mass, double eps2) {
    Vector sum = {0, 0, 0};
#pragma unroll
    for (int other = 0; other < BODIES; ++other) {
        double dx = of_body(at.x, other) - at.x;
        double dy = of_body(at.y, other) - at.y;
        double dz = of_body(at.z, other) - at.z;
        double mass_there = of_body(mass, other);  // asked for by all threads, also by the other itself
        double attracting = other == body ? 0.0 : mass_there;
        double apart = dx * dx + dy * dy + dz * dz + (other == body ? 1.0 : eps2);
        double inverse = rsqrt(apart);
        double pull = attracting * (inverse * inverse * inverse);
        sum.x += pull * dx, sum.y += pull * dy, sum.z += pull * dz;
    }
    return sum;
}

__device__ inline Vector load(const double *array, long long row) {
    return {array[3 * row], array[3 * row + 1], array[3 * row + 2]};
}

__device__ inline void store(double *array, long long row, const Vector &value) {
    array[3 * row] = value.x, array[3 * row + 1] = value.y, array[3 * row + 2] = value.z;
}

// All threads of a warp go along, for they hand each other their numbers; those without a body store nothing.
extern "C" __global__ void run_systems(int systems, int steps, int stages, const int *actions,
                                       const double *lengths, double *positions,
                                       double *velocities, double *accelerations,
                                       const double *masses, const double *softening2) {
    long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    long long system = thread / WIDTH;
    int body = (int)(thread % WIDTH);
    bool has_body = system < systems && body < BODIES;
    long long row = has_body ? system * BODIES + body : 0;
    Vector x = load(positions, row), v = load(velocities, row), a = load(accelerations, row);
    double mass = masses[row], eps2 = softening2[has_body ? system : 0];
    for (int step = 0; step < steps; ++step)
        for (int stage = 0; stage < stages; ++stage) {
            if (actions[stage] == KICK) add_scaled(v, lengths[stage], a);
            if (actions[stage] == DRIFT) add_scaled(x, lengths[stage], v);
            if (actions[stage] == FORCE) a = attraction(body, x, mass, eps2);
        }
    if (!has_body) return;
    store(positions, row, x), store(velocities, row, v), store(accelerations, row, a);
}

// The formulas of a Hermite substep on a GPU: see nbody/kernels/contract.py, and cpu/hermite.py for
// their sources.
//
// `start` holds positions, velocities, accelerations and jerks at the beginning of a substep, one
// after another, each (n, 3). Compiled with -DTHREADS (of a block).

#define NO_LIMIT __longlong_as_double(0x7ff0000000000000LL)

extern "C" __global__ void predict(int size, double h, const double *start, double *position,
                                   double *velocity) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= size) return;
    double x = start[i], v = start[size + i];
    double a = start[2 * (size_t)size + i], j = start[3 * (size_t)size + i];
    position[i] = x + h * (v + h / 2 * (a + h / 3 * j));
    velocity[i] = v + h * (a + h / 2 * j);
}

extern "C" __global__ void correct(int size, double h, const double *start,
                                   const double *acceleration, const double *jerk, double *position,
                                   double *velocity) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= size) return;
    double x = start[i], v = start[size + i];
    double a = start[2 * (size_t)size + i], j = start[3 * (size_t)size + i];
    double corrected = v + h / 2 * ((a + acceleration[i]) + h / 6 * (j - jerk[i]));
    position[i] = x + h / 2 * ((v + corrected) + h / 6 * (a - acceleration[i]));
    velocity[i] = corrected;
}

__device__ inline double norm_of(const double *v) {
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

// Return a body's substep: no limit where its acceleration is negligible, zero where it is NaN.
__device__ inline double limit(double acceleration, double negligible, double step) {
    if (acceleration <= negligible) return NO_LIMIT;
    return step == step ? step : 0.0;
}

extern "C" __global__ void first_steps(int number, double factor, double negligible,
                                       const double *acceleration, const double *jerk,
                                       double *result) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    double a = norm_of(acceleration + 3 * (size_t)i), j = norm_of(jerk + 3 * (size_t)i);
    result[i] = limit(a, negligible, factor * a / j);
}

extern "C" __global__ void next_steps(int number, double h, double accuracy, double negligible,
                                      const double *start, const double *acceleration,
                                      const double *jerk, double *result) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    size_t size = 3 * (size_t)number, at = 3 * (size_t)i;
    double second[3], third[3];
    for (int k = 0; k < 3; ++k) {
        double change = start[2 * size + at + k] - acceleration[at + k];
        double j0 = start[3 * size + at + k], j1 = jerk[at + k];
        third[k] = (12 * change + 6 * h * (j0 + j1)) / (h * h * h);
        second[k] = (-6 * change - h * (4 * j0 + 2 * j1)) / (h * h) + h * third[k];
    }
    double a = norm_of(acceleration + at), j = norm_of(jerk + at);
    double a2 = norm_of(second), a3 = norm_of(third);
    double above = a * a2 + j * j, below = j * a3 + a2 * a2;
    result[i] = below == 0 ? NO_LIMIT : limit(a, negligible, sqrt(accuracy * above / below));
}

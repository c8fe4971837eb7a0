// The formulas of a Hermite substep on a GPU: see nbody/kernels/contract.py, and cpu/hermite.py for
// their sources.
//
// `start` holds positions, velocities, accelerations and jerks at the beginning of a substep, then
// the low parts of the positions and of the velocities, one after another, each (n, 3). Compiled
// with -DTHREADS (of a block) and -DCANCELLATION (see nbody/integrators/hermite.py).

#define NO_LIMIT __longlong_as_double(0x7ff0000000000000LL)

extern "C" __global__ void predict(int size, double h, const double *start, double origin_x,
                                   double origin_y, double origin_z, double *position,
                                   double *velocity) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= size) return;
    const double *at = start + i, *low = at + 4 * (size_t)size;
    double x = at[0], v = at[size], a = at[2 * (size_t)size], j = at[3 * (size_t)size];
    double origin = i % 3 == 0 ? origin_x : i % 3 == 1 ? origin_y : origin_z;
    position[i] = (x - origin) + (low[0] + h * (v + h / 2 * (a + h / 3 * j)));
    velocity[i] = v + (low[size] + h * (a + h / 2 * j));
}

// Return a sum as it is rounded, and in `rest` what rounding leaves of it (Knuth's two-sum).
__device__ inline double add(double value, double change, double *rest) {
    double total = __dadd_rn(value, change), part = __dsub_rn(total, value);
    *rest = __dadd_rn(__dsub_rn(value, __dsub_rn(total, part)), __dsub_rn(change, part));
    return total;
}

// `low` takes the low parts of the corrected positions, then those of the velocities.
extern "C" __global__ void correct(int size, double h, const double *start,
                                   const double *acceleration, const double *jerk,
                                   double *position, double *velocity, double *low) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= size) return;
    const double *at = start + i, *before = at + 4 * (size_t)size;
    double x = at[0], v = at[size], a = at[2 * (size_t)size], j = at[3 * (size_t)size];
    double kick = h / 2 * ((a + acceleration[i]) + h / 6 * (j - jerk[i]));
    double rest, end = add(v, before[size] + kick, &rest);
    double twice = (v + end) + (before[size] + rest);
    double drift = h / 2 * (twice + h / 6 * (a - acceleration[i]));
    position[i] = add(x, before[0] + drift, low + i);
    velocity[i] = end;
    low[size + (size_t)i] = rest;
}

// Return the length of a vector times a scale.
__device__ inline double norm_of(const double *v, double scale) {
    double x = scale * v[0], y = scale * v[1], z = scale * v[2];
    return sqrt(x * x + y * y + z * z);
}

// Return the length of a vector whose squares may leave the range.
__device__ inline double length_of(const double *v) {
    double most = fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2])));
    int power = most > 0 && most < NO_LIMIT ? ilogb(most) : 0;
    double scaled[3] = {scalbn(v[0], -power), scalbn(v[1], -power), scalbn(v[2], -power)};
    return scalbn(norm_of(scaled, 1.0), power);
}

// Return a body's substep: no limit where its acceleration is negligible, zero where NaN appeared.
__device__ inline double limit(double acceleration, double negligible, double step) {
    if (acceleration <= negligible) return NO_LIMIT;
    return step == step ? step : 0.0;
}

extern "C" __global__ void first_steps(int number, double factor, double negligible,
                                       const double *acceleration, const double *jerk,
                                       double *result) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    double a = length_of(acceleration + 3 * (size_t)i), j = length_of(jerk + 3 * (size_t)i);
    result[i] = limit(a, negligible, factor * a / j);
}

// Return the substep of a body from the norms of its acceleration and of its derivatives: a
// rounding error of the acceleration appears in the second and third one, 6 and 12 times over the
// second and third power of h.
__device__ inline double substep(double h, double accuracy, double error, double a, double j,
                                 double a2, double a3) {
    double error2 = 6 * error / (h * h), error3 = 2 * error2 / h;
    double longest = a2 < 2 * error2 || a3 < 2 * error3 ? 2 * h : NO_LIMIT;
    a2 = a2 <= error2 ? 0.0 : a2 - error2;  // NaN stays NaN
    a3 = a3 <= error3 ? 0.0 : a3 - error3;
    double below = j * a3 + a2 * a2;
    if (below == 0) return longest;
    double step = sqrt(accuracy * (a * a2 + j * j) / below);
    return step > longest ? longest : step;
}

// `h` is in units of `time`, `negligible` has been multiplied by `scale` as accelerations are: both
// are powers of two that keep products of derivatives in range and change no digit.
extern "C" __global__ void next_steps(int number, double time, double scale, double h,
                                      double accuracy, double noise, double negligible,
                                      const double *start, const double *acceleration,
                                      const double *jerk, double *result) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= number) return;
    size_t size = 3 * (size_t)number, at = 3 * (size_t)i;
    double second[3], third[3], jerk_scale = scale * time;
    for (int k = 0; k < 3; ++k) {
        double change = scale * (start[2 * size + at + k] - acceleration[at + k]);
        double j0 = jerk_scale * start[3 * size + at + k], j1 = jerk_scale * jerk[at + k];
        third[k] = (12 * change + 6 * h * (j0 + j1)) / (h * h * h);
        second[k] = (-6 * change - h * (4 * j0 + 2 * j1)) / (h * h) + h * third[k];
    }
    double a = norm_of(acceleration + at, scale), j = norm_of(jerk + at, jerk_scale);
    double error = noise * (a + h * j) + CANCELLATION * negligible;
    double step = substep(h, accuracy, error, a, j, norm_of(second, 1.0), norm_of(third, 1.0));
    result[i] = limit(a, negligible, time * step);
}

// Fill `start` with the end of a substep, from which the next one begins.
extern "C" __global__ void keep(int size, const double *acceleration, const double *jerk,
                                const double *position, const double *velocity, const double *low,
                                double *start) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= size) return;
    double *at = start + i, *low_parts = at + 4 * (size_t)size;
    at[0] = position[i];
    at[size] = velocity[i];
    at[2 * (size_t)size] = acceleration[i];
    at[3 * (size_t)size] = jerk[i];
    low_parts[0] = low[i];
    low_parts[size] = low[size + (size_t)i];
}

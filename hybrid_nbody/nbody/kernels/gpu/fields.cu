// External fields: each body's acceleration and potential, in double.
//
// Compiled with -DFUNCTIONS (the fields, translated from Python) and -DCALLS (which adds each of them).

struct Value {
    double x, y, z, phi;
};

FUNCTIONS

typedef void (*Function)(const double *, const double *, double, double, const double *, double *);

// Add a field about a centre.
__device__ inline void add_field(Function function, const double *position, const double *velocity,
                                 double mass, double time, const double *centre,
                                 const double *parameters, Value &sum) {
    double about[3], result[4];
    for (int axis = 0; axis < 3; ++axis) about[axis] = position[axis] - centre[axis];
    function(about, velocity, mass, time, parameters, result);
    sum.x += result[0], sum.y += result[1], sum.z += result[2], sum.phi += result[3];
}

// `numbers`: the centre and the parameters of each field, one field after another.
__device__ inline Value value_at(int i, const double *positions, const double *velocities,
                                 const double *masses, double time, const double *numbers) {
    const double *position = positions + 3 * (size_t)i, *velocity = velocities + 3 * (size_t)i;
    double mass = masses[i];
    Value sum = {0, 0, 0, 0};
    CALLS
    return sum;
}

extern "C" __global__ void add_accelerations(int number, const double *position,
                                             const double *velocity, const double *mass,
                                             double time, const double *numbers,
                                             const double *between, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= number) return;
    Value value = value_at(i, position, velocity, mass, time, numbers);
    size_t first = 3 * (size_t)i;
    out[first] = between[first] + value.x;
    out[first + 1] = between[first + 1] + value.y;
    out[first + 2] = between[first + 2] + value.z;
}

extern "C" __global__ void kick(int size, double duration, const double *acceleration,
                                double *velocity) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) velocity[i] = fma(duration, acceleration[i], velocity[i]);
}

extern "C" __global__ void fill_potentials(int number, const double *position,
                                           const double *velocity, const double *mass, double time,
                                           const double *numbers, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < number) out[i] = value_at(i, position, velocity, mass, time, numbers).phi;
}

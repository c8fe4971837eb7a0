// What a step of the fluid does cell by cell on a GPU, and sums over cells.
//
// Compiled with -DREAL (float or double), -DNX, -DNY, -DNZ (cells of the grid), -DFIRST and -DPLANES (of this rank),
// -DPITCH (of a row of a colour), -DPERIODIC_X, _Y, _Z (0 or 1), -DPARITY_U, _V, _W (signs of ghosts behind the walls of the
// axes, as in 1,-1,1) and -DTHREADS (of a block that sums).

typedef REAL Real;

#define PLANE (NY * NX)
#define COLOUR ((long long)(PLANES + 2) * NY * PITCH)
#define WHOLE (PLANES == NZ)  // this rank owns all planes, and z wraps here if it is periodic
#define WALL_BELOW (!PERIODIC_Z && FIRST == 0)
#define WALL_ABOVE (!PERIODIC_Z && FIRST + PLANES == NZ)

struct Cell {
    int x, y, z;
    __device__ Cell() : x(blockIdx.x * blockDim.x + threadIdx.x), y(blockIdx.y * blockDim.y + threadIdx.y), z(blockIdx.z) {}
    __device__ Cell(int x, int y, int z) : x(x), y(y), z(z) {}
    __device__ bool inside() const { return x < NX && y < NY; }
};

// Values of cells, as an array of fields or of colours.
struct Field {
    Real *value;
    __device__ Real &operator()(const Cell &c) const { return value[(long long)(c.z + 1) * PLANE + c.y * NX + c.x]; }
};
struct Colours {
    Real *value;
    __device__ Real &operator()(const Cell &c) const {
        int colour = (c.x + c.y + FIRST + c.z) & 1;
        return value[colour * COLOUR + ((long long)(c.z + 1) * NY + c.y) * PITCH + c.x / 2];
    }
};

// --- neighbours ------------------------------------------------------------------------------------------------------

struct Parity { int x, y, z; };

// The cell beside another one on an axis of `size` cells; behind a wall the cell itself, and then `sign` applies.
__device__ inline int beside(int i, int step, int size, bool wraps, bool wall, Real sign, Real *ghost) {
    int to = i + step;
    if (to >= 0 && to < size) return to;
    if (wraps) return to < 0 ? size - 1 : 0;
    if (!wall) return to;  // a halo plane
    *ghost = sign;
    return i;
}

template <class Array>
__device__ inline Real next_to(const Array &f, Cell c, int axis, int step, const Parity &sign) {
    Real ghost = 1;
    if (axis == 0) c.x = beside(c.x, step, NX, PERIODIC_X, true, sign.x, &ghost);
    if (axis == 1) c.y = beside(c.y, step, NY, PERIODIC_Y, true, sign.y, &ghost);
    if (axis == 2) c.z = beside(c.z, step, PLANES, PERIODIC_Z && WHOLE, step < 0 ? WALL_BELOW : WALL_ABOVE, sign.z, &ghost);
    return ghost * f(c);
}

// The next cell minus the previous one.
template <class Array>
__device__ inline Real change(const Array &f, const Cell &c, int axis, const Parity &sign) {
    return next_to(f, c, axis, 1, sign) - next_to(f, c, axis, -1, sign);
}

// The signs of the ghosts of a component of the velocity.
__device__ inline Parity parity(int component) {
    const int sign[3][3] = {{PARITY_U}, {PARITY_V}, {PARITY_W}};
    return {sign[component][0], sign[component][1], sign[component][2]};
}

// --- fields and colours ----------------------------------------------------------------------------------------------

extern "C" __global__ void split(Field field, Colours colours) {
    Cell c;
    if (c.inside()) colours(c) = field(c);
}

extern "C" __global__ void split_sum(Field field, Real factor, Field other, Colours colours) {
    Cell c;
    if (c.inside()) colours(c) = fma(factor, other(c), field(c));
}

extern "C" __global__ void merge(Colours colours, Field field) {
    Cell c;
    if (c.inside()) field(c) = colours(c);
}

// --- projection ------------------------------------------------------------------------------------------------------

template <class Array>
__device__ inline void diverge(Field u, Field v, Field w, Real factor, const Array &out) {
    Cell c;
    if (c.inside()) out(c) = factor * ((change(u, c, 0, parity(0)) + change(v, c, 1, parity(1))) + change(w, c, 2, parity(2)));
}
extern "C" __global__ void divergence(Field u, Field v, Field w, Real factor, Field out) { diverge(u, v, w, factor, out); }
extern "C" __global__ void divergence_in_colours(Field u, Field v, Field w, Real factor, Colours out) {
    diverge(u, v, w, factor, out);
}

extern "C" __global__ void subtract_gradient(Field u, Field v, Field w, Colours p, Real factor) {
    Cell c;
    if (!c.inside()) return;
    u(c) = fma(-factor, change(p, c, 0, {1, 1, 1}), u(c));
    v(c) = fma(-factor, change(p, c, 1, {1, 1, 1}), v(c));
    w(c) = fma(-factor, change(p, c, 2, {1, 1, 1}), w(c));
}

// --- forces and sources ----------------------------------------------------------------------------------------------

extern "C" __global__ void buoyancy(Field u, Field v, Field w, Field density, Real in_x, Real in_y, Real in_z) {
    Cell c;
    if (!c.inside()) return;
    u(c) = fma(in_x, density(c), u(c));
    v(c) = fma(in_y, density(c), v(c));
    w(c) = fma(in_z, density(c), w(c));
}

struct Vector { Real x, y, z; };

__device__ inline Real length_of(const Vector &a) { return sqrt(fma(a.x, a.x, fma(a.y, a.y, a.z * a.z))); }

__device__ inline Vector curl(Field u, Field v, Field w, const Cell &c, Real factor) {
    return {factor * (change(w, c, 1, parity(2)) - change(v, c, 2, parity(1))),
            factor * (change(u, c, 2, parity(0)) - change(w, c, 0, parity(2))),
            factor * (change(v, c, 0, parity(1)) - change(u, c, 1, parity(0)))};
}

extern "C" __global__ void curl_length(Field u, Field v, Field w, Real factor, Field out) {
    Cell c;
    if (c.inside()) out(c) = length_of(curl(u, v, w, c, factor));
}

// Vorticity confinement: `strength` times (the direction in which |curl| grows) x curl.
extern "C" __global__ void confine(Field u, Field v, Field w, Field length, Real factor, Real strength, Real smallest,
                                   Field new_u, Field new_v, Field new_w) {
    Cell c;
    if (!c.inside()) return;
    Vector rotation = curl(u, v, w, c, factor);
    Vector slope = {factor * change(length, c, 0, {1, 1, 1}), factor * change(length, c, 1, {1, 1, 1}),
                    factor * change(length, c, 2, {1, 1, 1})};
    Real scale = strength / (length_of(slope) + smallest);
    new_u(c) = fma(scale, slope.y * rotation.z - slope.z * rotation.y, u(c));
    new_v(c) = fma(scale, slope.z * rotation.x - slope.x * rotation.z, v(c));
    new_w(c) = fma(scale, slope.x * rotation.y - slope.y * rotation.x, w(c));
}

// keep * field + value: keep is 1 to add and 0 to set.
__device__ inline void renew(Real &cell, Real keep, Real value) { cell = keep == 0 ? value : cell + value; }

extern "C" __global__ void renew_box(Field field, int x0, int x1, int y0, int y1, int z0, int z1, Real keep, Real value) {
    Cell c;
    int z = FIRST + c.z;
    if (c.inside() && c.x >= x0 && c.x < x1 && c.y >= y0 && c.y < y1 && z >= z0 && z < z1) renew(field(c), keep, value);
}

extern "C" __global__ void renew_sphere(Field field, double x, double y, double z, double radius, Real keep, Real value) {
    Cell c;
    double dx = c.x - x, dy = c.y - y, dz = FIRST + c.z - z;
    if (c.inside() && dx * dx + dy * dy + dz * dz <= radius * radius) renew(field(c), keep, value);
}

// --- over all cells --------------------------------------------------------------------------------------------------

// The bits of a number that is not negative: they sort as the numbers do, and a NaN comes last.
__device__ inline int bits(float x) { return __float_as_int(x); }
__device__ inline long long bits(double x) { return __double_as_longlong(x); }
__device__ inline void raise(float *largest, float x) { atomicMax((int *)largest, bits(x)); }
__device__ inline void raise(double *largest, double x) { atomicMax((long long *)largest, bits(x)); }
__device__ inline Real larger(Real a, Real b) { return bits(a) > bits(b) ? a : b; }

// Some blocks have a plane; a warp raises the maximum once, if it does not see that it is high enough.
template <class Array>
__device__ inline void find_largest(const Array &f, Real *largest) {
    Real most = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < PLANE; i += gridDim.x * THREADS)
        most = larger(fabs(f(Cell(i % NX, i / NX, blockIdx.y))), most);
    for (int distance = 16; distance > 0; distance /= 2) most = larger(most, __shfl_xor_sync(~0u, most, distance));
    if (threadIdx.x % 32 == 0 && bits(most) > bits(*largest)) raise(largest, most);
}
extern "C" __global__ void largest(Field field, Real *largest) { find_largest(field, largest); }
extern "C" __global__ void largest_in_colours(Colours colours, Real *largest) { find_largest(colours, largest); }

extern "C" __global__ void take_limit(Real factor, const Real *largest, Real *limit) { *limit = factor * *largest; }

// Sum a plane in an order that depends on its cells alone: every THREADS-th cell in a thread, then pairs of threads.
struct Itself {
    __device__ static double of(double value) { return value; }
};
struct Square {
    __device__ static double of(double value) { return value * value; }
};

__device__ inline double weight_at_walls(const Cell &c) {
    double in_x = 1 + !PERIODIC_X * ((c.x == 0) + (c.x == NX - 1)), in_y = 1 + !PERIODIC_Y * ((c.y == 0) + (c.y == NY - 1));
    return in_x * in_y;
}

template <class Term>
__device__ inline void sum_plane(Field field, bool ghosts, double *sums) {
    __shared__ double part[THREADS];
    double sum = 0;
    for (int i = threadIdx.x; i < PLANE; i += THREADS) {
        Cell c(i % NX, i / NX, blockIdx.x);
        double term = Term::of(field(c));
        sum += ghosts ? weight_at_walls(c) * term : term;
    }
    part[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] += part[0];
}
extern "C" __global__ void plane_sums(Field field, double *sums) { sum_plane<Itself>(field, false, sums); }
extern "C" __global__ void plane_sums_with_ghosts(Field field, double *sums) { sum_plane<Itself>(field, true, sums); }
extern "C" __global__ void plane_squares(Field field, double *sums) { sum_plane<Square>(field, false, sums); }

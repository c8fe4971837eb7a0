// What the kernels of the tree share: its arrays, warps, and multi-indices.
//
// Compiled with -DREAL (float or double, of expansions and nearby pairs), -DORDER (of expansions),
// -DCAPACITY (most bodies of a leaf), -DUNSOFTENED (whether the softening length is 0), -DWARPS (of a
// block), -DFAR_WARPS (of a block that holds multipoles of sources) and -DUNROLL (whether loops over
// the terms of expansions are unrolled).
//
// Cells are numbered level by level, and along the curve on each: the children of a cell follow one
// another.

typedef REAL Real;

#define LANES 32
#define ALL_LANES 0xFFFFFFFFu
#define LEVELS 21  // digits of a key: a cell there may hold any number of bodies
#define SUMMARY 16  // numbers of a cell's summary: a row fits a sector
#define RADIUS 14
#define EDGE 15

constexpr int TERMS = (ORDER + 1) * (ORDER + 2) * (ORDER + 3) / 6;
constexpr int PITCH = (TERMS + 3) / 4 * 4;  // of a row of multipoles

#define INFINITY __int_as_float(0x7f800000)

struct Point {
    double x, y, z, mass;
};

struct alignas(4 * sizeof(Real)) Near {
    Real x, y, z, mass;
};

// N bodies along the curve and C cells; arrays are on the device. So is this: as an argument it would
// make a launch twice as long for the host.
struct Tree {
    int bodies, cells;
    double edge, eps2, error, angle;  // of the root; of the law; of `Opening`
    // bodies
    const unsigned long long *keys;
    Point *at;             // position and mass
    double *acceleration;  // length of the last one
    Near *near;            // position about the centre of the leaf, and mass
    // cells
    int *first, *last;  // bodies first ... last - 1
    int *child, *end;   // children child ... end - 1; both are 0 for a leaf
    int *parent;
    unsigned char *level;
    // expansions
    Point *centre;     // of mass; the radius in place of the mass
    double *box;       // (C, 6) lowest and highest coordinates of the bodies
    float *summary;    // (C, SUMMARY) weighted powers of the orders; radius and edge
    Real *multipole;   // (C, PITCH)
    double *local;     // (C, TERMS)
    float *tolerance;  // smallest acceleration of its leaves
    // lists of sources, in segments of `pool`: number of the next one (-1: none), length, sources
    int *pool;
    unsigned long long *used;  // words taken, or wanted
    int words;         // of the pool
    int *distant, *nearby, *waiting;  // first segment of each list of a cell
    // tables
    const unsigned char *exponents;  // (TERMS, 4), with the order
    const double *inverse_factorial, *norm;
    const double *binomial;                       // (ORDER + 1)
    const int *down_start, *down_target, *down_power;  // of a shift to a child, by the term of the child
    const int *up_start, *up_source, *up_power;        // of a shift to a parent, by its term
    double *sums;  // (N, 3) or (N, 1)
};

__device__ inline bool is_leaf(const Tree &t, int cell) { return t.end[cell] == 0; }
__device__ inline int warp_of_grid() { return blockIdx.x * WARPS + threadIdx.x / LANES; }
__device__ inline int warp_of_block() { return threadIdx.x / LANES; }
__device__ inline int lane() { return threadIdx.x % LANES; }
__device__ inline double edge_of(const Tree &t, int cell) { return ldexp(t.edge, -t.level[cell]); }

// Combine a number of each lane, in all lanes, always in the same order.
template <class T, class Operation>
__device__ inline T over_warp(T value, Operation combined) {
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = combined(value, __shfl_xor_sync(ALL_LANES, value, distance));
    return value;
}

__device__ inline double sum_over_warp(double value) {
    return over_warp(value, [](double a, double b) { return a + b; });
}

// Fill x^0 ... x^ORDER.
__device__ inline void fill_powers(double x, double *powers) {
    double power = 1;
    for (int n = 0; n <= ORDER; ++n) {
        powers[n] = power;
        power *= x;
    }
}

struct Powers {
    double x[ORDER + 1], y[ORDER + 1], z[ORDER + 1];
    __device__ void fill(double dx, double dy, double dz) {
        fill_powers(dx, x), fill_powers(dy, y), fill_powers(dz, z);
    }
    // Fill the powers of a vector between centres; three lanes of the warp do so.
    __device__ void fill_between(const Point &to, const Point &from, double unit) {
        if (lane() == 0) fill_powers((to.x - from.x) * unit, x);
        if (lane() == 1) fill_powers((to.y - from.y) * unit, y);
        if (lane() == 2) fill_powers((to.z - from.z) * unit, z);
        __syncwarp();
    }
    __device__ double monomial(const unsigned char *exponents) const {
        return x[exponents[0]] * y[exponents[1]] * z[exponents[2]];
    }
};

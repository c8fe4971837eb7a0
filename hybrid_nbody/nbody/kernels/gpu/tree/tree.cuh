// What the kernels of the tree share: its arrays, warps, and multi-indices.
//
// Compiled with -DREAL (float or double, of nearby pairs), -DCLOSELY (whether low parts of their places
// count always), -DUNSOFTENED (whether the softening length is 0), -DORDER (of expansions), -DEXACT (whether
// their products of low orders are in float64) and -DLEADING (what these orders add up to at most),
// -DCAPACITY (most bodies of a leaf), -DWARPS (of a block); of the far field: -DFAR_WARPS (of a block),
// -DFAR_BUFFERS (sources of a lane that it holds) and -DFAR_BLOCKS (of a multiprocessor).
//
// Cells are numbered level by level, and along the curve on each: the children of a cell follow one
// another, and so do those cells of a level that hold bodies of this rank, its own cells. Bodies are
// numbered along the curve through those of all ranks.

typedef REAL Real;

#define UNIT 4
#define LANES 32
#define ALL_LANES 0xFFFFFFFFu
#define CLASSES 32  // of cells by the length of a list
#define LEVELS 21  // digits of a key: a cell there may hold any number of bodies
#define SUMMARY 16  // numbers of a cell's summary: a row fits a sector
#define CLOSENESS 13
#define RADIUS 14
#define EDGE 15

__host__ __device__ constexpr int terms_of(int order) { return (order + 1) * (order + 2) * (order + 3) / 6; }

// A row of multipoles has the terms in float32 and, with EXACT, behind them what rounding took from those of
// the lowest orders: the others are smaller, and so is their rounding.
constexpr int TERMS = terms_of(ORDER);
constexpr int EXACT_TERMS = EXACT ? terms_of(LEADING) : 0;
constexpr int PITCH = (TERMS + EXACT_TERMS + 3) / 4 * 4;

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)

struct Point {
    double x, y, z, mass;
};

struct alignas(4 * sizeof(Real)) Near {
    Real x, y, z, mass;
};

// What rounding to Real took from a place.
struct Low {
    Real x, y, z;
};

// N bodies of this rank along the curve, and the C cells of all ranks; arrays are on the device. So is
// this: as an argument it would make a launch twice as long for the host.
struct Tree {
    int bodies, cells;
    int own;     // cells that hold bodies of this rank
    int origin;  // number of this rank's first body
    int shared;  // deepest level of a cell that holds it and bodies of ranks before; -1: none
    double edge, eps2, error, angle, hopeless;  // of the root; of the law; of `Limits`
    double width;      // of cells with an acceleration of 1; 0: any width will do
    double corner[3];  // lowest of the root
    // bodies
    const unsigned long long *keys;
    Point *at;             // position and mass
    double *acceleration;  // length of the last one
    Near *near;            // position about the centre of the leaf, and mass; behind them other ranks'
    Low *low;              // what rounding took from those of other ranks
    // cells
    int *first, *last;  // bodies first ... last - 1
    int *child, *end;   // children child ... end - 1; both are 0 for a leaf
    int *parent;
    int *place;  // of a leaf's bodies among `near`, and this rank's among all of its bodies
    unsigned char *level;
    // expansions
    Point *centre;     // of mass; the radius in place of the mass
    double *box;       // (C, 6) lowest and highest coordinates of the bodies
    float *summary;    // (C, SUMMARY) weighted powers of the orders; of a leaf closeness; radius, edge
    float *multipole;  // (C, PITCH)
    double *local;     // (TERMS) for each of this rank's cells
    float *tolerance;  // smallest acceleration of its leaves
    // lists of sources, in segments of `pool`: number of the next one (-1: none), length, sources;
    // segments are numbered by their first UNIT words
    int *pool;
    unsigned long long *used;  // units taken, or wanted
    int units;         // of the pool
    long long *report;  // for the host; see `Report`
    int *distant, *nearby, *waiting;  // first segment of each list of a cell
    // this rank's cells in the order of their turns, those with the longest lists first; see `walk.cu`
    int *far_order, *near_order;
    int *classes;  // (2, 2, CLASSES) cells of each class, and turns given to them, for both lists
    // tables
    const unsigned char *exponents;  // (TERMS, 4), with the order
    const double *inverse_factorial, *norm;
    const double *binomial;                       // (ORDER + 1)
    const int *down_start, *down_target, *down_power;  // of a shift to a child, by the term of the child
    const int *up_start, *up_source, *up_power;        // of a shift to a parent, by its term
    double *sums;  // (N, 3) or (N, 1)
    // by levels
    int own_first[LEVELS + 1];   // this rank's first cell
    int own_before[LEVELS + 2];  // number of its cells on higher levels
    int base[LEVELS + 1];        // the first cell that starts at a body of this rank
    int ends[LEVELS + 1];        // the body behind the cell that holds this rank's last one
    int most[LEVELS + 1];        // cells of this rank that there is memory for
    int most_taken[LEVELS + 1];  // the same of the cells whose sources it finds
};

// Places in `Tree::report`: whether all coordinates are finite, the cells of each level that start at
// bodies of this rank, the units of the pool that are taken or wanted, and the cells of each level whose
// sources this rank finds of a tree that it has whole.
enum Report { FINITE, COUNTS, USED = COUNTS + LEVELS + 1, SHARE };

__device__ inline bool is_leaf(const Tree &t, int cell) { return t.end[cell] == 0; }

// Whether all bodies of a cell are this rank's.
__device__ inline bool is_whole(const Tree &t, int cell) {
    return t.first[cell] >= t.origin && t.last[cell] <= t.origin + t.bodies;
}

// A segment by its number, or null.
__device__ inline const int *segment_at(const Tree &t, int number) {
    return number < 0 ? nullptr : t.pool + (size_t)UNIT * number;
}

// A term of a row of multipoles.
__device__ inline double multipole_at(const float *row, int term) {
    return term < EXACT_TERMS ? (double)row[term] + row[TERMS + term] : row[term];
}

// The number of this rank's cells of a level.
__device__ inline int own_count(const Tree *tree, int level) {
    return tree->own_before[level + 1] - tree->own_before[level];
}

// The number of a cell among this rank's. Levels are looked up in the tree on the device: in a copy they
// would take local memory.
__device__ inline int own_number(const Tree *tree, int cell, int level) {
    return tree->own_before[level] + cell - tree->own_first[level];
}

__device__ inline int warp_of_grid() { return blockIdx.x * WARPS + threadIdx.x / LANES; }
__device__ inline int warp_of_block() { return threadIdx.x / LANES; }
__device__ inline int lane() { return threadIdx.x % LANES; }

// This rank's k-th cell, the same for all lanes; each of them looks at a level.
__device__ inline int own_cell(const Tree *tree, int k) {
    int level = min(lane(), LEVELS);
    int first = tree->own_first[level], before = tree->own_before[level];
    unsigned above = __ballot_sync(ALL_LANES, lane() <= LEVELS && before <= k);
    return k + __shfl_sync(ALL_LANES, first - before, __popc(above) - 1);
}
// What rounding took from the place of a body about the centre of its leaf.
__device__ inline Low low_of(const Point &at, const Point &centre, const Near &near) {
    return {(Real)(at.x - centre.x - near.x), (Real)(at.y - centre.y - near.y),
            (Real)(at.z - centre.z - near.z)};
}

__device__ inline double edge_of(const Tree &t, int cell) { return ldexp(t.edge, -t.level[cell]); }

// The first place from `from` to `to` where one of some ascending numbers is larger than a limit.
template <class T>
__device__ inline int first_above(const T *numbers, int from, int to, T limit) {
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (numbers[middle] <= limit)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

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

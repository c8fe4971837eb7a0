// Red-black Gauss-Seidel on a GPU: sweeps over one colour at a time, in place, on the planes of one
// rank; residuals; and the end of solves by the passes of ``red_black_tiles.cu``.
//
// Memory traffic of an iteration by sweeps: 16 bytes a cell. Compiled with the macros of
// ``grid.cuh``.

#include "copies.cuh"
#include "solve.cuh"

extern "C" __global__ void begin_solve(int *control) {
    control[DONE] = control[COUNT] = control[SKIPPED] = control[CHANGED] = 0;
}

extern "C" __global__ void end_iteration(int *control) {
    if (control[DONE]) control[SKIPPED] = 1;
    else {
        control[COUNT] += 1;
        control[DONE] = !control[CHANGED];
    }
    control[CHANGED] = 0;
}

extern "C" __global__ void end_solve(int *control) {
    add_solve(control, control[DONE] && control[SKIPPED]);
}

// --- sweeps ---

struct ColourCell {
    int c, y, z, x;
    long long at;
    __device__ ColourCell(int colour)
        : c(blockIdx.x * blockDim.x + threadIdx.x),
          y(blockIdx.y * blockDim.y + threadIdx.y),
          z(blockIdx.z) {
        x = 2 * c + ((colour + y + FIRST + z) & 1);
        at = (long long)(z + HALO) * COLOUR_PLANE + y * PITCH + c;
    }
    __device__ bool inside() const { return x < NX && y < NY; }
    __device__ int walls() const {  // beside the cell, a bit for each axis
        bool in_x = !PERIODIC_X && (x == 0 || x == NX - 1),
             in_y = !PERIODIC_Y && (y == 0 || y == NY - 1);
        bool in_z = (WALL_BELOW && z == 0) || (WALL_ABOVE && z == PLANES - 1);
        return in_x + 2 * in_y + 4 * in_z;
    }
};

// The residual of the equation of a cell.
__device__ inline Real residual_at(const ColourCell &s, int colour, const Real *x, const Real *b,
                                   const Equation &e) {
    const Real *other = x + (1 - colour) * COLOUR + s.at;
    Real own = x[colour * COLOUR + s.at];
    Real x_low = e.ghost(X, false, own), x_high = e.ghost(X, true, own);
    Real y_low = e.ghost(Y, false, own), y_high = e.ghost(Y, true, own);
    Real z_low = e.ghost(Z, false, own), z_high = e.ghost(Z, true, own);
    int before = (s.x & 1) - 1, after = s.x & 1;
    Real x1 = s.x > 0 ? other[before] : PERIODIC_X ? other[HALF - 1] : x_low;
    Real x2 = s.x + 1 < NX ? other[after] : PERIODIC_X ? other[1 - HALF] : x_high;
    Real y1 = s.y > 0 ? other[-PITCH] : PERIODIC_Y ? other[(NY - 1) * PITCH] : y_low;
    Real y2 = s.y + 1 < NY ? other[PITCH] : PERIODIC_Y ? other[-(NY - 1) * PITCH] : y_high;
    long long wrap =
        FULL_GRID && PERIODIC_Z ? (long long)(NZ - 1) * COLOUR_PLANE : -(long long)COLOUR_PLANE;
    Real z1 = s.z > 0 ? other[-COLOUR_PLANE] : WALL_BELOW ? z_low : other[wrap];
    Real z2 = s.z + 1 < PLANES ? other[COLOUR_PLANE] : WALL_ABOVE ? z_high : other[-wrap];
    return residual_of(e, own, b[colour * COLOUR + s.at], sum_of(x1, x2, y1, y2, z1, z2));
}

// Change a cell by `factor` times its residual; return whether it changed.
__device__ inline bool update(const ColourCell &s, int colour, Real *x, const Real *b,
                              const Equation &e, Real factor, Real tolerance) {
    if (!s.inside()) return false;
    Real delta = product(residual_at(s, colour, x, b, e), factor);
    x[colour * COLOUR + s.at] += delta;
    return fabs(delta) > tolerance;
}

// Indexed by the walls beside a cell: 1 for one of x, 2 for one of y, 4 for one of z.
struct Factors {
    Real at[8];
};

extern "C" __global__ void sweep(int colour, Real *x, const Real *b, EQUATION,
                                 const __grid_constant__ Factors factors, Real tolerance,
                                 int *control) {
    if (control[DONE]) return;
    ColourCell s(colour);
    bool changed = update(s, colour, x, b, THE_EQUATION, factors.at[s.walls()], tolerance);
    raise_flag(changed || tolerance < 0,
               control + CHANGED);  // if it is, nothing ends a solve, not even NaN
}

// The products of `neighbour` and the offsets of the ghosts, face by face.
struct Offsets {
    Real at[6];
};

// Add the offsets of ghosts to the right-hand side of the cells at walls.
extern "C" __global__ void impose(Colours b, const __grid_constant__ Offsets offsets) {
    Cell c;
    if (!c.inside()) return;
    bool at_face[6] = {!PERIODIC_X && c.x == 0, !PERIODIC_X && c.x == NX - 1,
                       !PERIODIC_Y && c.y == 0, !PERIODIC_Y && c.y == NY - 1,
                       WALL_BELOW && c.z == 0,  WALL_ABOVE && c.z == PLANES - 1};
    for (int face = 0; face < 6; ++face)
        if (at_face[face] && offsets.at[face] != 0) b(c) += offsets.at[face];
}

__device__ inline Real max_residual(const Real *x, const Real *b, const Equation &e) {
    Real most = 0;
    for (int colour = 0; colour < 2; ++colour) {
        ColourCell s(colour);
        if (s.inside()) most = fmax(most, fabs(residual_at(s, colour, x, b, e)));
    }
    return most;
}

extern "C" __global__ void residual(const Real *x, const Real *b, EQUATION, Real *largest) {
    Real most = max_residual(x, b, THE_EQUATION);
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        most = fmax(most, __shfl_xor_sync(~0u, most, distance));
    if (threadIdx.x % LANES == 0 && most > *largest) raise_maximum(largest, most);
}

extern "C" __global__ void exceeds(const Real *x, const Real *b, EQUATION, const Real *limit,
                                   int *control) {
    if (control[DONE]) return;
    raise_flag(max_residual(x, b, THE_EQUATION) > *limit, control + CHANGED);
}

// --- the end of a solve by passes ---

// Called after the last launch. Note where the result is: IN_WORK is 0 if it is in x, 1 if it is
// in the work array. If the last launch did more iterations than were needed, note how many single
// ones (REDO) lead to the result, and from which array (SOURCE) they start.
extern "C" __global__ void end_passes(int launches, int last, int iterations, int *control) {
    if (!control[DONE]) {
        control[REDO] = 0;
        control[IN_WORK] = launches & 1;
        count_iterations(control, launches - 1, last);
    }
    add_solve(control, control[COUNT] < iterations);
    for (int i = 0; i < 3 * MOST; ++i) control[FLAGS + i] = 0;
}

extern "C" __global__ void copy_back(Real *x, const Real *work, const int *control) {
    if (!control[IN_WORK]) return;
    long long size = 2 * COLOUR / AT_ONCE, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step)
        copy(x + i * AT_ONCE, work + i * AT_ONCE);
}

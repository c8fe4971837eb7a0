// Red-black Gauss-Seidel on a GPU: one colour at a time, in place, on the planes of one rank; residuals; and what passes by
// ``red_black_tiles.cu`` need before and after.
//
// Bytes of memory a cell and iteration, by one colour at a time: 16. Compiled with the macros of ``grid.cuh``.

#include "solve.cuh"
#include "peer_planes.cuh"

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

extern "C" __global__ void end_solve(int *control) { add_solve(control, control[DONE] && control[SKIPPED]); }

// --- one colour at a time, in place ----------------------------------------------------------------------------------

struct Site {
    int c, y, z, x;
    long long at;
    __device__ Site(int colour)
        : c(blockIdx.x * blockDim.x + threadIdx.x), y(blockIdx.y * blockDim.y + threadIdx.y), z(blockIdx.z) {
        x = 2 * c + ((colour + y + FIRST + z) & 1);
        at = (long long)(z + HALO) * COLOUR_PLANE + y * PITCH + c;
    }
    __device__ bool inside() const { return x < NX && y < NY; }
    __device__ int walls() const {  // beside the cell, a bit for each axis
        bool in_x = !PERIODIC_X && (x == 0 || x == NX - 1), in_y = !PERIODIC_Y && (y == 0 || y == NY - 1);
        bool in_z = (WALL_BELOW && z == 0) || (WALL_ABOVE && z == PLANES - 1);
        return in_x + 2 * in_y + 4 * in_z;
    }
};

// What is missing in the equation of a cell.
__device__ inline Real missing(const Site &s, int colour, const Real *x, const Real *b, const Equation &e) {
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
    long long wrap = WHOLE && PERIODIC_Z ? (long long)(NZ - 1) * COLOUR_PLANE : -(long long)COLOUR_PLANE;
    Real z1 = s.z > 0 ? other[-COLOUR_PLANE] : WALL_BELOW ? z_low : other[wrap];
    Real z2 = s.z + 1 < PLANES ? other[COLOUR_PLANE] : WALL_ABOVE ? z_high : other[-wrap];
    return residual_of(e, own, b[colour * COLOUR + s.at], sum_of(x1, x2, y1, y2, z1, z2));
}

// Renew a cell by `factor` times what is missing; returns whether it changed.
__device__ inline bool renew(const Site &s, int colour, Real *x, const Real *b, const Equation &e, Real factor,
                             Real tolerance) {
    if (!s.inside()) return false;
    Real delta = product(missing(s, colour, x, b, e), factor);
    x[colour * COLOUR + s.at] += delta;
    return fabs(delta) > tolerance;
}

// By the walls beside a cell: 1 for one of x, 2 for one of y, 4 for one of z.
struct Factors { Real at[8]; };

extern "C" __global__ void sweep(int colour, Real *x, const Real *b, EQUATION, const __grid_constant__ Factors factors,
                                 Real tolerance, int *control) {
    if (control[DONE]) return;
    Site s(colour);
    bool changed = renew(s, colour, x, b, THE_EQUATION, factors.at[s.walls()], tolerance);
    note(changed || tolerance < 0, control + CHANGED);  // then nothing ends a solve, not even NaN
}

__device__ inline Real larger_residual(const Real *x, const Real *b, const Equation &e) {
    Real most = 0;
    for (int colour = 0; colour < 2; ++colour) {
        Site s(colour);
        if (s.inside()) most = fmax(most, fabs(missing(s, colour, x, b, e)));
    }
    return most;
}

extern "C" __global__ void residual(const Real *x, const Real *b, EQUATION, Real *largest) {
    Real most = larger_residual(x, b, THE_EQUATION);
    for (int distance = LANES / 2; distance > 0; distance /= 2) most = fmax(most, __shfl_xor_sync(~0u, most, distance));
    if (threadIdx.x % LANES == 0 && most > *largest) raise(largest, most);
}

extern "C" __global__ void exceeds(const Real *x, const Real *b, EQUATION, const Real *limit, int *control) {
    if (control[DONE]) return;
    note(larger_residual(x, b, THE_EQUATION) > *limit, control + CHANGED);
}

// --- between passes by ``red_black_tiles.cu``: GPUs that write into each other's memory -------------------------------------------

// What a GPU tells another one: the number of the meeting, and which iterations changed a cell.
typedef unsigned long long Letter;

// Where the letters of all GPUs lie: with the one they are for, those of odd meetings after those of even ones, so that
// nobody's next letter replaces one that is still to be read. `count`: meetings so far, blocks that wait for the next, and
// tiles whose lowest planes are complete in the pass before it.
struct Meetings {
    volatile Letter *const *letters;
    unsigned *count;
    int me, ranks;
};

// Wait until all GPUs are here, and let each know what any has noted of a launch. Called by all threads of one block.
__device__ void hold(const Meetings &meetings, int launch, int iterations, int *control) {
    __shared__ unsigned meeting, all;
    int *flags = flags_of(control, launch);
    if (threadIdx.x == 0) meeting = ++meetings.count[0], meetings.count[2] = all = 0;
    __syncthreads();
    unsigned noted = 0;
    for (int i = 0; i < iterations; ++i) noted |= (flags[i] != 0) << i;
    __threadfence_system();
    if (threadIdx.x < meetings.ranks) {
        int first = meeting % 2 * meetings.ranks;
        meetings.letters[threadIdx.x][first + meetings.me] = (Letter)meeting << 32 | noted;
        Letter letter;
        do letter = meetings.letters[meetings.me][first + threadIdx.x];
        while (letter >> 32 != meeting);
        atomicOr(&all, (unsigned)letter);
    }
    __threadfence_system();
    __syncthreads();
    for (int i = threadIdx.x; i < iterations; i += blockDim.x) flags[i] = all >> i & 1;
}

extern "C" __global__ void meet(const __grid_constant__ Meetings meetings, int launch, int iterations, int *control) {
    hold(meetings, launch, iterations, control);
}

extern "C" __global__ void show(const Real *from, int first, int second, const __grid_constant__ Beyond to) {
    show_planes(from, first, second, to, blockIdx.x, gridDim.x);
}

// The same, and the last block to be done meets the other GPUs.
extern "C" __global__ void show_and_meet(const Real *from, int first, int second, const __grid_constant__ Beyond to,
                                         const __grid_constant__ Meetings meetings, int launch, int iterations,
                                         int *control) {
    __shared__ bool last;
    show_planes(from, first, second, to, blockIdx.x, gridDim.x);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        last = atomicInc(meetings.count + 1, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) hold(meetings, launch, iterations, control);
}

// --- after passes by ``red_black_tiles.cu`` ------------------------------------------------------------------------------------

// After the last of so many launches: where the result is (HOME: 0 in x, 1 in the spare array), or how many single
// iterations (REDO), from which array on (FROM), lead to it, because the last launch did more than were needed.
extern "C" __global__ void settle(int launches, int last, int iterations, int *control) {
    if (!control[DONE]) {
        control[REDO] = 0;
        control[HOME] = launches & 1;
        account(control, launches - 1, last);
    }
    add_solve(control, control[COUNT] < iterations);
    for (int i = 0; i < 3 * MOST; ++i) control[FLAGS + i] = 0;
}

extern "C" __global__ void bring_home(Real *x, const Real *spare, const int *control) {
    if (!control[HOME]) return;
    long long size = 2 * COLOUR / AT_ONCE, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step)
        copy(x + i * AT_ONCE, spare + i * AT_ONCE);
}

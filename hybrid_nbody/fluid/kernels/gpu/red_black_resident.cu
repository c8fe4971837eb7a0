// Red-black Gauss-Seidel on a GPU, for grids that fit into its multiprocessors: a whole solve in
// one kernel.
//
// Every block owns a box of the grid, whole rows along x. It keeps x, both colours with a halo of
// one cell, in shared memory, and b in registers: a thread has ROWS rows of a column along z. A
// half sweep writes the new values at the faces of the boxes to x in memory; the blocks wait for
// each other and read those of their neighbours. Behind a wall a halo holds the ghosts, so that all
// cells are updated alike.
//
// All blocks must run at once: launch it cooperatively. Compiled with the macros of ``grid.cuh``,
// -DBOX_ROWS and -DBOX_PLANES (of a box), -DBOXES_Y and -DBOXES_Z (in the grid), -DROWS (of a
// thread), -DTHREADS (of a block) and -DSTRIDE (numbers from a row to the next in shared memory).

#include "solve.cuh"

#define NUMBER (BOXES_Y * BOXES_Z)
#define WARPS (THREADS / LANES)

// A plane of a box: its rows with one below and one above them, then the cells beyond the ends of
// its rows.
#define ROW_ENDS ((BOX_ROWS + 2) * STRIDE)
#define BOX_PLANE (ROW_ENDS + 2 * BOX_ROWS)
#define BOX ((BOX_PLANES + 2) * BOX_PLANE)

extern __shared__ __align__(16) unsigned char memory[];

// The value of a cell in the box or its halo, by colour; planes and rows count from -1.
template <int colour>
__device__ inline Real *cell_at(int z, int y, int c) {
    return (Real *)memory + colour * BOX + (z + 1) * BOX_PLANE + (y + 1) * STRIDE + c;
}

// The value that follows the last cell of a row, or precedes the first.
template <int colour>
__device__ inline Real *row_end(int z, int y, bool last) {
    return (Real *)memory + colour * BOX + (z + 1) * BOX_PLANE + ROW_ENDS + 2 * y + last;
}

// --- a block's box ---

struct Box {
    int y, z, rows, planes;
    __device__ Box() {
        y = blockIdx.x % BOXES_Y * BOX_ROWS, z = blockIdx.x / BOXES_Y * BOX_PLANES;
        rows = min(BOX_ROWS, NY - y), planes = min(BOX_PLANES, NZ - z);
    }
    // Whether there is a wall above, or else below, the box.
    __device__ bool wall_y(bool above) const {
        return !PERIODIC_Y && (above ? y + rows == NY : y == 0);
    }
    __device__ bool wall_z(bool above) const {
        return !PERIODIC_Z && (above ? z + planes == NZ : z == 0);
    }
    // Whether the cell of a colour is the second of its pair.
    __device__ int odd(int colour, int row, int plane) const {
        return (colour + y + row + z + plane) & 1;
    }
    // The index of a cell of the grid in its colour. It may belong to a neighbour, across a
    // periodic edge, too.
    __device__ int index(int plane, int row, int c) const {
        int grid_y = y + row, grid_z = z + plane;
        if (PERIODIC_Y) grid_y += grid_y < 0 ? NY : grid_y >= NY ? -NY : 0;
        if (PERIODIC_Z) grid_z += grid_z < 0 ? NZ : grid_z >= NZ ? -NZ : 0;
        return (grid_z + HALO) * COLOUR_PLANE + grid_y * PITCH + c;
    }
};

#define STEPS_OF_ROW ((HALF + LANES - 1) / LANES)
#define ROUNDS                                   \
    ((2 * (BOX_PLANES + BOX_ROWS) + WARPS - 1) / \
     WARPS)  // of the warps, to read the rows of the halo

// Whether b takes so many registers (25 or more) that computing addresses in each iteration is
// faster than keeping them: seen on an H200.
constexpr bool CROWDED = 2 * ROWS * BOX_PLANES * sizeof(Real) > 100;

// Return the value. Where registers are scarce, hide from the compiler that it is the same in every
// iteration.
__device__ __forceinline__ int opaque(int value) {
    if (CROWDED) asm volatile("" : "+r"(value));
    return value;
}

__device__ inline int warp() { return opaque(threadIdx.x) / LANES; }
__device__ inline int lane() { return threadIdx.x % LANES; }

// Call `action` with every row below `number`, divided among all warps but the first, which waits
// for the other blocks.
template <class Action>
__device__ __forceinline__ void for_rows(int number, Action action) {
    for (int row = warp() - 1; row < number; row += WARPS - 1) action(row);
}

// Call `action` with the indices of a row.
template <class Action>
__device__ __forceinline__ void for_indices(Action action) {
#pragma unroll
    for (int step = 0; step < STEPS_OF_ROW; ++step)
        if (step * LANES + lane() < HALF) action(step * LANES + lane());
}

// --- halos ---

// Set the values beyond the ends of rows: across a periodic edge the same colour, behind walls
// ghosts, of the other colour.
template <int colour>
__device__ __forceinline__ void fill_ends(const Box &box, const Equation &e) {
    for (int i = opaque(threadIdx.x) - LANES; i < BOX_PLANES * BOX_ROWS; i += THREADS - LANES) {
        int z = i / BOX_ROWS, y = i % BOX_ROWS, odd = box.odd(colour, y, z);
        if (PERIODIC_X) *row_end<colour>(z, y, !odd) = *cell_at<colour>(z, y, odd ? HALF - 1 : 0);
        if (!PERIODIC_X && !odd)
            *row_end<1 - colour>(z, y, false) = e.ghost(X, false, *cell_at<colour>(z, y, 0));
        if (PERIODIC_X || odd != (NX - 1) % 2) continue;
        Real ghost = e.ghost(X, true, *cell_at<colour>(z, y, (NX - 1) / 2));
        if (NX % 2) *cell_at<1 - colour>(z, y, HALF - 1) = ghost;  // the padding
        else *row_end<1 - colour>(z, y, true) = ghost;
    }
}

// Set ghosts of a colour's cells behind walls of y and z.
template <int colour>
__device__ __forceinline__ void fill_ghosts(const Box &box, const Equation &e) {
    for (int above = 0; above < 2; ++above) {
        int y = above ? box.rows - 1 : 0, z = above ? box.planes - 1 : 0, step = above ? 1 : -1;
        for_rows(box.wall_y(above) ? BOX_PLANES : 0, [&](int row) {
            for_indices([&](int c) {
                *cell_at<1 - colour>(row, y + step, c) =
                    e.ghost(Y, above, *cell_at<colour>(row, y, c));
            });
        });
        for_rows(box.wall_z(above) ? BOX_ROWS : 0, [&](int row) {
            for_indices([&](int c) {
                *cell_at<1 - colour>(z + step, row, c) =
                    e.ghost(Z, above, *cell_at<colour>(z, row, c));
            });
        });
    }
}

// A row of the halo: of each plane those below and above its rows, then those below and above the
// planes.
struct HaloRow {
    int z, y;
    bool inside;  // whether it is another block's
    __device__ HaloRow(const Box &box, int row) {
        bool above = row % 2, in_y = row / 2 < BOX_PLANES;
        z = in_y ? row / 2 : above ? box.planes : -1;
        y = !in_y ? row / 2 - BOX_PLANES : above ? box.rows : -1;
        inside = in_y ? z < box.planes && !box.wall_y(above) : y < box.rows && !box.wall_z(above);
    }
};

// Read the values of a colour around the box, all at once. Other blocks wrote them: `volatile`
// reads bypass the first-level cache.
template <int colour>
__device__ __forceinline__ void read_halo(const Real *x, const Box &box) {
    const volatile Real *from = x + colour * COLOUR;
    Real value[ROUNDS][STEPS_OF_ROW];
    int first = warp();
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
        HaloRow row(box, first + i * WARPS);
        int index = box.index(row.z, row.y, 0);
        if (row.inside) for_indices([&](int c) { value[i][c / LANES] = from[index + c]; });
    }
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
        HaloRow row(box, first + i * WARPS);
        Real *to = cell_at<colour>(row.z, row.y, 0);
        if (row.inside) for_indices([&](int c) { to[c] = value[i][c / LANES]; });
    }
}

// --- cells ---

// The cells that a thread updates: ROWS rows of a column of cell pairs. In the masks a bit stands
// for a plane.
struct Column {
    int y, c, index;    // of the first pair; the last one in a colour
    int side[ROWS][2];  // from a cell to that of another pair beside it in x, by the parity of
                        // colour and plane
    unsigned cells[ROWS][2];  // where there is a cell of a colour: an odd row ends with padding
    unsigned faces[ROWS];     // whose values the neighbours need
    __device__ Column(const Box &box)
        : y(threadIdx.x / HALF * ROWS), c(threadIdx.x % HALF), index(box.index(0, y, c)) {
        const unsigned even = 0x55555555, all = ~0u >> (32 - box.planes);
        for (int p = 0; p < ROWS; ++p) {
            int row = y + p, odd = box.odd(0, row, 0);
            int before = c > 0 ? -1 : (int)(row_end<0>(0, row, false) - cell_at<0>(0, row, c));
            int after = c < HALF - 1 ? 1 : (int)(row_end<0>(0, row, true) - cell_at<0>(0, row, c));
            side[p][0] = odd ? after : before, side[p][1] = odd ? before : after;
            for (int colour = 0; colour < 2; ++colour) {
                unsigned missing =
                    NX % 2 && c == HALF - 1 ? (box.odd(colour, row, 0) ? even : ~even) : 0;
                cells[p][colour] = row < box.rows ? all & ~missing : 0;
            }
            faces[p] = row == 0 || row == box.rows - 1 ? all : 1u | 1u << (box.planes - 1);
        }
    }
};

typedef Real RightSide[ROWS][BOX_PLANES];  // of a thread's cells, for one colour

// Update the cells of a colour; return the largest change. No value that is written is read again
// meanwhile.
template <int colour>
__device__ __forceinline__ Real update(Real *__restrict__ own, const Real *__restrict__ other,
                                       Real *__restrict__ x, const RightSide &b,
                                       const Column &thread, const Equation &e, Real factor) {
    Real most = 0, below[ROWS], same[ROWS + 2], above[ROWS];
    unsigned cells[ROWS];
    for (int p = 0; p < ROWS; ++p) {
        below[p] = other[p * STRIDE - BOX_PLANE], same[p + 1] = other[p * STRIDE];
        cells[p] = opaque(thread.cells[p][colour]);
    }
#pragma unroll
    for (int z = 0; z < BOX_PLANES; ++z) {
        int plane = z * BOX_PLANE;
        same[0] = other[plane - STRIDE], same[ROWS + 1] = other[plane + ROWS * STRIDE];
#pragma unroll
        for (int p = 0; p < ROWS; ++p) above[p] = other[plane + p * STRIDE + BOX_PLANE];
#pragma unroll
        for (int p = 0; p < ROWS; ++p) {
            int at = plane + p * STRIDE;
            Real side = other[at + thread.side[p][(colour + z) % 2]];
            Real sum = sum_of(side, same[p + 1], same[p], same[p + 2], below[p], above[p]);
            Real delta = product(residual_of(e, own[at], b[p][z], sum), factor),
                 updated = own[at] + delta;
            if (cells[p] >> z & 1) own[at] = updated, most = fmax(most, fabs(delta));
            if ((cells[p] & thread.faces[p]) >> z & 1) x[z * COLOUR_PLANE + p * PITCH] = updated;
        }
#pragma unroll
        for (int p = 0; p < ROWS; ++p) below[p] = same[p + 1], same[p + 1] = above[p];
    }
    return most;
}

// --- all blocks ---

// Where all blocks of the grid wait for each other. A launch finds zeros, and leaves them.
struct GridBarrier {
    unsigned long long
        arrived;  // how often a block arrived; in the upper 32 bits, how often with a change
    unsigned long long left;  // blocks that need it no more
};

// Wait for all blocks at the barrier for the `number`-th time; return how often one has arrived
// with a change so far.
__device__ inline unsigned arrive_and_wait(GridBarrier *barrier, unsigned number, bool changed) {
    const volatile unsigned long long *arrived = &barrier->arrived;
    unsigned long long seen;
    __threadfence();
    atomicAdd(&barrier->arrived, 1ull + ((unsigned long long)changed << 32));
    do seen = *arrived;
    while ((unsigned)seen < number * NUMBER);
    __threadfence();
    return seen >> 32;
}

__device__ inline void leave(GridBarrier *barrier) {
    if (threadIdx.x == 0 && atomicAdd(&barrier->left, 1ull) == NUMBER - 1)
        barrier->arrived = barrier->left = 0;
}

// --- a solve ---

struct Solve {
    Real *x;
    Equation e;
    Real factor, tolerance;
    GridBarrier *barrier;
};

// Update the cells of a colour in the box; return whether one changed.
template <int colour>
__device__ __forceinline__ bool sweep(const Solve &solve, const RightSide &b,
                                      const Column &thread) {
    if (thread.y >= BOX_ROWS) return false;
    Real *own = cell_at<colour>(0, thread.y, thread.c),
         *other = cell_at<1 - colour>(0, thread.y, thread.c);
    return update<colour>(own, other, solve.x + colour * COLOUR + thread.index, b, thread, solve.e,
                          solve.factor) > solve.tolerance;
}

// Update a colour and the halos that depend on it; `changed`: whether a cell of the block changed
// so far in the iteration. Return how often a block has arrived at a barrier with a change.
template <int colour>
__device__ __forceinline__ unsigned half_iteration(const Solve &solve, const RightSide &b,
                                                   const Column &thread, const Box &box,
                                                   unsigned number, bool *changed) {
    __shared__ unsigned changes;
    *changed |= sweep<colour>(solve, b, thread);
    bool any = __syncthreads_or(colour == 1 && *changed);
    if (threadIdx.x == 0) changes = arrive_and_wait(solve.barrier, number, any);
    if (threadIdx.x >= LANES) fill_ends<colour>(box, solve.e), fill_ghosts<colour>(box, solve.e);
    __syncthreads();
    unsigned so_far = changes;
    read_halo<colour>(solve.x, box);
    __syncthreads();
    return so_far;
}

// Call `action` where there is a cell of a colour, with its row and plane of the thread and its
// index in memory.
template <int colour, class Action>
__device__ __forceinline__ void for_cells(const Column &thread, Action action) {
#pragma unroll
    for (int p = 0; p < ROWS; ++p)
#pragma unroll
        for (int z = 0; z < BOX_PLANES; ++z)
            if (thread.cells[p][colour] >> z & 1)
                action(p, z, colour * COLOUR + thread.index + p * PITCH + z * COLOUR_PLANE);
}

template <int colour>
__device__ __forceinline__ void load(const Real *x, const Real *b, RightSide &right,
                                     const Column &thread) {
    for_cells<colour>(thread, [&](int p, int z, long long index) {
        copy_async(cell_at<colour>(z, thread.y + p, thread.c), x + index);
    });
    for_cells<colour>(thread, [&](int p, int z, long long index) { right[p][z] = b[index]; });
}

template <int colour>
__device__ __forceinline__ void store(Real *x, const Column &thread) {
    for_cells<colour>(thread, [&](int p, int z, long long index) {
        x[index] = *cell_at<colour>(z, thread.y + p, thread.c);
    });
}

// Iterations of a solve, up to the first that changes nothing by more than the tolerance.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    relax(int iterations, Real *x, const Real *b, EQUATION, Real factor, Real tolerance,
          GridBarrier *barrier, int *control) {
    Solve solve = {x, THE_EQUATION, factor, tolerance, barrier};
    Box box;
    Column thread(box);
    RightSide first = {}, second = {};
    load<0>(x, b, first, thread);
    load<1>(x, b, second, thread);
    read_halo<1>(x, box);
    end_async_group();
    wait_for_async_groups_but<0>();
    __syncthreads();
    if (threadIdx.x >= LANES) {
        fill_ends<0>(box, solve.e), fill_ghosts<0>(box, solve.e);
        fill_ends<1>(box, solve.e), fill_ghosts<1>(box, solve.e);
    }
    __syncthreads();
    unsigned changes = 0, before = 1;
    int count = 0;
    for (; count < iterations && changes != before; ++count) {
        before = changes;
        bool changed = false;
        half_iteration<0>(solve, first, thread, box, 2 * count + 1, &changed);
        changes = half_iteration<1>(solve, second, thread, box, 2 * count + 2, &changed);
    }
    leave(barrier);
    store<0>(x, thread);
    store<1>(x, thread);
    if (threadIdx.x + blockIdx.x == 0) {
        control[COUNT] = count;
        add_solve(control, count < iterations);
    }
}

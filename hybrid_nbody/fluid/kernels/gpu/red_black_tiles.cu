// Red-black Gauss-Seidel on a GPU: K iterations in one pass over the grid, on colours.
//
// A thread keeps ROWS rows of a column of cell pairs, both colours, in registers and walks along z;
// half sweep h (1 ... 2K) of a step updates the plane h - 1 behind the newest, so that K whole
// iterations pass over the grid at once. The values that a half sweep needs of other threads are a
// step old: x neighbours come by shuffles, those beyond a thread's rows and a warp's lanes through
// shared memory, and one barrier a step suffices. A tile computes a skirt of 2K cells in y, and at
// least as many in x, on each side that is not a wall, and 2K planes beyond each end of its planes,
// for nothing: these cells belong to its neighbours. Therefore the result goes to another array
// than the input.
//
// Memory traffic of a cell: 12 bytes for K iterations (read x and b, write x), and the skirts:
// blocks beside each other walk at about the same pace and find theirs in the cache.
//
// Compiled with the macros of ``grid.cuh``, -DK, -DROWS (of a thread), -DWARPS (of a block), -DSIDE
// (warps of a block beside each other in x), -DALIGN (of what a tile writes, see below) and
// -DSTAGES (steps for which numbers are under way).

#include "peer_planes.cuh"
#include "solve.cuh"
#include "tiles.cuh"

// --- a thread's columns ---

// The planes t + 1 ... t - 2K of step t of a thread's columns. A plane keeps its slot: as many
// steps as there are slots are unrolled, so that the compiler knows the slot of each plane, and
// nothing is moved.
#define SLOTS (2 * K + 2)
#define SLOT(step, offset) (((step) + (offset) + 4 * SLOTS) % SLOTS)
static_assert(SLOTS % STAGES == 0, "the stage of a number is known, too");
typedef Real Column[ROWS][SLOTS];
struct Columns {
    Column x[2], b[2];
};

// The first and the last row and lane of every warp after each half sweep, for the warps beside it.
struct Edges {
    Real row[2 * K][2][WARPS][LANES];
    Real lane[2 * K][SIDE > 1 ? 2 * WARPS : 1][ROWS];  // all first lanes before the last ones
};

struct Thread {
    int lane, warp, c, y;  // c and y of the first row, as if the grid had no end
    int beside;            // index in `Edges::lane` of the lane beyond a first or last lane
    int offset[ROWS];      // of the cells in a plane
    int fetched[FETCHES];  // the same of what the thread fetches
    Real limit[ROWS];      // of a change that counts; INFINITE where the cell is another tile's
    bool first, last;      // whether the row begins, or ends, with this thread's cells
    __device__ bool owns(int row) const { return limit[row] != INFINITE; }
    // Whether the cell is the padding of an odd row.
    __device__ bool is_padding(int odd) const { return NX % 2 && odd && 2 * c + 1 == NX; }
};

__device__ inline Thread thread_in(int tile_x, int tile_y, Real tolerance) {
    Span in_x(tile_x, ALONG_X), in_y(tile_y, ALONG_Y);
    Thread thread;
    thread.lane = threadIdx.x % LANES, thread.warp = threadIdx.x / LANES;
    int side = thread.warp % SIDE, first = in_x.first + side * LANES;
    thread.beside =
        thread.warp - side + (thread.lane ? (side + 1) % SIDE : WARPS + (side + SIDE - 1) % SIDE);
    thread.c = first + thread.lane, thread.y = in_y.first + thread.warp / SIDE * ROWS;
    thread.first = !PERIODIC_X && thread.c == 0;
    thread.last = !PERIODIC_X && 2 * thread.c + 2 == NX;
    int start = thread.y * PITCH + stored(thread.c, HALF, PERIODIC_X);
    for (int r = 0; r < ROWS; ++r) {
        int y = thread.y + r;
        bool owned = thread.c >= in_x.low && thread.c < in_x.high && y >= in_y.low && y < in_y.high;
        thread.limit[r] = owned ? min(tolerance, LARGEST) : INFINITE;
        thread.offset[r] = start + (TALL ? r : stored(y, NY, PERIODIC_Y) - thread.y) * PITCH;
    }
    int piece = stored(first + thread.lane % PIECES * PIECE, PERIODIC_X ? HALF : PITCH - PIECE + 1,
                       PERIODIC_X);
    for (int i = 0; i < FETCHES; ++i)
        thread.fetched[i] =
            piece + stored(thread.y + thread.lane / PIECES + i * PIECE, NY, PERIODIC_Y) * PITCH;
    return thread;
}

// Replace the planes beyond a wall of z by the ghosts that step t reads. The index of a wall counts
// from this rank's first plane, as those of planes do: it may lie within the halo.
#define WALLS_Z (!PERIODIC_Z)
#define GRID_BEGIN (-FIRST)
#define GRID_END (NZ - FIRST)
__device__ __forceinline__ void set_ghosts(int t, int step, Columns &columns, const Equation &e) {
#pragma unroll
    for (int h = 1; h <= 2 * K; ++h)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            Real cell = columns.x[(h - 1) & 1][r][SLOT(step, 1 - h)];
            if (t - h + 1 == GRID_BEGIN)
                columns.x[h & 1][r][SLOT(step, -h)] = e.ghost(Z, false, cell);
            if (t - h + 1 == GRID_END - 1)
                columns.x[h & 1][r][SLOT(step, 2 - h)] = e.ghost(Z, true, cell);
        }
}

// Half sweep h of step t, which is step `step` of those that are unrolled; returns whether a cell
// changed.
__device__ __forceinline__ bool half_sweep(int h, int t, int step, Columns &columns,
                                           const Edges &edges, const Thread &thread,
                                           const Equation &e, Real factor) {
    const int colour = (h - 1) & 1;
    const int at = SLOT(step, 1 - h), below = SLOT(step, -h), above = SLOT(step, 2 - h);
    Column &x = columns.x[colour], &other = columns.x[1 - colour];
    Real before = edges.row[h - 1][1][(thread.warp + WARPS - SIDE) % WARPS][thread.lane];
    Real after = edges.row[h - 1][0][(thread.warp + SIDE) % WARPS][thread.lane];
    bool changed = false;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        int odd = (thread.y + r + FIRST + t) & 1;  // the cell is the second of its pair
        Real own = x[r][at], same = other[r][at],
             side = __shfl_sync(~0u, same, odd ? thread.lane + 1 : thread.lane - 1);
        Real previous = r > 0 ? other[r - 1][at] : before,
             next = r + 1 < ROWS ? other[r + 1][at] : after;
        if (SIDE > 1 && thread.lane == (odd ? LANES - 1 : 0))
            side = edges.lane[h - 1][thread.beside][r];
        if (!PERIODIC_X && (odd ? thread.last : thread.first)) side = e.ghost(X, odd, own);
        if (!PERIODIC_X && NX % 2 && !odd && 2 * thread.c + 1 == NX) same = e.ghost(X, true, own);
        if (!PERIODIC_Y && (r == 0 || !TALL) && thread.y + r == 0)
            previous = e.ghost(Y, false, own);
        if (!PERIODIC_Y && (r == ROWS - 1 || !TALL) && thread.y + r == NY - 1)
            next = e.ghost(Y, true, own);
        Real sum = sum_of(side, same, previous, next, other[r][below], other[r][above]);
        Real delta = product(residual_of(e, own, columns.b[colour][r][at], sum), factor);
        bool keep = NX % 2 && WALLS_Z &&
                    t - h + 1 >= GRID_END;  // there `factor` is zero, but padding may be NaN
        x[r][at] = keep ? own : own + delta;
        changed |= fabs(delta) > thread.limit[r] && !thread.is_padding(odd);
    }
    return changed;
}

// Numbers on their way from memory: those that step t needs, in stage t % STAGES, the rows of a
// warp one after another.
enum Array { X0, X1, B0, B1, ARRAYS };
extern __shared__ __align__(16) Real waiting[];  // [STAGES][ARRAYS][WARPS][ROWS][LANES]

__device__ inline Real *waiting_at(unsigned stage, int array, const Thread &thread) {
    return waiting + (((stage % STAGES) * ARRAYS + array) * WARPS + thread.warp) * (ROWS * LANES);
}

// Start to copy a piece. The wide copy bypasses the first-level cache, which has no use for it.
__device__ inline void fetch(Real *to, const Real *from) {
#if __CUDA_ARCH__ < 800
    for (int i = 0; i < PIECE; ++i) to[i] = from[i];
#else
    if (PIECE > 1)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)),
                     "l"(from)
                     : "memory");
    else copy_async(to, from);
#endif
}

// Wait until the copies of all lanes of the warp are complete, but those of the `number` newest
// groups.
template <int number>
__device__ inline void wait_for_pieces_but() {
    wait_for_async_groups_but<number>();
    if (PIECE > 1) __syncwarp();
}

__device__ __forceinline__ void fetch_plane(const Real *array, int plane, const Thread &thread,
                                            unsigned stage, int which) {
    const Real *from = array + (long long)(stored_plane(plane) + HALO) * COLOUR_PLANE;
    Real *to = waiting_at(stage, which, thread) + thread.lane * PIECE;
#pragma unroll
    for (int i = 0; i < FETCHES; ++i)
        fetch(to + i * PIECE * LANES, from + (TALL ? i * PIECE * PITCH : thread.fetched[i]));
}

// Fill what waits for x with zeros, in all stages: where a first guess of 0 is not in memory.
__device__ inline void await_zeros(const Thread &thread) {
    for (int stage = 0; stage < STAGES; ++stage)
        for (int r = 0; r < ROWS; ++r)
            for (int which : {X0, X1})
                waiting_at(stage, which, thread)[r * LANES + thread.lane] = 0;
}

// Start to copy the numbers that step t needs; x not if it is null.
__device__ __forceinline__ void fetch_step(const Real *x, const Real *b, int t, unsigned stage,
                                           const Thread &thread) {
    if (x) {
        fetch_plane(x, t, thread, stage, X0);
        fetch_plane(x + COLOUR, t + 1, thread, stage, X1);
    }
    fetch_plane(b, t, thread, stage, B0);
    fetch_plane(b + COLOUR, t - 1, thread, stage, B1);
    end_async_group();
}

__device__ __forceinline__ void take_plane(Column &to, int slot, const Thread &thread,
                                           unsigned stage, int which) {
    const Real *from = waiting_at(stage, which, thread) + thread.lane;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) to[r][slot] = from[r * LANES];
}

__device__ __forceinline__ void store_plane(Real *__restrict__ array, int plane,
                                            const Thread &thread, const Column &from, int slot) {
    Real *to = array + (long long)(plane + HALO) * COLOUR_PLANE;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (thread.owns(r))
            to[TALL ? thread.offset[0] + r * PITCH : thread.offset[r]] = from[r][slot];
}

__device__ __forceinline__ void share_edges(int h, Edges &edges, const Thread &thread,
                                            const Column &x, int slot) {
    edges.row[h][0][thread.warp][thread.lane] = x[0][slot];
    edges.row[h][1][thread.warp][thread.lane] = x[ROWS - 1][slot];
    if (SIDE > 1 && (thread.lane == 0 || thread.lane == LANES - 1))
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            edges.lane[h][(thread.lane > 0) * WARPS + thread.warp][r] = x[r][slot];
}

// --- planes that are pushed while tiles walk on ---

// Tiles complete the lowest planes of this rank early, and the rank below needs them late, at the
// end of its next pass: blocks on multiprocessors without a tile push them meanwhile. The highest
// planes, which the rank above needs at once, are left to the next kernel. There are no more tiles
// and pushers than multiprocessors: every tile runs, whichever begin first.
struct EarlyPush {
    PeerHalo to;
    unsigned *complete_tiles;    // with those planes complete, zero before; null if none are pushed
    int pushers, first, second;  // blocks that push, and planes of one colour and of the other
};
#define TILES (ALONG_X.number() * ALONG_Y.number())

// Whether, before the first step of a round, HALO planes of a range that begins with plane 0 are
// complete for the first time. Only a range of at least HALO + SLOTS planes is sure to have such a
// round: LONG_WALK in ``tiling.py`` is more.
__device__ inline bool completes(int begin, int round) {
    int since = round - (HALO + 2 * K - 1);
    return begin == 0 && since >= 0 && since < SLOTS;
}

__device__ inline void add_complete(unsigned *complete_tiles) {
    if (threadIdx.x > 0) return;
    __threadfence();
    atomicAdd(complete_tiles, 1);
}

__device__ inline void push_early(const Real *from, const EarlyPush &early) {
    if (blockIdx.x >= early.pushers) return;
    if (threadIdx.x == 0)
        while (*(volatile unsigned *)early.complete_tiles < TILES) {}
    __threadfence();
    __syncthreads();
    push_planes(from, early.first, early.second, early.to, blockIdx.x, early.pushers);
}

// --- a pass ---

// K iterations of the planes from `begin` to `end` of a tile, on zeros if `from` is null.
// `changed`: whether each of them changed the tile's own cells.
__device__ inline void iterate_range(const Real *__restrict__ from, const Real *__restrict__ b,
                                     Real *__restrict__ to, int begin, int end,
                                     const Thread &thread, const Equation &e, Real factor,
                                     Edges *edges, bool *changed, unsigned *complete_tiles) {
    Columns columns = {};
    int start = (WALLS_Z ? max(begin - 2 * K, GRID_BEGIN) : begin - 2 * K) - 1,
        last = end + 2 * K - 2;
    wait_for_pieces_but<0>();  // copies for steps beyond the last of another range
    if (!from) await_zeros(thread);
    if (TALL && from) from += thread.fetched[0];
    if (TALL) b += thread.fetched[0];
    for (int stage = 0; stage < STAGES - 1; ++stage)
        fetch_step(from, b, start + stage, stage, thread);
    for (int round = start; round <= last; round += SLOTS) {
        if (complete_tiles && completes(begin, round)) add_complete(complete_tiles);
#pragma unroll
        for (int step = 0; step < SLOTS; ++step) {
            int t = round + step, stage = step % STAGES;
            if (t > last) return;
            Edges &fresh = edges[t & 1], &old = edges[~t & 1];
            wait_for_pieces_but<STAGES - 2>();
            take_plane(columns.x[0], SLOT(step, 0), thread, stage, X0);
            take_plane(columns.x[1], SLOT(step, 1), thread, stage, X1);
            take_plane(columns.b[0], SLOT(step, 0), thread, stage, B0);
            take_plane(columns.b[1], SLOT(step, -1), thread, stage, B1);
            fetch_step(from, b, t + STAGES - 1, stage + STAGES - 1, thread);
            if (WALLS_Z && (t < GRID_BEGIN + 2 * K || t >= GRID_END - 1))
                set_ghosts(t, step, columns, e);
            share_edges(0, fresh, thread, columns.x[1], SLOT(step, 1));
#pragma unroll
            for (int h = 1; h <= 2 * K; ++h) {
                Real weight =
                    !WALLS_Z || t - h + 1 < GRID_END ? factor : 0;  // ghosts stay as they are
                bool changed_here = half_sweep(h, t, step, columns, old, thread, e, weight);
                changed[(h - 1) / 2] |= changed_here && t - h + 1 >= begin && t - h + 1 < end;
                if (h < 2 * K)
                    share_edges(h, fresh, thread, columns.x[(h - 1) & 1], SLOT(step, 1 - h));
            }
            int done = t - 2 * K + 1;
            if (done >= begin)
#pragma unroll
                for (int colour = 0; colour < 2; ++colour)
                    store_plane(to + colour * COLOUR, done, thread, columns.x[colour],
                                SLOT(step, 1 - 2 * K));
            __syncthreads();
        }
    }
}

// K iterations of this rank's planes. The planes of all strips of tiles, one strip after another,
// are divided among the rows of blocks: row i takes those from cuts[i] to cuts[i + 1], its blocks
// the tiles beside each other in x.
__device__ inline void iterate(const Real *from, const Real *b, Real *to, const int *cuts,
                               const Equation &e, Real factor, Real tolerance, int *flags,
                               unsigned *complete_tiles) {
    __shared__ Edges edges[2];
    bool changed[K] = {};
    int begin = cuts[blockIdx.y], end = cuts[blockIdx.y + 1];
    while (begin < end) {
        int z = begin % PLANES, count = min(PLANES - z, end - begin);
        Thread thread = thread_in(blockIdx.x, begin / PLANES, tolerance);
        iterate_range(from, b, to, z, z + count, thread, e, factor, edges, changed, complete_tiles);
        begin += count;
    }
    for (int i = 0; i < K; ++i)
        raise_flag(changed[i] || tolerance < 0, flags + i);  // if it is, nothing ends a solve
}

#define KERNEL extern "C" __global__ void __launch_bounds__(LANES *WARPS, 1)

// Launch i of a solve reads x and writes `work` if i is even, else the reverse; the host may pass
// them the other way round. If it is `from_zero`, it takes what it would read as zeros. It returns
// at once if the launch before, of `previous` iterations, had one that changed nothing, or returned
// at once itself.
KERNEL relax(int launch, int previous, int from_zero, Real *x, Real *work, const Real *b,
             const int *cuts, EQUATION, Real factor, Real tolerance, int *control,
             const __grid_constant__ EarlyPush early) {
    if (threadIdx.x + blockIdx.x + blockIdx.y == 0) begin_launch(control, launch, previous);
    if (previous && iterations_needed(control, launch - 1, previous) <= previous) return;
    Real *from = from_zero ? nullptr : launch & 1 ? work : x, *to = launch & 1 ? x : work;
    if (!FULL_GRID && early.pushers && blockIdx.y == gridDim.y - 1) {
        push_early(to, early);
        return;
    }
    iterate(from, b, to, cuts, THE_EQUATION, factor, tolerance, flags_of(control, launch),
            FULL_GRID ? nullptr : early.complete_tiles);
}

#if K == 1
// Called after `end_passes`: repeat single iterations.
KERNEL redo(int pass, Real *x, Real *work, const Real *b, const int *cuts, EQUATION, Real factor,
            Real tolerance, int *control) {
    if (pass >= control[REDO]) return;
    bool back = (control[SOURCE] + pass) & 1;
    __shared__ int unread[K];
    iterate(back ? work : x, b, back ? x : work, cuts, THE_EQUATION, factor, tolerance, unread,
            nullptr);
}
#endif

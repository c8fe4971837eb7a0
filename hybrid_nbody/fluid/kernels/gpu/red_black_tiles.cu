// Red-black Gauss-Seidel on a GPU: K iterations in one pass over the grid, on colours.
//
// A thread keeps ROWS rows of a column of cell pairs, both colours, in registers and walks along z; half sweep h (1 ... 2K)
// of a step updates a plane h - 1 behind the newest, so that K whole iterations pass over the grid at once. What a half
// sweep needs of other threads is a step old: x neighbours come by shuffles, those beyond a thread's rows and a warp's
// lanes through shared memory, and one barrier a step does. A tile wastes a skirt, of 2K cells in y and at least as many in x,
// on each side that is no wall, and a range of planes 2K planes at each end: their cells are computed again by the neighbour.
// Therefore the result goes to another array than the input.
//
// Bytes of memory a cell: 12 for K iterations (read x and b, write x), and the skirts: blocks beside each other walk at
// about the same pace and find theirs in the cache.
//
// Compiled with the macros of ``grid.cuh``, -DK, -DROWS (of a thread), -DWARPS (of a block), -DSIDE (warps of a block beside
// each other in x), -DALIGN (of what a tile writes, see below) and -DSTAGES (steps for which numbers are under way).

#include "solve.cuh"
#include "peer_planes.cuh"

// --- tiles -----------------------------------------------------------------------------------------------------------

#define WIDE (SIDE * LANES)           // cells of a colour that a tile is wide
#define HEIGHT (WARPS / SIDE * ROWS)  // rows of a tile
#define TALL (!PERIODIC_Y && NY >= HEIGHT)  // all tiles lie within the grid, and its walls beside the first and last rows
#define NEVER ((Real)__int_as_float(0x7fffffff))  // a NaN: nothing is larger

// One tile takes the whole axis if that fits, around a periodic edge if it fits exactly. Else tiles are `width` cells wide
// and lose `skirt` of them on each side that is no wall. Their own cells begin at multiples of what is left, plus `more`,
// which the first and the last tile have beyond it where there are walls. The last tile may reach over the end, into the
// padding of a row: `room` is the size with it.
struct Tiling {
    int size, room, width, skirt, more;
    bool periodic;
    __device__ constexpr int own() const { return width - 2 * skirt; }
    __device__ constexpr bool single() const { return size == width || (!periodic && size < width); }
    __device__ constexpr int number() const { return single() ? 1 : (size - 2 * more + own() - 1) / own(); }
};

// A tile's first cell and, from `low` to `high`, those that are its own.
struct Span {
    int first, low, high;
    __device__ Span(int tile, const Tiling &all) {
        int begin = tile * all.own() + all.more, end = begin + all.own();
        first = all.periodic && !all.single() ? begin - all.skirt : max(0, min(begin - all.skirt, all.room - all.width));
        low = tile > 0 ? begin : 0;
        high = tile + 1 < all.number() ? end : all.size;
    }
};

// Along x cells of a tile begin at whole sectors of memory: what two blocks write of one is slow.
#define SKIRT_X ((K + ALIGN - 1) / ALIGN * ALIGN)
#define ALONG_X Tiling{HALF, ALIGN > 1 ? PITCH : HALF, WIDE, SKIRT_X, PERIODIC_X || ALIGN > 1 ? 0 : K, PERIODIC_X}
#define ALONG_Y Tiling{NY, NY, HEIGHT, 2 * K, PERIODIC_Y ? 0 : 2 * K, PERIODIC_Y}

// Numbers that a lane fetches at once. 16 bytes, the most there is, take a quarter of the instructions, or half of them in
// double precision, and the lanes of a warp then fetch some of its rows at once. That needs tiles that take whole rows: with
// pieces that do not begin at sectors of memory, the cache sends half as much again.
constexpr int WIDEST = 16 / sizeof(Real);
constexpr int PIECE = ALONG_X.single() && (!PERIODIC_X || HALF % WIDEST == 0) ? WIDEST : 1;
constexpr int PIECES = LANES / PIECE, FETCHES = ROWS / PIECE;  // in a row of a tile, and of a thread for a plane
static_assert(ROWS % PIECE == 0, "the rows of a warp are fetched PIECE at once");

// The cell that is stored for one of a tile's: outside of a wall any one will do.
__device__ inline int stored(int i, int size, bool periodic) {
    return periodic ? wrapped(i, size) : min(max(i, 0), size - 1);
}

// The same for planes: of several ranks each has HALO planes beyond its own, as far as the grid reaches.
__device__ inline int stored_plane(int z) {
    if (WHOLE) return stored(z, NZ, PERIODIC_Z);
    int lowest = PERIODIC_Z ? -HALO : max(-HALO, -FIRST), highest = PLANES + HALO - 1;
    return min(max(z, lowest), PERIODIC_Z ? highest : min(highest, NZ - FIRST - 1));
}

// What a thread holds of its columns, the planes t + 1 ... t - 2K of step t. A plane keeps its place: as many steps as
// there are places are unrolled, so that the compiler knows the place of each, and nothing is moved.
#define PLACES (2 * K + 2)
#define PLACE(step, offset) (((step) + (offset) + 4 * PLACES) % PLACES)
static_assert(PLACES % STAGES == 0, "where a number waits is known, too");
typedef Real Column[ROWS][PLACES];
struct Columns { Column x[2], b[2]; };

// The first and the last row and lane of every warp after each half sweep, for the warps beside it.
struct Edges {
    Real row[2 * K][2][WARPS][LANES], lane[2 * K][SIDE > 1 ? 2 * WARPS : 1][ROWS];  // all first lanes before the last ones
};


struct Thread {
    int lane, warp, c, y;  // c and y of the first row, as if the grid had no end
    int beside;            // in `Edges::lane`, of a first or last lane: the lane beyond it; the last warp's is the first's
    int offset[ROWS];      // of the cells in a plane
    int fetched[FETCHES];  // the same of what the thread fetches
    Real limit[ROWS];      // of a change that counts; NEVER where the cell is another tile's
    bool first, last;      // whether the row begins, or ends, with this thread's cells
    __device__ bool owns(int row) const { return limit[row] == limit[row]; }
    __device__ bool beyond(int odd) const { return NX % 2 && odd && 2 * c + 1 == NX; }  // an odd row has a place too many
};

__device__ inline Thread thread_in(int tile_x, int tile_y, Real tolerance) {
    Span in_x(tile_x, ALONG_X), in_y(tile_y, ALONG_Y);
    Thread me;
    me.lane = threadIdx.x % LANES, me.warp = threadIdx.x / LANES;
    int side = me.warp % SIDE, first = in_x.first + side * LANES;
    me.beside = me.warp - side + (me.lane ? (side + 1) % SIDE : WARPS + (side + SIDE - 1) % SIDE);
    me.c = first + me.lane, me.y = in_y.first + me.warp / SIDE * ROWS;
    me.first = !PERIODIC_X && me.c == 0, me.last = !PERIODIC_X && 2 * me.c + 2 == NX;
    int start = me.y * PITCH + stored(me.c, HALF, PERIODIC_X);
    for (int r = 0; r < ROWS; ++r) {
        int y = me.y + r;
        bool owned = me.c >= in_x.low && me.c < in_x.high && y >= in_y.low && y < in_y.high;
        me.limit[r] = owned ? tolerance : NEVER;
        me.offset[r] = start + (TALL ? r : stored(y, NY, PERIODIC_Y) - me.y) * PITCH;
    }
    int piece = stored(first + me.lane % PIECES * PIECE, PERIODIC_X ? HALF : PITCH - PIECE + 1, PERIODIC_X);
    for (int i = 0; i < FETCHES; ++i)
        me.fetched[i] = piece + stored(me.y + me.lane / PIECES + i * PIECE, NY, PERIODIC_Y) * PITCH;
    return me;
}

// What lies beyond a wall of z is worth nothing: let the ghosts that step t reads take its place. Walls are counted from
// this rank's first plane, as planes are: they may lie within its halo.
#define WALLS_Z (!PERIODIC_Z)
#define GRID_BEGIN (-FIRST)
#define GRID_END (NZ - FIRST)
__device__ __forceinline__ void set_ghosts(int t, int step, Columns &held, const Equation &e) {
#pragma unroll
    for (int h = 1; h <= 2 * K; ++h)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            Real cell = held.x[(h - 1) & 1][r][PLACE(step, 1 - h)];
            if (t - h + 1 == GRID_BEGIN) held.x[h & 1][r][PLACE(step, -h)] = e.ghost(Z, false, cell);
            if (t - h + 1 == GRID_END - 1) held.x[h & 1][r][PLACE(step, 2 - h)] = e.ghost(Z, true, cell);
        }
}

// Half sweep h of step t, which is step `step` of those that are unrolled; returns whether a cell changed.
__device__ __forceinline__ bool half_sweep(int h, int t, int step, Columns &held, const Edges &edges, const Thread &me,
                                           const Equation &e, Real factor) {
    const int colour = (h - 1) & 1;
    const int at = PLACE(step, 1 - h), below = PLACE(step, -h), above = PLACE(step, 2 - h);
    Column &x = held.x[colour], &other = held.x[1 - colour];
    Real before = edges.row[h - 1][1][(me.warp + WARPS - SIDE) % WARPS][me.lane];
    Real after = edges.row[h - 1][0][(me.warp + SIDE) % WARPS][me.lane];
    bool changed = false;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        int odd = (me.y + r + FIRST + t) & 1;  // the cell is the second of its pair
        Real own = x[r][at], same = other[r][at], side = __shfl_sync(~0u, same, odd ? me.lane + 1 : me.lane - 1);
        Real previous = r > 0 ? other[r - 1][at] : before, next = r + 1 < ROWS ? other[r + 1][at] : after;
        if (SIDE > 1 && me.lane == (odd ? LANES - 1 : 0)) side = edges.lane[h - 1][me.beside][r];
        if (!PERIODIC_X && (odd ? me.last : me.first)) side = e.ghost(X, odd, own);
        if (!PERIODIC_X && NX % 2 && !odd && 2 * me.c + 1 == NX) same = e.ghost(X, true, own);
        if (!PERIODIC_Y && (r == 0 || !TALL) && me.y + r == 0) previous = e.ghost(Y, false, own);
        if (!PERIODIC_Y && (r == ROWS - 1 || !TALL) && me.y + r == NY - 1) next = e.ghost(Y, true, own);
        Real sum = sum_of(side, same, previous, next, other[r][below], other[r][above]);
        Real delta = product(residual_of(e, own, held.b[colour][r][at], sum), factor);
        bool spare = NX % 2 && WALLS_Z && t - h + 1 >= GRID_END;  // there `factor` is zero, but places too many may be NaN
        x[r][at] = spare ? own : own + delta;
        changed |= fabs(delta) > me.limit[r] && !me.beyond(odd);
    }
    return changed;
}

// Numbers on their way from memory: those that step t needs, in slot t % STAGES, the rows of a warp one after another.
enum Array { X0, X1, B0, B1, ARRAYS };
extern __shared__ __align__(16) Real waiting[];  // [STAGES][ARRAYS][WARPS][ROWS][LANES]

__device__ inline Real *waiting_at(unsigned stage, int array, const Thread &me) {
    return waiting + (((stage % STAGES) * ARRAYS + array) * WARPS + me.warp) * (ROWS * LANES);
}

// Order a piece. The wide copy goes past the first-level cache, which has no use for it.
__device__ inline void fetch(Real *to, const Real *from) {
#if __CUDA_ARCH__ < 800
    for (int i = 0; i < PIECE; ++i) to[i] = from[i];
#else
    if (PIECE > 1)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
    else
        fetch_number(to, from);
#endif
}

// What the other lanes of a warp have fetched of what this one takes is complete, too.
template <int number>
__device__ inline void wait_for_pieces_but() {
    wait_for_groups_but<number>();
    if (PIECE > 1) __syncwarp();
}

__device__ __forceinline__ void fetch_plane(const Real *array, int plane, const Thread &me, unsigned stage, int which) {
    const Real *from = array + (long long)(stored_plane(plane) + HALO) * COLOUR_PLANE;
    Real *to = waiting_at(stage, which, me) + me.lane * PIECE;
#pragma unroll
    for (int i = 0; i < FETCHES; ++i)
        fetch(to + i * PIECE * LANES, from + (TALL ? i * PIECE * PITCH : me.fetched[i]));
}

// Order what step t needs: each number as late as it is.
__device__ __forceinline__ void fetch_step(const Real *x, const Real *b, int t, unsigned stage, const Thread &me) {
    fetch_plane(x, t, me, stage, X0);
    fetch_plane(x + COLOUR, t + 1, me, stage, X1);
    fetch_plane(b, t, me, stage, B0);
    fetch_plane(b + COLOUR, t - 1, me, stage, B1);
    end_of_group();
}

__device__ __forceinline__ void take_plane(Column &to, int place, const Thread &me, unsigned stage, int which) {
    const Real *from = waiting_at(stage, which, me) + me.lane;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) to[r][place] = from[r * LANES];
}

__device__ __forceinline__ void store_plane(Real *__restrict__ array, int plane, const Thread &me, const Column &from,
                                            int place) {
    Real *to = array + (long long)(plane + HALO) * COLOUR_PLANE;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (me.owns(r)) to[TALL ? me.offset[0] + r * PITCH : me.offset[r]] = from[r][place];
}

__device__ __forceinline__ void show_edges(int h, Edges &edges, const Thread &me, const Column &x, int place) {
    edges.row[h][0][me.warp][me.lane] = x[0][place];
    edges.row[h][1][me.warp][me.lane] = x[ROWS - 1][place];
    if (SIDE > 1 && (me.lane == 0 || me.lane == LANES - 1))
#pragma unroll
        for (int r = 0; r < ROWS; ++r) edges.lane[h][(me.lane > 0) * WARPS + me.warp][r] = x[r][place];
}

// --- planes that are shown while tiles walk on --------------------------------------------------------------------------

// Tiles complete the first planes of this rank early, and the rank below needs them late, at the end of its next pass: blocks
// on multiprocessors without a tile copy them meanwhile. The last planes, which the rank above needs at once, are left to the
// next kernel. Tiles and helpers together are no more than the multiprocessors: each tile finds one, whichever begin first.
struct Ahead {
    Beyond to;
    unsigned *complete;          // tiles that have completed those planes, zero before; null if nobody shows them
    int helpers, first, second;  // blocks that do, and planes of one colour and of the other
};
#define TILES (ALONG_X.number() * ALONG_Y.number())

// Before the first step of a round, HALO planes of a range that begins with plane 0 are complete for the first time. Only
// a range of HALO + PLACES planes at least is sure to have such a round: LONG_WALK in ``tiling.py`` is more.
__device__ inline bool completes(int begin, int round) {
    int since = round - (HALO + 2 * K - 1);
    return begin == 0 && since >= 0 && since < PLACES;
}

__device__ inline void add_complete(unsigned *complete) {
    if (threadIdx.x > 0) return;
    __threadfence();
    atomicAdd(complete, 1);
}

__device__ inline void show_ahead(const Real *from, const Ahead &ahead) {
    if (blockIdx.x >= ahead.helpers) return;
    if (threadIdx.x == 0)
        while (*(volatile unsigned *)ahead.complete < TILES) {}
    __threadfence();
    __syncthreads();
    show_planes(from, ahead.first, ahead.second, ahead.to, blockIdx.x, ahead.helpers);
}

// --- a pass ------------------------------------------------------------------------------------------------------------

// K iterations of the planes from `begin` to `end` of a tile; `changed`: whether its own cells were, in each of them.
__device__ inline void iterate_range(const Real *__restrict__ from, const Real *__restrict__ b, Real *__restrict__ to,
                                     int begin, int end, const Thread &me, const Equation &e, Real factor, Edges *edges,
                                     bool *changed, unsigned *complete) {
    Columns held = {};
    int start = (WALLS_Z ? max(begin - 2 * K, GRID_BEGIN) : begin - 2 * K) - 1, last = end + 2 * K - 2;
    if (TALL) from += me.fetched[0], b += me.fetched[0];
    wait_for_pieces_but<0>();  // what was ordered for steps beyond the last of another range
    for (int stage = 0; stage < STAGES - 1; ++stage) fetch_step(from, b, start + stage, stage, me);
    for (int round = start; round <= last; round += PLACES) {
        if (complete && completes(begin, round)) add_complete(complete);
#pragma unroll
        for (int step = 0; step < PLACES; ++step) {
            int t = round + step, stage = step % STAGES;
            if (t > last) return;
            Edges &fresh = edges[t & 1], &old = edges[~t & 1];
            wait_for_pieces_but<STAGES - 2>();
            take_plane(held.x[0], PLACE(step, 0), me, stage, X0);
            take_plane(held.x[1], PLACE(step, 1), me, stage, X1);
            take_plane(held.b[0], PLACE(step, 0), me, stage, B0);
            take_plane(held.b[1], PLACE(step, -1), me, stage, B1);
            fetch_step(from, b, t + STAGES - 1, stage + STAGES - 1, me);
            if (WALLS_Z && (t < GRID_BEGIN + 2 * K || t >= GRID_END - 1)) set_ghosts(t, step, held, e);
            show_edges(0, fresh, me, held.x[1], PLACE(step, 1));
#pragma unroll
            for (int h = 1; h <= 2 * K; ++h) {
                Real weight = !WALLS_Z || t - h + 1 < GRID_END ? factor : 0;  // ghosts stay as they are
                bool moved = half_sweep(h, t, step, held, old, me, e, weight);
                changed[(h - 1) / 2] |= moved && t - h + 1 >= begin && t - h + 1 < end;
                if (h < 2 * K) show_edges(h, fresh, me, held.x[(h - 1) & 1], PLACE(step, 1 - h));
            }
            int done = t - 2 * K + 1;
            if (done >= begin)
#pragma unroll
                for (int colour = 0; colour < 2; ++colour)
                    store_plane(to + colour * COLOUR, done, me, held.x[colour], PLACE(step, 1 - 2 * K));
            __syncthreads();
        }
    }
}

// K iterations of this rank's planes. The planes of all strips of tiles, one strip after another, are shared out among the
// rows of blocks: row i takes those from cuts[i] to cuts[i + 1], its blocks the tiles beside each other in x.
__device__ inline void iterate(const Real *from, const Real *b, Real *to, const int *cuts, const Equation &e, Real factor,
                               Real tolerance, int *flags, unsigned *complete) {
    __shared__ Edges edges[2];
    bool changed[K] = {};
    int begin = cuts[blockIdx.y], end = cuts[blockIdx.y + 1];
    while (begin < end) {
        int z = begin % PLANES, count = min(PLANES - z, end - begin);
        Thread me = thread_in(blockIdx.x, begin / PLANES, tolerance);
        iterate_range(from, b, to, z, z + count, me, e, factor, edges, changed, complete);
        begin += count;
    }
    for (int i = 0; i < K; ++i) note(changed[i] || tolerance < 0, flags + i);  // if less, nothing ends a solve
}

#define KERNEL extern "C" __global__ void __launch_bounds__(LANES *WARPS, 1)

// Launch i of a solve takes x into `spare` if i is even, else back. It returns at once if the launch before, of
// `previous` iterations, had one that changed nothing, or returned at once itself.
KERNEL relax(int launch, int previous, Real *x, Real *spare, const Real *b, const int *cuts, EQUATION, Real factor,
             Real tolerance, int *control, const __grid_constant__ Ahead ahead) {
    if (threadIdx.x + blockIdx.x + blockIdx.y == 0) begin_launch(control, launch, previous);
    if (previous && needed(control, launch - 1, previous) <= previous) return;
    Real *from = launch & 1 ? spare : x, *to = launch & 1 ? x : spare;
    if (!WHOLE && ahead.helpers && blockIdx.y == gridDim.y - 1) {
        show_ahead(to, ahead);
        return;
    }
    iterate(from, b, to, cuts, THE_EQUATION, factor, tolerance, flags_of(control, launch), WHOLE ? nullptr : ahead.complete);
}

#if K == 1
// After `settle`: do single iterations again.
KERNEL redo(int pass, Real *x, Real *spare, const Real *b, const int *cuts, EQUATION, Real factor, Real tolerance,
            int *control) {
    if (pass >= control[REDO]) return;
    bool back = (control[FROM] + pass) & 1;
    __shared__ int unread[K];
    iterate(back ? spare : x, b, back ? x : spare, cuts, THE_EQUATION, factor, tolerance, unread, nullptr);
}
#endif

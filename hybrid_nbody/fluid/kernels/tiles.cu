// Red-black Gauss-Seidel on a GPU: several iterations in one pass over the grid, on colours.
//
// A thread of `relax` keeps ROWS rows of a column of cell pairs, both colours, in registers and walks along z; half sweep
// h (1 ... 2K) of a step updates a plane h - 1 behind the newest, so that K whole iterations pass over the grid at once.
// What a half sweep needs of other threads is a step old: x neighbours come by shuffles, y neighbours beyond a thread's
// rows through shared memory, and one barrier a step does. A tile wastes a skirt of 2K cells in x and y on each side that
// is no wall, and a range of planes 2K planes at each end: their cells are computed again by the neighbour. Therefore the
// result goes to another array than the input.
//
// Bytes of memory a cell: 12 for K iterations (read x and b, write x), and the skirts: blocks beside each other in x walk
// at the same pace and find theirs in the cache.
//
// Compiled with the macros of ``grid.cuh``, -DROWS (of a thread), -DWARPS (of a block), -DBLOCKS (of a multiprocessor),
// -DALIGN (of what a tile writes, see below) and -DSTAGES (steps for which numbers are under way).

#include "solve.cuh"

// After the last launch of `relax`: where the result is (HOME: 0 in x, 1 in the spare array), or how many single
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

// --- tiles -----------------------------------------------------------------------------------------------------------

#define HEIGHT (WARPS * ROWS)  // rows of a tile
#define TALL (!PERIODIC_Y && NY >= HEIGHT)  // all tiles lie within the grid, and its walls beside the first and last rows
#define NEVER ((Real)__int_as_float(0x7fffffff))  // a NaN: nothing is larger

// Tiles are `width` cells wide and lose `skirt` of them on each side that is no wall. Their own cells begin at multiples
// of what is left, plus `more`, which the first and the last tile have beyond it where there are walls. The last tile may
// reach over the end, into the padding of a row: `room` is the size with it.
struct Tiling {
    int size, room, width, skirt, more;
    bool periodic;
    __device__ constexpr int own() const { return width - 2 * skirt; }
    __device__ constexpr int number() const {
        return !periodic && size <= width ? 1 : (size - 2 * more + own() - 1) / own();
    }
};

// A tile's first cell and, from `low` to `high`, those that are its own.
struct Span {
    int first, low, high;
    __device__ Span(int tile, const Tiling &all) {
        int begin = tile * all.own() + all.more, end = begin + all.own();
        first = all.periodic ? begin - all.skirt : max(0, min(begin - all.skirt, all.room - all.width));
        low = tile > 0 ? begin : 0;
        high = tile + 1 < all.number() ? end : all.size;
    }
};

// Along x cells of a tile begin at whole sectors of memory: what two blocks write of one is slow.
#define SKIRT_X(K) ((K + ALIGN - 1) / ALIGN * ALIGN)
#define ALONG_X(K) Tiling{HALF, ALIGN > 1 ? PITCH : HALF, LANES, SKIRT_X(K), PERIODIC_X || ALIGN > 1 ? 0 : K, PERIODIC_X}
#define ALONG_Y(K) Tiling{NY, NY, HEIGHT, 2 * K, PERIODIC_Y ? 0 : 2 * K, PERIODIC_Y}

// Numbers that a lane fetches at once: 16 bytes, the most there is, where tiles begin at a multiple of them and so does the
// edge around which a periodic row goes on; else one. The lanes of a warp then fetch so many of its rows at once: a quarter
// of the instructions, or half of them in double precision.
constexpr int WIDEST = 16 / sizeof(Real);
constexpr int PIECE = ALIGN % WIDEST == 0 && (!PERIODIC_X || HALF % WIDEST == 0) ? WIDEST : 1;
constexpr int PIECES = LANES / PIECE, FETCHES = ROWS / PIECE;  // in a row of a tile, and of a thread for a plane
static_assert(ROWS % PIECE == 0, "the rows of a warp are fetched PIECE at once");

// The cell that is stored for one of a tile's: outside of a wall any one will do.
__device__ inline int stored(int i, int size, bool periodic) {
    return periodic ? wrapped(i, size) : min(max(i, 0), size - 1);
}

// What a thread holds of its columns, the planes t + 1 ... t - 2K of step t. A plane keeps its place: as many steps as
// there are places are unrolled, so that the compiler knows the place of each, and nothing is moved.
template <int K>
struct Columns {
    static const int places = 2 * K + 2;
    Real x[2][ROWS][places], b[2][ROWS][places];
};
#define PLACE(step, offset) (((step) + (offset) + 4 * places) % places)

// The first and the last row of every warp after each half sweep, for the warps beside it.
template <int K>
struct Edges {
    Real row[2 * K][2][WARPS][LANES];
};

struct Thread {
    int lane, warp, c, y;  // c and y of the first row, as if the grid had no end
    int offset[ROWS];      // of the cells in a plane
    int fetched[FETCHES];  // the same of what the thread fetches
    Real limit[ROWS];      // of a change that counts; NEVER where the cell is another tile's
    bool first, last;      // whether the row begins, or ends, with this thread's cells
    __device__ bool owns(int row) const { return limit[row] == limit[row]; }
    __device__ bool beyond(int odd) const { return NX % 2 && odd && 2 * c + 1 == NX; }  // an odd row has a place too many
};

template <int K>
__device__ inline Thread thread_in(int tile_x, int tile_y, Real tolerance) {
    Span in_x(tile_x, ALONG_X(K)), in_y(tile_y, ALONG_Y(K));
    Thread me;
    me.lane = threadIdx.x % LANES, me.warp = threadIdx.x / LANES;
    me.c = in_x.first + me.lane, me.y = in_y.first + me.warp * ROWS;
    me.first = !PERIODIC_X && me.c == 0, me.last = !PERIODIC_X && 2 * me.c + 2 == NX;
    int start = me.y * PITCH + stored(me.c, HALF, PERIODIC_X);
    for (int r = 0; r < ROWS; ++r) {
        int y = me.y + r;
        bool owned = me.c >= in_x.low && me.c < in_x.high && y >= in_y.low && y < in_y.high;
        me.limit[r] = owned ? tolerance : NEVER;
        me.offset[r] = start + (TALL ? r : stored(y, NY, PERIODIC_Y) - me.y) * PITCH;
    }
    int piece = stored(in_x.first + me.lane % PIECES * PIECE, PERIODIC_X ? HALF : PITCH - PIECE + 1, PERIODIC_X);
    for (int i = 0; i < FETCHES; ++i)
        me.fetched[i] = piece + stored(me.y + me.lane / PIECES + i * PIECE, NY, PERIODIC_Y) * PITCH;
    return me;
}

// What lies beyond a wall of z is worth nothing: let the ghosts that step t reads take its place.
template <int K>
__device__ __forceinline__ void set_ghosts(int t, int step, Columns<K> &held, Real z_sign) {
    const int places = Columns<K>::places;
#pragma unroll
    for (int h = 1; h <= 2 * K; ++h)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            Real ghost = z_sign * held.x[(h - 1) & 1][r][PLACE(step, 1 - h)];
            if (t - h + 1 == 0) held.x[h & 1][r][PLACE(step, -h)] = ghost;
            if (t - h + 1 == NZ - 1) held.x[h & 1][r][PLACE(step, 2 - h)] = ghost;
        }
}

// Half sweep h of step t, which is step `step` of those that are unrolled; returns whether a cell changed.
template <int K>
__device__ __forceinline__ bool half_sweep(int h, int t, int step, Columns<K> &held, const Edges<K> &edges, const Thread &me,
                                           const Equation &e, Real factor) {
    const int places = Columns<K>::places, colour = (h - 1) & 1;
    const int at = PLACE(step, 1 - h), below = PLACE(step, -h), above = PLACE(step, 2 - h);
    Real(&x)[ROWS][places] = held.x[colour], (&other)[ROWS][places] = held.x[1 - colour];
    Real before = edges.row[h - 1][1][max(me.warp - 1, 0)][me.lane];
    Real after = edges.row[h - 1][0][min(me.warp + 1, WARPS - 1)][me.lane];
    bool changed = false;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        int odd = (me.y + r + t) & 1;  // the cell is the second of its pair
        Real own = x[r][at], same = other[r][at], side = __shfl_sync(~0u, same, odd ? me.lane + 1 : me.lane - 1);
        Real previous = r > 0 ? other[r - 1][at] : before, next = r + 1 < ROWS ? other[r + 1][at] : after;
        if (!PERIODIC_X && (odd ? me.last : me.first)) side = e.x_sign * own;
        if (!PERIODIC_X && NX % 2 && !odd && 2 * me.c + 1 == NX) same = e.x_sign * own;
        if (!PERIODIC_Y && (r == 0 || !TALL) && me.y + r == 0) previous = e.y_sign * own;
        if (!PERIODIC_Y && (r == ROWS - 1 || !TALL) && me.y + r == NY - 1) next = e.y_sign * own;
        Real sum = sum_of(side, same, previous, next, other[r][below], other[r][above]);
        Real delta = product(residual_of(e, own, held.b[colour][r][at], sum), factor);
        bool spare = NX % 2 && !PERIODIC_Z && t - h + 1 >= NZ;  // there `factor` is zero, but places too many may be NaN
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
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    if (PIECE > 1)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(sizeof(Real)) : "memory");
#endif
}
__device__ inline void end_of_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// For all groups but the `number` newest ones; with pieces for those of the other lanes, too, which fetched what one takes.
template <int number>
__device__ inline void wait_for_groups_but() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(number) : "memory");
#endif
    if (PIECE > 1) __syncwarp();
}

__device__ __forceinline__ void fetch_plane(const Real *array, int plane, const Thread &me, unsigned stage, int which) {
    const Real *from = array + (long long)(stored(plane, NZ, PERIODIC_Z) + 1) * COLOUR_PLANE;
    Real *to = waiting_at(stage, which, me) + me.lane * PIECE;
#pragma unroll
    for (int i = 0; i < FETCHES; ++i) fetch(to + i * PIECE * LANES, from + (TALL ? i * PIECE * PITCH : me.fetched[i]));
}

// Order what step t needs: each number as late as it is.
__device__ __forceinline__ void fetch_step(const Real *x, const Real *b, int t, unsigned stage, const Thread &me) {
    fetch_plane(x, t, me, stage, X0);
    fetch_plane(x + COLOUR, t + 1, me, stage, X1);
    fetch_plane(b, t, me, stage, B0);
    fetch_plane(b + COLOUR, t - 1, me, stage, B1);
    end_of_group();
}

template <int places>
__device__ __forceinline__ void take_plane(Real (*to)[places], int place, const Thread &me, unsigned stage, int which) {
    const Real *from = waiting_at(stage, which, me) + me.lane;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) to[r][place] = from[r * LANES];
}

template <int places>
__device__ __forceinline__ void store_plane(Real *__restrict__ array, int plane, const Thread &me, Real (*from)[places],
                                            int place) {
    Real *to = array + (long long)(plane + 1) * COLOUR_PLANE;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (me.owns(r)) to[TALL ? me.offset[0] + r * PITCH : me.offset[r]] = from[r][place];
}

template <int places>
__device__ __forceinline__ void show_edges(Real (*edge)[WARPS][LANES], const Thread &me, Real (*x)[places], int place) {
    edge[0][me.warp][me.lane] = x[0][place];
    edge[1][me.warp][me.lane] = x[ROWS - 1][place];
}

// K iterations of the planes from `begin` to `end` of a tile; `changed`: whether its own cells were, in each of them.
template <int K>
__device__ inline void iterate_range(const Real *__restrict__ from, const Real *__restrict__ b, Real *__restrict__ to,
                                     int begin, int end, const Thread &me, const Equation &e, Real factor, Edges<K> *edges,
                                     bool *changed) {
    const int places = Columns<K>::places;
    Columns<K> held = {};
    int start = (PERIODIC_Z ? begin - 2 * K : max(begin - 2 * K, 0)) - 1, last = end + 2 * K - 2;
    if (TALL) from += me.fetched[0], b += me.fetched[0];
    wait_for_groups_but<0>();  // what was ordered for steps beyond the last of another range
    for (int stage = 0; stage < STAGES - 1; ++stage) fetch_step(from, b, start + stage, stage, me);
    unsigned stage = 0;
    for (int round = start; round <= last; round += places) {
#pragma unroll
        for (int step = 0; step < places; ++step) {
            int t = round + step;
            if (t > last) return;
            Edges<K> &fresh = edges[t & 1], &old = edges[~t & 1];
            wait_for_groups_but<STAGES - 2>();
            take_plane(held.x[0], PLACE(step, 0), me, stage, X0);
            take_plane(held.x[1], PLACE(step, 1), me, stage, X1);
            take_plane(held.b[0], PLACE(step, 0), me, stage, B0);
            take_plane(held.b[1], PLACE(step, -1), me, stage, B1);
            fetch_step(from, b, t + STAGES - 1, stage + STAGES - 1, me);
            stage = (stage + 1) % STAGES;
            if (!PERIODIC_Z && (t < 2 * K || t >= NZ - 1)) set_ghosts<K>(t, step, held, e.z_sign);
            show_edges(fresh.row[0], me, held.x[1], PLACE(step, 1));
#pragma unroll
            for (int h = 1; h <= 2 * K; ++h) {
                Real weight = PERIODIC_Z || t - h + 1 < NZ ? factor : 0;  // ghosts stay as they are
                bool moved = half_sweep<K>(h, t, step, held, old, me, e, weight);
                changed[(h - 1) / 2] |= moved && t - h + 1 >= begin && t - h + 1 < end;
                if (h < 2 * K) show_edges(fresh.row[h], me, held.x[(h - 1) & 1], PLACE(step, 1 - h));
            }
            int complete = t - 2 * K + 1;
            if (complete >= begin)
#pragma unroll
                for (int colour = 0; colour < 2; ++colour)
                    store_plane(to + colour * COLOUR, complete, me, held.x[colour], PLACE(step, 1 - 2 * K));
            __syncthreads();
        }
    }
}

// K iterations of the whole grid. The planes of all strips of tiles, one strip after another, are shared out evenly
// among the rows of blocks, gridDim.y; the blocks of a row take the tiles beside each other in x.
template <int K>
__device__ inline void iterate(const Real *from, const Real *b, Real *to, const Equation &e, Real factor, Real tolerance,
                               int *flags) {
    __shared__ Edges<K> edges[2];
    bool changed[K] = {};
    long long planes = (long long)ALONG_Y(K).number() * NZ;
    int begin = planes * blockIdx.y / gridDim.y, end = planes * (blockIdx.y + 1) / gridDim.y;
    while (begin < end) {
        int z = begin % NZ, count = min(NZ - z, end - begin);
        Thread me = thread_in<K>(blockIdx.x, begin / NZ, tolerance);
        iterate_range<K>(from, b, to, z, z + count, me, e, factor, edges, changed);
        begin += count;
    }
    for (int i = 0; i < K; ++i) note(changed[i], flags + i);
}

// Launch i of a solve takes x into `spare` if i is even, else back. It returns at once if the launch before, of
// `previous` iterations, had one that changed nothing, or returned at once itself.
#define RELAX_KERNEL(name, K)                                                                                           \
    extern "C" __global__ void __launch_bounds__(LANES *WARPS, BLOCKS)                                                     \
        name(int launch, int previous, Real *x, Real *spare, const Real *b, EQUATION, Real factor, Real tolerance,      \
             int *control) {                                                                                            \
        if (threadIdx.x + blockIdx.x + blockIdx.y == 0) begin_launch(control, launch, previous);                        \
        if (previous && needed(control, launch - 1, previous) <= previous) return;                                      \
        Real *from = launch & 1 ? spare : x, *to = launch & 1 ? x : spare;                                              \
        iterate<K>(from, b, to, THE_EQUATION, factor, tolerance, flags_of(control, launch));                            \
    }

RELAX_KERNEL(relax_1, 1)
RELAX_KERNEL(relax_2, 2)

// After `settle`: do single iterations again.
extern "C" __global__ void __launch_bounds__(LANES *WARPS, BLOCKS)
    redo(int pass, Real *x, Real *spare, const Real *b, EQUATION, Real factor, Real tolerance, int *control) {
    if (pass >= control[REDO]) return;
    bool back = (control[FROM] + pass) & 1;
    __shared__ int unread[1];
    iterate<1>(back ? spare : x, b, back ? x : spare, THE_EQUATION, factor, tolerance, unread);
}

extern "C" __global__ void bring_home(Real *x, const Real *spare, const int *control) {
    if (!control[HOME]) return;
    long long size = 2 * COLOUR / (16 / sizeof(Real)), step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step)
        ((float4 *)x)[i] = ((const float4 *)spare)[i];
}

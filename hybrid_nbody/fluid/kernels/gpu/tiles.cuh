// The tiles of ``red_black_tiles.cu``: their cells, and where these are stored.
//
// Compiled with the macros of ``grid.cuh`` and those of ``red_black_tiles.cu``.

#pragma once

#include "grid.cuh"

#define WIDE (SIDE * LANES)           // cells of a colour that a tile is wide
#define HEIGHT (WARPS / SIDE * ROWS)  // rows of a tile
// All tiles lie within the grid, and its walls beside the first and last rows.
#define TALL (!PERIODIC_Y && NY >= HEIGHT)
#define INFINITE ((Real)__int_as_float(0x7f800000))
#define LARGEST ((Real)__int_as_float(0x7f7fffff))  // of float

// One tile takes the whole axis if that fits, around a periodic edge if it fits exactly. Else tiles
// are `width` cells wide and lose `skirt` of them on each side that is not a wall. Their own cells
// begin at multiples of what is left, plus `more`, which the first and the last tile have beyond it
// where there are walls. The last tile may reach over the end, into the padding of a row: `padded`
// is the size with it.
struct Tiling {
    int size, padded, width, skirt, more;
    bool periodic;
    __device__ constexpr int own() const { return width - 2 * skirt; }
    __device__ constexpr bool single() const {
        return size == width || (!periodic && size < width);
    }
    __device__ constexpr int number() const {
        return single() ? 1 : (size - 2 * more + own() - 1) / own();
    }
};

// A tile's first cell and, from `low` to `high`, those that are its own.
struct Span {
    int first, low, high;
    __device__ Span(int tile, const Tiling &all) {
        int begin = tile * all.own() + all.more, end = begin + all.own();
        first = all.periodic && !all.single()
                    ? begin - all.skirt
                    : max(0, min(begin - all.skirt, all.padded - all.width));
        low = tile > 0 ? begin : 0;
        high = tile + 1 < all.number() ? end : all.size;
    }
};

// Along x the cells of a tile begin at whole sectors of memory: writes of two blocks to one sector
// are slow.
#define SKIRT_X ((K + ALIGN - 1) / ALIGN * ALIGN)
#define ALONG_X                                                                                    \
    Tiling {                                                                                       \
        HALF, ALIGN > 1 ? PITCH : HALF, WIDE, SKIRT_X, PERIODIC_X || ALIGN > 1 ? 0 : K, PERIODIC_X \
    }
#define ALONG_Y \
    Tiling { NY, NY, HEIGHT, 2 * K, PERIODIC_Y ? 0 : 2 * K, PERIODIC_Y }

// Numbers that a lane copies at once. 16 bytes, the maximum, take a quarter of the instructions, or
// half of them in double precision, and the lanes of a warp then copy several of its rows at once.
// That needs tiles that take whole rows: for pieces that do not begin at sectors of memory, the
// cache reads half as much again.
constexpr int WIDEST = 16 / sizeof(Real);
constexpr int PIECE = ALONG_X.single() && (!PERIODIC_X || HALF % WIDEST == 0) ? WIDEST : 1;
constexpr int PIECES = LANES / PIECE;  // in a row of a tile
constexpr int FETCHES = ROWS / PIECE;  // of a thread for a plane
static_assert(ROWS % PIECE == 0, "the rows of a warp are fetched PIECE at once");

// The stored cell that is read for a cell of a tile: outside of a wall any one will do.
__device__ inline int stored(int i, int size, bool periodic) {
    return periodic ? wrap(i, size) : min(max(i, 0), size - 1);
}

// The same for planes: of several ranks each has HALO planes beyond its own, as far as the grid
// reaches.
__device__ inline int stored_plane(int z) {
    if (FULL_GRID) return stored(z, NZ, PERIODIC_Z);
    int lowest = PERIODIC_Z ? -HALO : max(-HALO, -FIRST), highest = PLANES + HALO - 1;
    return min(max(z, lowest), PERIODIC_Z ? highest : min(highest, NZ - FIRST - 1));
}

// The expansions of distant sources about each cell, handed on to its children and evaluated at the
// bodies of leaves. A warp takes a cell; in `add_far_field` a lane takes a source. What a lane needs of a
// source is copied to shared memory, with two buffers while the source before it is summed.
//
// With EXACT products of low orders are in float64, and no others: each order is smaller than the one before
// by the ratio of the cells' sizes to their distance, and so is its rounding.
//
// Lengths are divided by the softened distance u of a pair, so that every number is near 1; then
// derivatives of 1 / u follow from D^(m)_(a + e) = x_e D^(m + 1)_a + a_e D^(m + 1)_(a - e) with
// D^(m)_0 = (-1)^m (2 m - 1)!! (McMurchie & Davidson, J. Comput. Phys. 26, 1978, for Gaussians).

#include "tree.cuh"

#define LENGTH 4  // numbers of a copy
#define CHUNKS (PITCH / LENGTH)

// The number of the multi-index (i, j, k) and, in loops over all, where those of an order begin.
__device__ constexpr int index_of(int i, int j, int k) {
    int n = i + j + k, s = j + k;
    return n * (n + 1) * (n + 2) / 6 + s * (s + 1) / 2 + k;
}

// (-1)^m (2 m - 1)!!
template <int m>
struct Start {
    static constexpr int value = -(2 * m - 1) * Start<m - 1>::value;
};

template <>
struct Start<0> {
    static constexpr int value = 1;
};

// Return D^(m) of (i, j, k) from those of lower order with m + 1, lowering the smallest index.
template <class T>
__device__ inline T derivative(int i, int j, int k, T x, T y, T z, const T *d) {
    bool along_x = i && (!j || i <= j) && (!k || i <= k);
    bool along_y = !along_x && j && (!k || j <= k);
    if (along_x) {
        T result = x * d[index_of(i - 1, j, k)];
        return i > 1 ? result + (i - 1) * d[index_of(i - 2, j, k)] : result;
    }
    if (along_y) {
        T result = y * d[index_of(i, j - 1, k)];
        return j > 1 ? result + (j - 1) * d[index_of(i, j - 2, k)] : result;
    }
    T result = z * d[index_of(i, j, k - 1)];
    return k > 1 ? result + (k - 1) * d[index_of(i, j, k - 2)] : result;
}

// Turn the derivatives with m + 1 into those with m, the highest orders first, down to m = 0.
template <int order, int m, class T>
__device__ inline void lower(T x, T y, T z, T *d) {
#pragma unroll
    for (int n = order - m; n > 0; --n)
#pragma unroll
        for (int i = 0; i <= n; ++i)
#pragma unroll
            for (int j = 0; j <= n - i; ++j)
                d[index_of(i, j, n - i - j)] = derivative(i, j, n - i - j, x, y, z, d);
    d[0] = Start<m>::value;
    if constexpr (m > 0) lower<order, m - 1>(x, y, z, d);
}

// Fill d with the derivatives of 1 / u up to an order, at a vector in units of u.
template <int order, class T>
__device__ inline void fill_derivatives(T x, T y, T z, T *d) {
    d[0] = Start<order>::value;
    lower<order, order - 1>(x, y, z, d);
}

// Return sum_b m_b d_(a + b) of a term a = (i, j, k) over those b whose orders are from `first` to `last`.
template <int first, int last, class T>
__device__ inline T product(int i, int j, int k, const T *m, const T *d) {
    T total = 0;
#pragma unroll
    for (int order = first; order <= last; ++order)
#pragma unroll
        for (int a = order; a >= 0; --a)
#pragma unroll
            for (int b = order - a; b >= 0; --b)
                total += m[index_of(a, b, order - a - b)] *
                         d[index_of(i + a, j + b, k + order - a - b)];
    return total;
}

// Add the expansion of a source, m (-ratio)^|b|, to that of the target from order n on: each term gets its
// product with those whose order and its own have a sum from `first` to `last`, times factor edge^n.
template <int n, int first, int last, class T>
__device__ inline void contract(const T *m, const T *d, T factor, T edge, T *sum) {
    constexpr int lowest = n < first ? first - n : 0;
#pragma unroll
    for (int i = n; i >= 0; --i)
#pragma unroll
        for (int j = n - i; j >= 0; --j)
            sum[index_of(i, j, n - i - j)] +=
                product<lowest, last - n>(i, j, n - i - j, m, d) * factor;
    if constexpr (n < last) contract<n + 1, first, last>(m, d, factor * edge, edge, sum);
}

// Multiply the multipoles of the orders from n to `last` by a ratio to their order.
template <int n, int last, class T>
__device__ inline void scale(T *m, T ratio, T factor) {
    factor *= ratio;
#pragma unroll
    for (int k = terms_of(n - 1); k < terms_of(n); ++k) m[k] *= factor;
    if constexpr (n < last) scale<n + 1, last>(m, ratio, factor);
}

__device__ inline float inverse_root(float x) { return rsqrtf(x); }
__device__ inline double inverse_root(double x) { return rsqrt(x); }

// What a copy moves.
struct alignas(16) Chunk {
    float value[LENGTH];
};

// The sources of the lanes of a warp. Rows are apart by an odd number of chunks: reads of lanes do not
// meet in a bank.
struct Sources {
    Chunk multipole[LANES][CHUNKS | 1];
    Point centre[LANES];
    float edge[LANES];
};

static_assert(FAR_WARPS * FAR_BUFFERS * sizeof(Sources) <= 48 << 10, "see `far_field.py`");

// Begin to copy something to shared memory; older GPUs wait for it.
template <class T>
__device__ inline void begin_copy(T *to, const void *from) {
#if __CUDA_ARCH__ < 800
    *to = *(const T *)from;
#else
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(sizeof(T))
                 : "memory");
#endif
}

// Wait for all copies of the warp.
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncwarp();
}

// Begin to copy the sources of the first lanes. Neighbouring lanes copy neighbouring chunks of multipoles.
__device__ inline void begin_copies(const Tree &t, int source, int count, Sources &sources) {
    if (count <= 0) return;
#pragma unroll 2
    for (int n = 0; n < CHUNKS; ++n) {
        int k = n * LANES + lane(), row = k / CHUNKS, place = k % CHUNKS;
        int from = __shfl_sync(ALL_LANES, source, row);
        const float *chunk = t.multipole + (size_t)from * PITCH + place * LENGTH;
        if (row < count) begin_copy(&sources.multipole[row][place], chunk);
    }
    if (lane() >= count) return;
    Chunk *centre = (Chunk *)&sources.centre[lane()];
    begin_copy(centre, &t.centre[source].x);
    begin_copy(centre + 1, &t.centre[source].z);
    begin_copy(&sources.edge[lane()], t.summary + (size_t)source * SUMMARY + EDGE);
}

// Fill the first multipoles of a lane's source.
template <int number>
__device__ inline void fill_multipoles(const Chunk *row, float *m) {
#pragma unroll
    for (int k = 0; k < number; k += LENGTH) {
        Chunk chunk = row[k / LENGTH];
#pragma unroll
        for (int n = 0; n < LENGTH && k + n < number; ++n) m[k + n] = chunk.value[n];
    }
}

template <int number>
__device__ inline void fill_multipoles(const Chunk *row, double *m) {
#pragma unroll
    for (int k = 0; k < number; ++k) m[k] = multipole_at((const float *)row, k);
}

// Add products of terms whose orders have a sum from `first` to `last`, of a lane's distant source.
template <int first, int last, class T>
__device__ inline void add_orders(const Tree &t, const Point &centre, T target_edge,
                                  const Sources &sources, T *sum) {
    const Point &from = sources.centre[lane()];
    T x = (T)(centre.x - from.x), y = (T)(centre.y - from.y), z = (T)(centre.z - from.z);
    T inverse = inverse_root(x * x + y * y + z * z + (T)t.eps2);
    T d[terms_of(last)], m[terms_of(last)];
    fill_derivatives<last>(x * inverse, y * inverse, z * inverse, d);
    fill_multipoles<terms_of(last)>(sources.multipole[lane()], m);
    scale<1, last>(m, -(T)sources.edge[lane()] * inverse, (T)1);
    contract<0, first, last>(m, d, inverse, target_edge * inverse, sum);
}

// An expansion about the cell of a warp, a lane's part of it.
struct Local {
    float sum[TERMS];
    double leading[terms_of(LEADING)];  // with EXACT: of products of low orders
};

// Add what the distant source of a lane does to its sums.
__device__ inline void translate(const Tree &t, const Point &centre, double edge,
                                 const Sources &sources, Local &local) {
    add_orders<EXACT ? LEADING + 1 : 0, ORDER>(t, centre, (float)edge, sources, local.sum);
    if constexpr (EXACT) add_orders<0, LEADING>(t, centre, edge, sources, local.leading);
}

// Sum 2 x half numbers of each lane over pairs of lanes, until each lane has the sum of one.
template <int half, class T>
__device__ inline void halve(T *value) {
    bool upper = lane() & half;
#pragma unroll
    for (int k = 0; k < half; ++k) {
        T low = value[k], high = value[k + half];
        T given = upper ? low : high;
        value[k] = (upper ? high : low) + __shfl_xor_sync(ALL_LANES, given, half);
    }
    if constexpr (half > 1) halve<half / 2>(value);
}

// Sum up to 32 numbers of each lane, those from FIRST on, over the lanes: lane k gets the sum of the k-th.
template <int FIRST, int number, class T>
__device__ inline T sum_of_lane(const T *sum) {
    T value[LANES];
#pragma unroll
    for (int k = 0; k < LANES; ++k) value[k] = FIRST + k < number ? sum[FIRST + k] : 0;
    halve<LANES / 2>(value);
    return value[0];
}

// Store the sums over the lanes of the numbers from FIRST on.
template <int FIRST>
__device__ inline void store_sums(const float *sum, double *local) {
    float total = sum_of_lane<FIRST, TERMS>(sum);
    if (FIRST + lane() < TERMS) local[FIRST + lane()] = total;
    if constexpr (FIRST + LANES < TERMS) store_sums<FIRST + LANES>(sum, local);
}

// Add the sums over the lanes of the products of low orders.
__device__ inline void add_leading(const double *leading, double *local) {
    double total = sum_of_lane<0, EXACT_TERMS>(leading);
    if (lane() < EXACT_TERMS) local[lane()] += total;
}

// Add the expansions of a segment's sources, of 32 at a time; with two buffers the next ones are on their way
// meanwhile.
__device__ inline void add_segment(const Tree &t, const Point &centre, double edge, const int *segment,
                                   Sources *buffers, Local &local) {
    int number = segment[1];
    const int *list = segment + 2;
    int source = lane() < number ? list[lane()] : 0;
    int next = LANES + lane() < number ? list[LANES + lane()] : 0;
    begin_copies(t, source, min(LANES, number), buffers[0]);
#pragma unroll 1
    for (int k = 0; k < number; k += LANES) {
        int turn = k / LANES, left = number - k - LANES;
        wait_for_copies();
        if (FAR_BUFFERS > 1) begin_copies(t, next, min(LANES, left), buffers[(turn + 1) % FAR_BUFFERS]);
        if (k + lane() < number) translate(t, centre, edge, buffers[turn % FAR_BUFFERS], local);
        __syncwarp();
        if (FAR_BUFFERS == 1) begin_copies(t, next, min(LANES, left), buffers[0]);
        if (LANES + lane() < left) next = list[k + 2 * LANES + lane()];
    }
}

extern "C" __global__ void __launch_bounds__(FAR_WARPS *LANES, FAR_BLOCKS)
    add_far_field(const Tree *tree) {
    const Tree t = *tree;
    __shared__ Sources sources[FAR_WARPS][FAR_BUFFERS];
    int turn = blockIdx.x * FAR_WARPS + warp_of_block();
    if (turn >= t.own) return;
    int own = t.far_order[turn], cell = own_cell(tree, own);
    Point centre = t.centre[cell];
    double edge = edge_of(t, cell), *sums = t.local + (size_t)own * TERMS;
    Local local = {};
    const int *segment = segment_at(t, t.distant[cell]);
    for (; segment; segment = segment_at(t, segment[0]))
        add_segment(t, centre, edge, segment, sources[warp_of_block()], local);
    store_sums<0>(local.sum, sums);
    if constexpr (EXACT) add_leading(local.leading, sums);
}

// Add the expansions of parents to those of the cells of a level.
extern "C" __global__ void __launch_bounds__(WARPS *LANES)
    shift_to_children(const Tree *tree, int level) {
    const Tree t = *tree;
    __shared__ double locals[WARPS][TERMS], shifts[WARPS][TERMS];
    __shared__ Powers all_powers[WARPS];
    if (warp_of_grid() >= own_count(tree, level)) return;
    int warp = warp_of_block(), cell = tree->own_first[level] + warp_of_grid();
    int parent = t.parent[cell];
    const double *above = t.local + (size_t)own_number(tree, parent, level - 1) * TERMS;
    double *here = t.local + (size_t)own_number(tree, cell, level) * TERMS;
    double *local = locals[warp], *shift = shifts[warp];
    all_powers[warp].fill_between(t.centre[cell], t.centre[parent], 1 / edge_of(t, parent));
    for (int k = lane(); k < TERMS; k += LANES) {
        shift[k] = all_powers[warp].monomial(t.exponents + 4 * k) * t.inverse_factorial[k];
        local[k] = above[k];
    }
    __syncwarp();
    for (int k = lane(); k < TERMS; k += LANES) {
        double sum = 0;
#pragma unroll 4
        for (int term = t.down_start[k]; term < t.down_start[k + 1]; ++term)
            sum += local[t.down_target[term]] * shift[t.down_power[term]];
        here[k] += ldexp(sum, -t.exponents[4 * k + 3]);
    }
}

// Fill x^i y^j z^k / (i! j! k!).
__device__ inline void fill_terms(double x, double y, double z, double *terms) {
    terms[0] = 1;
#pragma unroll
    for (int n = 1; n <= ORDER; ++n)
#pragma unroll
        for (int i = n; i >= 0; --i)
#pragma unroll
            for (int j = n - i; j >= 0; --j) {
                int k = n - i - j;
                double value = i   ? terms[index_of(i - 1, j, k)] * (x * (1.0 / i))
                               : j ? terms[index_of(i, j - 1, k)] * (y * (1.0 / j))
                                   : terms[index_of(i, j, k - 1)] * (z * (1.0 / k));
                terms[index_of(i, j, k)] = value;
            }
}

// Fill the sums of the bodies of leaves from the expansions about these.
template <bool potentials>
__device__ inline void evaluate(const Tree *tree) {
    const Tree t = *tree;
    int own = warp_of_grid();
    if (own >= t.own) return;
    int cell = own_cell(tree, own);
    if (!is_leaf(t, cell)) return;
    Point centre = t.centre[cell];
    double inverse = 1 / edge_of(t, cell), terms[TERMS];
    const double *local = t.local + (size_t)own * TERMS;
    int last = t.place[cell] + t.last[cell] - t.first[cell];
    for (int body = t.place[cell] + lane(); body < last; body += LANES) {
        Point p = t.at[body];
        fill_terms((p.x - centre.x) * inverse, (p.y - centre.y) * inverse,
                   (p.z - centre.z) * inverse, terms);
        double sum[3] = {};
        if (potentials) {
#pragma unroll
            for (int k = 0; k < TERMS; ++k) sum[0] += local[k] * terms[k];
            t.sums[body] = sum[0];
            continue;
        }
#pragma unroll
        for (int n = 0; n < ORDER; ++n)
#pragma unroll
            for (int i = n; i >= 0; --i)
#pragma unroll
                for (int j = n - i; j >= 0; --j) {
                    int k = n - i - j;
                    double term = terms[index_of(i, j, k)];
                    sum[0] += local[index_of(i + 1, j, k)] * term;
                    sum[1] += local[index_of(i, j + 1, k)] * term;
                    sum[2] += local[index_of(i, j, k + 1)] * term;
                }
        for (int axis = 0; axis < 3; ++axis) t.sums[3 * (size_t)body + axis] = sum[axis] * inverse;
    }
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES) evaluate_accelerations(const Tree *tree) {
    evaluate<false>(tree);
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES) evaluate_potentials(const Tree *tree) {
    evaluate<true>(tree);
}

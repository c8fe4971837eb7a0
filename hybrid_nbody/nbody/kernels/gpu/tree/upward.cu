// From the bodies to the multipoles of all cells, the leaves first; a warp takes a cell.

#include "tree.cuh"

struct Moments {
    double total[TERMS];
    Powers powers[LANES];
};

__device__ inline float rounded_up(double radius) { return (float)(radius * (1 + 0x1p-22)); }

// Set a coordinate of the centre: that of the mass, or of the box where there is none.
__device__ inline double centre_of(double mass, double moment, double lowest, double highest) {
    double centre = mass > 0 ? moment / mass : (lowest + highest) / 2;
    return fmin(fmax(centre, lowest), highest);  // rounding could leave the box
}

// What a row of multipoles has at a place.
__device__ inline double place_of_row(const double *total, int place) {
    int exact = place - TERMS;
    if (place < TERMS) return total[place];
    return exact < EXACT_TERMS ? total[exact] - (float)total[exact] : 0;
}

// Store the multipoles and their summary: the power of each order times its binomial coefficient.
// The last power stands for those of the orders left out. It is not taken to be smaller than a
// typical radius times the one before: those of odd orders vanish where bodies are symmetric.
__device__ inline void store(const Tree &t, int cell, float radius, const double *total) {
    float *row = t.multipole + (size_t)cell * PITCH;
    for (int k = lane(); k < PITCH; k += LANES) row[k] = place_of_row(total, k);
    float *summary = t.summary + (size_t)cell * SUMMARY;
    double power = 0;
    int n = lane();
    if (n <= ORDER) {
        for (int k = n * (n + 1) * (n + 2) / 6; k < (n + 1) * (n + 2) * (n + 3) / 6; ++k)
            power += t.norm[k] * total[k] * total[k];
        power = t.binomial[n] * sqrt(power);
    }
    double mass = __shfl_sync(ALL_LANES, power, 0), second = __shfl_sync(ALL_LANES, power, 2);
    double before = __shfl_sync(ALL_LANES, power, ORDER - 1) / t.binomial[ORDER - 1];
    if (n == ORDER && ORDER > 2 && mass > 0)
        power = fmax(power, before * sqrt(second / (t.binomial[2] * mass)));
    if (n < CLOSENESS) summary[n] = n <= ORDER ? power : 0;
    if (n == RADIUS) summary[n] = radius;
    if (n == EDGE) summary[n] = edge_of(t, cell);
}

__device__ inline float inverse_cube(float square) {
    float inverse = rsqrtf(square);
    return inverse * inverse * inverse;
}

// About the largest sum of m / u^3 at any body of a leaf, u being the softened distance: the sum over
// bodies that follow each other along the curve, which finds clumps, and at least an eighth of what the
// heaviest body has at its own place.
struct Closeness {
    float alone, pairs;
    __device__ void add(const Tree &t, const Point &body, int i, int last) {
        if (body.mass > 0) alone = fmaxf(alone, body.mass * inverse_cube(t.eps2) / 8);
        if (i + 1 == last) return;
        Point next = t.at[i + 1];
        float x = body.x - next.x, y = body.y - next.y, z = body.z - next.z, both = body.mass + next.mass;
        if (both > 0) pairs += both * inverse_cube(x * x + y * y + z * z + t.eps2);
    }
    __device__ float all() const {
        float sum = over_warp(pairs, [](float a, float b) { return a + b; });
        return fmaxf(sum, over_warp(alone, [](float a, float b) { return fmaxf(a, b); }));
    }
};

extern "C" __global__ void __launch_bounds__(WARPS *LANES) find_leaf_multipoles(const Tree *tree) {
    const Tree t = *tree;
    __shared__ Moments memory[WARPS];
    Moments &m = memory[warp_of_block()];
    if (warp_of_grid() >= t.own) return;
    int cell = own_cell(tree, warp_of_grid());
    if (!is_leaf(t, cell) || !is_whole(t, cell)) return;
    int first = t.place[cell], last = first + t.last[cell] - t.first[cell];
    auto least = [](double a, double b) { return fmin(a, b); };
    auto most = [](double a, double b) { return fmax(a, b); };
    double mass = 0, moment[3] = {}, low[3], high[3], squares = 0;
    for (int axis = 0; axis < 3; ++axis) low[axis] = INFINITY, high[axis] = -INFINITY;
    for (int i = first + lane(); i < last; i += LANES) {
        Point p = t.at[i];
        double x[3] = {p.x, p.y, p.z};
        mass += p.mass;
        squares += t.acceleration[i] * t.acceleration[i];
        for (int axis = 0; axis < 3; ++axis) {
            moment[axis] += p.mass * x[axis];
            low[axis] = fmin(low[axis], x[axis]), high[axis] = fmax(high[axis], x[axis]);
        }
    }
    mass = sum_over_warp(mass);
    double centre[3];
    for (int axis = 0; axis < 3; ++axis) {
        low[axis] = over_warp(low[axis], least), high[axis] = over_warp(high[axis], most);
        centre[axis] = centre_of(mass, sum_over_warp(moment[axis]), low[axis], high[axis]);
    }
    squares = sum_over_warp(squares);
    double inverse = 1 / edge_of(t, cell), radius2 = 0;
    Closeness closeness = {};
    for (int k = lane(); k < TERMS; k += LANES) m.total[k] = 0;
    for (int start = first; start < last; start += LANES) {
        int i = start + lane(), count = min(LANES, last - start);
        __syncwarp();
        if (i < last) {
            Point p = t.at[i];
            double x = p.x - centre[0], y = p.y - centre[1], z = p.z - centre[2];
            radius2 = fmax(radius2, x * x + y * y + z * z);
            closeness.add(t, p, i, last);
            t.near[i] = {(Real)x, (Real)y, (Real)z, (Real)p.mass};
            m.powers[lane()].fill(x * inverse, y * inverse, z * inverse);
        }
        __syncwarp();
        for (int k = lane(); k < TERMS; k += LANES) {
            double sum = 0;
            for (int j = 0; j < count; ++j)
                sum += t.at[start + j].mass * m.powers[j].monomial(t.exponents + 4 * k);
            m.total[k] += sum;
        }
    }
    for (int k = lane(); k < TERMS; k += LANES) m.total[k] *= t.inverse_factorial[k];
    float radius = rounded_up(sqrt(over_warp(radius2, most)));
    __syncwarp();
    if (lane() == 0) {
        t.centre[cell] = {centre[0], centre[1], centre[2], radius};
        t.tolerance[cell] = sqrt(squares / (last - first));
        for (int axis = 0; axis < 3; ++axis) {
            t.box[6 * (size_t)cell + axis] = low[axis];
            t.box[6 * (size_t)cell + 3 + axis] = high[axis];
        }
    }
    store(t, cell, radius, m.total);
    float weight = closeness.all();
    if (lane() == 0) t.summary[(size_t)cell * SUMMARY + CLOSENESS] = weight;
}

// What a parent takes of its children, a lane each.
struct Family {
    double mass, centre[3], low[3], high[3];
    float radius, tolerance;
};

__device__ inline Family family_of(const Tree &t, int child, bool valid) {
    Family f;
    Point at = valid ? t.centre[child] : Point{0, 0, 0, 0};
    double x[3] = {at.x, at.y, at.z}, corner2 = 0, offset2 = 0;
    double weight = valid ? multipole_at(t.multipole + (size_t)child * PITCH, 0) : 0;
    f.mass = sum_over_warp(weight);
    for (int axis = 0; axis < 3; ++axis) {
        const double *box = t.box + 6 * (size_t)child + axis;
        f.low[axis] = over_warp(valid ? box[0] : INFINITY, [](double a, double b) { return fmin(a, b); });
        f.high[axis] = over_warp(valid ? box[3] : -INFINITY, [](double a, double b) { return fmax(a, b); });
        double moment = sum_over_warp(weight * x[axis]);
        f.centre[axis] = centre_of(f.mass, moment, f.low[axis], f.high[axis]);
        double farthest = fmax(f.high[axis] - f.centre[axis], f.centre[axis] - f.low[axis]);
        corner2 += farthest * farthest;
        offset2 += (x[axis] - f.centre[axis]) * (x[axis] - f.centre[axis]);
    }
    double radius = over_warp(valid ? sqrt(offset2) + at.mass : 0, [](double a, double b) { return fmax(a, b); });
    f.radius = rounded_up(fmin(radius, sqrt(corner2)));
    f.tolerance = over_warp(valid ? t.tolerance[child] : INFINITY, [](float a, float b) { return fminf(a, b); });
    return f;
}

#define CHILDREN 8

struct Shifts {
    double total[CHILDREN][TERMS], moments[CHILDREN][TERMS], shift[CHILDREN][TERMS];
    Powers powers[CHILDREN];
};

// Fill a child's multipoles about the centre of its parent.
__device__ inline void shift_child(const Tree &t, int child, const Point &centre, double unit,
                                   int number, Shifts &s) {
    double *moments = s.moments[number], *shift = s.shift[number];
    const float *row = t.multipole + (size_t)child * PITCH;
    s.powers[number].fill_between(t.centre[child], centre, unit);
    for (int k = lane(); k < TERMS; k += LANES) {
        const unsigned char *exponents = t.exponents + 4 * k;
        shift[k] = s.powers[number].monomial(exponents) * t.inverse_factorial[k];
        moments[k] = ldexp(multipole_at(row, k), -exponents[3]);
    }
    __syncwarp();
    for (int k = lane(); k < TERMS; k += LANES) {
        double sum = 0;
#pragma unroll 4
        for (int term = t.up_start[k]; term < t.up_start[k + 1]; ++term)
            sum += moments[t.up_source[term]] * shift[t.up_power[term]];
        s.total[number][k] = sum;
    }
}

// A block takes a parent, and a warp a child.
__device__ inline void add_children(const Tree &t, int cell, Shifts &s) {
    int warp = warp_of_block();
    int first = t.child[cell], number = t.end[cell] - first;
    bool valid = lane() < number;
    Family f = family_of(t, first + (valid ? lane() : 0), valid);
    Point centre = {f.centre[0], f.centre[1], f.centre[2], f.radius};
    if (warp < number) shift_child(t, first + warp, centre, 1 / edge_of(t, cell), warp, s);
    __syncthreads();
    if (warp > 0) return;
    for (int k = lane(); k < TERMS; k += LANES) {
        double sum = 0;
        for (int n = 0; n < number; ++n) sum += s.total[n][k];
        s.total[0][k] = sum;
    }
    __syncwarp();
    if (lane() == 0) {
        t.centre[cell] = centre;
        t.tolerance[cell] = f.tolerance;
        for (int axis = 0; axis < 3; ++axis) {
            t.box[6 * (size_t)cell + axis] = f.low[axis];
            t.box[6 * (size_t)cell + 3 + axis] = f.high[axis];
        }
    }
    store(t, cell, f.radius, s.total[0]);
}

// The cells of a level that are this rank's alone.
extern "C" __global__ void __launch_bounds__(CHILDREN *LANES)
    find_parent_multipoles(const Tree *tree, int level) {
    const Tree t = *tree;
    __shared__ Shifts s;
    if (blockIdx.x >= own_count(tree, level)) return;
    int cell = tree->own_first[level] + blockIdx.x;
    if (!is_leaf(t, cell) && is_whole(t, cell)) add_children(t, cell, s);
}

// Cells of a level that several ranks share.
extern "C" __global__ void __launch_bounds__(CHILDREN *LANES)
    find_shared_multipoles(const Tree *tree, const int *cells) {
    const Tree t = *tree;
    __shared__ Shifts s;
    add_children(t, cells[blockIdx.x], s);
}

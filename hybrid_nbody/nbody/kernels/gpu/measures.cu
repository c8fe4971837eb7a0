// What diagnostics need of many bodies: terms of sums, and masses within distances.
//
// Compiled with -DTERMS, -DINTERVALS and -DTHREADS, and without fused products: the numbers are those
// of ``diagnostics.terms_of``, with their bits.

typedef unsigned long long Word;

struct Bodies {
    const double *position, *velocity, *mass, *potential;
};

__device__ inline void fill_terms(size_t i, const Bodies &bodies, double *terms) {
    const double *r = bodies.position + 3 * i, *s = bodies.velocity + 3 * i;
    double x = r[0], y = r[1], z = r[2], u = s[0], v = s[1], w = s[2];
    double m = bodies.mass[i], half = 0.5 * m;
    terms[0] = m;
    terms[1] = half * (u * u + v * v + w * w);
    terms[2] = half * bodies.potential[i];
    terms[3] = m * x, terms[4] = m * y, terms[5] = m * z;
    terms[6] = m * u, terms[7] = m * v, terms[8] = m * w;
    terms[9] = m * (y * w - z * v);
    terms[10] = m * (z * u - x * w);
    terms[11] = m * (x * v - y * u);
}

// The largest of the numbers of a warp; patterns of numbers that are not negative are in their order.
__device__ inline Word largest_of_warp(Word pattern) {
    for (int step = 16; step; step /= 2) {
        Word other = __shfl_down_sync(~0u, pattern, step);
        pattern = other > pattern ? other : pattern;
    }
    return pattern;
}

__device__ inline Word sum_of_warp(Word number) {
    for (int step = 16; step; step /= 2) number += __shfl_down_sync(~0u, number, step);
    return number;
}

// `largest` holds the patterns of zeros before. That of NaN is above that of infinity.
extern "C" __global__ void __launch_bounds__(THREADS)
    find_largest(int number, const double *position, const double *velocity, const double *mass,
                 const double *potential, Word *largest) {
    Bodies bodies = {position, velocity, mass, potential};
    double found[TERMS] = {};
    bool is_nan[TERMS] = {};
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < number; i += gridDim.x * THREADS) {
        double terms[TERMS];
        fill_terms(i, bodies, terms);
        for (int k = 0; k < TERMS; ++k) {
            found[k] = fmax(found[k], fabs(terms[k]));
            is_nan[k] |= isnan(terms[k]);
        }
    }
    for (int k = 0; k < TERMS; ++k) {
        Word pattern = largest_of_warp(is_nan[k] ? ~0ull >> 1 : __double_as_longlong(found[k]));
        if (threadIdx.x % 32 == 0) atomicMax(largest + k, pattern);
    }
}

// Integers add up in any order. `sums` are zero before: the high parts, then the low ones.
extern "C" __global__ void __launch_bounds__(THREADS)
    add_parts(int number, const double *position, const double *velocity, const double *mass,
              const double *potential, const double *factors, double finer, Word *sums) {
    Bodies bodies = {position, velocity, mass, potential};
    long long high[TERMS] = {}, low[TERMS] = {};
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < number; i += gridDim.x * THREADS) {
        double terms[TERMS];
        fill_terms(i, bodies, terms);
        for (int k = 0; k < TERMS; ++k) {
            double scaled = terms[k] * factors[k], whole = rint(scaled);
            high[k] += (long long)whole;
            low[k] += (long long)rint((scaled - whole) * finer);
        }
    }
    for (int k = 0; k < TERMS; ++k) {
        Word high_sum = sum_of_warp(high[k]), low_sum = sum_of_warp(low[k]);
        if (threadIdx.x % 32) continue;
        atomicAdd(sums + k, high_sum);
        atomicAdd(sums + TERMS + k, low_sum);
    }
}

// `most`: the patterns of the largest distance and the largest mass, of zeros before.
extern "C" __global__ void __launch_bounds__(THREADS)
    find_distances(int number, const double *position, const double *mass, const double *centre,
                   double *distance, Word *most) {
    Word farthest = 0, heaviest = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < number; i += gridDim.x * THREADS) {
        const double *r = position + 3 * (size_t)i;
        double x = r[0] - centre[0], y = r[1] - centre[1], z = r[2] - centre[2];
        distance[i] = sqrt(x * x + y * y + z * z);
        farthest = max(farthest, (Word)__double_as_longlong(distance[i]));
        heaviest = max(heaviest, (Word)__double_as_longlong(fabs(mass[i])));  // never -0.0
    }
    farthest = largest_of_warp(farthest);
    heaviest = largest_of_warp(heaviest);
    if (threadIdx.x % 32) return;
    atomicMax(most, farthest);
    atomicMax(most + 1, heaviest);
}

// Add the masses, times two factors, of the bodies in intervals of patterns; see `Weights.between`.
// `ranges` are low, high and shift for each of some quantiles, `counts` zero before.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_masses(int number, const long long *pattern, const double *mass, int quantiles,
                 const long long *ranges, double factor, double other, Word *counts) {
    const long long *low = ranges, *high = ranges + quantiles, *shift = high + quantiles;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < number; i += gridDim.x * THREADS) {
        Word weight = (long long)rint(mass[i] * factor * other);
        for (int k = 0; k < quantiles; ++k)
            if (low[k] < pattern[i] && pattern[i] <= high[k])
                atomicAdd(counts + k * INTERVALS + ((pattern[i] - low[k] - 1) >> shift[k]), weight);
    }
}

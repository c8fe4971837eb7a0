/* The textbook program: accelerations by a direct sum over structs of arrays, threads over the targets.
 *
 *     gcc -O3 -march=native -ffast-math -fopenmp -DREAL=float -shared -fPIC openmp_loop.c -o openmp_loop.so -lm
 *
 * REAL is float unless given; -DREAL=double makes the same loop in double precision. G is 1, and eps2 must be positive:
 * with it a body's pull on itself is exactly zero, so that the loop needs no test for it.
 */
#include <math.h>

#ifndef REAL
#define REAL float
#endif

static inline REAL inverse_root(REAL value)
{
    return sizeof(REAL) == sizeof(float) ? 1 / sqrtf(value) : 1 / sqrt(value);
}

/* Fill ax, ay, az with a_i = sum_j m_j (x_j - x_i) / (|x_j - x_i|^2 + eps2)^(3/2). */
void accelerations(int n, const REAL *x, const REAL *y, const REAL *z, const REAL *mass, REAL eps2, REAL *ax, REAL *ay,
                   REAL *az)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i++) {
        REAL sum_x = 0, sum_y = 0, sum_z = 0;
        for (int j = 0; j < n; j++) {
            const REAL dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const REAL inverse = inverse_root(dx * dx + dy * dy + dz * dz + eps2);
            const REAL weight = mass[j] * inverse * inverse * inverse;
            sum_x += weight * dx;
            sum_y += weight * dy;
            sum_z += weight * dz;
        }
        ax[i] = sum_x;
        ay[i] = sum_y;
        az[i] = sum_z;
    }
}

// Ghosts, the values behind the six faces of the grid: sign * cell + offset of the cell at the
// face.
//
// Every kernel of the fluid takes its ghosts from here. Compiled with -DREAL and -DFACES: 3 where
// both faces of every axis have one sign and no offset, so that three signs say everything; else 6.

#pragma once

// The ghost behind one face.
struct Ghost {
    Real sign;
#if FACES == 6
    Real offset;
#endif
    __device__ static Ghost copy() {  // the cell itself
        Ghost result = {};
        result.sign = 1;
        return result;
    }
    __device__ Real of(Real cell) const {
#if FACES == 6
        return fma(sign, cell, offset);
#else
        return sign * cell;
#endif
    }
    // Become the ghost behind another face, too: at edges and corners of the grid.
    __device__ void mirror(const Ghost &face) {
        sign *= face.sign;
#if FACES == 6
        offset = face.of(offset);
#endif
    }
};

enum Axis { X, Y, Z };

// The ghosts of a field: x low, x high, y low, y high, z low, z high; or one for each axis.
struct Ghosts {
    Ghost face[FACES];
    __device__ const Ghost &behind(int axis, bool high) const {
        return face[FACES == 6 ? 2 * axis + high : axis];
    }
};

// Ghosts as arguments of a kernel. Where three signs suffice they are arguments of their own: with
// a struct, some kernels need more registers.
#if FACES == 6
#define GHOSTS const __grid_constant__ Ghosts ghosts
#define THE_GHOSTS ghosts
#else
#define GHOSTS Real x_sign, Real y_sign, Real z_sign
#define THE_GHOSTS {x_sign, y_sign, z_sign}
#endif

// No gradient at any face.
__device__ inline Ghosts scalar_ghosts() {
    Ghosts result;
    for (int i = 0; i < FACES; ++i) result.face[i] = Ghost::copy();
    return result;
}

#ifdef GHOSTS_U
// The ghosts of a component of the velocity: -DGHOSTS_U, _V and _W are the numbers of each, one
// after another.
__device__ inline Ghosts velocity_ghosts(int component) {
    const Ghosts ghosts[3] = {{GHOSTS_U}, {GHOSTS_V}, {GHOSTS_W}};
    return ghosts[component];
}
#endif

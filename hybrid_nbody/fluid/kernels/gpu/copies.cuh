// Wide copies between arrays of colours.

#pragma once

#include "grid.cuh"

#define AT_ONCE (int)(16 / sizeof(Real))  // numbers that a thread copies at once

// Return 16 bytes. What other blocks of the same kernel wrote is in the second-level cache.
__device__ inline float4 read_piece(const Real *from) { return __ldcg((const float4 *)from); }

// Copy 16 bytes.
__device__ inline void copy(Real *to, const Real *from) { *(float4 *)to = read_piece(from); }

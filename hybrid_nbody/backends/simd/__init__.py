"""Vector code for compiled loops, in the widest registers that the processor has.

Loops are written in one of three forms, which share what they generate:

- A `Vector` holds LANES numbers of an array and has the operators of a number. The fluid's loops
  are written in it: a row of cells is a sequence of vectors, whatever the optimizer makes of loops.
- A block, an array of BLOCK numbers on the stack, suits the pair force. Its loops over a block
  mix float32 and float64, whose registers hold 16 and 8 numbers; LLVM turns them into vector code
  of either width and fuses products with sums.
- `code.VectorCode` generates one operation after the other, for loops that the generator unrolls:
  those over the terms of expansions.
"""

from hybrid_nbody.backends.simd.blocks import (
    BLOCK,
    block_scalars,
    block_vectors,
    estimate_inverse_root,
    estimate_inverse_roots,
)
from hybrid_nbody.backends.simd.hints import (
    VECTOR_MATH,
    prefetch,
    prevent_unrolling,
    unfused_product,
)
from hybrid_nbody.backends.simd.memory import (
    address_at,
    address_of,
    gather,
    load,
    load_partial,
    load_scalar,
    store,
    store_partial,
    store_scalar,
)
from hybrid_nbody.backends.simd.vector import (
    LANES,
    Vector,
    all_of,
    any_of,
    arange_from,
    broadcast,
    converted,
    even_lanes,
    fabs,
    first_lane,
    floor,
    insert,
    interleave_high,
    interleave_low,
    maximum,
    minimum,
    odd_lanes,
    reduce_add,
    reduce_max,
    select,
)

__all__ = [
    "BLOCK",
    "LANES",
    "VECTOR_MATH",
    "Vector",
    "address_at",
    "address_of",
    "all_of",
    "any_of",
    "arange_from",
    "block_scalars",
    "block_vectors",
    "broadcast",
    "converted",
    "estimate_inverse_root",
    "estimate_inverse_roots",
    "even_lanes",
    "fabs",
    "first_lane",
    "floor",
    "gather",
    "insert",
    "interleave_high",
    "interleave_low",
    "load",
    "load_partial",
    "load_scalar",
    "maximum",
    "minimum",
    "odd_lanes",
    "prefetch",
    "prevent_unrolling",
    "reduce_add",
    "reduce_max",
    "select",
    "store",
    "store_partial",
    "store_scalar",
    "unfused_product",
]

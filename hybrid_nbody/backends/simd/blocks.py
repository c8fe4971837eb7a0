"""Blocks of BLOCK numbers on the stack, which the compiler keeps in registers.

Processors with AVX-512 estimate 1 / sqrt(x) many times faster than they divide and take roots. The
compiler uses that for float32 alone, and refines the estimate by itself. `estimate_inverse_roots`
gives the plain estimate: the caller corrects it within its own formula.
"""

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.np.arrayobj import populate_array

from hybrid_nbody.backends.llvm import (
    INT32,
    INT64,
    data_address,
    declare,
    intrinsic,
    shuffle_mask,
)
from hybrid_nbody.backends.simd.hints import VECTOR_MATH
from hybrid_nbody.backends.simd.vector import LANES

BLOCK = 32
"""Numbers of a block: two vectors of AVX-512 in float32, so that one computes while the other waits
for its results."""

BYTES_OF_A_REGISTER = 64
"""Of AVX-512; a block is aligned to it."""


@intrinsic
def block_scalars(typing_context, number_class):
    """Return a (BLOCK,) array of a NumPy type; its values are undefined."""
    return _block(number_class, (BLOCK,))


@intrinsic
def block_vectors(typing_context, number_class):
    """Return a (3, BLOCK) array of a NumPy type, a vector in space a lane; undefined values."""
    return _block(number_class, (3, BLOCK))


def _block(number_class: Any, shape: tuple[int, ...]) -> Any:
    """Return the type of an array on the stack, and the function that generates its code.

    Nothing counts the references to it, so that code compiled without such counts may use it.
    """
    array_type = types.Array(number_class.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number = context.get_data_type(number_class.dtype)
        with builder.goto_entry_block():
            block = builder.alloca(ir.ArrayType(number, math.prod(shape)))
            block.align = BYTES_OF_A_REGISTER
        size = context.get_abi_sizeof(number)
        array = context.make_array(array_type)(context, builder)
        populate_array(
            array,
            data=builder.bitcast(block, array.data.type),
            shape=[INT64(length) for length in shape],
            strides=[INT64(size * math.prod(shape[axis + 1 :])) for axis in range(len(shape))],
            itemsize=INT64(size),
            meminfo=None,
        )
        return array._getvalue()

    return array_type(number_class), generate


@intrinsic
def estimate_inverse_roots(typing_context, values, result):
    """Fill the block `result` with 1 / sqrt(values) to at least 13 bits.

    On processors without the instruction the compiler divides and takes roots.
    """

    def generate(context, builder, signature, arguments):
        avx512 = "+avx512f" in context.codegen().magic_tuple()[2]
        number = context.get_data_type(values.dtype)
        lanes = BYTES_OF_A_REGISTER // context.get_abi_sizeof(number) if avx512 else BLOCK
        vector = ir.VectorType(number, lanes)
        estimate = _estimate_avx512 if avx512 else _divide_by_roots
        source, target = (
            builder.bitcast(data_address(context, builder, *array), vector.as_pointer())
            for array in zip((values, result), arguments, strict=True)
        )
        for part in range(BLOCK // lanes):
            index = [INT32(part)]
            value = builder.load(builder.gep(source, index), align=4)
            builder.store(estimate(builder, vector, value), builder.gep(target, index), align=4)
        return context.get_dummy_value()

    return types.void(values, result), generate


@intrinsic
def estimate_inverse_root(typing_context, vector):
    """Return 1 / sqrt(vector), a `Vector`, as `estimate_inverse_roots` does."""

    def generate(context, builder, signature, values):
        avx512 = "+avx512f" in context.codegen().magic_tuple()[2]
        if not avx512:
            return _divide_by_roots(builder, values[0].type, values[0])
        number = context.get_data_type(vector.dtype)
        lanes = BYTES_OF_A_REGISTER // context.get_abi_sizeof(number)
        if lanes == LANES:
            return _estimate_avx512(builder, values[0].type, values[0])
        parts = []
        for first in range(0, LANES, lanes):
            mask = shuffle_mask(range(first, first + lanes))
            part = builder.shuffle_vector(values[0], values[0], mask)
            parts.append(_estimate_avx512(builder, part.type, part))
        return builder.shuffle_vector(*parts, shuffle_mask(range(LANES)))

    return vector(vector), generate


def _estimate_avx512(builder: Any, vector: Any, value: Any) -> Any:
    """Return AVX-512's estimate of 1 / sqrt(value), to 14 bits."""
    suffix = "ps" if vector.count == 16 else "pd"
    mask = ir.IntType(vector.count)
    every_lane = mask(2**vector.count - 1)
    unused = ir.Constant(vector, None)
    name = f"llvm.x86.avx512.rsqrt14.{suffix}.512"
    return builder.call(
        declare(builder, name, vector, vector, vector, mask), [value, unused, every_lane]
    )


def _divide_by_roots(builder: Any, vector: Any, value: Any) -> Any:
    """Return 1 / sqrt(value) in the compiler's way: for float32 perhaps a refined estimate."""
    flags = sorted(VECTOR_MATH)
    square_root = declare(
        builder, f"llvm.sqrt.v{vector.count}{vector.element.intrinsic_name}", vector, vector
    )
    root = builder.call(square_root, [value], fastmath=flags)
    return builder.fdiv(ir.Constant(vector, [1.0] * vector.count), root, flags=flags)

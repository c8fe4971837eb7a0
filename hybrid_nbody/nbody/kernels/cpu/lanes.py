"""Vectors for the loops over pairs: a few numbers on the stack, one a target, that the compiler keeps in registers.

Processors with AVX-512 estimate 1 / sqrt(x) many times faster than they divide and take roots. The
compiler uses that for float32 alone, and refines the estimate by itself before it is cubed.
`estimate_inverse_roots` gives the plain estimate, and the functions after it correct it once,
within the formula of the pair: to first order in its error for float32, to fourth for float64.
Where there is no such instruction the compiler finds the root its own way, and there is nothing
left to correct.
"""

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

LANES = 32
"""Targets in a block: two vectors of AVX-512 in float32, so that one computes while the other waits
for its results."""

VECTOR_MATH = {"contract", "nsz", "arcp", "afn"}
"""Fused multiply-adds and estimates; no sum changes its order, and NaN and infinity stay: the guard
looks for them."""

inlined = njit(inline="always")


@intrinsic
def _on_stack(typing_context, kind):
    """Return the address of 3 LANES numbers on the stack; compiled code can keep those in registers."""

    def generate(context, builder, signature, arguments):
        with builder.goto_entry_block():
            place = builder.alloca(ir.ArrayType(context.get_data_type(kind.dtype), 3 * LANES))
            place.align = 64
        return builder.bitcast(place, context.get_value_type(signature.return_type))

    return types.CPointer(kind.dtype)(kind), generate


@inlined
def scalars(kind):
    """Return an array of LANES numbers of a type, one a target; its values are undefined."""
    return carray(_on_stack(kind), LANES)


@inlined
def vectors(kind):
    """Return a (3, LANES) array of numbers of a type, three a target; its values are undefined."""
    return carray(_on_stack(kind), (3, LANES))


@intrinsic
def estimate_inverse_roots(typing_context, values, result):
    """Fill `result`, from `scalars`, with 1 / sqrt(values) to at least 13 bits."""

    def generate(context, builder, signature, arguments):
        avx512 = "+avx512f" in context.codegen().magic_tuple()[2]
        number = context.get_data_type(values.dtype)
        lanes = 64 // context.get_abi_sizeof(number) if avx512 else LANES
        vector = ir.VectorType(number, lanes)
        source = _address(context, builder, values, arguments[0], vector)
        target = _address(context, builder, result, arguments[1], vector)
        for part in range(LANES // lanes):
            index = [ir.IntType(32)(part)]
            value = builder.load(builder.gep(source, index), align=4)
            estimate = (_estimate_avx512 if avx512 else _estimate_anywhere)(builder, vector, value)
            builder.store(estimate, builder.gep(target, index), align=4)
        return context.get_dummy_value()

    return types.void(values, result), generate


def _address(context, builder, array_type, array, vector):
    """Return the address of an array's numbers, as that of a vector."""
    return builder.bitcast(
        context.make_array(array_type)(context, builder, array).data, vector.as_pointer()
    )


def _estimate_avx512(builder, vector, value):
    """Return the estimate of AVX-512, to 14 bits."""
    kind = "ps" if vector.count == 16 else "pd"
    mask = ir.IntType(vector.count)
    signature = ir.FunctionType(vector, [vector, vector, mask])
    function = cgutils.get_or_insert_function(
        builder.module, signature, f"llvm.x86.avx512.rsqrt14.{kind}.512"
    )
    return builder.call(function, [value, ir.Constant(vector, None), mask(2**vector.count - 1)])


def _estimate_anywhere(builder, vector, value):
    """Return 1 / sqrt(value) in the compiler's own way; for float32 it may be an estimate that it refines."""
    name = f"llvm.sqrt.v{vector.count}{vector.element.intrinsic_name}"
    square_root = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector]), name
    )
    root = builder.call(square_root, [value], fastmath=sorted(VECTOR_MATH))
    return builder.fdiv(ir.Constant(vector, [1.0] * vector.count), root, flags=sorted(VECTOR_MATH))


@intrinsic
def rounded_product(typing_context, a, b):
    """Return a b, never fused with the sum that it goes into.

    Of a sum of two products either could be fused: which one, and so the last bit, would be a
    compilation's choice.
    """

    def generate(context, builder, signature, arguments):
        return builder.fmul(
            *arguments, flags=["nsz"]
        )  # without any flag, it would get those of the function

    return a(a, b), generate


# With e = 1 - r^2 y^2 for an estimate y of 1 / r, r^-n = y^n (1 - e)^(-n/2), expanded in e. In
# float32 two terms do: e is below 2^-12. Divided by a constant they take one operation: 1 + 3/2 e =
# 3/2 (5/3 - r^2 y^2). A sum of such terms is divided by what the function returns for r = y = 1,
# where there is nothing to correct.


def cube_over_estimate(square, estimate):
    """Return r^-3 / y times a constant, from ``square = r^2`` and the estimate y of 1 / r; in compiled code only."""
    raise NotImplementedError


@overload(cube_over_estimate, inline="always")
def _cube_over_estimate(square, estimate):
    def single(square, estimate):
        y2 = estimate * estimate
        return y2 * (np.float32(5 / 3) - square * y2)

    def double(square, estimate):
        y2 = estimate * estimate
        e = 1 - square * y2
        return y2 * (1 + e * (1.5 + e * (1.875 + e * (2.1875 + e * 2.4609375))))

    return single if estimate is types.float32 else double


def root_over_estimate(square, estimate):
    """Return r^-1 / y times a constant; see `cube_over_estimate`."""
    raise NotImplementedError


@overload(root_over_estimate, inline="always")
def _root_over_estimate(square, estimate):
    def single(square, estimate):
        return np.float32(3) - square * (estimate * estimate)

    def double(square, estimate):
        e = 1 - square * (estimate * estimate)
        return 1 + e * (0.5 + e * (0.375 + e * (0.3125 + e * 0.2734375)))

    return single if estimate is types.float32 else double

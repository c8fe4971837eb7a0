"""Hints of loops to the compiler and the processor."""

from llvmlite import ir
from numba import types

from hybrid_nbody.backends.llvm import INT32, declare, element_address, intrinsic

VECTOR_MATH = {"contract", "nsz", "arcp", "afn"}
"""Flags of the compiler: it may fuse products with sums and estimate roots and quotients. No sum
changes its order, and NaN and infinity stay: the guard looks for them."""

FOR_READING = INT32(0)
INTO_ALL_CACHES = INT32(3)
DATA = INT32(1)


@intrinsic
def prefetch(typing_context, array, index):
    """Prefetch the cache line of ``array[index]``; the index may be out of range."""

    def generate(context, builder, signature, values):
        element = element_address(context, builder, array, values[0], values[1], array.dtype)
        address = builder.bitcast(element, ir.IntType(8).as_pointer())
        function = declare(
            builder, "llvm.prefetch.p0", ir.VoidType(), address.type, INT32, INT32, INT32
        )
        builder.call(function, [address, FOR_READING, INTO_ALL_CACHES, DATA])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def prevent_unrolling(typing_context):
    """Keep LLVM from unrolling the loop around this call.

    Where a loop makes few iterations, most of them would be left to the remainder loop.
    """

    def generate(context, builder, signature, values):
        empty = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
        builder.call(empty, [], attrs=("convergent",))
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def unfused_product(typing_context, a, b):
    """Return a b, never fused with the sum that it goes into.

    Of a sum of two products either could be fused: which one, and so the last bit, would be up to
    each compilation.
    """

    def generate(context, builder, signature, values):
        # without any flag, the product would get those of the function
        return builder.fmul(*values, flags=["nsz"])

    return a(a, b), generate

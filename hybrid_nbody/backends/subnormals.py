"""Subnormal numbers as zeros, in compiled loops of CPUs that can have them so.

Operations with numbers so close to zero are slow, and such numbers are what remains where a fluid
has come to rest. Loops let them be zero, and leave their thread as they found it. On other
processors the functions here do nothing.
"""

import platform

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

FLUSHES = platform.machine() in ("x86_64", "AMD64")
"""Whether subnormal numbers can be zero on this processor."""

MODE = ir.IntType(32)
FLUSH_AND_READ_AS_ZERO = MODE(0x8040)
"""Bits of the register MXCSR: subnormal results become zero, subnormal operands count as zero."""


@intrinsic
def flush_subnormals(typing_context):
    """Let subnormal numbers be zero on this thread; return how they were, for `restore_subnormals`."""

    def generate(context, builder, signature, values):
        if not FLUSHES:
            return MODE(0)
        place = cgutils.alloca_once(builder, MODE)
        _through_memory(builder, "stmxcsr", place)
        mode = builder.load(place)
        builder.store(builder.or_(mode, FLUSH_AND_READ_AS_ZERO), place)
        _through_memory(builder, "ldmxcsr", place)
        return mode

    return types.int32(), generate


@intrinsic
def restore_subnormals(typing_context, mode):
    """Let subnormal numbers be as they were."""

    def generate(context, builder, signature, values):
        if FLUSHES:
            place = cgutils.alloca_once_value(builder, values[0])
            _through_memory(builder, "ldmxcsr", place)
        return context.get_dummy_value()

    return types.void(types.int32), generate


def _through_memory(builder, instruction, place):
    """Move the register MXCSR to a place, or from there; no access to memory moves across."""
    address = builder.bitcast(place, ir.IntType(8).as_pointer())
    nothing = ir.FunctionType(ir.VoidType(), [])
    kind = ir.FunctionType(ir.VoidType(), [address.type])
    barrier = ir.InlineAsm(nothing, "", "~{memory}", side_effect=True)
    builder.call(barrier, [])
    builder.call(
        cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{instruction}"),
        [address],
    )
    builder.call(barrier, [])

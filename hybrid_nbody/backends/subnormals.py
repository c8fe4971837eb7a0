"""Subnormal numbers as zeros, in compiled loops of processors that can treat them so.

Arithmetic with numbers so close to zero is slow, and a fluid that comes to rest leaves such
numbers. Loops flush them to zero, and restore the mode of their thread. On other processors the
functions here do nothing.
"""

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from hybrid_nbody.backends.llvm import declare, intrinsic

FLUSHES = platform.machine() in ("x86_64", "AMD64")
"""True if this processor can treat subnormal numbers as zero."""

MODE = ir.IntType(32)

FLUSH_AND_READ_AS_ZERO = MODE(0x8040)
"""Bits of the register MXCSR: subnormal results become zero, subnormal operands count as zero."""


@intrinsic
def flush_subnormals(typing_context):
    """Treat subnormal numbers as zero on this thread; return the mode for `restore_subnormals`."""

    def generate(context, builder, signature, values):
        if not FLUSHES:
            return MODE(0)
        variable = cgutils.alloca_once(builder, MODE)
        _move_mode(builder, "stmxcsr", variable)
        mode = builder.load(variable)
        builder.store(builder.or_(mode, FLUSH_AND_READ_AS_ZERO), variable)
        _move_mode(builder, "ldmxcsr", variable)
        return mode

    return types.int32(), generate


@intrinsic
def restore_subnormals(typing_context, mode):
    """Restore the mode that `flush_subnormals` returned."""

    def generate(context, builder, signature, values):
        if FLUSHES:
            variable = cgutils.alloca_once_value(builder, values[0])
            _move_mode(builder, "ldmxcsr", variable)
        return context.get_dummy_value()

    return types.void(types.int32), generate


def _move_mode(builder: Any, instruction: str, variable: Any) -> None:
    """Move the register MXCSR to a variable or from it; no access to memory moves across."""
    address = builder.bitcast(variable, ir.IntType(8).as_pointer())
    name = f"llvm.x86.sse.{instruction}"
    function = declare(builder, name, ir.VoidType(), address.type)
    no_arguments = ir.FunctionType(ir.VoidType(), [])
    barrier = ir.InlineAsm(no_arguments, "", "~{memory}", side_effect=True)
    builder.call(barrier, [])
    builder.call(function, [address])
    builder.call(barrier, [])

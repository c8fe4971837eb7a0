"""A clock that compiled CPU code can read, so that a compiled loop can tell where its time went."""

import time

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def seconds(typing_context):
    """Return the monotonic time in seconds; for compiled code only (POSIX ``clock_gettime``)."""

    def generate(context, builder, signature, arguments):
        i64 = ir.IntType(64)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.IntType(32), [ir.IntType(32), i64.as_pointer()]),
            "clock_gettime",
        )
        timespec = cgutils.alloca_once(builder, i64, size=2)
        builder.call(function, [ir.IntType(32)(time.CLOCK_MONOTONIC), timespec])
        whole = builder.load(timespec)
        nanoseconds = builder.load(builder.gep(timespec, [i64(1)]))
        real = ir.DoubleType()
        return builder.fadd(
            builder.sitofp(whole, real),
            builder.fmul(builder.sitofp(nanoseconds, real), ir.Constant(real, 1e-9)),
        )

    return types.float64(), generate

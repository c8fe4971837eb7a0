"""A clock for compiled loops, so that they can tell how long their parts take."""

import time

from llvmlite import ir
from numba import types
from numba.core import cgutils

from hybrid_nbody.backends.llvm import declare, intrinsic

INT32 = ir.IntType(32)
INT64 = ir.IntType(64)
DOUBLE = ir.DoubleType()


@intrinsic
def seconds(typing_context):
    """Return the monotonic time in seconds (POSIX ``clock_gettime``)."""

    def generate(context, builder, signature, arguments):
        clock_gettime = declare(builder, "clock_gettime", INT32, INT32, INT64.as_pointer())
        timespec = cgutils.alloca_once(builder, INT64, size=2)
        builder.call(clock_gettime, [INT32(time.CLOCK_MONOTONIC), timespec])
        whole = builder.load(timespec)
        nanoseconds = builder.load(builder.gep(timespec, [INT64(1)]))
        fraction = builder.fmul(builder.sitofp(nanoseconds, DOUBLE), ir.Constant(DOUBLE, 1e-9))
        return builder.fadd(builder.sitofp(whole, DOUBLE), fraction)

    return types.float64(), generate

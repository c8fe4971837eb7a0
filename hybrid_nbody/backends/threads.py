"""Loops that the threads of a rank share, compiled once.

Numba's own parallel loops pass through its array analysis, and are compiled as a function of their
own with two wrappers around it: more than half of the time that a short loop takes. Here a compiled
function of a range is called by each thread for its part, by the same pool of threads.

`on_threads` hands a range to a function, `each_on_threads` one number after the other.

Two threads of Python must not call such functions at the same time where Numba's pool is its own
work queue: functions that call these hold no lock of Python.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from hybrid_nbody.backends.llvm import INT64, declare, intrinsic

BYTES = ir.IntType(8).as_pointer()
KERNEL = ir.FunctionType(
    ir.VoidType(), [BYTES.as_pointer(), INT64.as_pointer(), INT64.as_pointer(), BYTES]
)
"""What Numba's pool calls: the first of some parts of the work, their number, and the arguments."""


@intrinsic
def on_threads(typing: Any, body: Any, first: Any, last: Any, arguments: Any) -> Any:
    """Call ``body(start, stop, *arguments)`` on all threads, whose ranges make ``first`` to `last`.

    Parameters
    ----------
    body : compiled function
        Returns nothing; ranges do not depend on each other.
    first, last : int64
        One after the last. An empty range calls nothing.
    arguments : tuple
        Of numbers and arrays.
    """
    given = (types.int64, types.int64, *arguments.types)
    typing.resolve_function_type(body, given, {})
    return types.void(body, first, last, arguments), _generator(_Work, body, given)


@intrinsic
def each_on_threads(typing: Any, body: Any, first: Any, last: Any, arguments: Any) -> Any:
    """Call ``body(number, *arguments)`` for every number of a range, which all threads share.

    Parameters
    ----------
    body : compiled function
        Returns nothing; calls do not depend on each other.
    first, last : int64
        One after the last.
    arguments : tuple
        Of numbers and arrays.
    """
    given = (types.int64, *arguments.types)
    typing.resolve_function_type(body, given, {})
    return types.void(body, first, last, arguments), _generator(_WorkOfEach, body, given)


def _generator(kind: type["_Work"], body: Any, given: tuple[Any, ...]) -> Any:
    """Return what generates the code that shares the calls of a function of some types."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _, start, stop, packed = values
        compiled = body.dispatcher.get_compile_result(types.void(*given))
        context.add_linking_libs([compiled.library])
        work = kind(context, builder.module, compiled.fndesc, packed.type)
        threads = builder.call(declare(builder, "get_num_threads", INT64), [])
        is_alone = builder.icmp_signed("<=", threads, INT64(1))
        with builder.if_else(is_alone) as (alone, together):
            with alone:
                work.call(builder, start, stop, packed)
            with together:
                work.share(builder, (start, stop, threads), packed)
        return context.get_dummy_value()

    return generate


class _Work:
    """The LLVM code that calls a compiled function of a range.

    Parameters
    ----------
    context : BaseContext
        Of Numba's target.
    module : ir.Module
        In which it is called.
    function : FunctionDescriptor
        What is called.
    packed : ir.Type
        Of the tuple of the further arguments.
    """

    def __init__(self, context: Any, module: Any, function: Any, packed: Any) -> None:
        self.context = context
        self.module = module
        self.function = function
        self.record = ir.LiteralStructType([INT64, INT64, INT64, packed])

    def call(self, builder: Any, start: Any, stop: Any, packed: Any) -> None:
        """Call the function for a range, here."""
        self._call_once(builder, (start, stop), packed)

    def _call_once(self, builder: Any, numbers: tuple[Any, ...], packed: Any) -> None:
        values = (*numbers, *cgutils.unpack_tuple(builder, packed))
        function = self.context.declare_function(builder.module, self.function)
        types_of = self.function.restype, self.function.argtypes
        self.context.call_conv.call_function(builder, function, *types_of, values)

    def share(self, builder: Any, about: tuple[Any, Any, Any], packed: Any) -> None:
        """Call it on threads: a part of the range each."""
        record = cgutils.make_anonymous_struct(builder, (*about, packed), self.record)
        memory = cgutils.alloca_once_value(builder, record)
        none = INT64(0).inttoptr(BYTES)
        parts = cgutils.alloca_once_value(builder, about[2])
        bases = cgutils.alloca_once_value(builder, none)
        steps = cgutils.alloca_once_value(builder, INT64(1))
        pool = declare(builder, "numba_parallel_for", ir.VoidType(), *[BYTES] * 5, *[INT64] * 3)
        given = (self.kernel(), bases, parts, steps, memory)
        addresses = [builder.bitcast(address, BYTES) for address in given]
        builder.call(pool, [*addresses, INT64(0), INT64(1), about[2]])

    def kernel(self) -> Any:
        """Return the function that a thread calls for some parts of the range."""
        name = f"on_threads.{self.function.mangled_name}"
        if name in self.module.globals:
            return self.module.globals[name]
        kernel = ir.Function(self.module, KERNEL, name)
        kernel.linkage = "internal"
        bases, counts, _, memory = kernel.args
        builder = ir.IRBuilder(kernel.append_basic_block("entry"))
        record = builder.load(builder.bitcast(memory, self.record.as_pointer()))
        first, last, parts, packed = cgutils.unpack_tuple(builder, record)
        part = builder.ptrtoint(builder.load(bases), INT64)
        following = builder.add(part, builder.load(counts))
        start = _start_of(builder, part, (first, last, parts))
        self.call(builder, start, _start_of(builder, following, (first, last, parts)), packed)
        builder.ret_void()
        return kernel


class _WorkOfEach(_Work):
    """The LLVM code that calls a compiled function of one number for all of a range."""

    def call(self, builder: Any, start: Any, stop: Any, packed: Any) -> None:
        """Call the function for each number of a range, here."""
        with cgutils.for_range_slice(builder, start, stop, INT64(1)) as (number, _):
            self._call_once(builder, (number,), packed)


def _start_of(builder: Any, part: Any, about: tuple[Any, Any, Any]) -> Any:
    """Return where a part of a range begins: ``first + (last - first) * part / parts``."""
    first, last, parts = about
    length = builder.sub(last, first)
    return builder.add(first, builder.sdiv(builder.mul(length, part), parts))

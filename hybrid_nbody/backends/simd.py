"""Vectors of LANES numbers for compiled loops: LLVM keeps them in the widest registers that the processor has.

A `Vector` is loaded from a flat array, has the operators of a number, and is stored again. What a
loop does is written for one block of cells; nothing is left to whether a compiler finds out that a
loop could be vector code.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.templates import ConcreteTemplate, infer_global
from numba.extending import intrinsic, models, register_model

LANES = 16
"""Numbers of a vector: those of one register of AVX-512 in float32."""


class Vector(types.Type):
    """The type of a vector, in compiled code alone.

    Parameters
    ----------
    dtype : numba.types.Type
        Of its numbers; a vector of booleans says for which lanes something holds.
    """

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """How LLVM sees a vector."""

    def __init__(self, manager, kind):
        element = (
            ir.IntType(1)
            if kind.dtype == types.boolean
            else manager.lookup(kind.dtype).get_value_type()
        )
        super().__init__(manager, kind, ir.VectorType(element, LANES))


NUMBERS = Vector(types.float32), Vector(types.float64)
CHOICE = Vector(types.boolean)

# ---- Operators -----------------------------------------------------------------------------------


def _define(function, kinds, instruction, result=None):
    """Let two vectors have an operator; ``instruction(builder, a, b)`` returns what LLVM is to compute."""

    @infer_global(function)
    class Template(ConcreteTemplate):
        cases = [signature(result or kind, kind, kind) for kind in kinds]

    for kind in kinds:
        lower_builtin(function, kind, kind)(
            lambda context, builder, signature, values: instruction(builder, *values)
        )


_define(operator.add, NUMBERS, lambda builder, a, b: builder.fadd(a, b))
_define(operator.sub, NUMBERS, lambda builder, a, b: builder.fsub(a, b))
_define(operator.mul, NUMBERS, lambda builder, a, b: builder.fmul(a, b))
_define(operator.eq, NUMBERS, lambda builder, a, b: builder.fcmp_ordered("==", a, b), CHOICE)
_define(operator.gt, NUMBERS, lambda builder, a, b: builder.fcmp_ordered(">", a, b), CHOICE)
_define(operator.lt, NUMBERS, lambda builder, a, b: builder.fcmp_ordered("<", a, b), CHOICE)
_define(operator.and_, [CHOICE], lambda builder, a, b: builder.and_(a, b))
_define(operator.or_, [CHOICE], lambda builder, a, b: builder.or_(a, b))

# ---- Memory --------------------------------------------------------------------------------------


@intrinsic
def address_of(typing_context, array):
    """Return where a flat array starts: what is loaded from an array, also is from there.

    References to arrays are counted in atomic operations at every call, those to memory are not.
    """

    def generate(context, builder, signature, values):
        return context.make_array(array)(context, builder, values[0]).data

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def load_scalar(typing_context, array, place):
    """Return a number of a flat array."""

    def generate(context, builder, signature, values):
        return builder.load(_address(context, builder, array, values, array.dtype))

    return array.dtype(array, types.intp), generate


@intrinsic
def store_scalar(typing_context, array, place, number):
    """Put a number into a flat array."""

    def generate(context, builder, signature, values):
        builder.store(values[2], _address(context, builder, array, values, array.dtype))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), generate


@intrinsic
def load(typing_context, array, place):
    """Return LANES numbers of a flat array, the first of them at `place`."""
    vector = Vector(array.dtype)

    def generate(context, builder, signature, values):
        return builder.load(
            _address(context, builder, array, values, vector), align=array.dtype.bitwidth // 8
        )

    return vector(array, types.intp), generate


@intrinsic
def store(typing_context, array, place, vector):
    """Put a vector into a flat array, its first number at `place`."""

    def generate(context, builder, signature, values):
        address = _address(context, builder, array, values, vector)
        builder.store(values[2], address, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def load_partial(typing_context, array, place, count):
    """Return a vector of which the first `count` numbers are read, and the others are 0."""
    vector = Vector(array.dtype)

    def generate(context, builder, signature, values):
        kind = context.get_value_type(vector)
        address = _address(context, builder, array, values, vector)
        lanes = _lanes_below(builder, values[2])
        nothing = ir.Constant(kind, None)
        known = _known(
            builder, f"masked.load.{_suffix(vector)}.p0", kind, kind.as_pointer(), lanes.type, kind
        )
        return builder.call(known, [address, lanes, nothing])

    return vector(array, types.intp, types.intp), generate


@intrinsic
def store_partial(typing_context, array, place, vector, count):
    """Put the first `count` numbers of a vector into a flat array."""

    def generate(context, builder, signature, values):
        kind = context.get_value_type(vector)
        address = _address(context, builder, array, values, vector)
        lanes = _lanes_below(builder, values[3])
        name = f"masked.store.{_suffix(vector)}.p0"
        known = _known(builder, name, ir.VoidType(), kind, kind.as_pointer(), lanes.type)
        builder.call(known, [values[2], address, lanes])
        return context.get_dummy_value()

    return types.void(array, types.intp, vector, types.intp), generate


@intrinsic
def prefetch(typing_context, array, place):
    """Let the line of the cache that holds a place of a flat array come; there may be no such place."""

    def generate(context, builder, signature, values):
        number = ir.IntType(32)
        address = builder.bitcast(
            _address(context, builder, array, values, array.dtype), ir.IntType(8).as_pointer()
        )
        known = _known(builder, "prefetch.p0", ir.VoidType(), address.type, number, number, number)
        builder.call(
            known, [address, number(0), number(3), number(1)]
        )  # to be read, into all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def broadcast(typing_context, number):
    """Return a vector of equal numbers."""
    vector = Vector(number)

    def generate(context, builder, signature, values):
        return _broadcast(builder, values[0])

    return vector(number), generate


# ---- Of every number -----------------------------------------------------------------------------


def _of_every_number(name):
    """Return a function of a number or of a vector: LLVM's of that name."""

    @intrinsic
    def function(typing_context, number):
        def generate(context, builder, signature, values):
            kind = context.get_value_type(number)
            return builder.call(_known(builder, f"{name}.{_suffix(number)}", kind, kind), values)

        return number(number), generate

    return function


fabs = _of_every_number("fabs")
floor = _of_every_number("floor")


@intrinsic
def arange_from(typing_context, number):
    """Return a number, the next one, and so on."""
    vector = Vector(number)

    def generate(context, builder, signature, values):
        kind = context.get_value_type(vector)
        return builder.fadd(
            _broadcast(builder, values[0]),
            ir.Constant(kind, [float(lane) for lane in range(LANES)]),
        )

    return vector(number), generate


@intrinsic
def select(typing_context, choice, one, other):
    """Return the numbers of `one` where `choice` says so, else those of `other`."""

    def generate(context, builder, signature, values):
        return builder.select(*values)

    return one(choice, one, one), generate


@intrinsic
def maximum(typing_context, one, other):
    """Return the larger number, or numbers of vectors; that of `other` where one is NaN."""

    def generate(context, builder, signature, values):
        return builder.select(builder.fcmp_ordered(">", *values), *values)

    return one(one, one), generate


@intrinsic
def minimum(typing_context, one, other):
    """Return the smaller number, or numbers of vectors; that of `other` where one is NaN."""

    def generate(context, builder, signature, values):
        return builder.select(builder.fcmp_ordered("<", *values), *values)

    return one(one, one), generate


@intrinsic
def insert(typing_context, vector, lane, number):
    """Return a vector with another number in a lane; there may be no such lane."""

    def generate(context, builder, signature, values):
        lanes = _numbers()
        lane = _broadcast(builder, builder.trunc(values[1], ir.IntType(32)))
        return builder.select(
            builder.icmp_signed("==", lanes, lane), _broadcast(builder, values[2]), values[0]
        )

    return vector(vector, types.intp, vector.dtype), generate


# ---- Among numbers -------------------------------------------------------------------------------


def _picked(places, description):
    """Return a function of two vectors that picks numbers of both: from LANES on those of the second."""

    @intrinsic
    def function(typing_context, first, second):
        def generate(context, builder, signature, values):
            return builder.shuffle_vector(
                *values, ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(places))
            )

        return first(first, first), generate

    function.__doc__ = description
    return function


EVEN = range(0, 2 * LANES, 2)
TURNS = [place for lane in range(LANES) for place in (lane, LANES + lane)]

even_lanes = _picked(EVEN, "Return every second number of two vectors, from the first one on.")
odd_lanes = _picked([place + 1 for place in EVEN], "Return the others.")
interleave_low = _picked(
    TURNS[:LANES], "Return the numbers of two vectors in turns, from the first of the one on."
)
interleave_high = _picked(TURNS[LANES:], "Return the others.")


@intrinsic
def first_lane(typing_context, vector):
    """Return the first number of a vector."""

    def generate(context, builder, signature, values):
        return builder.extract_element(values[0], ir.IntType(32)(0))

    return vector.dtype(vector), generate


@intrinsic
def all_of(typing_context, choice):
    """Return whether a choice holds for every lane."""

    def generate(context, builder, signature, values):
        lanes = builder.bitcast(values[0], ir.IntType(LANES))
        return builder.icmp_unsigned("==", lanes, ir.IntType(LANES)(-1))

    return types.boolean(choice), generate


@intrinsic
def any_of(typing_context, choice):
    """Return whether a choice holds for any lane."""

    def generate(context, builder, signature, values):
        lanes = builder.bitcast(values[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", lanes, ir.IntType(LANES)(0))

    return types.boolean(choice), generate


@intrinsic
def reduce_max(typing_context, vector):
    """Return the largest number of a vector without NaN: LLVM's own way takes them one after another."""

    def generate(context, builder, signature, values):
        largest = values[0]
        width = LANES
        while width > 1:
            width //= 2
            places = ir.Constant(
                ir.VectorType(ir.IntType(32), LANES),
                [(lane + width) % LANES for lane in range(LANES)],
            )
            other = builder.shuffle_vector(largest, largest, places)
            largest = builder.select(builder.fcmp_ordered(">", largest, other), largest, other)
        return builder.extract_element(largest, ir.IntType(32)(0))

    return vector.dtype(vector), generate


@intrinsic
def prevent_unrolling(typing_context):
    """Do nothing; but LLVM will not unroll the loop this stands in, whose few turns would mostly be left over."""

    def generate(context, builder, signature, values):
        nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
        builder.call(nothing, [], attrs=("convergent",))
        return context.get_dummy_value()

    return types.void(), generate


# ---- LLVM ----------------------------------------------------------------------------------------


def _address(context, builder, array, values, kind):
    """Return where something lies that starts at an element of a flat array, or beyond an address."""
    counted = isinstance(array, types.Array)
    data = context.make_array(array)(context, builder, values[0]).data if counted else values[0]
    return builder.bitcast(
        builder.gep(data, [values[1]]), context.get_value_type(kind).as_pointer()
    )


def _suffix(kind):
    """Return how LLVM's functions call a number or a vector."""
    if isinstance(kind, Vector):
        return f"v{LANES}{_suffix(kind.dtype)}"
    return f"f{kind.bitwidth}"


def _known(builder, name, result, *arguments):
    """Return a function of LLVM."""
    return cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, arguments), f"llvm.{name}"
    )


def _numbers():
    """Return the numbers of the lanes."""
    return ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(LANES)))


def _broadcast(builder, number):
    """Return a vector of equal numbers."""
    nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(
        builder.insert_element(nothing, number, ir.IntType(32)(0)), nothing, zeros
    )


def _lanes_below(builder, count):
    """Return a choice of the first lanes."""
    return builder.icmp_signed(
        "<", _numbers(), _broadcast(builder, builder.trunc(count, ir.IntType(32)))
    )

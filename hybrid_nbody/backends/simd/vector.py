"""Vectors of LANES numbers: their type, operators and functions."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.templates import ConcreteTemplate, infer_global
from numba.extending import models, register_model

from hybrid_nbody.backends.llvm import (
    INT32,
    broadcast_value,
    declare,
    intrinsic,
    lane_numbers,
    shuffle_mask,
)

LANES = 16
"""Numbers of a vector: those of one register of AVX-512 in float32."""


class Vector(types.Type):
    """The type of a vector in compiled code.

    Parameters
    ----------
    dtype : numba.types.Type
        Type of its numbers. A vector of booleans is a mask: it says for which lanes a condition
        holds.
    """

    def __init__(self, dtype: Any):
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """LLVM's representation of a vector."""

    def __init__(self, manager: Any, vector: Vector):
        if vector.dtype == types.boolean:
            element = ir.IntType(1)
        else:
            element = manager.lookup(vector.dtype).get_value_type()
        super().__init__(manager, vector, ir.VectorType(element, LANES))


FLOAT_VECTORS = [Vector(types.float32), Vector(types.float64)]
MASK = Vector(types.boolean)


def type_suffix(number_or_vector: Any) -> str:
    """Return how LLVM's functions name the type of a number or a vector: ``f32``, ``v16f32``."""
    if isinstance(number_or_vector, Vector):
        return f"v{LANES}{type_suffix(number_or_vector.dtype)}"
    return f"f{number_or_vector.bitwidth}"


# ---- Operators -----------------------------------------------------------------------------------


def _define(
    function: Callable[[Any, Any], Any],
    vectors: Sequence[Vector],
    instruction: Callable[[Any, Any, Any], Any],
    result: Vector | None = None,
) -> None:
    """Define an operator of two vectors.

    Parameters
    ----------
    function : callable
        The operator in Python.
    vectors : sequence of Vector
        The types that have it.
    instruction : callable
        ``instruction(builder, a, b)`` returns LLVM's instruction.
    result : Vector, optional
        Type of the result; by default that of the operands.
    """

    @infer_global(function)
    class Template(ConcreteTemplate):
        cases = [signature(result or vector, vector, vector) for vector in vectors]

    for vector in vectors:
        lower_builtin(function, vector, vector)(
            lambda context, builder, signature, values: instruction(builder, *values)
        )


_define(operator.add, FLOAT_VECTORS, lambda builder, a, b: builder.fadd(a, b))
_define(operator.sub, FLOAT_VECTORS, lambda builder, a, b: builder.fsub(a, b))
_define(operator.mul, FLOAT_VECTORS, lambda builder, a, b: builder.fmul(a, b))
_define(operator.truediv, FLOAT_VECTORS, lambda builder, a, b: builder.fdiv(a, b))
_define(operator.eq, FLOAT_VECTORS, lambda builder, a, b: builder.fcmp_ordered("==", a, b), MASK)
_define(operator.gt, FLOAT_VECTORS, lambda builder, a, b: builder.fcmp_ordered(">", a, b), MASK)
_define(operator.lt, FLOAT_VECTORS, lambda builder, a, b: builder.fcmp_ordered("<", a, b), MASK)
_define(operator.and_, [MASK], lambda builder, a, b: builder.and_(a, b))
_define(operator.or_, [MASK], lambda builder, a, b: builder.or_(a, b))

# ---- Functions of each number --------------------------------------------------------------------


def _elementwise(name: str) -> Any:
    """Return LLVM's function of that name, of a number or of each number of a vector."""

    @intrinsic
    def function(typing_context, number):
        def generate(context, builder, signature, values):
            llvm_type = context.get_value_type(number)
            return builder.call(
                declare(builder, f"llvm.{name}.{type_suffix(number)}", llvm_type, llvm_type), values
            )

        return number(number), generate

    return function


fabs = _elementwise("fabs")
floor = _elementwise("floor")


@intrinsic
def broadcast(typing_context, number):
    """Return a vector of equal numbers."""

    def generate(context, builder, signature, values):
        return broadcast_value(builder, values[0], LANES)

    return Vector(number)(number), generate


@intrinsic
def converted(typing_context, vector, number_class):
    """Return a vector of numbers of another type, rounded to it."""
    result = Vector(number_class.dtype)

    def generate(context, builder, signature, values):
        if result == vector:
            return values[0]
        wanted = context.get_value_type(result)
        is_wider = result.dtype.bitwidth > vector.dtype.bitwidth
        convert = builder.fpext if is_wider else builder.fptrunc
        return convert(values[0], wanted)

    return result(vector, number_class), generate


@intrinsic
def arange_from(typing_context, number):
    """Return the vector number, number + 1 ..."""
    vector = Vector(number)

    def generate(context, builder, signature, values):
        llvm_type = context.get_value_type(vector)
        steps = ir.Constant(llvm_type, [float(lane) for lane in range(LANES)])
        return builder.fadd(broadcast_value(builder, values[0], LANES), steps)

    return vector(number), generate


@intrinsic
def select(typing_context, mask, a, b):
    """Return the numbers of `a` where the mask holds, else those of `b`."""

    def generate(context, builder, signature, values):
        return builder.select(*values)

    return a(mask, a, a), generate


@intrinsic
def maximum(typing_context, a, b):
    """Return the larger of two numbers, or of each two of vectors; that of `b` if one is NaN."""

    def generate(context, builder, signature, values):
        return builder.select(builder.fcmp_ordered(">", *values), *values)

    return a(a, a), generate


@intrinsic
def minimum(typing_context, a, b):
    """Return the smaller of two numbers, or of each two of vectors; that of `b` if one is NaN."""

    def generate(context, builder, signature, values):
        return builder.select(builder.fcmp_ordered("<", *values), *values)

    return a(a, a), generate


@intrinsic
def insert(typing_context, vector, lane, number):
    """Return the vector with another number in a lane; unchanged if there is no such lane."""

    def generate(context, builder, signature, values):
        lane = broadcast_value(builder, builder.trunc(values[1], INT32), LANES)
        mask = builder.icmp_signed("==", lane_numbers(LANES), lane)
        return builder.select(mask, broadcast_value(builder, values[2], LANES), values[0])

    return vector(vector, types.intp, vector.dtype), generate


# ---- Functions across lanes ----------------------------------------------------------------------


def _shuffle(indices: Sequence[int], description: str) -> Any:
    """Return a function of two vectors that picks LANES of their numbers.

    The numbers of the second one have the indices LANES, LANES + 1 ...
    """

    @intrinsic
    def function(typing_context, a, b):
        def generate(context, builder, signature, values):
            return builder.shuffle_vector(*values, shuffle_mask(indices))

        return a(a, a), generate

    function.__doc__ = description
    return function


EVEN = range(0, 2 * LANES, 2)
ODD = range(1, 2 * LANES, 2)
ALTERNATING = [index for lane in range(LANES) for index in (lane, LANES + lane)]

even_lanes = _shuffle(EVEN, "Return numbers 0, 2, 4 ... of two vectors in a row.")
odd_lanes = _shuffle(ODD, "Return numbers 1, 3, 5 ... of two vectors in a row.")
interleave_low = _shuffle(
    ALTERNATING[:LANES], "Return a0, b0, a1, b1 ... of the first halves of two vectors."
)
interleave_high = _shuffle(ALTERNATING[LANES:], "Return the same of their second halves.")


@intrinsic
def first_lane(typing_context, vector):
    """Return the first number of a vector."""

    def generate(context, builder, signature, values):
        return builder.extract_element(values[0], INT32(0))

    return vector.dtype(vector), generate


@intrinsic
def all_of(typing_context, mask):
    """Return whether a mask holds for every lane."""

    def generate(context, builder, signature, values):
        bits = builder.bitcast(values[0], ir.IntType(LANES))
        return builder.icmp_unsigned("==", bits, ir.IntType(LANES)(-1))

    return types.boolean(mask), generate


@intrinsic
def any_of(typing_context, mask):
    """Return whether a mask holds for any lane."""

    def generate(context, builder, signature, values):
        bits = builder.bitcast(values[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.IntType(LANES)(0))

    return types.boolean(mask), generate


@intrinsic
def reduce_max(typing_context, vector):
    """Return the largest number of a vector without NaN, by halves.

    LLVM's own reduction compares one number after another.
    """

    def generate(context, builder, signature, values):
        largest = values[0]
        width = LANES
        while width > 1:
            width //= 2
            rotated = shuffle_mask((lane + width) % LANES for lane in range(LANES))
            other = builder.shuffle_vector(largest, largest, rotated)
            largest = builder.select(builder.fcmp_ordered(">", largest, other), largest, other)
        return builder.extract_element(largest, INT32(0))

    return vector.dtype(vector), generate


@intrinsic
def reduce_add(typing_context, vector):
    """Return the sum of the numbers of a vector, by halves."""

    def generate(context, builder, signature, values):
        total = values[0]
        width = LANES
        while width > 1:
            width //= 2
            upper = builder.shuffle_vector(total, total, shuffle_mask(range(width, 2 * width)))
            lower = builder.shuffle_vector(total, total, shuffle_mask(range(width)))
            total = builder.fadd(lower, upper)
        return builder.extract_element(total, INT32(0))

    return vector.dtype(vector), generate

"""Intrinsic functions of compiled loops, and pieces of the LLVM code that they are made of."""

from collections.abc import Callable
from typing import Any

import numba.extending
from llvmlite import ir
from numba import types
from numba.core import cgutils

INT32 = ir.IntType(32)
INT64 = ir.IntType(64)


def intrinsic(define: Callable[..., Any]) -> Any:
    """Return a function of compiled code from the function that generates its LLVM code.

    The latter takes the typing context first, which no caller passes: the result has no type that
    a checker could know.
    """
    return numba.extending.intrinsic(define)


def declare(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Return the external function of that name with the given types."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def data_address(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Return the address of an array's first element; an address is returned as it is."""
    if isinstance(array_type, types.Array):
        return context.make_array(array_type)(context, builder, array).data
    return array


def element_address(
    context: Any, builder: Any, array_type: Any, array: Any, index: Any, pointee: Any
) -> Any:
    """Return the address of ``array[index]`` as that of a value of Numba's type `pointee`."""
    data = data_address(context, builder, array_type, array)
    pointer = context.get_value_type(pointee).as_pointer()
    return builder.bitcast(builder.gep(data, [index]), pointer)


def lane_numbers(lanes: int) -> Any:
    """Return the vector 0, 1 ... of int32."""
    return shuffle_mask(range(lanes))


def shuffle_mask(indices: Any) -> Any:
    """Return a constant vector of int32."""
    values = list(indices)
    return ir.Constant(ir.VectorType(INT32, len(values)), values)


def broadcast_value(builder: Any, value: Any, lanes: int) -> Any:
    """Return a vector of equal numbers."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, value, INT32(0))
    return builder.shuffle_vector(first, undefined, shuffle_mask([0] * lanes))


def first_lanes(builder: Any, count: Any, lanes: int) -> Any:
    """Return the mask that holds for the first `count` lanes."""
    limit = broadcast_value(builder, builder.trunc(count, INT32), lanes)
    return builder.icmp_signed("<", lane_numbers(lanes), limit)

"""Pieces of LLVM code that all vector operations are made of."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

INT32 = ir.IntType(32)


def declare(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Return the function ``llvm.name`` with the given types."""
    return cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, arguments), f"llvm.{name}"
    )


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

"""Memory of flat arrays as numbers and vectors.

`array` is a flat array or, where a function is called often, its `address_of`: references to
arrays are counted in atomic operations at every call, those to memory are not.
"""

from llvmlite import ir
from numba import types

from hybrid_nbody.backends.llvm import (
    INT32,
    broadcast_value,
    data_address,
    declare,
    element_address,
    first_lanes,
    intrinsic,
    lane_numbers,
)
from hybrid_nbody.backends.simd.vector import LANES, Vector, type_suffix

WORD = ir.IntType(64)


def alignment(dtype):
    """Return the bytes of a number: a vector may start at any element."""
    return dtype.bitwidth // 8


@intrinsic
def address_of(typing_context, array):
    """Return the address of a flat array, which is loaded from and stored to as the array is."""

    def generate(context, builder, signature, values):
        return data_address(context, builder, array, values[0])

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def address_at(typing_context, array, index):
    """Return the address of the element of that index, counted through an array of any shape."""

    def generate(context, builder, signature, values):
        return builder.gep(data_address(context, builder, array, values[0]), [values[1]])

    return types.CPointer(array.dtype)(array, types.intp), generate


@intrinsic
def load_scalar(typing_context, array, index):
    """Return ``array[index]``."""

    def generate(context, builder, signature, values):
        return builder.load(
            element_address(context, builder, array, values[0], values[1], array.dtype)
        )

    return array.dtype(array, types.intp), generate


@intrinsic
def store_scalar(typing_context, array, index, value):
    """Store a number in ``array[index]``."""

    def generate(context, builder, signature, values):
        address = element_address(context, builder, array, values[0], values[1], array.dtype)
        builder.store(values[2], address)
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), generate


@intrinsic
def load(typing_context, array, index):
    """Return the vector ``array[index : index + LANES]``."""
    vector = Vector(array.dtype)

    def generate(context, builder, signature, values):
        address = element_address(context, builder, array, values[0], values[1], vector)
        return builder.load(address, align=alignment(array.dtype))

    return vector(array, types.intp), generate


@intrinsic
def store(typing_context, array, index, vector):
    """Store a vector in ``array[index : index + LANES]``."""

    def generate(context, builder, signature, values):
        address = element_address(context, builder, array, values[0], values[1], vector)
        builder.store(values[2], address, align=alignment(array.dtype))
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def load_partial(typing_context, array, index, count):
    """Return the vector ``array[index : index + count]``, filled up with 0."""
    vector = Vector(array.dtype)

    def generate(context, builder, signature, values):
        llvm_type = context.get_value_type(vector)
        address = element_address(context, builder, array, values[0], values[1], vector)
        mask = first_lanes(builder, values[2], LANES)
        zeros = ir.Constant(llvm_type, None)
        name = f"llvm.masked.load.{type_suffix(vector)}.p0"
        function = declare(builder, name, llvm_type, address.type, mask.type, llvm_type)
        return builder.call(function, [address, mask, zeros])

    return vector(array, types.intp, types.intp), generate


@intrinsic
def store_partial(typing_context, array, index, vector, count):
    """Store the first `count` numbers of a vector in ``array[index : index + count]``."""

    def generate(context, builder, signature, values):
        llvm_type = context.get_value_type(vector)
        address = element_address(context, builder, array, values[0], values[1], vector)
        mask = first_lanes(builder, values[3], LANES)
        name = f"llvm.masked.store.{type_suffix(vector)}.p0"
        function = declare(builder, name, ir.VoidType(), llvm_type, address.type, mask.type)
        builder.call(function, [values[2], address, mask])
        return context.get_dummy_value()

    return types.void(array, types.intp, vector, types.intp), generate


@intrinsic
def gather(typing_context, array, index, steps, strides):
    """Return the vector of ``array[index + lane + sum of steps * strides]``.

    Parameters
    ----------
    array : flat array, or its address
    index : int
        Of the first lane without steps.
    steps : tuple of vector
        Whole numbers.
    strides : tuple of int
        One for each of them.
    """
    vector = Vector(array.dtype)

    def generate(context, builder, signature, values):
        data = data_address(context, builder, array, values[0])
        _, index, moved, by = values
        indices = _indices(builder, index, moved, by, len(steps))
        pointers = _pointers(builder, data, indices, alignment(array.dtype))
        llvm_type = context.get_value_type(vector)
        mask = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [1] * LANES)
        name = f"llvm.masked.gather.{type_suffix(vector)}.v{LANES}p0"
        kinds = (pointers.type, INT32, mask.type, llvm_type)
        function = declare(builder, name, llvm_type, *kinds)
        zeros = ir.Constant(llvm_type, None)
        return builder.call(function, [pointers, INT32(alignment(array.dtype)), mask, zeros])

    return vector(array, types.intp, steps, strides), generate


def _indices(builder, index, steps, strides, number):
    """Return the indices of `gather` as a vector of words."""
    words = ir.VectorType(WORD, LANES)
    lanes = builder.sext(lane_numbers(LANES), words)
    total = builder.add(broadcast_value(builder, index, LANES), lanes)
    for place in range(number):
        along = builder.fptosi(builder.extract_value(steps, place), words)
        stride = broadcast_value(builder, builder.extract_value(strides, place), LANES)
        total = builder.add(total, builder.mul(along, stride))
    return total


def _pointers(builder, data, indices, size):
    """Return where the numbers with those indices lie, each of a size in bytes."""
    start = broadcast_value(builder, builder.ptrtoint(data, WORD), LANES)
    offsets = builder.mul(indices, broadcast_value(builder, WORD(size), LANES))
    return builder.inttoptr(builder.add(start, offsets), ir.VectorType(data.type, LANES))

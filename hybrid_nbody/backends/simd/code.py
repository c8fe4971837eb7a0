"""Vector code that is generated operation by operation, where loops are unrolled by the generator.

Its vectors fill a register, whatever their numbers: 16 of float32 or 8 of float64.
"""

from functools import reduce
from typing import Any

from llvmlite import ir

from hybrid_nbody.backends.llvm import INT64, broadcast_value, declare, shuffle_mask
from hybrid_nbody.backends.simd.hints import VECTOR_MATH

FLAGS = sorted(VECTOR_MATH)

REGISTER = 64
"""Bytes of a vector register; memory of vectors is aligned to it."""


def lanes_of(dtype: Any) -> int:
    """Return the numbers of a vector of a Numba type."""
    return REGISTER * 8 // int(dtype.bitwidth)


class VectorCode:
    """Generates operations on vectors of one type.

    Parameters
    ----------
    context, builder
        Numba's and llvmlite's.
    dtype : numba.types.Float
    """

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.builder = builder
        self.lanes = lanes_of(dtype)
        self.bytes = dtype.bitwidth // 8
        self.number = context.get_value_type(dtype)
        self.type = ir.VectorType(self.number, self.lanes)

    def constant(self, value: float) -> Any:
        """Return a vector of equal numbers."""
        return ir.Constant(self.type, [float(value)] * self.lanes)

    def broadcast(self, value: Any) -> Any:
        """Return a vector of a number that is known only when the code runs."""
        if value.type != self.number:
            value = self.builder.fptrunc(value, self.number)
        return broadcast_value(self.builder, value, self.lanes)

    def load(self, pointer: Any, index: int, align: int = REGISTER) -> Any:
        """Return the vector of index `index` at a pointer to numbers."""
        return self.builder.load(self._address(pointer, index), align=align)

    def load_rounded(self, pointer: Any, index: int) -> Any:
        """Return the vector of index `index` at a pointer to numbers of this type or float64."""
        if pointer.type.pointee == self.number:
            return self.load(pointer, index, self.bytes)
        half = self.lanes // 2
        wide = ir.VectorType(ir.DoubleType(), half)
        parts = []
        for start in range(index * self.lanes, (index + 1) * self.lanes, half):
            element = self.builder.gep(pointer, [INT64(start)])
            value = self.builder.load(self.builder.bitcast(element, wide.as_pointer()), align=8)
            parts.append(self.builder.fptrunc(value, ir.VectorType(self.number, half)))
        return self.builder.shuffle_vector(*parts, shuffle_mask(range(self.lanes)))

    def store(self, value: Any, pointer: Any, index: int) -> None:
        """Store the vector of index `index`."""
        self.builder.store(value, self._address(pointer, index), align=REGISTER)

    def _address(self, pointer: Any, index: int) -> Any:
        element = self.builder.gep(pointer, [INT64(index * self.lanes)])
        return self.builder.bitcast(element, self.type.as_pointer())

    def multiply(self, a: Any, b: Any) -> Any:
        """Return a b."""
        return self.builder.fmul(a, b, flags=FLAGS)

    def add(self, a: Any, b: Any) -> Any:
        """Return a + b."""
        return self.builder.fadd(a, b, flags=FLAGS)

    def inverse_root(self, value: Any) -> Any:
        """Return 1 / sqrt(value)."""
        name = f"llvm.sqrt.v{self.lanes}{self.number.intrinsic_name}"
        root = declare(self.builder, name, self.type, self.type)
        roots = self.builder.call(root, [value], fastmath=FLAGS)
        return self.builder.fdiv(self.constant(1), roots, flags=FLAGS)

    def squares(self, vectors: list[Any], more: Any) -> Any:
        """Return the sum of the squares of vectors, and of one more term."""
        return reduce(lambda total, x: self.add(self.multiply(x, x), total), vectors, more)

    def transposed(self, rows: list[Any]) -> list[Any]:
        """Return the columns of as many vectors as there are lanes."""
        half = self.lanes // 2
        alternating = [k for lane in range(self.lanes) for k in (lane, self.lanes + lane)]
        masks = [shuffle_mask(alternating[: self.lanes]), shuffle_mask(alternating[self.lanes :])]
        for _ in range(half.bit_length()):
            rows = [
                self.builder.shuffle_vector(rows[k], rows[k + half], mask)
                for k in range(half)
                for mask in masks
            ]
        return rows

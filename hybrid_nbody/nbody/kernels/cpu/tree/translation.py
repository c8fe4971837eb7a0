"""The code of translations: multipoles of several cells to the expansion about another.

A lane of a vector holds one source. Lengths are divided by the softened distance u of its pair, so
that every number is near 1 whatever the units: then derivatives of 1 / u follow from
``D^(m)_(a + e) = x_e D^(m + 1)_a + a_e D^(m + 1)_(a - e)`` with ``D^(m)_0 = (-1)^m (2 m - 1)!!``
(McMurchie & Davidson, J. Comput. Phys. 26, 1978, for Gaussians). All loops over terms are unrolled
here, when the code is generated; the order is that of the `binomials` of `Tables`.
"""

import math
from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import RequireLiteralValue

from hybrid_nbody.backends.llvm import (
    INT32,
    broadcast_value,
    declare,
    intrinsic,
    shuffle_mask,
)
from hybrid_nbody.backends.simd.hints import VECTOR_MATH
from hybrid_nbody.nbody.kernels.cpu.tree.layout import EDGE, SUMMARY, pitch_of
from hybrid_nbody.nbody.kernels.multi_indices import (
    MultiIndex,
    indices_of,
    multi_indices,
    number_of_terms,
    raised,
)

FLAGS = sorted(VECTOR_MATH)
INT64 = ir.IntType(64)

REGISTER = 64
"""Bytes of a vector register; memory of vectors is aligned to it."""

TARGETS_AT_ONCE = 8
"""Terms of the result that are summed side by side, each in a register of its own."""


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
        return broadcast_value(self.builder, value, self.lanes)

    def load(self, pointer: Any, index: int, align: int = REGISTER) -> Any:
        """Return the vector of index `index` at a pointer to numbers."""
        return self.builder.load(self._address(pointer, index), align=align)

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

    def rows(self, pointer: Any, pitch: Any, indices: Any) -> list[Any]:
        """Return pointers to the rows of `indices`, a lane each, of a table with a pitch."""
        pointers = []
        for lane in range(self.lanes):
            index = self.builder.load(self.builder.gep(indices, [INT64(lane)]))
            offset = self.builder.mul(self.builder.sext(index, INT64), pitch)
            pointers.append(self.builder.gep(pointer, [offset]))
        return pointers

    def differences(self, rows: list[Any], point: Any) -> list[Any]:
        """Return x, y and z of a point minus those in rows of four float64, a lane each."""
        double = ir.VectorType(ir.DoubleType(), 4)
        narrow = ir.VectorType(self.number, 4)
        at = self.builder.load(self.builder.bitcast(point, double.as_pointer()), align=8)
        parts = []
        for row in rows:
            value = self.builder.load(self.builder.bitcast(row, double.as_pointer()), align=8)
            difference = self.builder.fsub(at, value)
            same = self.bytes == 8
            parts.append(difference if same else self.builder.fptrunc(difference, narrow))
        while len(parts) > 1:
            count = 2 * parts[0].type.count
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [
                self.builder.shuffle_vector(a, b, shuffle_mask(range(count))) for a, b in pairs
            ]
        (joined,) = parts
        return [
            self.builder.shuffle_vector(
                joined, joined, shuffle_mask(range(axis, 4 * self.lanes, 4))
            )
            for axis in range(3)
        ]


@intrinsic
def allocate_vectors(typing_context, dtype, count):
    """Return the address of `count` numbers on the stack, a constant, aligned for vectors."""
    if not isinstance(count, types.IntegerLiteral):
        raise RequireLiteralValue("the number of a block on the stack must be a constant")
    number = count.literal_value

    def generate(context, builder, signature, values):
        element = context.get_data_type(dtype.dtype)
        with builder.goto_entry_block():
            block = builder.alloca(ir.ArrayType(element, number))
            block.align = REGISTER
        return builder.bitcast(block, context.get_value_type(signature.return_type))

    return types.CPointer(dtype.dtype)(dtype, count), generate


@intrinsic
def translate(typing_context, binomials, multipole, centre, summary, sources, target, scratch):
    """Add the expansions of as many sources as there are lanes to that of a target.

    Parameters
    ----------
    binomials : tuple of float
        Of the order.
    multipole : address
        Rows of multipoles, in the working type.
    centre : address of float64
        Rows of centres, of four numbers.
    summary : address of float32
        Rows of summaries, which hold the edges of cells.
    sources : address of int32
        The cells.
    target : tuple
        Address of its centre, its edge and the softening length squared, in the working type.
    scratch : tuple
        Addresses, each of as many vectors as there are terms: for multipoles, for derivatives, and
        the sums of the result, to which is added.
    """
    order = len(binomials) - 1
    dtype = multipole.dtype

    def generate(context, builder, signature, values):
        code = VectorCode(context, builder, dtype)
        _, rows, centres, summaries, indices, at, memory = values
        point, edge, eps2 = (builder.extract_value(at, k) for k in range(3))
        moments, derivatives, result = (builder.extract_value(memory, k) for k in range(3))
        terms = number_of_terms(order)
        pitch = pitch_of(terms)
        towards = code.differences(code.rows(centres, INT64(4), indices), point)
        inverse = code.inverse_root(code.squares(towards, code.broadcast(eps2)))
        ratio = code.multiply(edges_of(code, summaries, indices), inverse)
        load_multipoles(code, order, code.rows(rows, INT64(pitch), indices), ratio, moments)
        unit = [code.multiply(x, inverse) for x in towards]
        store_derivatives(code, order, unit, derivatives)
        scale = code.multiply(code.broadcast(edge), inverse)
        contract(code, order, (moments, derivatives), (inverse, scale), result)
        return context.get_dummy_value()

    arguments = (binomials, multipole, centre, summary, sources, target, scratch)
    return types.void(*arguments), generate


def edges_of(code: VectorCode, summaries: Any, indices: Any) -> Any:
    """Return the edges of cells, a lane each."""
    vector = ir.Constant(code.type, ir.Undefined)
    for lane, row in enumerate(code.rows(summaries, INT64(SUMMARY), indices)):
        edge = code.builder.load(code.builder.gep(row, [INT64(EDGE)]))
        if code.bytes == 8:
            edge = code.builder.fpext(edge, code.number)
        vector = code.builder.insert_element(vector, edge, INT32(lane))
    return vector


def load_multipoles(code: VectorCode, order: int, rows: list[Any], ratio: Any, to: Any) -> None:
    """Store the multipoles of each lane's row, a vector a term, times (-ratio)^|b|."""
    negative = code.builder.fneg(ratio)
    factors = [code.constant(1)]
    for _ in range(order):
        factors.append(code.multiply(factors[-1], negative))
    indices = multi_indices(order)
    for block in range(0, len(indices), code.lanes):
        columns = code.transposed([code.load(row, block // code.lanes, code.bytes) for row in rows])
        for k, index in enumerate(indices[block : block + code.lanes]):
            value = code.multiply(columns[k], factors[sum(index)]) if sum(index) else columns[k]
            code.store(value, to, block + k)


def store_derivatives(code: VectorCode, order: int, unit: list[Any], to: Any) -> None:
    """Store the derivatives of 1 / u at vectors `unit`, lengths in units of u."""
    known: dict[tuple[MultiIndex, int], Any] = {}
    for k, index in enumerate(multi_indices(order)):
        for m in range(order - sum(index) + 1):
            known[index, m] = derivative(code, index, m, unit, known)
        code.store(known[index, 0], to, k)


def derivative(
    code: VectorCode,
    index: MultiIndex,
    m: int,
    unit: list[Any],
    known: dict[tuple[MultiIndex, int], Any],
) -> Any:
    """Return D^(m) of a multi-index from those of lower order."""
    if not sum(index):
        return code.constant((-1) ** m * math.prod(range(2 * m - 1, 0, -2)))
    axis = min((axis for axis in range(3) if index[axis]), key=lambda axis: index[axis])
    below = raised(index, axis, -1)
    result = code.multiply(unit[axis], known[below, m + 1])
    if not below[axis]:
        return result
    other = known[raised(below, axis, -1), m + 1]
    if below[axis] > 1:
        other = code.multiply(code.constant(below[axis]), other)
    return code.add(result, other)


def contract(
    code: VectorCode, order: int, terms: tuple[Any, Any], scales: tuple[Any, Any], result: Any
) -> None:
    """Add ``sum_b M_b D_(a + b)`` to each term a of the result, times its scale.

    Parameters
    ----------
    code : VectorCode
    order : int
    terms : tuple
        Addresses of M and D.
    scales : tuple of vector
        That of order 0, and that by which each order multiplies it.
    result : address
    """
    moments, derivatives = terms
    indices = indices_of(order)
    number = {index: k for k, index in enumerate(indices.all)}
    scale = scales[0]
    for n in range(order + 1):
        targets = [index for index in indices.all if sum(index) == n]
        sources = indices.all[: number_of_terms(order - n)]
        for start in range(0, len(targets), TARGETS_AT_ONCE):
            some = targets[start : start + TARGETS_AT_ONCE]
            sums = [code.constant(0)] * len(some)
            for row, source in enumerate(sources):
                moment = code.load(moments, row)
                for place, target in enumerate(some):
                    i, j, k = (a + b for a, b in zip(target, source, strict=True))
                    value = code.load(derivatives, number[i, j, k])
                    sums[place] = code.add(sums[place], code.multiply(moment, value))
            for total, target in zip(sums, some, strict=True):
                row = number[target]
                before = code.load(result, row)
                code.store(code.add(before, code.multiply(total, scale)), result, row)
        scale = code.multiply(scale, scales[1])

"""The code of translations: multipoles of several cells to the expansion about another.

A lane of a vector holds one source. Lengths are divided by the softened distance u of its pair, so
that every number is near 1 whatever the units: then derivatives of 1 / u follow from
``D^(m)_(a + e) = x_e D^(m + 1)_a + a_e D^(m + 1)_(a - e)`` with ``D^(m)_0 = (-1)^m (2 m - 1)!!``
(McMurchie & Davidson, J. Comput. Phys. 26, 1978, for Gaussians). All loops over terms are unrolled
here, when the code is generated; the order is that of the `binomials` of `Tables`.

Where multipoles are in float64, only the products of low orders are: each order is smaller than the
one before by the ratio of the cells' sizes to their distance, and so is its rounding. The others
are in float32, which takes half the time.
"""

import math
from dataclasses import dataclass, replace
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
    multi_indices,
    number_of_terms,
    raised,
)

FLAGS = sorted(VECTOR_MATH)
INT64 = ir.IntType(64)

REGISTER = 64
"""Bytes of a vector register; memory of vectors is aligned to it."""

LEADING = 2
"""Largest sum of the orders of two terms whose product is in float64 where multipoles are."""

LEADING_TERMS = number_of_terms(LEADING)

TARGETS_AT_ONCE = 8
"""Terms of the result that are summed side by side, each in a register of its own."""


TRANSLATED = REGISTER // 4
"""Sources that are translated at once, a lane each in float32."""


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


@dataclass(frozen=True)
class Sources:
    """Cells, a lane each, and where their expansions are; all values of the generated code.

    Attributes
    ----------
    multipole : address
        Rows of multipoles, in float32 or float64.
    pitch : int
        Length of a row.
    centre : address of float64
        Rows of four numbers.
    summary : address of float32
    cells : address of int32
    """

    multipole: Any
    pitch: int
    centre: Any
    summary: Any
    cells: Any

    def since(self, code: VectorCode, lane: int) -> "Sources":
        """Return the cells from a lane on."""
        return replace(self, cells=code.builder.gep(self.cells, [INT64(lane)]))


@intrinsic
def translate(typing_context, binomials, multipole, centre, summary, sources, target, scratch):
    """Add the expansions of TRANSLATED sources to that of a target.

    Parameters
    ----------
    binomials : tuple of float
        Of the order.
    multipole : address
        Rows of multipoles, in float32 or float64.
    centre : address of float64
        Rows of centres, of four numbers.
    summary : address of float32
        Rows of summaries, which hold the edges of cells.
    sources : address of int32
        The cells.
    target : tuple
        Address of its centre, its edge and the softening length squared.
    scratch : tuple
        Addresses, each of as many vectors of float32 as there are terms: for multipoles, for
        derivatives, and the sums of the result, to which is added; and that of the sums of
        `LEADING_TERMS` vectors of float64, to which is added where multipoles are in float64.
    """
    order = len(binomials) - 1
    in_double = multipole.dtype == types.float64

    def generate(context, builder, signature, values):
        _, rows, centres, summaries, indices, at, memory = values
        some = Sources(rows, pitch_of(number_of_terms(order)), centres, summaries, indices)
        moments, derivatives, sums, leading = (builder.extract_value(memory, k) for k in range(4))
        single = VectorCode(context, builder, types.float32)
        lowest = LEADING + 1 if in_double else 0
        add_orders(single, (lowest, order), some, at, (moments, derivatives, sums))
        if in_double:
            double = VectorCode(context, builder, types.float64)
            wide = [builder.bitcast(block, leading.type) for block in (moments, derivatives)]
            for lane in range(0, single.lanes, double.lanes):
                add_orders(double, (0, LEADING), some.since(double, lane), at, (*wide, leading))
        return context.get_dummy_value()

    arguments = (binomials, multipole, centre, summary, sources, target, scratch)
    return types.void(*arguments), generate


def add_orders(
    code: VectorCode, orders: tuple[int, int], sources: Sources, target: Any, scratch: Any
) -> None:
    """Add the products of terms whose orders have a sum between two to the expansion of a target.

    Parameters
    ----------
    code : VectorCode
    orders : (int, int)
        The smallest sum, and the largest.
    sources : Sources
        As many as there are lanes.
    target : tuple
        See `translate`.
    scratch : tuple of address
        For multipoles, for derivatives, and the sums of the result, in the type of `code`.
    """
    point, edge, eps2 = (code.builder.extract_value(target, k) for k in range(3))
    moments, derivatives, sums = scratch
    order = orders[1]
    towards = code.differences(code.rows(sources.centre, INT64(4), sources.cells), point)
    inverse = code.inverse_root(code.squares(towards, code.broadcast(eps2)))
    ratio = code.multiply(edges_of(code, sources.summary, sources.cells), inverse)
    rows = code.rows(sources.multipole, INT64(sources.pitch), sources.cells)
    load_multipoles(code, order, rows, ratio, moments)
    store_derivatives(code, order, [code.multiply(x, inverse) for x in towards], derivatives)
    scale = code.multiply(code.broadcast(edge), inverse)
    contract(code, orders, (moments, derivatives), (inverse, scale), sums)


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
        columns = code.transposed([code.load_rounded(row, block // code.lanes) for row in rows])
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
    code: VectorCode, orders: tuple[int, int], terms: tuple[Any, Any], scales: Any, result: Any
) -> None:
    """Add ``sum_b M_b D_(a + b)`` to each term a of the result, times its scale.

    Parameters
    ----------
    code : VectorCode
    orders : (int, int)
        The smallest and the largest order of a + b.
    terms : tuple
        Addresses of M and D.
    scales : tuple of vector
        That of order 0, and that by which each order multiplies it.
    result : address
    """
    moments, derivatives = terms
    lowest, order = orders
    indices = multi_indices(order)
    number = {index: k for k, index in enumerate(indices)}
    scale = scales[0]
    for n in range(order + 1):
        targets = [index for index in indices if sum(index) == n]
        sources = [index for index in indices if lowest <= n + sum(index) <= order]
        for start in range(0, len(targets), TARGETS_AT_ONCE):
            some = targets[start : start + TARGETS_AT_ONCE]
            totals = [code.constant(0)] * len(some)
            for source in sources:
                moment = code.load(moments, number[source])
                for place, target in enumerate(some):
                    i, j, k = (a + b for a, b in zip(target, source, strict=True))
                    value = code.load(derivatives, number[i, j, k])
                    totals[place] = code.add(totals[place], code.multiply(moment, value))
            for total, target in zip(totals, some, strict=True):
                row = number[target]
                before = code.load(result, row)
                code.store(code.add(before, code.multiply(total, scale)), result, row)
        scale = code.multiply(scale, scales[1])

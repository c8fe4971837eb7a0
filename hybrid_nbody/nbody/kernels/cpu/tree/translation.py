"""The code of translations: multipoles of several cells to the expansion about another.

A lane of a vector holds one source. Lengths are divided by the softened distance u of its pair, so
that every number is near 1 whatever the units: then derivatives of 1 / u follow from
``D^(m)_(a + e) = x_e D^(m + 1)_a + a_e D^(m + 1)_(a - e)`` with ``D^(m)_0 = (-1)^m (2 m - 1)!!``
(McMurchie & Davidson, J. Comput. Phys. 26, 1978, for Gaussians). All loops over terms are unrolled
here, when the code is generated; the order is that of the `binomials` of `Tables`.

Where multipoles are in float64, only the products of low orders are (`LEADING`). The others are in
float32, which takes half the time.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import RequireLiteralValue

from hybrid_nbody.backends.llvm import INT32, INT64, intrinsic, shuffle_mask
from hybrid_nbody.backends.simd.code import REGISTER, VectorCode
from hybrid_nbody.nbody.kernels.cpu.tree.layout import EDGE, SUMMARY, pitch_of
from hybrid_nbody.nbody.kernels.expansions import LEADING
from hybrid_nbody.nbody.kernels.multi_indices import (
    MultiIndex,
    multi_indices,
    number_of_terms,
    raised,
)

LEADING_TERMS = number_of_terms(LEADING)

TARGETS_AT_ONCE = 8
"""Terms of the result that are summed side by side, each in a register of its own."""


TRANSLATED = REGISTER // 4
"""Sources that are translated at once, a lane each in float32."""


class CellCode(VectorCode):
    """Generates operations on cells, a lane each."""

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

    def since(self, code: CellCode, lane: int) -> "Sources":
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
        single = CellCode(context, builder, types.float32)
        lowest = LEADING + 1 if in_double else 0
        add_orders(single, (lowest, order), some, at, (moments, derivatives, sums))
        if in_double:
            double = CellCode(context, builder, types.float64)
            wide = [builder.bitcast(block, leading.type) for block in (moments, derivatives)]
            for lane in range(0, single.lanes, double.lanes):
                add_orders(double, (0, LEADING), some.since(double, lane), at, (*wide, leading))
        return context.get_dummy_value()

    arguments = (binomials, multipole, centre, summary, sources, target, scratch)
    return types.void(*arguments), generate


def add_orders(
    code: CellCode, orders: tuple[int, int], sources: Sources, target: Any, scratch: Any
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


def edges_of(code: CellCode, summaries: Any, indices: Any) -> Any:
    """Return the edges of cells, a lane each."""
    vector = ir.Constant(code.type, ir.Undefined)
    for lane, row in enumerate(code.rows(summaries, INT64(SUMMARY), indices)):
        edge = code.builder.load(code.builder.gep(row, [INT64(EDGE)]))
        if code.bytes == 8:
            edge = code.builder.fpext(edge, code.number)
        vector = code.builder.insert_element(vector, edge, INT32(lane))
    return vector


def load_multipoles(code: CellCode, order: int, rows: list[Any], ratio: Any, to: Any) -> None:
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


def store_derivatives(code: CellCode, order: int, unit: list[Any], to: Any) -> None:
    """Store the derivatives of 1 / u at vectors `unit`, lengths in units of u."""
    known: dict[tuple[MultiIndex, int], Any] = {}
    for k, index in enumerate(multi_indices(order)):
        for m in range(order - sum(index) + 1):
            known[index, m] = derivative(code, index, m, unit, known)
        code.store(known[index, 0], to, k)


def derivative(
    code: CellCode,
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
    code: CellCode, orders: tuple[int, int], terms: tuple[Any, Any], scales: Any, result: Any
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

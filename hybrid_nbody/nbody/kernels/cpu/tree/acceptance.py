"""The test whether the expansion of a source is accurate enough for a target, for 16 sources.

The error of an acceleration that the expansions of two cells give is estimated by ``8 max(r_t, r_s)
/ (r_t + r_s) sum_k binomial(p, k) P_k r_t^(p - k) / u^(p + 2)`` (Dehnen, Comput. Astrophys.
Cosmol. 1:1, 2014, eq. 13 and 15), with the radii r of the cells, the power P_k of the multipoles
of order k of the source, and the softened distance u of the centres.
"""

from llvmlite import ir
from numba import types

from hybrid_nbody.backends.llvm import INT64, intrinsic
from hybrid_nbody.backends.simd.code import FLAGS
from hybrid_nbody.nbody.kernels.cpu.tree.layout import EDGE, RADIUS, SUMMARY
from hybrid_nbody.nbody.kernels.cpu.tree.translation import CellCode
from hybrid_nbody.nbody.kernels.expansions import MOST_EDGES, SMALL

TESTS = 16
"""Sources that are tested at once."""


@intrinsic
def accepted(typing_context, binomials, centre, summary, sources, target):
    """Return a number whose bit k is set if source k is accepted, of TESTS sources.

    Bit TESTS + k is set if its parts, together, would be no more accurate than the whole.

    Parameters
    ----------
    binomials : tuple of float
        Of the order.
    centre : address of float64
        Rows of centres, of four numbers.
    summary : address of float32
        Rows of summaries.
    sources : address of int32
        The cells.
    target : tuple
        Address of its centre; in float32 its radius and edge, its largest error of an acceleration,
        the largest ratio of radii to the distance, by how much an error is too large where it is of
        no use to open a source, and the softening length squared.
    """
    order = len(binomials) - 1

    def generate(context, builder, signature, values):
        code = CellCode(context, builder, types.float32)
        _, centres, summaries, indices, at = values
        point, *numbers = (builder.extract_value(at, k) for k in range(7))
        radius, edge, error, angle, worse, eps2 = numbers
        towards = code.differences(code.rows(centres, INT64(4), indices), point)
        inverse = code.inverse_root(code.squares(towards, code.broadcast(eps2)))
        rows = code.rows(summaries, INT64(SUMMARY), indices)
        columns = code.transposed([code.load(row, 0, code.bytes) for row in rows])
        own = code.broadcast(radius)
        size = code.add(own, columns[RADIUS])
        estimate = error_of(code, order, own, columns, inverse)
        compare = builder.fcmp_ordered
        limit = code.multiply(code.broadcast(error), size)
        is_far = compare("<", code.multiply(size, inverse), code.broadcast(angle))
        in_range = builder.and_(
            *(
                compare("<", code.multiply(width, inverse), code.constant(MOST_EDGES))
                for width in (code.broadcast(edge), columns[EDGE])
            )
        )
        is_accurate = compare("<=", estimate, limit)
        is_small = compare("<=", columns[RADIUS], code.multiply(code.constant(SMALL), own))
        is_worse = compare(">", estimate, code.multiply(code.broadcast(worse), limit))
        good = _bits(builder, builder.and_(builder.and_(is_far, in_range), is_accurate))
        hopeless = _bits(builder, builder.and_(is_small, is_worse))
        return builder.or_(good, builder.shl(hopeless, INT64(TESTS)))

    arguments = (binomials, centre, summary, sources, target)
    return types.int64(*arguments), generate


def _bits(builder, lanes):
    """Return a number with a bit for each lane."""
    return builder.zext(builder.bitcast(lanes, ir.IntType(TESTS)), INT64)


def error_of(code, order, own, columns, inverse):
    """Return the estimated error, times the sum of the radii, of each lane."""
    ratio = code.multiply(own, inverse)
    edge = code.multiply(columns[EDGE], inverse)
    scale = edge
    total = columns[0]
    for k in range(1, order + 1):
        total = code.add(code.multiply(total, ratio), code.multiply(columns[k], scale))
        scale = code.multiply(scale, edge)
    larger = code.builder.fcmp_ordered(">", own, columns[RADIUS])
    radius = code.builder.select(larger, own, columns[RADIUS])
    shape = code.multiply(code.constant(8), radius)
    per_square = code.multiply(code.multiply(inverse, inverse), total)
    return code.builder.fmul(shape, per_square, flags=FLAGS)

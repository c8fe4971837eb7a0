"""The source of CUDA kernels."""

import ast
from collections.abc import Mapping

from hybrid_nbody.backends.cells.translation import DIMENSIONS, TOTAL, CellFunction

SUM_THREADS = 512
"""Threads of the block that sums a strip of a plane: each warp takes rows of it."""

PLANE_THREADS = 1024
"""Threads of the block that sums what was found of planes."""

STRIP_ROWS = 32
"""Rows of a strip: the same on any number of ranks, so that sums have the same bits."""

HEADER = """
#define at(index) (index)
typedef {real} real;
struct Box {{ int {box}; }};
__device__ __forceinline__ double sum_of(double a, double b) {{ return a + b; }}
__device__ __forceinline__ double largest_of(double a, double b)
{{
    return !(b <= a) && a == a ? b : a;  // NaN stays
}}
"""

FUNCTION = """
__device__ __forceinline__ {result} {name}({arguments})
{{
    {variables}
{body}
}}
"""

REDUCTION = """
extern "C" __global__ void run_{name}(const Box box, {arguments}, double *found)
{{
    {unpack}
    __shared__ double parts[{threads}];
    const int k = k0 + blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int start_ = j0 + blockIdx.x * {strip}, end_ = min(start_ + {strip}, j1);
    double own = 0.0;
    for (int j = start_ + warp; j < end_; j += {threads} / 32) {{
        #pragma unroll 4
        for (int i = i0 + lane; i < i1; i += 32) own = JOIN(own, {name}({call}));
    }}
    parts[threadIdx.x] = own;
    for (int half = {threads} / 2; half; half /= 2) {{
        __syncthreads();
        if (threadIdx.x < half)
            parts[threadIdx.x] = JOIN(parts[threadIdx.x], parts[threadIdx.x + half]);
    }}
    if (threadIdx.x == 0) found[blockIdx.y * gridDim.x + blockIdx.x] = parts[0];
}}
"""
"""A kernel that joins what a function returns, of a strip of a plane in each block."""

SUM_OF_PLANES = """
extern "C" __global__ void __launch_bounds__({threads})
    sum_planes(const int planes, const int strips, const double *found, double *sums, real *total)
{{
    for (int k = threadIdx.x; k < planes; k += {threads}) {{
        double sum = found[k * strips];
        for (int n = 1; n < strips; ++n) sum += found[k * strips + n];
        sums[k] = sum;
    }}
    int half = 1;
    while (2 * half < planes) half *= 2;
    for (; half; half /= 2) {{
        __syncthreads();
        for (int k = threadIdx.x; k < half && k + half < planes; k += {threads})
            sums[k] += sums[k + half];
    }}
    if (threadIdx.x == 0) *total = planes > 0 ? sums[0] : 0.0;
}}
"""
"""A kernel of one block that does what `hybrid_nbody.backends.cells.sums` does on hosts."""

KERNELS = {
    "over_cells": """
extern "C" __global__ void run_{name}(const Box box, {arguments})
{{
    {unpack}
    const int i = i0 + blockIdx.x * blockDim.x + threadIdx.x;
    const int j = j0 + blockIdx.y * blockDim.y + threadIdx.y;
    const int k = k0 + blockIdx.z * blockDim.z + threadIdx.z;
    if (i < i1 && j < j1 && k < k1) {name}({call});
}}
""",
    "over_columns": """
extern "C" __global__ void run_{name}(const Box box, {arguments})
{{
    {unpack}
    const int i = i0 + blockIdx.x * blockDim.x + threadIdx.x;
    const int j = j0 + blockIdx.y * blockDim.y + threadIdx.y;
    const int k2 = k0 + (blockIdx.z * blockDim.z + threadIdx.z) * depth;
    if (i >= i1 || j >= j1) return;
    for (int k = k2; k < min(k2 + depth, k1); ++k) {name}({call});
}}
""",
    "of_colour": """
extern "C" __global__ void run_{name}(const Box box, {arguments})
{{
    {unpack}
    const int j = j0 + blockIdx.y * blockDim.y + threadIdx.y;
    const int k2 = k0 + (blockIdx.z * blockDim.z + threadIdx.z) * depth;
    if (j >= j1) return;
    for (int k = k2; k < min(k2 + depth, k1); ++k) {{
        const int shift = (k + j + i0 + parity) & 1;
        const int i = i0 + shift + 2 * (blockIdx.x * blockDim.x + threadIdx.x);
        if (i < i1) {name}({call});
    }}
}}
""",
    "plane_sum": REDUCTION.replace("JOIN", "sum_of"),
    "plane_largest": REDUCTION.replace("JOIN", "largest_of"),
}
KERNELS["over_rows"] = KERNELS["over_cells"]  # in other blocks

BOX = ("k0", "k1", "j0", "j1", "i0", "i1", "parity", "depth", *DIMENSIONS)
"""What every kernel is given: a region, the colour, the planes of a thread, and sizes of arrays."""

TYPES = {
    "Real": "real",
    "Int": "int",
    "Bool": "bool",
    "None": "void",
    "Cells": "real *",
    "Table": "real *",
    TOTAL: "real",
}
BOOLS = {ast.And: "&&", ast.Or: "||"}
COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.RShift: ">>",
}
SIGNS = {ast.USub: "-", ast.UAdd: "+", ast.Not: "!"}


def cuda_source(functions: Mapping[str, CellFunction], dtype: str) -> str:
    """Return a source with a kernel for every function that has a role."""
    kernels = (_kernel(function) for function in functions.values() if function.role)
    of_planes = SUM_OF_PLANES.format(threads=PLANE_THREADS)
    return functions_of(functions, dtype) + of_planes + "".join(kernels)


def functions_of(functions: Mapping[str, CellFunction], dtype: str) -> str:
    """Return the source of the functions alone, for kernels that follow."""
    head = HEADER.format(real={"f4": "float", "f8": "double"}[dtype], box=", ".join(BOX))
    return head + "".join(map(_function, functions.values()))


def unpacked() -> str:
    """Return the declarations of what a kernel finds in its `box`."""
    return " ".join(f"const int {name} = box.{name};" for name in BOX)


def _function(function: CellFunction) -> str:
    variables = " ".join(f"{TYPES[kind]} {name};" for name, kind in function.variables.items())
    return FUNCTION.format(
        result=TYPES[function.result],
        name=function.name,
        arguments=_declared(dict.fromkeys(DIMENSIONS, "Int") | function.parameters),
        variables=variables,
        body=_block(function.body),
    )


def _declared(parameters: dict[str, str]) -> str:
    return ", ".join(f"{TYPES[kind]} {name}" for name, kind in parameters.items())


def _kernel(function: CellFunction) -> str:
    given = dict(list(function.parameters.items())[3:])
    pointers = {f"*{name}" if kind == TOTAL else name: kind for name, kind in given.items()}
    return KERNELS[function.role].format(
        name=function.name,
        unpack=unpacked(),
        arguments=_declared(pointers),
        call=", ".join((*DIMENSIONS, "k", "j", "i", *pointers)),
        threads=SUM_THREADS,
        strip=STRIP_ROWS,
    )


# ---- Statements ----------------------------------------------------------------------------------


def _block(nodes: list[ast.stmt]) -> str:
    return "\n".join(_statement(node) for node in nodes)


def _statement(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign):
        return f"{_text(node.targets[0])} = {_text(node.value)};"
    if isinstance(node, ast.If):
        other = f" else {{\n{_block(node.orelse)}\n}}" if node.orelse else ""
        return f"if ({_text(node.test)}) {{\n{_block(node.body)}\n}}{other}"
    if isinstance(node, ast.Return):
        return f"return {_text(node.value)};" if node.value else "return;"
    assert isinstance(node, ast.For) and isinstance(node.iter, ast.Call)  # `_Typing` let it pass
    name = _text(node.target)
    *start, end = map(_text, node.iter.args)
    head = f"for ({name} = {start[0] if start else 0}; {name} < {end}; ++{name})"
    return f"{head} {{\n{_block(node.body)}\n}}"


# ---- Expressions ---------------------------------------------------------------------------------


def _text(node: ast.expr) -> str:
    """Return an expression in CUDA."""
    if isinstance(node, ast.Constant | ast.Name):
        return ast.unparse(node)
    if isinstance(node, ast.Subscript):
        return f"{_text(node.value)}[{_text(node.slice)}]"
    if isinstance(node, ast.Call):
        return f"{_text(node.func)}({', '.join(map(_text, node.args))})"
    if isinstance(node, ast.BinOp):
        return f"({_text(node.left)} {OPERATORS[type(node.op)]} {_text(node.right)})"
    if isinstance(node, ast.UnaryOp):
        return f"({SIGNS[type(node.op)]}{_text(node.operand)})"
    if isinstance(node, ast.Compare):
        return _comparison(node)
    if isinstance(node, ast.BoolOp):
        return "(" + f" {BOOLS[type(node.op)]} ".join(map(_text, node.values)) + ")"
    assert isinstance(node, ast.IfExp)  # `_Typing` let it pass
    return f"({_text(node.test)} ? {_text(node.body)} : {_text(node.orelse)})"


def _comparison(node: ast.Compare) -> str:
    sides = [_text(side) for side in (node.left, *node.comparators)]
    signs = [COMPARISONS[type(op)] for op in node.ops]
    pairs = zip(sides, signs, sides[1:], strict=False)
    return "(" + " && ".join(f"{a} {sign} {b}" for a, sign, b in pairs) + ")"

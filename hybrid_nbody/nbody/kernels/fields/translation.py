"""From a function of scalars in Python to one in CUDA.

The function may assign to names, branch, call functions of `math`, and return four numbers; names
that it does not set are numbers of its module. All of them are of type double.
"""

import ast
import inspect
import math
import textwrap
from typing import Any

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.fields.field import FieldFunction

ARGUMENTS = ("position", "velocity", "mass", "time", "parameters")
VECTORS = {"position": 3, "velocity": 3}
RESULTS = 4

FUNCTIONS = frozenset(
    ("sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "pow", "hypot", "fabs", "floor")
    + ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "ceil", "erf", "erfc")
    + ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
)
"""Functions of `math` that CUDA has by the same name."""

BUILTINS = {"abs": "fabs", "min": "fmin", "max": "fmax", "pow": "pow"}

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def translated(function: FieldFunction, name: str, parameters: int) -> str:
    """Return a function in CUDA, on one line.

    Parameters
    ----------
    function : FieldFunction
    name : str
        Of the result: ``__device__ void name(const double *position, const double *velocity,
        double mass, double time, const double *parameters, double *result)``.
    parameters : int
        Their number.

    Raises
    ------
    InputError
        If the function does what cannot be translated, with its file and line.
    """
    return _Translation(function, parameters).text(name)


class _Translation:
    """The translation of one function."""

    def __init__(self, function: FieldFunction, parameters: int) -> None:
        self.function = function
        self.lengths = VECTORS | {"parameters": parameters}
        self.names: set[str] = set()
        self.file = inspect.getsourcefile(function) or "?"
        lines, self.first_line = inspect.getsourcelines(function)
        (tree,) = ast.parse(textwrap.dedent("".join(lines))).body
        if not isinstance(tree, ast.FunctionDef):
            raise InputError(f"{self.file}:{self.first_line}: a field is a function made by def")
        self.tree = tree

    def text(self, name: str) -> str:
        """Return the whole function."""
        given = tuple(argument.arg for argument in self.tree.args.args)
        if given != ARGUMENTS:
            self._refuse(self.tree, f"a field takes the arguments ({', '.join(ARGUMENTS)})")
        body = "".join(self._statement(node) for node in self.tree.body)
        if not _returns(self.tree.body):
            self._refuse(self.tree, "a field returns ax, ay, az, potential on every path")
        variables = "".join(f"double {self._local(name)}; " for name in sorted(self.names))
        vectors = "const double *position, const double *velocity"
        rest = "double mass, double time, const double *parameters, double *result"
        return f"__device__ inline void {name}({vectors}, {rest}) {{ {variables}{body}}} "

    def _refuse(self, node: ast.AST, reason: str) -> None:
        line = self.first_line + getattr(node, "lineno", 1) - 1
        raise InputError(f"{self.file}:{line}: {reason}")

    @staticmethod
    def _local(name: str) -> str:
        """Return the name of a variable in CUDA, where it cannot be a word of the language."""
        return f"v_{name}"

    # ---- Statements ------------------------------------------------------------------------------

    def _statement(self, node: ast.stmt) -> str:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return ""  # a docstring
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self._assignment(node.targets[0], node.value)
        if isinstance(node, ast.AugAssign):
            whole = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            return self._assignment(node.target, whole)
        if isinstance(node, ast.If):
            return self._branch(node)
        if isinstance(node, ast.Return):
            return self._results(node)
        self._refuse(node, "a field may assign, branch with if, and return; nothing else")
        return ""

    def _branch(self, node: ast.If) -> str:
        body = "".join(self._statement(inner) for inner in node.body)
        other = "".join(self._statement(inner) for inner in node.orelse)
        return f"if ({self._expression(node.test)}) {{ {body}}} else {{ {other}}} "

    def _results(self, node: ast.Return) -> str:
        values = node.value.elts if isinstance(node.value, ast.Tuple) else []
        if len(values) != RESULTS:
            self._refuse(node, "a field returns ax, ay, az, potential")
        sets = "".join(
            f"result[{place}] = {self._expression(value)}; " for place, value in enumerate(values)
        )
        return f"{sets}return; "

    def _assignment(self, target: ast.expr, value: ast.expr) -> str:
        if isinstance(target, ast.Name):
            text = self._expression(value)
            self.names.add(target.id)
            return f"{self._local(target.id)} = {text}; "
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Name):
            return self._unpacked(target, value.id)
        self._refuse(target, "a field assigns to names, or unpacks position, velocity, parameters")
        return ""

    def _unpacked(self, target: ast.Tuple, vector: str) -> str:
        names = [part.id for part in target.elts if isinstance(part, ast.Name)]
        length = self.lengths.get(vector)
        if len(names) != len(target.elts) or length != len(names):
            self._refuse(target, f"{vector} has {length or 'no'} components, not {len(names)}")
        self.names.update(names)
        return "".join(
            f"{self._local(name)} = {vector}[{place}]; " for place, name in enumerate(names)
        )

    # ---- Expressions -----------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> str:
        method = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if method is None:
            self._refuse(node, f"cannot translate {ast.unparse(node)}")
        text: str = method(node)  # type: ignore[misc]  # refused if it is None
        return text

    def _of_constant(self, node: ast.Constant) -> str:
        return self._number(node, node.value)

    def _number(self, node: ast.expr, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(node, f"{ast.unparse(node)} is not a number")
        if not math.isfinite(value):
            return "(1.0 / 0.0)" if value > 0 else "(-1.0 / 0.0)"
        return f"({float(value)!r})"

    def _of_name(self, node: ast.Name) -> str:
        if node.id in ("mass", "time"):
            return node.id
        if node.id in self.names:
            return self._local(node.id)
        found = self.function.__globals__.get(node.id)
        if found is None:
            self._refuse(node, f"{node.id} is neither set before nor a number of the module")
        return self._number(node, found)

    def _of_attribute(self, node: ast.Attribute) -> str:
        if isinstance(node.value, ast.Name) and node.value.id == "math":
            return self._number(node, getattr(math, node.attr, None))
        self._refuse(node, f"{ast.unparse(node)} is not a number of math")
        return ""

    def _of_subscript(self, node: ast.Subscript) -> str:
        vector = getattr(node.value, "id", "")
        place = getattr(node.slice, "value", None)
        length = self.lengths.get(vector, 0)
        if not isinstance(place, int) or not 0 <= place < length:
            self._refuse(node, f"{ast.unparse(node)}: {vector} has {length} components")
        return f"{vector}[{place}]"

    def _of_binop(self, node: ast.BinOp) -> str:
        left = self._expression(node.left)
        right = self._expression(node.right)
        if isinstance(node.op, ast.Pow):
            return f"pow({left}, {right})"
        sign = OPERATORS.get(type(node.op))
        if sign is None:
            self._refuse(node, f"cannot translate {ast.unparse(node)}; there are + - * / **")
        return f"({left} {sign} {right})"

    def _of_unaryop(self, node: ast.UnaryOp) -> str:
        sign = {ast.USub: "-", ast.UAdd: "+", ast.Not: "!"}.get(type(node.op))
        if sign is None:
            self._refuse(node, f"cannot translate {ast.unparse(node)}")
        return f"({sign}{self._expression(node.operand)})"

    def _of_compare(self, node: ast.Compare) -> str:
        sides = [self._expression(side) for side in (node.left, *node.comparators)]
        signs = [COMPARISONS.get(type(op)) for op in node.ops]
        if None in signs:
            self._refuse(node, f"cannot translate {ast.unparse(node)}")
        pairs = zip(sides, signs, sides[1:], strict=False)
        return "(" + " && ".join(f"{a} {sign} {b}" for a, sign, b in pairs) + ")"

    def _of_boolop(self, node: ast.BoolOp) -> str:
        sign = " && " if isinstance(node.op, ast.And) else " || "
        return "(" + sign.join(self._expression(value) for value in node.values) + ")"

    def _of_ifexp(self, node: ast.IfExp) -> str:
        parts = (node.test, node.body, node.orelse)
        test, then, otherwise = (self._expression(part) for part in parts)
        return f"({test} ? {then} : {otherwise})"

    def _of_call(self, node: ast.Call) -> str:
        name = self._function(node.func)
        if name is None or node.keywords:
            self._refuse(node, f"cannot translate {ast.unparse(node)}; take functions of math")
        return f"{name}({', '.join(self._expression(value) for value in node.args)})"

    def _function(self, node: ast.expr) -> str | None:
        """Return the name of a function in CUDA."""
        if isinstance(node, ast.Name):
            return BUILTINS.get(node.id)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "math":
            return node.attr if node.attr in FUNCTIONS else None
        return None


def _returns(body: list[ast.stmt]) -> bool:
    """Return whether statements always end by returning."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _returns(last.body) and _returns(last.orelse)
    return isinstance(last, ast.Return)

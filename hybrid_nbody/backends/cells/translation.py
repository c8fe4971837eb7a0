"""Functions of a cell as trees in which every number has a type and every index is flat."""

import ast
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np

ARRAYS = {"Cells": ("rows", "columns"), "Table": ("table_rows", "table_columns")}
"""For each type of array the names of its numbers of rows and columns."""

DIMENSIONS = ("rows", "columns", "table_rows", "table_columns")
"""Arguments that every translated function begins with."""

TOTAL = "Total"
"""A type of arguments: a number of the working type, which a GPU reads from its own memory."""

INDICES = 3
"""Arguments of a function that say which cell it is for."""

NUMBERS = {"f4": np.float32, "f8": np.float64}
"""The type of numbers for each working type."""

ROLES = ("over_cells", "over_rows", "over_columns", "of_colour", "plane_sum", "plane_largest")

IN_SEQUENCES = "in_sequences"
"""The decorator of functions that are also called one after another in one launch."""

REAL_FUNCTIONS = ("sqrt", "fabs", "exp", "floor")
BLENDS = ("min", "max")


class TranslationError(Exception):
    """A function does what cannot be translated."""


@dataclass
class CellFunction:
    """A function of a cell.

    Attributes
    ----------
    name : str
    role : str
        The name of its decorator; empty if others call it.
    parameters : dict
        The type of every argument by name: Cells, Table, Real, Int, Total.
    result : str
        Its type: Real, Int or None.
    body : list of ast.stmt
    in_sequences : bool
        Whether it is also called one after another with others in one launch.
    variables : dict
        The type of every local variable: Real or Int.
    """

    name: str
    role: str
    parameters: dict[str, str]
    result: str
    body: list[ast.stmt]
    in_sequences: bool = False
    variables: dict[str, str] = field(default_factory=dict)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The type of each argument that follows the indices."""
        return tuple(self.parameters.values())[INDICES:]

    @cached_property
    def first_arrays(self) -> tuple[int | None, ...]:
        """The place of the first array of each type among these; None without one."""
        kinds = self.kinds
        return tuple(kinds.index(kind) if kind in kinds else None for kind in ARRAYS)


@cache
def described(modules: tuple[ModuleType, ...]) -> Mapping[str, CellFunction]:
    """Return the functions of modules by name, as they were written: for those that call them."""
    trees = [ast.parse(inspect.getsource(module)) for module in modules]
    found = [_read(node) for tree in trees for node in tree.body if _is_function(node)]
    return {function.name: function for function in found}


def translated(modules: Sequence[ModuleType]) -> dict[str, CellFunction]:
    """Return the functions of modules by name, callees before callers, with types and flat indices.

    Raises
    ------
    TranslationError
        If a function does what cannot be translated, with its file and line.
    """
    functions: dict[str, CellFunction] = {}
    constants: dict[str, float] = {}
    for module in modules:
        tree = ast.parse(inspect.getsource(module))
        constants |= _constants(tree)
        for node in tree.body:
            if _is_function(node):
                function = _read(node)
                if function.name in functions:
                    place = f"{module.__file__}:{node.lineno}"
                    raise TranslationError(f"{place}: there is a function {function.name} already")
                functions[function.name] = function
                _Typing(function, functions, constants, str(module.__file__)).apply()
    return functions


def _is_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef)


def _constants(tree: ast.Module) -> dict[str, float]:
    """Return the numbers that a module gives names to."""
    found: dict[str, float] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if isinstance(node.value.value, int | float):
                found |= dict.fromkeys(names, node.value.value)
    return found


def _read(node: ast.FunctionDef) -> CellFunction:
    """Return a function as it was written."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    roles = [name for name in decorators if name in ROLES]
    parameters = {
        argument.arg: ast.unparse(argument.annotation) if argument.annotation else "Real"
        for argument in node.args.args
    }
    result = ast.unparse(node.returns) if node.returns else "None"
    role = roles[0] if roles else ""
    return CellFunction(node.name, role, parameters, result, node.body, IN_SEQUENCES in decorators)


def sizes(function: CellFunction, arguments: Sequence[Any]) -> list[int]:
    """Return rows and columns of the first array of each type among arguments; 0 without one."""
    found: list[int] = []
    for place in function.first_arrays:
        found += (0, 0) if place is None else arguments[place].shape[1:]
    return found


class _Typing:
    """Gives types to one function."""

    def __init__(
        self,
        function: CellFunction,
        functions: Mapping[str, CellFunction],
        constants: Mapping[str, float],
        file: str,
    ) -> None:
        self.function = function
        self.functions = functions
        self.constants = constants
        self.file = file

    def apply(self) -> None:
        """Replace the body of the function."""
        self.function.body = self._statements(self.function.body)

    def _refuse(self, node: ast.AST, reason: str) -> TranslationError:
        return TranslationError(f"{self.file}:{getattr(node, 'lineno', 0)}: {reason}")

    # ---- Statements ------------------------------------------------------------------------------

    def _statements(self, nodes: Iterable[ast.stmt]) -> list[ast.stmt]:
        return [
            self._statement(node)
            for node in nodes
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        ]

    def _statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self._assignment(node.targets[0], node.value)
        if isinstance(node, ast.AugAssign):
            changed = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            return self._assignment(node.target, changed)
        if isinstance(node, ast.If):
            test, _ = self._typed(node.test)
            return ast.If(test, self._statements(node.body), self._statements(node.orelse))
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            return self._loop(node, node.target)
        if isinstance(node, ast.Return):
            value = node.value and self._as(node.value, self.function.result)
            return ast.Return(value)
        raise self._refuse(node, "a function of a cell may assign, branch, loop and return")

    def _loop(self, node: ast.For, target: ast.Name) -> ast.For:
        call = node.iter
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "range"):
            raise self._refuse(node, "a loop of a function of a cell is over a range")
        self.function.variables[target.id] = "Int"
        ends = [self._as(end, "Int") for end in call.args]
        return ast.For(target, ast.Call(call.func, ends, []), self._statements(node.body), [])

    def _assignment(self, target: ast.expr, value: ast.expr) -> ast.Assign:
        if isinstance(target, ast.Subscript):
            return _assign(self._element(target), self._as(value, "Real"))
        if not isinstance(target, ast.Name):
            raise self._refuse(target, "assign to a name or to an element of an array")
        kind = self._known(target.id)
        if kind is None:
            typed, kind = self._typed(value)
            self.function.variables[target.id] = kind
            return _assign(target, typed)
        return _assign(target, self._as(value, kind))

    def _known(self, name: str) -> str | None:
        """Return the type of a name that was set before."""
        kind = self.function.variables.get(name) or self.function.parameters.get(name)
        return "Real" if kind == TOTAL else kind

    # ---- Expressions -----------------------------------------------------------------------------

    def _as(self, node: ast.expr, kind: str) -> ast.expr:
        """Return an expression of a type."""
        typed, found = self._typed(node)
        if kind == found or kind in ARRAYS:
            return typed
        if kind == "Real" and found == "Int":
            return _real(typed)
        raise self._refuse(node, f"{ast.unparse(node)} is of type {found}, not {kind}")

    def _typed(self, node: ast.expr) -> tuple[ast.expr, str]:
        """Return an expression in which every number has a type, and its own."""
        method = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if method is None:
            raise self._refuse(node, f"cannot translate {ast.unparse(node)}")
        typed, kind = method(node)
        return ast.copy_location(typed, node), kind

    def _of_constant(self, node: ast.Constant) -> tuple[ast.expr, str]:
        if isinstance(node.value, float):
            return _real(node), "Real"
        return node, "Int"

    def _of_name(self, node: ast.Name) -> tuple[ast.expr, str]:
        if node.id in self.constants:
            return self._of_constant(ast.Constant(self.constants[node.id]))
        kind = "Int" if node.id in DIMENSIONS else self._known(node.id)
        if kind is None:
            raise self._refuse(node, f"{node.id} is not set before it is used")
        return node, kind

    def _of_subscript(self, node: ast.Subscript) -> tuple[ast.expr, str]:
        return self._element(node), "Real"

    def _element(self, node: ast.Subscript) -> ast.Subscript:
        """Return an element of an array with a flat index."""
        array = ast.unparse(node.value)
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        if len(places) != INDICES or self._known(array) not in ARRAYS:
            raise self._refuse(node, f"{ast.unparse(node)} is no element of an array")
        rows, columns = ARRAYS[str(self._known(array))]
        k, j, i = (ast.unparse(self._as(place, "Int")) for place in places)
        flat = f"{array}[at((({k}) * {rows} + ({j})) * {columns} + ({i}))]"
        (statement,) = ast.parse(flat).body
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Subscript)
        return statement.value

    def _of_binop(self, node: ast.BinOp) -> tuple[ast.expr, str]:
        kind = "Real" if isinstance(node.op, ast.Div) else self._common(node.left, node.right)
        return ast.BinOp(self._as(node.left, kind), node.op, self._as(node.right, kind)), kind

    def _common(self, *nodes: ast.expr) -> str:
        kinds = {self._typed(node)[1] for node in nodes}
        return "Int" if kinds == {"Int"} else "Real"

    def _of_unaryop(self, node: ast.UnaryOp) -> tuple[ast.expr, str]:
        typed, kind = self._typed(node.operand)
        return ast.UnaryOp(node.op, typed), kind

    def _of_compare(self, node: ast.Compare) -> tuple[ast.expr, str]:
        sides = [node.left, *node.comparators]
        kind = self._common(*sides)
        left, *others = (self._as(side, kind) for side in sides)
        return ast.Compare(left, node.ops, others), "Bool"

    def _of_boolop(self, node: ast.BoolOp) -> tuple[ast.expr, str]:
        return ast.BoolOp(node.op, [self._typed(value)[0] for value in node.values]), "Bool"

    def _of_ifexp(self, node: ast.IfExp) -> tuple[ast.expr, str]:
        kind = self._common(node.body, node.orelse)
        test, _ = self._typed(node.test)
        return ast.IfExp(test, self._as(node.body, kind), self._as(node.orelse, kind)), kind

    def _of_call(self, node: ast.Call) -> tuple[ast.expr, str]:
        name = ast.unparse(node.func).removeprefix("math.")
        if name in self.functions:
            return self._own_call(node, self.functions[name])
        if name in ("int", "float"):
            return self._conversion(node, name)
        if name in REAL_FUNCTIONS:
            return _call(name, [self._as(value, "Real") for value in node.args]), "Real"
        if name in BLENDS:
            kind = self._common(*node.args)
            return _call(name, [self._as(value, kind) for value in node.args]), kind
        raise self._refuse(node, f"cannot translate {ast.unparse(node)}")

    def _conversion(self, node: ast.Call, name: str) -> tuple[ast.expr, str]:
        (value,) = (self._typed(value)[0] for value in node.args)
        return (_call("int", [value]), "Int") if name == "int" else (_real(value), "Real")

    def _own_call(self, node: ast.Call, called: CellFunction) -> tuple[ast.expr, str]:
        if len(node.args) != len(called.parameters):
            raise self._refuse(node, f"{called.name} takes {len(called.parameters)} arguments")
        pairs = zip(node.args, called.parameters.values(), strict=True)
        given = [self._as(value, kind) for value, kind in pairs]
        dimensions: list[ast.expr] = [ast.Name(name) for name in DIMENSIONS]
        return _call(called.name, [*dimensions, *given]), called.result


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name), arguments, [])


def _real(value: ast.expr) -> ast.Call:
    return _call("real", [value])


def _assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign([target], value)

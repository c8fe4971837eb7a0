"""Formulas that people write in a configuration, such as ``4*y*(1 - y)``.

They are read by Python's own parser and evaluated by NumPy; nothing but numbers, names and the
functions of `FUNCTIONS` can be said in them, so that a file can do no harm.
"""

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64] | np.float64
"""The values of a variable: one for each point, or one for all."""

LONGEST = 500
"""Characters of a formula."""

DEEPEST = 100
"""Levels of parts within parts of a formula; a sum of n numbers has n."""

LARGEST = 1e300
"""Where numbers of a formula end."""

VARIABLES = ("x", "y", "z", "t")
CONSTANTS = {"pi": math.pi}

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: np.positive,
    ast.USub: np.negative,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


@dataclass(frozen=True)
class _Function:
    """A function of a formula: what computes it, and how many numbers it takes."""

    compute: Callable[..., Any]
    fewest: int = 1
    most: int = 1


def _least(*values: Any) -> Any:
    return reduce(np.minimum, values)


def _largest(*values: Any) -> Any:
    return reduce(np.maximum, values)


def _where(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(np.not_equal(condition, 0.0), yes, no)


FUNCTIONS = {
    "sin": _Function(np.sin),
    "cos": _Function(np.cos),
    "tan": _Function(np.tan),
    "exp": _Function(np.exp),
    "log": _Function(np.log),
    "sqrt": _Function(np.sqrt),
    "tanh": _Function(np.tanh),
    "abs": _Function(np.abs),
    "min": _Function(_least, 2, 9),
    "max": _Function(_largest, 2, 9),
    "where": _Function(_where, 3, 3),
}

ALLOWED = (
    f"numbers, {', '.join(VARIABLES)}, {', '.join(CONSTANTS)}, + - * / **, comparisons, and "
    f"{', '.join(FUNCTIONS)}"
)
"""What a formula is made of, in words."""


@dataclass(frozen=True)
class Formula:
    """A formula of x, y, z and t.

    Attributes
    ----------
    text : str
        As it is written.

    Raises
    ------
    ValueError
        If it is none, or holds anything else than `ALLOWED`; the message says what.
    """

    text: str

    def __post_init__(self) -> None:
        for node in _nodes(self._tree):
            fault = _fault(node)
            if fault:
                raise ValueError(f"{fault} in {self.text!r}; a formula has {ALLOWED}")

    @property
    def names(self) -> frozenset[str]:
        """Return the variables on which it depends."""
        found = (node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))
        return frozenset(found).intersection(VARIABLES)

    def __call__(self, variables: Mapping[str, Numbers]) -> Numbers:
        """Return the values of the formula.

        Parameters
        ----------
        variables : mapping of str to float64 or array of float64
            The values of x, y, z and t, each of them one number or contiguous.

        Returns
        -------
        float64 or array of float64
            Infinite or no number where the formula is.
        """
        with np.errstate(all="ignore"):
            values: Numbers = _value(self._tree, variables)
        return values

    @cached_property
    def _tree(self) -> ast.expr:
        if len(self.text) > LONGEST:
            raise ValueError(f"a formula has at most {LONGEST} characters, not {len(self.text)}")
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError(f"{self.text!r} is no formula; it has {ALLOWED}") from None


def _nodes(node: ast.expr, level: int = 0) -> Iterator[ast.expr]:
    """Yield the parts of a formula that have a value, what is not allowed without its own parts."""
    if level > DEEPEST:
        raise ValueError(f"a formula is nested {DEEPEST} levels deep at most; write a shorter one")
    yield node
    for child in _children(node):
        yield from _nodes(child, level + 1)


def _children(node: ast.expr) -> list[ast.expr]:
    """Return the parts of which the value of a part is computed."""
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(args=args):
            return args
    return []


def _fault(node: ast.expr) -> str:
    """Return what is wrong with a part of a formula; empty if nothing is."""
    match node:
        case ast.Constant(value=value):
            return "" if _is_number(value) else f"{value!r} is no number"
        case ast.Name(id=name):
            known = name in VARIABLES or name in CONSTANTS
            return "" if known else f"{name!r} is unknown"
        case ast.BinOp(op=operator):
            return "" if type(operator) in _BINARY else "an operator is not allowed"
        case ast.UnaryOp(op=sign):
            return "" if type(sign) in _UNARY else "an operator is not allowed"
        case ast.Compare(ops=operators):
            known = all(type(operator) in _COMPARISONS for operator in operators)
            return "" if known else "a comparison is not allowed"
        case ast.Call():
            return _fault_of_call(node)
    return f"{ast.unparse(node)!r} is not allowed"


def _is_number(value: object) -> bool:
    """Return whether a constant is a number of moderate size."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < LARGEST


def _fault_of_call(call: ast.Call) -> str:
    """Return what is wrong with the call of a function."""
    name = call.func.id if isinstance(call.func, ast.Name) else ast.unparse(call.func)
    function = FUNCTIONS.get(name)
    if function is None:
        return f"the function {name!r} is unknown"
    plain = not call.keywords and not any(isinstance(part, ast.Starred) for part in call.args)
    if plain and function.fewest <= len(call.args) <= function.most:
        return ""
    numbers = str(function.fewest) if function.fewest == function.most else "2 or more"
    return f"{name} takes {numbers} number{'' if numbers == '1' else 's'}"


def _value(node: ast.expr, variables: Mapping[str, Numbers]) -> Any:
    """Return the value of a part of a formula that has no fault."""
    match node:
        case ast.Constant(value=value):
            return np.float64(value)  # type: ignore[arg-type]  # a number
        case ast.Name(id=name):
            return variables[name] if name in variables else np.float64(CONSTANTS[name])
    values = [_value(child, variables) for child in _children(node)]
    match node:
        case ast.BinOp(op=operator):
            return _BINARY[type(operator)](*values)
        case ast.UnaryOp(op=sign):
            return _UNARY[type(sign)](*values)
        case ast.Call(func=ast.Name(id=name)):
            return FUNCTIONS[name].compute(*values)
        case ast.Compare(ops=operators):
            return _compared(operators, values)
    raise AssertionError("a part that was not allowed")


def _compared(operators: list[ast.cmpop], values: list[Any]) -> Any:
    """Return 1 where all comparisons of a chain hold, else 0."""
    pairs = zip(operators, values, values[1:], strict=False)
    held = [_COMPARISONS[type(operator)](a, b) for operator, a, b in pairs]
    return np.where(reduce(np.logical_and, held), 1.0, 0.0)

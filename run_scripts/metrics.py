"""Print the style of the package in figures: one table, for a person to read.

    python run_scripts/metrics.py [FOLDER ...]

Lengths are those of functions with their docstrings. A parallel assignment is ``a, b = x, y``.
"""

import ast
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MANY_PARAMETERS = 6
LONG_FILE = 400
LONG_LINE = 100


def python_files(folders: list[Path]) -> list[Path]:
    """Return the Python files below the folders."""
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def nodes_of(paths: list[Path]) -> Iterator[ast.AST]:
    """Yield every node of every file."""
    for path in paths:
        yield from ast.walk(ast.parse(path.read_text()))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of parameters, without ``self`` and ``cls``."""
    given = function.args
    named = [*given.posonlyargs, *given.args]
    bound = bool(named) and named[0].arg in ("self", "cls")
    return len(named) + len(given.kwonlyargs) - bound


def is_parallel(assignment: ast.Assign) -> bool:
    """Return whether an assignment gives several names a value each."""
    target = assignment.targets[0]
    value = assignment.value
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    return both and len(target.elts) == len(value.elts)


def nested_conditionals(nodes: list[ast.AST]) -> int:
    """Return the number of conditional expressions within another one."""
    outer = [node for node in nodes if isinstance(node, ast.IfExp)]
    return sum(
        isinstance(inner, ast.IfExp)
        for node in outer
        for inner in ast.walk(node)
        if inner is not node
    )


def percent(part: int, whole: int) -> str:
    """Return a share in per cent."""
    return f"{100 * part / max(whole, 1):.1f} %"


def table(paths: list[Path]) -> list[tuple[str, str]]:
    """Return each figure's name and value."""
    nodes = list(nodes_of(paths))
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    assignments = [node for node in nodes if isinstance(node, ast.Assign)]
    lengths = [node.end_lineno - node.lineno + 1 for node in functions]
    lines = [line for path in paths for line in path.read_text().splitlines()]
    sizes = [len(path.read_text().splitlines()) for path in paths]
    many = sum(parameters(function) > MANY_PARAMETERS for function in functions)
    parallel = sum(is_parallel(assignment) for assignment in assignments)
    long_lines = sum(len(line) > LONG_LINE for line in lines)
    return [
        ("files", str(len(paths))),
        ("lines", str(len(lines))),
        ("functions", str(len(functions))),
        ("lines of a function, median", f"{statistics.median(lengths):.0f}"),
        ("lines of a function, 90 %", f"{statistics.quantiles(lengths, n=10)[-1]:.0f}"),
        (f"functions with more than {MANY_PARAMETERS} parameters", percent(many, len(functions))),
        ("parallel assignments", percent(parallel, len(assignments))),
        ("nested conditional expressions", str(nested_conditionals(nodes))),
        (f"lines over {LONG_LINE} columns", percent(long_lines, len(lines))),
        (f"files of {LONG_FILE} lines or more", str(sum(size >= LONG_FILE for size in sizes))),
    ]


def main(words: list[str]) -> None:
    """Print the table of the folders, by default of the package."""
    folders = [Path(word) for word in words] or [ROOT / "hybrid_nbody"]
    rows = table(python_files(folders))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value:>8}")


if __name__ == "__main__":
    main(sys.argv[1:])

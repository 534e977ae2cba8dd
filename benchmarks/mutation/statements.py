"""The lines that belong to the statement around a line."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


def statement(path: Path, line: int) -> range | None:
    """The lines of the innermost statement of a function that has this line, of a compound one the head; None where the
    line is of a module, a class or a signature, which run when the file is loaded."""
    return next((lines for lines in _bodies(path) if line in lines), None)


@cache
def _bodies(path: Path) -> tuple[range, ...]:
    """Statements in functions, the shortest first."""
    functions = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef))
    statements = (node for function in functions for child in function.body for node in ast.walk(child))
    lines = (_head(node) for node in statements if isinstance(node, (ast.stmt, ast.excepthandler)))
    return tuple(sorted(lines, key=len))


def _head(node: ast.stmt | ast.excepthandler) -> range:
    body = getattr(node, "body", None)
    end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return range(node.lineno, max(end, node.lineno) + 1)

"""Finds the lines of the statement around a line, and the lines that use the names it defines at import."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


def statement(path: Path, line: int) -> range | None:
    """Return the lines of the innermost statement in a function that contains this line.

    Of a compound statement only the head counts. None if the line belongs to a module, a class or a signature, which
    run at import.
    """
    return next((lines for lines in _bodies(path) if line in lines), None)


def readers(path: Path, line: int) -> set[int]:
    """Return the lines of functions that use the names which the module-level statement at this line defines.

    For a signature, return the lines of its function.
    """
    for node in _tree(path).body:
        if node.lineno <= line <= (node.end_lineno or 0):
            return _body_lines(node) if isinstance(node, ast.FunctionDef) else _lines_with(path, _names_set(node))
    return set()


def _body_lines(function: ast.FunctionDef) -> set[int]:
    return {node.lineno for child in function.body for node in ast.walk(child) if isinstance(node, ast.stmt)}


def _names_set(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return set()
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _lines_with(path: Path, names: set[str]) -> set[int]:
    return {node.lineno for node in ast.walk(_tree(path)) if isinstance(node, ast.Name) and node.id in names}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def _bodies(path: Path) -> tuple[range, ...]:
    """Return the line ranges of all statements in functions, the shortest first."""
    functions = (node for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef))
    statements = (node for function in functions for child in function.body for node in ast.walk(child))
    lines = (_head(node) for node in statements if isinstance(node, (ast.stmt, ast.excepthandler)))
    return tuple(sorted(lines, key=len))


def _head(node: ast.stmt | ast.excepthandler) -> range:
    body = getattr(node, "body", None)
    end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return range(node.lineno, max(end, node.lineno) + 1)

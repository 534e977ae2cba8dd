"""Nodes of tree-sitter's syntax tree: their text, what is inside them, and what is around them."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_CONDITIONALS = frozenset({"if_statement", "switch_statement", "case_statement"})
_FUNCTIONS = frozenset({"function_definition", "lambda_expression"})


def text_of(node: Node | None) -> str:
    """Return the source text of a syntax node; "" for None."""
    return "" if node is None or node.text is None else node.text.decode()


def walk(node: Node) -> Iterator[Node]:
    """Yield a syntax node and all nodes below it, in the order of the text.

    A cursor visits them, because a node that is asked for its children keeps them in memory.
    """
    cursor = node.walk()
    inside = True
    while inside:
        assert cursor.node is not None
        yield cursor.node
        inside = cursor.goto_first_child() or cursor.goto_next_sibling()
        while not inside and cursor.goto_parent():
            inside = cursor.goto_next_sibling()


def ancestors(node: Node) -> Iterator[Node]:
    """Yield the syntax nodes around ``node``, innermost first."""
    while node.parent is not None:
        node = node.parent
        yield node


def block_of(node: Node) -> Node | None:
    """Return the innermost block ``{ … }`` of statements around ``node``."""
    return next((outer for outer in ancestors(node) if outer.type == "compound_statement"), None)


def owner_of(block: Node) -> tuple[str, Node]:
    """Return the kind of a block's owner (function, loop, conditional or region) and the node whose body the block
    is."""
    parent = block.parent
    while parent is not None and parent.type in ("labeled_statement", "else_clause"):
        parent = parent.parent
    assert parent is not None
    kinds = {"function": _FUNCTIONS, "loop": LOOPS, "conditional": _CONDITIONALS}
    return next((kind for kind, types in kinds.items() if parent.type in types), "region"), parent


def enclosing_loops(node: Node) -> Iterator[Node]:
    """Yield the loop nodes around ``node``, innermost first."""
    return (outer for outer in ancestors(node) if outer.type in LOOPS)


def body_of(loop: Node) -> Node | None:
    """Return the statement that a loop repeats."""
    return loop.child_by_field_name("body")


def is_pragma(node: Node) -> bool:
    """Return whether the node is a directive ``#pragma HLS …``."""
    return node.type == "preproc_call" and text_of(node).split()[:2] == ["#pragma", "HLS"]


def is_assert(node: Node) -> bool:
    """Return whether the node is a statement ``assert(…);``, which synthesis takes as a hint and does not build."""
    return node.type == "expression_statement" and text_of(node).startswith(("assert(", "assert ("))

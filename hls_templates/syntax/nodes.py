"""Nodes of tree-sitter's syntax tree: their text, what is inside them, and what is around them."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_CONDITIONALS = frozenset({"if_statement", "switch_statement", "case_statement"})
_FUNCTIONS = frozenset({"function_definition", "lambda_expression"})


def text_of(node: Node | None) -> str:
    """The source text of a node; "" where there is none."""
    return "" if node is None or node.text is None else node.text.decode()


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text; none is kept, as a node keeps its children."""
    cursor = node.walk()
    inside = True
    while inside:
        assert cursor.node is not None
        yield cursor.node
        inside = cursor.goto_first_child() or cursor.goto_next_sibling()
        while not inside and cursor.goto_parent():
            inside = cursor.goto_next_sibling()


def ancestors(node: Node) -> Iterator[Node]:
    """The nodes around ``node``, innermost first."""
    while node.parent is not None:
        node = node.parent
        yield node


def block_of(node: Node) -> Node | None:
    """The nearest ``{ … }`` of statements around ``node``."""
    return next((outer for outer in ancestors(node) if outer.type == "compound_statement"), None)


def owner_of(block: Node) -> tuple[str, Node]:
    """What the block is the body of: function, loop, conditional or region, and that node."""
    parent = block.parent
    while parent is not None and parent.type in ("labeled_statement", "else_clause"):
        parent = parent.parent
    assert parent is not None
    kinds = {"function": _FUNCTIONS, "loop": LOOPS, "conditional": _CONDITIONALS}
    return next((kind for kind, types in kinds.items() if parent.type in types), "region"), parent


def enclosing_loops(node: Node) -> Iterator[Node]:
    """The loops around ``node``, innermost first."""
    return (outer for outer in ancestors(node) if outer.type in LOOPS)


def body_of(loop: Node) -> Node | None:
    """The statement that a loop repeats."""
    return loop.child_by_field_name("body")


def is_pragma(node: Node) -> bool:
    """``#pragma HLS …``."""
    return node.type == "preproc_call" and text_of(node).split()[:2] == ["#pragma", "HLS"]


def is_assert(node: Node) -> bool:
    """``assert(…);``: synthesis reads it as a hint and builds nothing."""
    return node.type == "expression_statement" and text_of(node).startswith(("assert(", "assert ("))

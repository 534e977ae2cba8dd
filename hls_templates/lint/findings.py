"""The linter's results: a fault at a node of the syntax tree, and the finding that the user reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node


@dataclass(frozen=True)
class Finding:
    """One finding of the linter, as the user reads it: place, rule and sentence.

    Attributes:
        file: A key of the linted sources.
        line: The line in the file, from 1.
        rule: The rule's name.
        sentence: What the rule requires, what the source has, and what to do.
    """

    file: str
    line: int
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.sentence}"


@dataclass(frozen=True)
class Fault:
    """A node of the syntax tree that breaks a rule of the linter.

    Attributes:
        node: The place in the syntax tree.
        rule: The rule's name.
        fields: The values of the fields in the rule's sentence. A node among them is printed as file:line.
    """

    node: Node
    rule: str
    fields: Mapping[str, object]


def fault(node: Node, rule: str, **fields: object) -> Fault:
    """Return a ``Fault`` at ``node``, which breaks the rule named ``rule``."""
    return Fault(node, rule, fields)

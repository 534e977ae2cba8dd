"""The linter's results: a fault at a node of the syntax tree, and the finding that the user reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node


@dataclass(frozen=True)
class Finding:
    """One finding of the linter.

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
    """A place that breaks a rule.

    Attributes:
        node: The place in the syntax tree.
        rule: The rule's name.
        fields: The values of the fields in the rule's sentence. A node among them is printed as file:line.
    """

    node: Node
    rule: str
    fields: Mapping[str, object]


def fault(node: Node, rule: str, **fields: object) -> Fault:
    """Return a fault of the rule named ``rule`` at ``node``."""
    return Fault(node, rule, fields)

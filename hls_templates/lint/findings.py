"""What the linter reports: a fault at a node of the syntax tree, and the finding that a reader sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node


@dataclass(frozen=True)
class Finding:
    """One fault: ``line`` counts from 1 in ``file``, a key of the linted sources."""

    file: str
    line: int
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.sentence}"


@dataclass(frozen=True)
class Fault:
    """A broken rule at ``node``. fields: what its sentence names; a node there is printed as file:line."""

    node: Node
    rule: str
    fields: Mapping[str, object]


def fault(node: Node, rule: str, **fields: object) -> Fault:
    """The fault of the rule named ``rule`` at ``node``."""
    return Fault(node, rule, fields)

"""The type of a rule, and a helper for the examples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One rule of the linter: what it finds, the sentence of its finding, and an example.

    Attributes:
        number: The group and the number within it, such as «4.7».
        name: The name, which findings and ``lint: allow(name)`` use.
        finds: The code that breaks the rule, for the table of rules.
        sentence: The format of a finding: what the rule requires, what the source has, what to do.
        source: The section of a document that the rule is based on.
        example: A small kernel in C++ that breaks this rule. Its top function is ``top``.
    """

    number: str
    name: str
    finds: str
    sentence: str
    source: str
    example: str

    @property
    def explanation(self) -> str:
        """The text that ``--explain`` prints for the rule: number, name, source and example."""
        return f"{self.number} {self.name}: {self.finds}\nSource: {self.source}\n\n{self.example.rstrip()}"


def kernel(*statements: str) -> str:
    """Return the C++ text of an example: a top function with the given lines in its body. Directives are not
    indented."""
    lines = (line if line.startswith("#") else f"    {line}" for line in statements)
    return "\n".join(["void top(int *data, int count) {", *lines, "}", ""])

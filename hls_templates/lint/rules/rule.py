"""What a rule is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One rule of the linter.

    number: group and place in it, as «4.7». finds: what breaks it, for the table of rules. sentence: a format string of
    a finding: what was required, what came, what to do. source: the section that asks for it. example: the C++ of a
    small kernel whose top function is ``top`` and that breaks this rule.
    """

    number: str
    name: str
    finds: str
    sentence: str
    source: str
    example: str

    @property
    def explanation(self) -> str:
        """The rule for a reader at a terminal."""
        return f"{self.number} {self.name}: {self.finds}\nSource: {self.source}\n\n{self.example.rstrip()}"


def kernel(*statements: str) -> str:
    """A top function that reads and writes an array, with these lines in its body; a directive stands at the margin."""
    lines = (line if line.startswith("#") else f"    {line}" for line in statements)
    return "\n".join(["void top(int *data, int count) {", *lines, "}", ""])

"""The table of the linter's rules.

The first part of a rule's number is its group: 0 text that cannot be read, 1 options, 2 places and 3 names of
directives, 4 dataflow, 5 constructs that cannot be synthesised, 6 pipelines, 7 names in hardware, 8 memories and
streams. A rule's source is a section of UG1399, the Vitis HLS user guide, 2022.1 to 2024.2, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from hls_templates.lint.rules import dataflow, directives, hardware, memories, synthesis
from hls_templates.lint.rules.rule import Rule

__all__ = ["RULES", "Rule", "table"]

_ALL = (*directives.RULES, *dataflow.RULES, *synthesis.RULES, *hardware.RULES, *memories.RULES)

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _ALL}
"""All rules by name, in the order of their numbers."""


def table() -> str:
    """Return the linter's rules as a Markdown table: number, name, what each finds, and source."""
    rows = [f"| {rule.number} | `{rule.name}` | {rule.finds} | {rule.source} |" for rule in RULES.values()]
    return "\n".join(["| no. | rule | what it finds | source |", "| --- | --- | --- | --- |", *rows])

"""A linter for generated HLS C++. It finds faults that Vitis HLS would otherwise report after minutes of synthesis.

    from hls_templates.lint import lint

    lint({"top.cpp": text, "types.h": header}, top="systolic_top")  # a tuple of findings

``rules`` is the table of all rules, ``checks`` finds the code that breaks a rule, and ``hls_templates.syntax`` reads
the C++. The linter needs g++, because a real preprocessor has to expand the macros. docs/reference/lint.md explains it.
"""

from hls_templates.lint.findings import Finding
from hls_templates.lint.linter import lint
from hls_templates.lint.rules import RULES, Rule

__all__ = ["RULES", "Finding", "Rule", "lint"]

"""A linter of generated HLS C++: it finds what otherwise only the vendor's tool would tell, after minutes of synthesis.

    from hls_templates.lint import lint

    lint({"top.cpp": text, "types.h": header}, top="systolic_top")  # a tuple of findings

``rules`` is the table of all rules, and ``checks`` finds what breaks a rule; ``hls_templates.syntax`` reads the C++.
docs/reference/lint.md explains it. The linter needs g++, because the real preprocessor expands macros.
"""

from hls_templates.lint.findings import Finding
from hls_templates.lint.linter import lint
from hls_templates.lint.rules import RULES, Rule

__all__ = ["RULES", "Finding", "Rule", "lint"]

"""Lints sources: preprocesses and parses them, runs all checks, and makes a finding of each fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from tree_sitter import Node

from boards.errors import ChoiceError
from hls_templates.lint.checks import constructs, dataflow, directives, memories, names, pipelines, ports
from hls_templates.lint.checks.access import Accesses
from hls_templates.lint.findings import Fault, Finding, fault
from hls_templates.lint.rules import RULES
from hls_templates.lint.source import Unit, expand, is_suppressed
from hls_templates.syntax.nodes import text_of, walk
from hls_templates.syntax.program import Program, parse


def lint(sources: Mapping[str, str], top: str) -> tuple[Finding, ...]:
    """Return the linter's findings in the C++ ``sources``, ordered by file and line.

    A comment ``// lint: allow(rule) why`` on the line of a fault, or on the line above, suppresses the finding.

    Args:
        sources: C++ texts by their paths inside the project.
        top: The name of the top function, or "" if the sources are headers without a top function.

    Raises:
        ChoiceError: No source defines the top function.
        InvalidValueError, MissingToolError, ToolError: The sources cannot be preprocessed (``expand``).
    """
    unit = expand(sources)
    program = parse(unit.text, bool(unit.absent))
    if top and top not in program.functions:
        raise ChoiceError("the top function", top, tuple(program.functions))
    findings = {_finding(unit, broken) for broken in _faults(program, top)}
    listed = (f for f in findings if f.file in sources and not is_suppressed(sources, f.file, f.line, f.rule))
    return tuple(sorted(listed, key=lambda finding: (finding.file, finding.line, finding.rule, finding.sentence)))


def _faults(program: Program, top: str) -> Iterator[Fault]:
    return chain(
        _unparsed(program),
        directives.check(program, top),
        dataflow.check(program, Accesses(program)),
        constructs.check(program),
        pipelines.check(program),
        memories.check(program),
        ports.check(program),
        names.check(program, top),
    )


def _unparsed(program: Program) -> Iterator[Fault]:
    """Yield a fault for each piece of source text that the grammar could not read, because the other checks skip it."""
    for node in walk(program.root):
        if node.type == "ERROR":
            yield fault(node, "not-parsed", actual=text_of(node).split("\n")[0][:60])


def _finding(unit: Unit, broken: Fault) -> Finding:
    file, line = unit.origins[broken.node.start_point.row]
    fields = {
        name: "{}:{}".format(*unit.origins[value.start_point.row]) if isinstance(value, Node) else value
        for name, value in broken.fields.items()
    }
    return Finding(file, line, broken.rule, RULES[broken.rule].sentence.format(**fields))

"""Group 7: finds names in the hardware that Verilog, SystemVerilog, VHDL or Tcl reserve."""

from __future__ import annotations

from collections.abc import Iterator

from hls_templates.lint.findings import Fault, fault
from hls_templates.reserved import languages_of
from hls_templates.syntax.program import FunctionDefinition, Program


def check(program: Program, top: str) -> Iterator[Fault]:
    """Yield a fault (rule violation) for each name of the top function and its arguments that a hardware language or
    Tcl reserves.

    They become the names of a module and of its ports or registers.
    """
    for function in program.functions.get(top, ()):
        yield from _names(program, function)


def _names(program: Program, function: FunctionDefinition) -> Iterator[Fault]:
    names = [(function.name, function.node, "the top function")]
    for parameter in function.params:
        node = program.root.descendant_for_byte_range(parameter.start, parameter.start)
        names.append((parameter.name, node or function.node, "an argument of the top function"))
    for name, node, role in names:
        # In a Tcl script the top function's name can be a word of its own. An argument is only part of a value there.
        is_top = node is function.node
        if languages := [language for language in languages_of(name) if is_top or language != "Tcl"]:
            yield fault(node, "reserved-name", role=role, actual=name, languages=" and ".join(languages))

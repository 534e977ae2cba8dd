"""Rules 6.4 and 8.2: finds arrays from which the tool would build other memories than intended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from tree_sitter import Node

from hls_templates.lint.checks.uses import Use, uses
from hls_templates.lint.findings import Fault, fault
from hls_templates.syntax.constants import is_constant
from hls_templates.syntax.declarations import Variable, variables
from hls_templates.syntax.nodes import ancestors, is_pragma, walk
from hls_templates.syntax.pragmas import ParsedPragma, number_of, read_pragma
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.types import Types


def check(program: Program) -> Iterator[Fault]:
    """Yield a fault (rule violation) for each array from which Vitis HLS would build other memories than intended."""
    types = Types(program)
    for function in program.all_functions:
        directives = [read_pragma(node) for node in walk(function.body) if is_pragma(node)]
        yield from _struct_arrays(function, types, directives)
        yield from _bank_writers(program, function, types, directives)


# -------------------------------------------------------------------------------- arrays of structs


def _declared(function: FunctionDefinition) -> Iterator[tuple[Node, Variable]]:
    for node in walk(function.body):
        if node.type == "declaration":
            yield from ((node, variable) for variable in variables(node))


def _struct_arrays(function: FunctionDefinition, types: Types, directives: Sequence[ParsedPragma]) -> Iterator[Fault]:
    for node, variable in _declared(function):
        sizes = types.sizes(node, variable)
        if not sizes or variable.const or variable.refers or not types.holds_array(variable.type):
            continue
        named = [p for p in directives if (p.get("variable") or "") == variable.name]
        if any(p.name == "AGGREGATE" for p in named) or _in_registers(named, len(sizes)):
            continue
        yield fault(node, "struct-array", actual=variable.name, type=variable.type)


def _in_registers(named: Sequence[ParsedPragma], count: int) -> bool:
    """Return whether an array's directives partition it completely along all of its ``count`` dimensions, so that it
    becomes registers."""
    dims = {p.get("dim") or "1" for p in named if p.name == "ARRAY_PARTITION" and p.lower("type") in ("complete", "")}
    return "0" in dims or len(dims) >= count


# ------------------------------------------------------------------------------- writers of a bank


def _bank_writers(
    program: Program, function: FunctionDefinition, types: Types, directives: Sequence[ParsedPragma]
) -> Iterator[Fault]:
    partitions: dict[str, list[ParsedPragma]] = defaultdict(list)
    for pragma in directives:
        if pragma.name == "ARRAY_PARTITION":
            partitions[pragma.get("variable") or ""].append(pragma)
    for node, variable in _declared(function):
        named = partitions.get(variable.name, [])
        if named and not _in_registers(named, len(types.sizes(node, variable))):
            numbers = {number_of(pragma.get("dim") or "1") for pragma in named}
            dims = sorted(number for number in numbers if number is not None and number >= 0)
            if dims:
                yield from _writers(program, variable.name, dims, list(uses(program, function, variable.name)))


def _writers(program: Program, name: str, dims: Sequence[int], stores: Sequence[Use]) -> Iterator[Fault]:
    """Yield a rule violation if one iteration may store more than once to a bank of the array ``name``, partitioned
    along ``dims``."""
    iterations: dict[int, list[Use]] = defaultdict(list)
    for use in stores:
        if use.around.pipeline is not None and _chooses(program, _banks(use, dims), use):
            iterations[use.around.pipeline.id].append(use)
    # A store in an unrolled loop over the banks of another dimension is one store per bank, so that it is left out.
    each = [
        use for use in chain(*iterations.values()) if not any(_unrolled(program, i, use) for i in _banks(use, dims))
    ]
    repeated = [use for use in each if use.around.repeated]
    several = repeated or list(chain(*map(_together, iterations.values())))
    if several:
        yield fault(several[-1].node, "bank-writers", actual=name, dims=" and ".join(map(str, dims)))


def _banks(use: Use, dims: Sequence[int]) -> list[Node]:
    """Return the subscripts that select the bank (partition) of a store; an empty list if ``use`` is not a store to an
    element."""
    indices = _stored(use.node)
    return [indices[dim - 1] for dim in dims] if len(indices) >= max(dims) else []


def _chooses(program: Program, banks: Sequence[Node], use: Use) -> bool:
    """Return whether the bank (partition) that a store writes is known only at run time."""
    return not all(is_constant(program, index, use.around.constants) for index in banks)


def _unrolled(program: Program, index: Node, use: Use) -> bool:
    """Return whether an array index is a constant only because a loop around it is unrolled."""
    return is_constant(program, index, use.around.constants) and not is_constant(program, index)


def _stored(name: Node) -> list[Node]:
    """Return the subscripts i, j of a store ``name[i][j] = …``; an empty list if the element is not written."""
    indices: list[Node] = []
    node = name
    while (parent := node.parent) is not None and parent.child_by_field_name("argument") == node:
        if parent.type == "subscript_expression":
            listed = parent.child_by_field_name("indices")
            indices += listed.named_children[:1] if listed is not None else []
        elif parent.type != "field_expression":
            break
        node = parent
    parent = node.parent
    written = parent is not None and (
        (parent.type == "assignment_expression" and parent.child_by_field_name("left") == node)
        or parent.type == "update_expression"
    )
    return indices if written else []


def _together(sites: Sequence[Use]) -> list[Use]:
    """Return the stores that one pipeline iteration may execute in addition to another store.

    Two stores in different branches of a condition exclude each other. A store that is reached through several calls of
    the function with the pipeline counts once.
    """
    distinct = list({tuple(node.id for node in use.path): use for use in sites}.values())
    pairs = combinations(distinct, 2)
    return [second for first, second in pairs if not _in_different_branches(first, second)]


def _in_different_branches(first: Use, second: Use) -> bool:
    """Return whether two uses of a variable are in different branches of one condition."""
    parting = ((_branches(a), _branches(b)) for a, b in zip(first.path, second.path, strict=False) if a != b)
    branches, other_branches = next(parting, ({}, {}))
    return any(other_branches.get(condition, branch) != branch for condition, branch in branches.items())


def _branches(node: Node) -> dict[int, int]:
    """Return, for each ``if`` around a node, the branch that contains the node; both as node ids."""
    pairs = ((outer, outer.parent) for outer in (node, *ancestors(node)))
    return {
        parent.id: outer.id
        for outer, parent in pairs
        if parent is not None and parent.type == "if_statement" and parent.child_by_field_name("condition") != outer
    }

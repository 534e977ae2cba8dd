"""Groups 1 to 3: checks the options of directives, their places, and the names in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from hls_templates.documented.directives import DIRECTIVES, REPLACED, STORAGE_IMPLS
from hls_templates.documented.options import Constant, Directive, Flag, Name, Text, Value, Words
from hls_templates.lint.findings import Fault, fault
from hls_templates.syntax.constants import is_constant, template_values
from hls_templates.syntax.nodes import ancestors, block_of, is_assert, owner_of, text_of, walk
from hls_templates.syntax.pragmas import ParsedPragma, number_of, pragmas
from hls_templates.syntax.program import FunctionDefinition, Program, syntax_tree
from hls_templates.syntax.scopes import members, visible

_PLAIN_STATEMENTS = frozenset(  # nodes that may precede a directive in its block
    {
        "{",
        "}",
        "declaration",
        "preproc_call",
        "static_assert_declaration",
        "alias_declaration",
        "using_declaration",
        "type_definition",
        "comment",
    }
)


@dataclass(frozen=True)
class _Context:
    """The program and the documented form against which one directive is checked.

    Attributes:
        program: The whole program.
        directive: The documented form of the directive.
        top: The name of the top function, or "".
        pipelined: Node ids of the blocks that have a PIPELINE.
    """

    program: Program
    directive: Directive
    top: str
    pipelined: frozenset[int]


def check(program: Program, top: str) -> Iterator[Fault]:
    """Yield a fault for each rule violation of a directive (``#pragma HLS``). ``top`` is the name of the top function,
    or ""."""
    every = pragmas(program)
    blocks = (block_of(each.node) for each in every if each.name == "PIPELINE" and not each.is_off)
    pipelined = frozenset(block.id for block in blocks if block is not None)
    for pragma in every:
        directive = DIRECTIVES.get(pragma.name)
        if directive is None:
            hint = REPLACED.get(pragma.name, "correct its name")
            yield fault(pragma.node, "unknown-directive", actual=pragma.name or "an empty one", hint=hint)
            continue
        context = _Context(program, directive, top, pipelined)
        yield from _options(pragma, context)
        yield from _dependent_options(pragma)
        yield from _scope(pragma, context)
        yield from _names(pragma, context)


# ---------------------------------------------------------------------------------------- 1. options


def _options(pragma: ParsedPragma, context: _Context) -> Iterator[Fault]:
    directive = context.directive
    allowed = directive.modes.get(pragma.lower("mode"), tuple(directive.options))
    title = pragma.name if not directive.modes else f"{pragma.name} {pragma.get('mode') or ''}".strip()
    previous: set[str] = set()
    for option, value in pragma.options:
        if option in previous:
            yield fault(pragma.node, "repeated-option", directive=title, option=option)
        elif option not in allowed:
            yield fault(pragma.node, "unknown-option", directive=title, allowed=", ".join(allowed), actual=option)
        elif not _fits(context.program, pragma, directive.options[option], value):
            required = directive.options[option]
            yield fault(pragma.node, "bad-value", directive=title, option=option, required=required, actual=value or "")
        previous.add(option)
    for option in directive.needs:
        if option not in previous and not _of_block_control(pragma, option):
            yield fault(pragma.node, "missing-option", directive=title, option=option)


def _of_block_control(pragma: ParsedPragma, option: str) -> bool:
    """Return whether ``option`` is ``port`` of an ``ap_ctrl_…`` interface, which applies to the whole function and
    needs no port."""
    return option == "port" and (pragma.get("mode") or "").startswith("ap_ctrl")


def _fits(program: Program, pragma: ParsedPragma, kind: Value, value: str | None) -> bool:
    if isinstance(kind, Flag):
        return value is None or value.lower() in ("true", "false")
    if not value:
        return False
    if isinstance(kind, Words):
        return value.lower() in kind.words or (program.open and value.isupper())
    if isinstance(kind, Constant):
        return _fits_constant(program, pragma, kind, value)
    return not isinstance(kind, Text) or re.fullmatch(kind.pattern, value) is not None


def _fits_constant(program: Program, pragma: ParsedPragma, kind: Constant, value: str) -> bool:
    if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)", value):
        number = number_of(value)
        return number is not None and kind.minimum <= number <= (number if kind.maximum is None else kind.maximum)
    return _is_constant_text(program, pragma.node, value)


def _is_constant_text(program: Program, pragma_node: Node, value: str) -> bool:
    """Return whether every name in the expression of a directive's option is a constant in the directive's scope."""
    tree = syntax_tree(f"int x = {value};".encode())
    if tree.has_error:
        return False
    names = {text_of(node) for node in walk(tree) if node.type == "identifier" and not _of_type(node)} - {"x"}
    scope = visible(program, pragma_node)
    constants = program.enumerators | template_values(pragma_node)
    for name in names - constants:
        variable = scope.get(name)
        if variable is None and not (program.open and name.isupper()):
            return False
        if variable is not None and not (variable.const and is_constant(program, variable.value)):
            return False
    return True


def _of_type(node: Node) -> bool:
    """Return whether a name is part of ``Traits::value`` or ``sizeof(word_t)``, which are always constants."""
    return any(outer.type in ("qualified_identifier", "sizeof_expression") for outer in ancestors(node))


_IMPLS = frozenset().union(*STORAGE_IMPLS.values())


def _dependent_options(pragma: ParsedPragma) -> Iterator[Fault]:
    """Yield the rule violations of a directive's options whose values depend on each other."""
    kind, impl = pragma.lower("type"), pragma.lower("impl")
    if pragma.name == "BIND_STORAGE" and impl in _IMPLS - STORAGE_IMPLS.get(kind, _IMPLS):
        allowed = "|".join(sorted(STORAGE_IMPLS[kind]))
        yield fault(pragma.node, "bad-storage", type=kind, allowed=allowed, actual=impl)
    in_parts = pragma.name in ("ARRAY_PARTITION", "ARRAY_RESHAPE") and kind in ("block", "cyclic")
    if in_parts and not pragma.has("factor"):
        yield fault(pragma.node, "missing-option", directive=f"{pragma.name} type={kind}", option="factor")
    low, high = number_of(pragma.get("min")), number_of(pragma.get("max"))
    if low is not None and high is not None and low > high:
        required = f"at most max={high}"
        yield fault(pragma.node, "bad-value", directive=pragma.name, option="min", required=required, actual=str(low))


# ------------------------------------------------------------------------------------------ 2. scope

_ARTICLES = {
    "function": "a function's body",
    "loop": "a loop's braces",
    "region": "a region's braces",
    "conditional": "a conditional's braces",
}


def _scope(pragma: ParsedPragma, context: _Context) -> Iterator[Fault]:
    block = block_of(pragma.node)
    if block is None or _headless(pragma.node.prev_sibling):
        actual = "no function" if block is None else "front of a loop's braces"
        yield _misplaced(pragma, context, actual)
        return
    kind, _ = owner_of(block)
    if kind not in context.directive.scopes:
        yield _misplaced(pragma, context, _ARTICLES[kind])
    elif context.directive.early and _late(block, pragma.node):
        yield fault(pragma.node, "directive-late", directive=pragma.name)
    function = context.program.function_of(pragma.node)
    if context.directive.top_only and function is not None and function.name != context.top:
        yield fault(pragma.node, "interface-not-top", directive=pragma.name, top=context.top, actual=function.name)
    if pragma.name == "DATAFLOW" and block.id in context.pipelined:
        yield fault(pragma.node, "directive-conflict", first="DATAFLOW", second="PIPELINE")


def _misplaced(pragma: ParsedPragma, context: _Context, actual: str) -> Fault:
    required = " or ".join(article for kind, article in _ARTICLES.items() if kind in context.directive.scopes)
    return fault(pragma.node, "directive-scope", directive=pragma.name, required=required, actual=actual)


def _headless(node: Node | None) -> bool:
    """Return whether the node is a loop or condition without a body, because a ``#pragma`` follows its head.

    The parser inserts a missing ";" in this case.
    """
    if node is None or node.type == "declaration":
        return False
    return any(part.is_missing and part.type == ";" for part in walk(node))


def _late(block: Node, pragma: Node) -> bool:
    """Return whether a statement precedes the directive in its block."""
    earlier = [child for child in block.children if child.start_byte < pragma.start_byte]
    return not all(c.type in _PLAIN_STATEMENTS or text_of(c).strip() == ";" or is_assert(c) for c in earlier)


# ------------------------------------------------------------------------------------------ 3. names


def _names(pragma: ParsedPragma, context: _Context) -> Iterator[Fault]:
    function = context.program.function_of(pragma.node)
    if function is None:
        return
    for option, kind in context.directive.options.items():
        value = pragma.get(option)
        if not isinstance(kind, Name) or not value:
            continue
        for name in value.split(","):
            if not _is_declared(context.program, pragma, kind, name, function):
                required = f"a {kind.role} of {function.name}" if kind.role != "label" else "a function or operation"
                yield fault(pragma.node, "undeclared-variable", directive=pragma.name, required=required, actual=name)
    variable = pragma.get("variable")
    if pragma.name == "STREAM" and function.name == context.top and variable in _parameter_names(function):
        yield fault(pragma.node, "stream-top-argument", actual=variable)


def _parameter_names(function: FunctionDefinition) -> set[str]:
    return {parameter.name for parameter in function.params}


def _is_declared(program: Program, pragma: ParsedPragma, kind: Name, name: str, function: FunctionDefinition) -> bool:
    root = re.split(r"[.\[]|->", name)[0].strip("*&() ")
    if kind.role == "port":
        return root in _parameter_names(function) or root == "return"
    if kind.role == "argument":
        return root in _parameter_names(function)
    if kind.role == "label":
        is_function = pragma.lower("type") == "function"
        return name.split("<")[0].rpartition("::")[2] in program.functions if is_function else True
    if root == "this":
        fields = re.split(r"->|\.", name)[1:]
        return bool(fields) and fields[0].split("[")[0] in members(program, function.owner)
    return root in visible(program, pragma.node) or _has_unknown_base(program, function)


def _has_unknown_base(program: Program, function: FunctionDefinition) -> bool:
    """Return whether a base class of the function's class is not among the sources, so that a name may be one of its
    members."""
    return any(base not in program.fields for base in program.bases.get(function.owner or "", ()))

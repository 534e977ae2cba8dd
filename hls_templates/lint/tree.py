"""Generated C++ as functions, variables and constants, over tree-sitter's syntax tree.

Names are resolved as text: templates are not instantiated, and overloads are told apart by argument count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from hls_templates.lint.rules import PORT_TYPE, STREAM_TYPE

LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name"})


@dataclass(frozen=True)
class Variable:
    """``kind``: stream, port (burst_maxi), array, pointer, reference or value; ``start``: its first byte."""

    name: str
    kind: str
    type: str
    const: bool
    start: int
    value: Node | None = None
    refers: bool = False  # a pointer or reference


@dataclass(frozen=True)
class Function:
    name: str
    owner: str | None
    node: Node
    body: Node
    params: tuple[Variable, ...]
    returns: str
    least: int  # arguments without defaults

    def takes(self, count: int) -> bool:
        return self.least <= count <= len(self.params)


@dataclass(frozen=True)
class Program:
    root: Node
    functions: Mapping[str, tuple[Function, ...]]
    fields: Mapping[str, Mapping[str, Variable]]
    bases: Mapping[str, tuple[str, ...]]
    globals: Mapping[str, Variable]
    enumerators: frozenset[str]
    open: bool = False  # a header of the project is absent: upper-case names may be its constants

    @cached_property
    def all_functions(self) -> tuple[Function, ...]:
        return tuple(function for several in self.functions.values() for function in several)

    def function_of(self, node: Node) -> Function | None:
        """The innermost function whose definition holds ``node``."""
        holding = [f for f in self.all_functions if f.node.start_byte <= node.start_byte < f.node.end_byte]
        return max(holding, key=lambda f: f.node.start_byte, default=None)


def parse(text: bytes, open_: bool = False) -> Program:
    root = Parser(Language(tree_sitter_cpp.language())).parse(text).root_node
    streams = _stream_aliases(root)
    return Program(
        root,
        _functions(root, streams),
        *_classes(root, streams),
        {v.name: v for node in _file_scope(root) for v in variables(node, streams)},
        frozenset(text_of(node.child_by_field_name("name")) for node in walk(root) if node.type == "enumerator"),
        open_,
    )


# ------------------------------------------------------------------------------------------------ nodes


def text_of(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


def walk(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def ancestors(node: Node) -> Iterator[Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def block_of(node: Node) -> Node | None:
    """The nearest ``{ … }`` of statements around ``node``."""
    return next((a for a in ancestors(node) if a.type == "compound_statement"), None)


def owner_of(block: Node) -> tuple[str, Node]:
    """What the block is the body of: function, loop, conditional or region, and that node."""
    parent = block.parent
    while parent is not None and parent.type in ("labeled_statement", "else_clause"):
        parent = parent.parent
    assert parent is not None
    if parent.type in ("function_definition", "lambda_expression"):
        return "function", parent
    if parent.type in LOOPS:
        return "loop", parent
    if parent.type in ("if_statement", "switch_statement", "case_statement"):
        return "conditional", parent
    return "region", parent


def is_pragma(node: Node) -> bool:
    return node.type == "preproc_call" and text_of(node).split()[:2] == ["#pragma", "HLS"]


def is_assert(node: Node) -> bool:
    """``assert(…);``: synthesis reads it as a hint and builds nothing."""
    return node.type == "expression_statement" and text_of(node).startswith(("assert(", "assert ("))


def enclosing_loops(node: Node) -> Iterator[Node]:
    return (a for a in ancestors(node) if a.type in LOOPS)


# -------------------------------------------------------------------------------------------- declarations


def _file_scope(root: Node) -> Iterator[Node]:
    for node in root.children:
        if node.type in ("namespace_definition", "linkage_specification"):
            body = node.child_by_field_name("body")
            if body is not None:
                yield from _file_scope(body) if body.type == "declaration_list" else [body]
        elif node.type == "template_declaration":
            yield from _file_scope(node)
        elif node.type == "declaration":
            yield node


def _stream_aliases(root: Node) -> frozenset[str]:
    found: set[str] = set()
    aliases = [
        (
            text_of(node.child_by_field_name("name" if node.type == "alias_declaration" else "declarator")),
            text_of(node.child_by_field_name("type")),
        )
        for node in walk(root)
        if node.type in ("alias_declaration", "type_definition")
    ]
    for _ in aliases:
        found |= {name for name, of in aliases if STREAM_TYPE.search(of) or re.split(r"\W", of)[0] in found}
    return frozenset(found)


def _innermost(declarator: Node) -> tuple[Node | None, list[str]]:
    """The declared name and the declarators around it, outermost first."""
    around: list[str] = []
    node: Node | None = declarator
    while node is not None and node.type not in _NAMES | {
        "qualified_identifier",
        "structured_binding_declarator",
    }:
        around.append(node.type)
        inner = node.child_by_field_name("declarator")
        node = inner or next(
            (c for c in node.named_children if c.type.endswith("declarator") or c.type in _NAMES), None
        )
    return node, around


def _kind(around: list[str], type_text: str, streams: frozenset[str]) -> str:
    if STREAM_TYPE.search(type_text) or re.split(r"[<\s]", type_text.strip())[0] in streams:
        return "stream"
    if PORT_TYPE.search(type_text):
        return "port"
    for kind in ("array", "pointer", "reference"):
        if f"{kind}_declarator" in around:
            return kind
    return "value"


def _variable(node: Node, declarator: Node, streams: frozenset[str]) -> Variable | None:
    name, around = _innermost(declarator)
    if name is None or "function_declarator" in around:
        return None
    type_text = text_of(node.child_by_field_name("type"))
    qualifiers = {text_of(c) for c in node.children if c.type in ("type_qualifier", "storage_class_specifier")}
    value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
    if value is None:
        value = node.child_by_field_name("default_value")
    const = bool(qualifiers & {"const", "constexpr"})
    refers = bool({"pointer_declarator", "reference_declarator"} & set(around))
    kind = _kind(around, type_text, streams)
    return Variable(text_of(name), kind, type_text, const, name.start_byte, value, refers)


def variables(node: Node, streams: frozenset[str] = frozenset()) -> list[Variable]:
    """The variables that a declaration, parameter or field node declares."""
    declarators = node.children_by_field_name("declarator")
    return [v for d in declarators if (v := _variable(node, d, streams)) is not None]


def _functions(root: Node, streams: frozenset[str]) -> dict[str, tuple[Function, ...]]:
    found: dict[str, tuple[Function, ...]] = {}
    for node in walk(root):
        function = _function(node, streams) if node.type == "function_definition" else None
        if function is not None:
            found[function.name] = (*found.get(function.name, ()), function)
    return found


def _function(node: Node, streams: frozenset[str]) -> Function | None:
    body, outer = node.child_by_field_name("body"), node.child_by_field_name("declarator")
    while outer is not None and outer.type != "function_declarator":
        outer = outer.child_by_field_name("declarator") or next(iter(outer.named_children), None)
    if body is None or outer is None or body.type != "compound_statement":
        return None
    name = text_of(outer.child_by_field_name("declarator"))
    owner = name.rpartition("::")[0].split("<")[0] or _class_of(node)
    listed = outer.child_by_field_name("parameters")
    nodes = [c for c in listed.named_children if "parameter_declaration" in c.type] if listed is not None else []
    params = tuple(_parameter(n, streams) for n in nodes if text_of(n) != "void")
    least = sum(not n.type.startswith("optional") for n in nodes if text_of(n) != "void")
    returns = text_of(node.child_by_field_name("type"))
    return Function(name.rpartition("::")[2], owner, node, body, params, returns, least)


def _parameter(node: Node, streams: frozenset[str]) -> Variable:
    found = variables(node, streams)
    unnamed = Variable("", "value", text_of(node.child_by_field_name("type")), False, node.start_byte)
    return found[0] if found else unnamed


def _class_of(node: Node) -> str | None:
    holder = next((a for a in ancestors(node) if a.type in _CLASSES), None)
    return text_of(holder.child_by_field_name("name")).split("<")[0] if holder is not None else None


def _classes(root: Node, streams: frozenset[str]) -> tuple[dict[str, dict[str, Variable]], dict[str, tuple[str, ...]]]:
    fields: dict[str, dict[str, Variable]] = {}
    bases: dict[str, tuple[str, ...]] = {}
    for node in walk(root):
        body = node.child_by_field_name("body") if node.type in _CLASSES else None
        if body is None:
            continue
        name = text_of(node.child_by_field_name("name")).split("<")[0]
        found = [v for f in body.children if f.type == "field_declaration" for v in variables(f, streams)]
        fields.setdefault(name, {}).update({v.name: v for v in found})
        clause = next((c for c in node.children if c.type == "base_class_clause"), None)
        named = clause.named_children if clause is not None else []
        bases[name] = tuple(text_of(c).split("<")[0] for c in named if c.type != "access_specifier")
    return fields, bases


def members(program: Program, owner: str | None) -> dict[str, Variable]:
    """The data members of a class, its known bases included."""
    found: dict[str, Variable] = {}
    for base in program.bases.get(owner or "", ()):
        found |= members(program, base) if base != owner else {}
    return found | dict(program.fields.get(owner or "", {}))


def locals_of(node: Node, streams: frozenset[str] = frozenset()) -> dict[str, Variable]:
    """Every variable declared anywhere inside ``node``, by name."""
    declarations = (n for n in walk(node) if n.type in ("declaration", "for_range_loop", "parameter_declaration"))
    return {v.name: v for n in declarations for v in variables(n, streams)}


def visible(program: Program, node: Node) -> dict[str, Variable]:
    """The variables in scope at ``node``: globals, members, parameters, locals declared before it."""
    function = program.function_of(node)
    found = dict(program.globals)
    if function is not None:
        found |= members(program, function.owner) | {p.name: p for p in function.params}
    for block in reversed(list(ancestors(node))):
        found |= {v.name: v for d in _declared_in(block) for v in variables(d) if v.start < node.start_byte}
    return found


def _declared_in(node: Node) -> Iterable[Node]:
    if node.type == "compound_statement":
        return (n for c in node.children for n in _unlabelled(c) if n.type == "declaration")
    if node.type in LOOPS:
        return [node] if node.type == "for_range_loop" else (c for c in node.children if c.type == "declaration")
    if node.type == "lambda_expression":
        return (n for n in walk(node) if "parameter_declaration" in n.type)
    return ()


def _unlabelled(node: Node) -> list[Node]:
    return node.children if node.type == "labeled_statement" else [node]


def stream_names(program: Program) -> frozenset[str]:
    return _stream_aliases(program.root)


# ------------------------------------------------------------------------------------------------ calls


def called(call: Node) -> str:
    """The last name of what is called: ``ns::f<3>(…)`` → f, ``a.run(…)`` → run."""
    node = call.child_by_field_name("function")
    while node is not None and node.type not in _NAMES:
        if node.type == "field_expression":
            node = node.child_by_field_name("field")
        elif node.type in ("qualified_identifier", "template_function", "template_method"):
            node = node.child_by_field_name("name")
        else:
            return text_of(node)
    return text_of(node)


def arguments(call: Node) -> list[Node]:
    listed = call.child_by_field_name("arguments")
    return [c for c in listed.named_children if not is_pragma(c)] if listed is not None else []


def candidates(program: Program, call: Node, within: Function | None) -> tuple[Function, ...]:
    """The definitions that a call may mean."""
    function = call.child_by_field_name("function")
    count = len(arguments(call))
    fitting = tuple(f for f in program.functions.get(called(call), ()) if f.takes(count))
    if function is None or function.type != "field_expression":
        scope = text_of(function).rpartition("::")[0].split("<")[0].rpartition("::")[2]
        own = tuple(f for f in fitting if f.owner is not None and f.owner in (scope, within and within.owner))
        return own or tuple(f for f in fitting if f.owner is None)
    target = function.child_by_field_name("argument")
    if target is not None and target.type == "this":
        return tuple(f for f in fitting if within is not None and f.owner == within.owner)
    declared = visible(program, call).get(text_of(target))
    kind = re.split(r"[<\s]", declared.type)[0].rpartition("::")[2] if declared is not None else ""
    methods = tuple(f for f in fitting if f.owner is not None)
    return tuple(f for f in methods if f.owner == kind) if kind in program.fields else ()


# -------------------------------------------------------------------------------------------- constants

_LITERALS = frozenset({"number_literal", "true", "false", "char_literal", "sizeof_expression"})
_TRANSPARENT = frozenset(
    {
        "binary_expression",
        "unary_expression",
        "parenthesized_expression",
        "conditional_expression",
        "cast_expression",
    }
)


def template_values(node: Node) -> frozenset[str]:
    """The non-type template parameters in scope at ``node``."""
    lists = (a.child_by_field_name("parameters") for a in ancestors(node) if a.type == "template_declaration")
    nodes = (p for one in lists if one is not None for p in one.named_children if "parameter_declaration" in p.type)
    named = (v.name for p in nodes if "type_parameter" not in p.type for v in variables(p))
    return frozenset(named)


def is_constant(program: Program, node: Node | None, known: frozenset[str] = frozenset(), depth: int = 0) -> bool:
    """Whether an expression is a compile-time constant; ``known`` names count as constants."""
    if node is None or depth > 40:
        return False
    if node.type in _LITERALS or node.type == "qualified_identifier":
        return True
    if node.type in _TRANSPARENT:
        parts = [c for c in node.named_children if c.type != "type_descriptor"]
        return all(is_constant(program, part, known, depth + 1) for part in parts)
    if node.type == "identifier":
        return _constant_name(program, node, known, depth)
    if node.type == "call_expression":
        return _constant_call(program, node, known, depth)
    return False


def _constant_name(program: Program, node: Node, known: frozenset[str], depth: int) -> bool:
    name = text_of(node)
    if name in known or name in program.enumerators or name in template_values(node):
        return True
    variable = visible(program, node).get(name)
    if variable is None and program.open and name.isupper():
        return True
    if variable is None or not variable.const or variable.value is None or variable.start >= node.start_byte:
        return False
    return is_constant(program, variable.value, known, depth + 1)


def _constant_call(program: Program, node: Node, known: frozenset[str], depth: int) -> bool:
    function = node.child_by_field_name("function")
    if text_of(function).startswith("static_cast"):
        return all(is_constant(program, a, known, depth + 1) for a in arguments(node))
    several = program.functions.get(called(node), ())
    fixed = bool(several) and all(
        "constexpr" in text_of(f.node)[: f.body.start_byte - f.node.start_byte] for f in several
    )
    return fixed and all(is_constant(program, a, known, depth + 1) for a in arguments(node))


def counter_of(loop: Node) -> str | None:
    """The name that a ``for`` header declares or sets."""
    start = loop.child_by_field_name("initializer")
    if start is None:
        return None
    if start.type == "declaration":
        return next((v.name for v in variables(start)), None)
    return text_of(start.child_by_field_name("left")) or None


def bounded(program: Program, loop: Node, known: frozenset[str] = frozenset()) -> bool:
    """Whether the trip count of a loop is a compile-time constant."""
    if loop.type == "for_range_loop":
        return True
    condition = loop.child_by_field_name("condition")
    if loop.type != "for_statement":
        return loop.type == "do_statement" and text_of(condition).strip("() ") in ("0", "false")
    counter = counter_of(loop)
    start, step = loop.child_by_field_name("initializer"), loop.child_by_field_name("update")
    if counter is None or condition is None or start is None or condition.type != "binary_expression":
        return False
    sides = [condition.child_by_field_name("left"), condition.child_by_field_name("right")]
    ends = [side for side in sides if text_of(side) != counter]
    begins = [v.value for v in variables(start)] or [start.child_by_field_name("right")]
    moves = [step.child_by_field_name("right")] if step is not None and step.type == "assignment_expression" else []
    fixed = [*ends[:1], begins[0], *moves]
    return len(ends) == 1 and all(is_constant(program, part, known | {counter}) for part in fixed)

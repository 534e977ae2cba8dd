"""Rules 1 to 3: which directive, where it stands, and what it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from hls_templates.lint.rules import (
    DIRECTIVES,
    REPLACED,
    STORAGE_IMPLS,
    Constant,
    Directive,
    Flag,
    Name,
    Text,
    Value,
    Words,
)
from hls_templates.lint.tree import (
    Program,
    ancestors,
    block_of,
    is_assert,
    is_constant,
    is_pragma,
    members,
    owner_of,
    template_values,
    text_of,
    visible,
    walk,
)

Fault = tuple[Node, str, dict[str, object]]
_PLAIN_STATEMENTS = frozenset(
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
class Pragma:
    """``options`` in order, names in lower case; a bare word has the value None."""

    node: Node
    name: str
    options: tuple[tuple[str, str | None], ...]

    def get(self, option: str) -> str | None:
        return next((value for name, value in self.options if name == option), None)

    def has(self, option: str) -> bool:
        return any(name == option for name, _ in self.options)

    @property
    def off(self) -> bool:
        return self.has("off") and (self.get("off") or "true").lower() == "true"


def read_pragma(node: Node) -> Pragma:
    words = re.sub(r"\s*=\s*", "=", text_of(node)).split()[2:]
    name = words[0].split("(")[0].upper() if words else ""
    pairs = [word.partition("=") for word in words[1:]]
    options = tuple((key.lower(), value if equals else None) for key, equals, value in pairs)
    known = DIRECTIVES.get(name)
    return Pragma(node, name, tuple(_named(known, *option) for option in options) if known else options)


def _named(known: Directive, name: str, value: str | None) -> tuple[str, str | None]:
    """``complete`` → ``type=complete``: bare words of the older spelling."""
    if value is not None or name in known.options:
        return name, value
    fits = (
        option for option, kind in known.options.items() if isinstance(kind, Words) and kind.bare and name in kind.words
    )
    option = next(fits, None)
    return (option, name) if option else (name, None)


def pragmas(program: Program) -> tuple[Pragma, ...]:
    return tuple(read_pragma(node) for node in walk(program.root) if is_pragma(node))


def pragma_in(block: Node, name: str) -> Pragma | None:
    """The directive ``name`` that stands directly in a block, unless it says off."""
    found = (read_pragma(node) for node in block.children if is_pragma(node))
    return next((p for p in found if p.name == name and not p.off), None)


def check(program: Program, top: str) -> Iterator[Fault]:
    for pragma in pragmas(program):
        known = DIRECTIVES.get(pragma.name)
        if known is None:
            hint = REPLACED.get(pragma.name, "correct its name")
            yield pragma.node, "unknown-directive", {"came": pragma.name or "an empty one", "hint": hint}
            continue
        yield from _options(program, pragma, known)
        yield from _scope(program, pragma, known, top)
        yield from _names(program, pragma, known, top)


# ---------------------------------------------------------------------------------------- 1. options


def _options(program: Program, pragma: Pragma, known: Directive) -> Iterator[Fault]:
    allowed = known.modes.get((pragma.get("mode") or "").lower(), tuple(known.options))
    what = pragma.name if not known.modes else f"{pragma.name} {pragma.get('mode') or ''}".strip()
    seen: set[str] = set()
    for option, value in pragma.options:
        if option in seen:
            yield pragma.node, "repeated-option", {"directive": what, "option": option}
        elif option not in allowed:
            yield (
                pragma.node,
                "unknown-option",
                {"directive": what, "allowed": ", ".join(allowed), "came": option},
            )
        elif not _fits(program, pragma, known.options[option], value):
            named: dict[str, object] = {
                "directive": what,
                "option": option,
                "required": known.options[option],
                "came": value or "",
            }
            yield pragma.node, "bad-value", named
        seen.add(option)
    for option in known.needs:
        block_level = option == "port" and (pragma.get("mode") or "").startswith("ap_ctrl")
        if option not in seen and not block_level:
            yield pragma.node, "missing-option", {"directive": what, "option": option}
    yield from _together(pragma)


def _fits(program: Program, pragma: Pragma, kind: Value, value: str | None) -> bool:
    if isinstance(kind, Flag):
        return value is None or value.lower() in ("true", "false")
    if not value:
        return False
    if isinstance(kind, Words):
        return value.lower() in kind.words or (program.open and value.isupper())
    if isinstance(kind, Constant):
        return _fits_constant(program, pragma, kind, value)
    return not isinstance(kind, Text) or re.fullmatch(kind.pattern, value) is not None


def _fits_constant(program: Program, pragma: Pragma, kind: Constant, value: str) -> bool:
    if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)", value):
        number = int(value, 0 if "x" in value.lower() else 10)
        return kind.least <= number and (kind.most is None or number <= kind.most)
    return _constant_text(program, pragma.node, value)


def _constant_text(program: Program, where: Node, value: str) -> bool:
    """Whether every name in an option's expression is a constant at the directive."""
    tree = Parser(Language(tree_sitter_cpp.language())).parse(f"int x = {value};".encode()).root_node
    if tree.has_error:
        return False
    names = {text_of(n) for n in walk(tree) if n.type == "identifier" and not _of_type(n)}
    scope = visible(program, where)
    known = program.enumerators | template_values(where)
    fixed = (scope[n].const and is_constant(program, scope[n].value) for n in names - {"x"} - known if n in scope)
    return all(name in scope or name in known or (program.open and name.isupper()) for name in names - {"x"}) and all(
        fixed
    )


def _of_type(node: Node) -> bool:
    """Part of ``Traits::value`` or of ``sizeof(word_t)``: constants whatever they name."""
    return any(a.type in ("qualified_identifier", "sizeof_expression") for a in ancestors(node))


_IMPLS = frozenset().union(*STORAGE_IMPLS.values())


def _together(pragma: Pragma) -> Iterator[Fault]:
    """Options whose values depend on each other."""
    kind, impl = (pragma.get("type") or "").lower(), (pragma.get("impl") or "").lower()
    if pragma.name == "BIND_STORAGE" and impl and impl in _IMPLS - STORAGE_IMPLS.get(kind, _IMPLS):
        allowed = "|".join(sorted(STORAGE_IMPLS[kind]))
        yield pragma.node, "bad-storage", {"type": kind, "allowed": allowed, "came": impl}
    if pragma.name in ("ARRAY_PARTITION", "ARRAY_RESHAPE") and kind in ("block", "cyclic") and not pragma.has("factor"):
        yield pragma.node, "missing-option", {"directive": f"{pragma.name} type={kind}", "option": "factor"}
    low, high = pragma.get("min") or "", pragma.get("max") or ""
    if low.isdigit() and high.isdigit() and int(low) > int(high):
        named: dict[str, object] = {
            "directive": pragma.name,
            "option": "min",
            "required": f"at most max={high}",
            "came": low,
        }
        yield pragma.node, "bad-value", named


# ------------------------------------------------------------------------------------------ 2. scope

_ARTICLES = {
    "function": "a function's body",
    "loop": "a loop's braces",
    "region": "a region's braces",
    "conditional": "a conditional's braces",
}


def _scope(program: Program, pragma: Pragma, known: Directive, top: str) -> Iterator[Fault]:
    block = block_of(pragma.node)
    required = " or ".join(_ARTICLES[s] for s in ("function", "loop", "region", "conditional") if s in known.scopes)
    before = pragma.node.prev_sibling
    if block is None or (before is not None and _headless(before)):
        came = "no function" if block is None else "front of a loop's braces"
        yield pragma.node, "directive-scope", {"directive": pragma.name, "required": required, "came": came}
        return
    kind, _ = owner_of(block)
    if kind not in known.scopes:
        yield (
            pragma.node,
            "directive-scope",
            {"directive": pragma.name, "required": required, "came": _ARTICLES[kind]},
        )
    elif known.early and _late(block, pragma.node):
        yield pragma.node, "directive-late", {"directive": pragma.name}
    function = program.function_of(pragma.node)
    if known.top_only and function is not None and function.name != top:
        yield pragma.node, "interface-not-top", {"directive": pragma.name, "top": top, "came": function.name}
    if pragma.name == "DATAFLOW" and pragma_in(block, "PIPELINE") is not None:
        yield pragma.node, "directive-conflict", {"first": "DATAFLOW", "second": "PIPELINE"}


def _headless(node: Node) -> bool:
    """A loop or condition whose body the parser had to invent, as before ``#pragma`` without braces."""
    return any(n.is_missing and n.type == ";" for n in walk(node)) and node.type != "declaration"


def _late(block: Node, pragma: Node) -> bool:
    before = [c for c in block.children if c.start_byte < pragma.start_byte]
    plain = (c.type in _PLAIN_STATEMENTS or text_of(c).strip() == ";" or is_assert(c) for c in before)
    return not all(plain)


# ------------------------------------------------------------------------------------------ 3. names


def _names(program: Program, pragma: Pragma, known: Directive, top: str) -> Iterator[Fault]:
    function = program.function_of(pragma.node)
    if function is None:
        return
    params = {p.name for p in function.params}
    for option, kind in known.options.items():
        if not isinstance(kind, Name) or not pragma.get(option):
            continue
        for name in (pragma.get(option) or "").split(","):
            if not _declared(program, pragma, kind, name, params):
                required = f"a {kind.of} of {function.name}" if kind.of != "label" else "a function or operation"
                yield (
                    pragma.node,
                    "undeclared-variable",
                    {"directive": pragma.name, "required": required, "came": name},
                )
    if pragma.name == "STREAM" and function.name == top and pragma.get("variable") in params:
        yield pragma.node, "stream-top-argument", {"came": pragma.get("variable")}


def _declared(program: Program, pragma: Pragma, kind: Name, name: str, params: set[str]) -> bool:
    root = re.split(r"[.\[]|->", name)[0].strip("*&() ")
    if kind.of == "port":
        return root in params or root == "return"
    if kind.of == "argument":
        return root in params
    if kind.of == "label":
        is_function = (pragma.get("type") or "").lower() == "function"
        return name.split("<")[0].rpartition("::")[2] in program.functions if is_function else True
    if root == "this":
        function = program.function_of(pragma.node)
        member = re.split(r"->|\.", name)[1].split("[")[0]
        return function is not None and member in members(program, function.owner)
    return root in visible(program, pragma.node) or _unknown_base(program, pragma.node)


def _unknown_base(program: Program, node: Node) -> bool:
    """A member may come from a base class that is not among the sources."""
    function = program.function_of(node)
    bases = program.bases.get(function.owner or "", ()) if function is not None else ()
    return any(base not in program.fields for base in bases)

"""Rules 5 and 6: constructs that do not synthesise, and loops inside pipelines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from tree_sitter import Node

from hls_templates.lint.pragmas import Fault, pragma_in
from hls_templates.lint.rules import FLOAT_TYPES, HOST_STREAMS, HOST_TYPES, MEMORY_CALLS, SYSTEM_CALLS
from hls_templates.lint.tree import (
    LOOPS,
    Function,
    Program,
    arguments,
    block_of,
    bounded,
    called,
    candidates,
    counter_of,
    enclosing_loops,
    is_constant,
    text_of,
    variables,
    walk,
)

Check = Callable[[Program, Node], Iterator[Fault]]


def check(program: Program) -> Iterator[Fault]:
    for node in walk(program.root):
        for one in _CHECKS.get(node.type, ()):
            yield from one(program, node)
    yield from _recursion(program)
    yield from _pipelines(program)


# ------------------------------------------------------------------------------------- 5. constructs


def _always(rule: str, came: str) -> Check:
    def found(program: Program, node: Node) -> Iterator[Fault]:
        yield node, rule, {"came": came}

    return found


def _calls(program: Program, node: Node) -> Iterator[Fault]:
    function, name = node.child_by_field_name("function"), called(node)
    if function is None or function.type == "field_expression" or name in program.functions:
        return
    if name in MEMORY_CALLS:
        yield node, "dynamic-memory", {"came": name}
    elif name in SYSTEM_CALLS:
        yield node, "system-call", {"came": name}
    elif name in ("dynamic_cast", "typeid"):
        yield node, "run-time-type", {"came": name}


def _qualified(program: Program, node: Node) -> Iterator[Fault]:
    if node.parent is not None and node.parent.type == "qualified_identifier":
        return
    if found := HOST_TYPES.match(text_of(node)):
        yield node, "standard-library", {"came": re.sub(r"\s", "", found[0])}
    elif found := HOST_STREAMS.match(text_of(node)):
        yield node, "system-call", {"came": re.sub(r"\s", "", found[0])}


def _float_type(program: Program, node: Node) -> Iterator[Fault]:
    if text_of(node) in FLOAT_TYPES:
        yield node, "floating-point", {"came": text_of(node)}


def _float_literal(program: Program, node: Node) -> Iterator[Fault]:
    text = text_of(node)
    is_hex = text.lower().startswith("0x")
    if "." in text or (not is_hex and re.search(r"\de[+-]?\d", text.lower())):
        yield node, "floating-point", {"came": text}


def _pointers(program: Program, node: Node) -> Iterator[Fault]:
    inner = node.child_by_field_name("declarator") or next(
        (c for c in node.named_children if "declarator" in c.type), None
    )
    if inner is not None and inner.type == node.type:
        yield node, "pointer-to-pointer", {"came": f"«{text_of(node)}»"}


def _function_pointers(program: Program, node: Node) -> Iterator[Fault]:
    inner = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
    wrapped = inner is not None and inner.type in (
        "parenthesized_declarator",
        "abstract_parenthesized_declarator",
    )
    if inner is not None and wrapped and any("pointer" in c.type for c in inner.named_children):
        yield node, "function-pointer", {"came": f"«{text_of(node)}»"}


def _statics(program: Program, node: Node) -> Iterator[Fault]:
    words = {text_of(c) for c in node.children}
    if "static" not in words or words & {"const", "constexpr"} or block_of(node) is None:
        return
    for variable in variables(node):
        yield node, "static-local", {"came": variable.name}


def _loops(program: Program, loop: Node) -> Iterator[Fault]:
    condition = loop.child_by_field_name("condition")
    came = f"«{re.sub(r' +', ' ', text_of(loop).splitlines()[0])[:60]}»"
    if loop.type != "for_range_loop" and text_of(condition).strip("() ") in ("", "true", "1"):
        yield loop, "endless-loop", {"came": came}
        return
    body = loop.child_by_field_name("body")
    noted = body is not None and pragma_in(body, "LOOP_TRIPCOUNT") is not None
    if not noted and not bounded(program, loop, _unrolled_counters(loop)):
        yield loop, "unbounded-loop", {"came": came}


def _unrolled_counters(loop: Node) -> frozenset[str]:
    """Counters of outer loops that unrolling turns into constants."""
    found: set[str] = set()
    outer = list(enclosing_loops(loop))
    for i, one in enumerate(outer):
        body = one.child_by_field_name("body")
        unrolled = body is not None and (p := pragma_in(body, "UNROLL")) is not None and not p.has("factor")
        piped = any(_pipelined(further) for further in outer[i + 1 :])
        counter = counter_of(one)
        if counter is not None and (unrolled or piped):
            found.add(counter)
    return frozenset(found)


def _pipelined(loop: Node) -> bool:
    body = loop.child_by_field_name("body")
    return body is not None and pragma_in(body, "PIPELINE") is not None


_CHECKS: Mapping[str, tuple[Check, ...]] = {
    "new_expression": (_always("dynamic-memory", "new"),),
    "delete_expression": (_always("dynamic-memory", "delete"),),
    "throw_statement": (_always("exception", "throw"),),
    "try_statement": (_always("exception", "try"),),
    "virtual": (_always("virtual", "this function"),),
    "goto_statement": (_always("goto", "goto"),),
    "call_expression": (_calls,),
    "qualified_identifier": (_qualified,),
    "primitive_type": (_float_type,),
    "type_identifier": (_float_type,),
    "number_literal": (_float_literal,),
    "pointer_declarator": (_pointers,),
    "abstract_pointer_declarator": (_pointers,),
    "function_declarator": (_function_pointers,),
    "abstract_function_declarator": (_function_pointers,),
    "declaration": (_statics,),
    **dict.fromkeys(LOOPS, (_loops,)),
}


def _recursion(program: Program) -> Iterator[Fault]:
    callees = {f.node.id: _callees(program, f) for f in program.all_functions}
    for function in program.all_functions:
        reached: dict[int, Function] = {}
        stack = list(callees[function.node.id])
        while stack:
            one = stack.pop()
            if one.node.id not in reached:
                reached[one.node.id] = one
                stack.extend(callees[one.node.id])
        if function.node.id in reached:
            direct = any(c.node.id == function.node.id for c in callees[function.node.id])
            way = "calls itself" if direct else "reaches itself through the functions that it calls"
            yield function.node, "recursion", {"came": f"{function.name} {way}"}


def _callees(program: Program, function: Function) -> list[Function]:
    """Callees that are sure: one definition, and no template arguments that end a compile-time recursion."""
    found: list[Function] = []
    for node in walk(function.body):
        if node.type == "call_expression" and "<" not in text_of(node.child_by_field_name("function")):
            several = candidates(program, node, function)
            found += several if len(several) == 1 else []
    return found


# --------------------------------------------------------------------------------------- 6. pipelines


def _pipelines(program: Program) -> Iterator[Fault]:
    for node in walk(program.root):
        pragma = pragma_in(node, "PIPELINE") if node.type == "compound_statement" else None
        if pragma is not None and not any(
            _pipelined(loop) for loop in enclosing_loops(node) if not _is_body(loop, node)
        ):
            known = _unrolled_counters(node)
            yield from _inside(program, node, program.function_of(node), known, pragma.node, ())


def _is_body(loop: Node, block: Node) -> bool:
    return loop.child_by_field_name("body") == block


def _inside(
    program: Program,
    body: Node,
    function: Function | None,
    known: frozenset[str],
    pipe: Node,
    via: tuple[int, ...],
) -> Iterator[Fault]:
    """Loops in a pipelined block and in what it calls; ``known`` names are constants here."""
    for node in walk(body):
        if node.type in LOOPS:
            outer = {counter_of(loop) for loop in enclosing_loops(node) if body.start_byte <= loop.start_byte}
            inner = known | {name for name in outer if name}
            yield from _unrollable(program, node, inner, pipe)
        elif node.type == "call_expression":
            for callee in candidates(program, node, function):
                if callee.node.id not in via and len(via) < 20:
                    fixed = _constant_params(program, node, callee, known)
                    yield from _inside(program, callee.body, callee, fixed, pipe, (*via, callee.node.id))


def _constant_params(program: Program, call: Node, callee: Function, known: frozenset[str]) -> frozenset[str]:
    outer = {counter_of(loop) for loop in enclosing_loops(call)} & known
    pairs = zip(callee.params, arguments(call), strict=False)
    return frozenset(p.name for p, a in pairs if is_constant(program, a, known | {n for n in outer if n}))


def _unrollable(program: Program, loop: Node, known: frozenset[str], pipe: Node) -> Iterator[Fault]:
    came = f"«{re.sub(r' +', ' ', text_of(loop).splitlines()[0])[:60]}»"
    if not bounded(program, loop, known):
        yield loop, "pipeline-inner-loop", {"came": came, "pipeline": pipe}
    elif _pipelined(loop):
        yield loop, "pipeline-nested", {"came": came}

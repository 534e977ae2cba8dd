"""Functions local to a model, as some exporters write modules: their operators take the place of the calls.

A function may call others, so that a small file may stand for many operators. How many is known before any is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from boards.errors import DamagedFileError, RangeError, UnsupportedError, cut, shown

MOST_FUNCTIONS = 1 << 10
DEEPEST = 32
"""The most calls of functions within one another."""

Key = tuple[str, str, str]
"""Domain, name and overload of a function, or of the operator that calls it."""


def inlined(model: Any, operations: int, size: int, label: str) -> Any:
    """Return the model without functions. operations, size: so many it may have then, of so many bytes.

    Raises:
        RangeError: There are too many functions, calls within each other, operators or bytes.
        DamagedFileError: A call does not fit its function, or a function calls itself.
        UnsupportedError: A function has another opset than the model.
    """
    if len(model.functions) > MOST_FUNCTIONS:
        raise RangeError("the number of functions", len(model.functions), high=MOST_FUNCTIONS, where=label)
    functions = {_key(function, function.name): function for function in model.functions}
    sizes: dict[Key, tuple[int, int]] = {}
    count, length = _size_of(model.graph.node, functions, sizes, (), label)
    for what, got, most in (
        ("the number of operations with those of its functions", count, operations),
        ("the number of bytes of its operations with those of its functions", length, size),
    ):
        if got > most:
            raise RangeError(what, got, high=most, where=label)
    from onnx.inliner import inline_local_functions

    try:
        result = inline_local_functions(model)
    except Exception as error:  # of C++, whatever it finds wrong
        raise DamagedFileError(label, f"has a function that cannot be inlined: {cut(error)}") from error
    called = {_key(node, node.op_type) for node in result.graph.node} & functions.keys()
    if called:
        _, name, _ = min(called)
        reason, remedy = "its opset is not that of the model", "export the model in one opset"
        raise UnsupportedError(f"the model-local function {shown(name)}", reason, where=label, remedy=remedy)
    del result.functions[:]
    return result


def _key(node: Any, name: str) -> Key:
    return node.domain, name, getattr(node, "overload", "")


def _size_of(
    nodes: Any, functions: Mapping[Key, Any], sizes: dict[Key, tuple[int, int]], calls: tuple[Key, ...], label: str
) -> tuple[int, int]:
    """Return how many operators the nodes become without functions, and how many bytes these have."""
    count = size = 0
    for node in _with_inner(nodes):
        key = _key(node, node.op_type)
        if key not in functions:
            count, size = count + 1, size + node.ByteSize()
            continue
        if key not in sizes:
            sizes[key] = _size_of_function(node, functions, sizes, calls, label)
        _check_call(node, functions[key], label)
        count, size = count + sizes[key][0], size + sizes[key][1]
    return count, size


def _size_of_function(
    node: Any, functions: Mapping[Key, Any], sizes: dict[Key, tuple[int, int]], calls: tuple[Key, ...], label: str
) -> tuple[int, int]:
    key = _key(node, node.op_type)
    if key in calls:
        raise DamagedFileError(label, f"has a function that calls itself: {shown(node.op_type)}")
    if len(calls) >= DEEPEST:
        raise RangeError(
            "the number of calls of functions within each other", len(calls) + 1, high=DEEPEST, where=label
        )
    return _size_of(functions[key].node, functions, sizes, (*calls, key), label)


def _check_call(node: Any, function: Any, label: str) -> None:
    if len(node.input) > len(function.input) or len(node.output) > len(function.output):
        got = f"{len(node.input)} inputs and {len(node.output)} outputs"
        has = f"{len(function.input)} and {len(function.output)}"
        raise DamagedFileError(label, f"calls {shown(node.op_type)} with {got}, which has {has}", shown(node.name))


def _with_inner(nodes: Any) -> Iterator[Any]:
    """Yield the nodes, and those inside their branches and loops."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                waiting.extend(graph.node)

"""Address computation of the engine: no process divides, and the estimate of LUTs counts every product."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hls_templates.headers import fixed_files, include_folders
from hls_templates.syntax.nodes import ancestors, text_of, walk
from hls_templates.syntax.program import Program, parse
from scheduler.systolic.array import COUNT_BITS
from scheduler.systolic.engines.hls.fabric import ADDED_PRODUCTS, PASS_PRODUCTS, PORT_PRODUCTS
from tests.support.cases import cases

# The array's own products, which are its DSPs, are in packed.h and pe_array.h; types.h has only constants.
FIXED = fixed_files(*include_folders("systolic"))
HEADERS = ("pass.h", "map_buffer.h", "read.h", "load.h", "feed.h", "pool.h", "requantise.h", "save.h", "add.h")
POWERS_OF_TWO = {"MAP_PORTS", "SAVE_ROWS", "ROW_BANKS", "LANES", "PIXEL_LANES", "WORD_PIXELS", "RESULT_WORDS"}
POWERS_OF_TWO |= {"PIXEL_BYTES", "POSITIONS"}
"""By the rules of scheduler/systolic/array.py: to multiply or divide by one is to choose bits."""


def parsed(header: str) -> Program:
    return parse(FIXED[header].encode(), open_=True)


def unrolled(node: Node) -> Iterator[str]:
    """Yield the variables of the unrolled loops around ``node``; they are constants in each copy of the body."""
    for loop in ancestors(node):
        if loop.type == "for_statement" and "#pragma HLS UNROLL" in text_of(loop.child_by_field_name("body"))[:60]:
            yield text_of(next(n for n in walk(loop) if n.type == "init_declarator").child_by_field_name("declarator"))


def names(node: Node) -> set[str]:
    return {text_of(n) for n in walk(node) if n.type in ("identifier", "field_identifier")}


def is_constant(node: Node, loops: set[str]) -> bool:
    return all(name.isupper() or name in loops for name in names(node))


def is_power_of_two(node: Node) -> bool:
    text = text_of(node)
    shifted = re.fullmatch(r"\(1 << [A-Z_]+\)", text) is not None
    return shifted or text in POWERS_OF_TWO or (text.isdigit() and int(text).bit_count() == 1)


def arithmetic(program: Program) -> Iterator[str]:
    """Yield every ``a * b``, ``a / b`` and ``a % b``, except operations of constants and by powers of two."""
    for node in walk(program.root):
        if node.type != "binary_expression" or text_of(node.children[1]) not in ("*", "/", "%"):
            continue
        left, operator, right = node.children
        shifted = is_power_of_two(right) or (is_power_of_two(left) and text_of(operator) == "*")
        if not shifted and not is_constant(node, set(unrolled(node))):
            yield text_of(node)


@cases("header", HEADERS)
def test_process_headers_have_only_the_listed_products_and_divisions(header: str) -> None:
    theirs = {
        "pass.h": ["value * (count & ((1 << COUNT_BITS) - 1))"],  # address_product() itself
        "pool.h": ["value_t(first.column[n]) * value_t(second.column[n])"],  # of maps, in logic, counted
        "add.h": ["product_t(value) * product_t(factor)"],  # of a map that is added, in logic, counted
        # A sum and a multiplier in DSPs, a slope and a place within a piece in logic, both counted.
        "requantise.h": ["product_t(biased) * product_t(multiplier)", "slope * segment_offset_t(segment_offset)"],
    }
    assert list(arithmetic(parsed(header))) == theirs.get(header, [])


@cases(
    "line, found",
    [
        ("for (int i = 0; i < n; ++i) { total += i * pitch; }", ["i * pitch"]),
        ("for (int i = 0; i < 4; ++i) {\n#pragma HLS UNROLL\n total += i * LANES; }", []),
        ("for (int i = 0; i < 4; ++i) {\n#pragma HLS UNROLL\n total += i * pitch; }", ["i * pitch"]),
        ("total = n / ROWS + n % MAP_PORTS + 2 * n;", ["n / ROWS"]),
        ("total = n * (1 << SEGMENT_BITS) + n * (1 << pitch);", ["n * (1 << pitch)"]),
    ],
)
def test_arithmetic_finds_products_and_divisions_of_variables(line: str, found: list[str]) -> None:
    assert list(arithmetic(parse(f"int f(int n, int pitch, int total) {{ {line} return total; }}".encode()))) == found


def calls(header: str, *functions: str) -> int:
    """Return the number of calls of ``address_product`` in these functions, or in the whole header."""
    program = parsed(header)
    bodies = [one.body for one in program.all_functions if one.name in functions] if functions else [program.root]
    assert len(bodies) == max(1, len(functions))
    return sum(
        text_of(node.child_by_field_name("function")) == "address_product"
        for body in bodies
        for node in walk(body)
        if node.type == "call_expression"
    )


def test_estimate_counts_every_address_product() -> None:
    """Count the calls in the text, because each process calls a function with an ``address_product`` once."""
    chunks, port = calls("save.h", "plan_chunks"), calls("save.h", "write_rows")
    assert calls("save.h") == chunks + port
    assert calls("load.h") + chunks == PASS_PRODUCTS + ADDED_PRODUCTS
    assert calls("read.h") + port == PORT_PRODUCTS
    assert sum(calls(header) for header in HEADERS) == PASS_PRODUCTS + PORT_PRODUCTS + ADDED_PRODUCTS
    assert f"COUNT_BITS = {COUNT_BITS};" in FIXED["pass.h"]
    assert "#pragma HLS BIND_OP variable = product op = mul impl = fabric" in FIXED["pass.h"]

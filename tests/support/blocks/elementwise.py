"""Cases of pools and element-wise blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.blocks.compute import (
    BIPOLAR,
    FRAMES,
    Activation,
    Case,
    Ints,
    Values,
    in_pixels,
    make_activation,
    signed,
    unsigned,
)

OPERATIONS: dict[str, Callable[[Ints, Ints], Ints]] = {
    "add_op": np.add,
    "subtract_op": np.subtract,
    "difference_op": lambda a, b: np.abs(a - b),
    "multiply_op": np.multiply,
    "max_op": np.maximum,
    "min_op": np.minimum,
}


def declare(activation: Activation, pe: int, folds: int, constants: str) -> str:
    return f"typedef {activation.type(pe, folds)} by_t; static by_t by; values_t from = {constants}; fill(by, from);\n"


def largest_of(*values: Values) -> list[int]:
    return [max(-value.low, value.high) for value in values]


def global_pool(seed: int, size: tuple[int, int], fold: tuple[int, int], value: Values, kind: str) -> Case:
    """Return a case of a global pool. ``size`` is positions and channels. ``fold`` is PE and PIXELS."""
    rng = np.random.default_rng(seed)
    (positions, channels), (pe, pixels) = size, fold
    nf = channels // pe
    values = value.draw(rng, FRAMES * positions, channels)
    values[:positions], values[-positions:] = value.high, value.low
    largest = largest_of(value)[0] * positions
    activation = make_activation(rng, kind, channels, largest)
    words = FRAMES * positions * nf // pixels
    arguments = f"{positions}, {channels}, {pe}, {pixels}, {value.cpp}, {largest.bit_length() + 1}"
    code = f"""{declare(activation, pe, nf, "in[1]")}
        run_one<word<{value.carried}, {pixels * pe}>, word<by_t::output_t, {pe}>>(
            {words}, in[0], frames * {nf}, out, [&](auto &values, auto &results) {{
                global_pool<{arguments}>(frames, values, results, by); }});"""
    return Case(
        f"global_pool {arguments} {kind}",
        code,
        (in_pixels(value.carrier(values), pixels, pe), activation.flat(pe)),
        activation.apply(values.reshape(FRAMES, positions, channels).sum(axis=1)).ravel(),
        1 + words - 1 + 12,
        ("global_pool.h",),
    )


def add(
    seed: int,
    size: tuple[int, int],
    fold: tuple[int, int],
    terms: tuple[tuple[Values, int], ...],
    kind: str,
) -> Case:
    """size: positions, channels; fold: PE, PIXELS; terms: datatype and multiplier of each input."""
    rng = np.random.default_rng(seed)
    (positions, channels), (pe, pixels) = size, fold
    drawn = [value.draw(rng, FRAMES * positions, channels) for value, _ in terms]
    largest = sum(largest_of(value)[0] * by for value, by in terms)
    activation = make_activation(rng, kind, channels, largest)
    total: Ints = sum((values * by for values, (_, by) in zip(drawn, terms, strict=True)), np.zeros(1, np.int64))
    words = FRAMES * positions * channels // pe // pixels
    arguments = f"{positions}, {channels}, {pe}, {pixels}, {largest.bit_length() + 1}, "
    arguments += ", ".join(f"term_t<{value.cpp}, {by}>" for value, by in terms)
    kinds = [f"word<{value.carried}, {pixels * pe}>" for value, _ in terms]
    inputs = [in_pixels(v.carrier(d), pixels, pe) for d, (v, _) in zip(drawn, terms, strict=True)]
    declared = declare(activation, pe, channels // pe, f"in[{len(terms)}]")
    return Case(
        f"add {arguments} {kind}",
        several(declared, "add", arguments, kinds, pixels * pe, words),
        (*inputs, activation.flat(pe)),
        in_pixels(activation.apply(total), pixels, pe),
        1 + words - 1 + 16,
        ("elementwise.h",),
    )


def several(declared: str, function: str, arguments: str, kinds: list[str], lanes: int, words: int) -> str:
    """Return the code of a block with two or more inputs of the same number of words."""
    streams = "".join(f"hls::stream<{k}> in{i}; SYSTOLIC_STREAM(in{i}, 2);\n" for i, k in enumerate(kinds))
    feeds = "".join(f"feed({words}, in[{i}], in{i});\n" for i in range(len(kinds)))
    names = ", ".join(f"in{i}" for i in range(len(kinds)))
    return f"""{declared} SYSTOLIC_DATAFLOW(0);
        {streams} hls::stream<word<by_t::output_t, {lanes}>> results; SYSTOLIC_STREAM(results, 2);
        {feeds} run_block([&] {{ {function}<{arguments}>(frames, {names}, results, by); }});
        drain({words}, results, out);"""


def element_wise(
    seed: int, size: tuple[int, int], fold: tuple[int, int], values: tuple[Values, Values], operation: str, kind: str
) -> Case:
    rng = np.random.default_rng(seed)
    (positions, channels), (pe, pixels) = size, fold
    first, second = (value.draw(rng, FRAMES * positions, channels) for value in values)
    largest = int(np.prod(largest_of(*values))) if operation == "multiply_op" else sum(largest_of(*values))
    activation = make_activation(rng, kind, channels, largest)
    words = FRAMES * positions * channels // pe // pixels
    arguments = f"{positions}, {channels}, {pe}, {pixels}, {values[0].cpp}, {values[1].cpp}, "
    arguments += f"{largest.bit_length() + 1}, {operation}"
    kinds = [f"word<{value.carried}, {pixels * pe}>" for value in values]
    declared = declare(activation, pe, channels // pe, "in[2]")
    inputs = [in_pixels(v.carrier(d), pixels, pe) for v, d in zip(values, (first, second), strict=True)]
    return Case(
        f"element_wise {arguments} {kind}",
        several(declared, "element_wise", arguments, kinds, pixels * pe, words),
        (*inputs, activation.flat(pe)),
        in_pixels(activation.apply(OPERATIONS[operation](first, second)), pixels, pe),
        1 + words - 1 + 16,
        ("elementwise.h",),
    )


INT8, UINT8, UINT4, INT16 = signed(8), unsigned(8), unsigned(4), signed(16)


CASES = (
    global_pool(1, (12, 6), (2, 1), INT8, "requantise"),
    global_pool(2, (12, 16), (2, 2), UINT8, "identity"),  # 8 groups, so that the sums are in a memory
    global_pool(3, (12, 6), (6, 4), UINT4, "multiply"),
    global_pool(4, (1, 6), (1, 1), UINT4, "thresholds"),
    global_pool(5, (12, 4), (4, 1), BIPOLAR, "identity"),
    add(20, (6, 8), (4, 1), ((INT8, 1), (INT8, 1)), "requantise"),
    add(21, (6, 8), (8, 2), ((INT8, 16384), (UINT8, 3)), "identity"),
    add(22, (6, 8), (2, 1), ((UINT4, 5), (INT8, 1), (UINT8, 7)), "multiply"),
    add(23, (6, 8), (2, 2), ((UINT4, 1), (INT8, 2), (BIPOLAR, 3), (UINT4, 16384)), "thresholds"),
    *(element_wise(30 + i, (6, 8), (4, 2), (INT8, UINT8), op, "identity") for i, op in enumerate(OPERATIONS)),
    element_wise(40, (6, 8), (1, 1), (UINT4, UINT4), "difference_op", "requantise"),
)

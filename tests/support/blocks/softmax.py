"""Cases of softmax."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.blocks.compute import BIPOLAR, FRAMES, Case, Ints, Values, signed, unsigned

INT2, INT4, INT8 = signed(2), signed(4), signed(8)


UINT2, UINT4, UINT8 = unsigned(2), unsigned(4), unsigned(8)


MAX_POWER = (1 << 20) - 1


METHODS = ("stable", "latency", "argmax")


def depth(method: str, pe: int) -> int:
    """Return the pipeline depth that the loops are declared with, by hand."""
    return 4 + pe if method == "argmax" else 10 + pe // 2


def steps(method: str, size: tuple[int, int], pe: int) -> int:
    """Return the iterations per frame by hand.

    Every method delays its output by a position, and stable by another one, to find the maximum. The division takes one
    step per bit of R except the first.
    """
    positions, channels = size
    nf = channels // pe
    beyond = {"stable": 2 * nf + 16, "latency": nf + 36, "argmax": nf}[method]
    return positions * nf + beyond


def powers_of(method: str, value: Values, scale: float) -> Ints:
    """Return the table of powers by distance from the maximum, or by value − low."""
    distance = np.arange(value.high - value.low + 1)
    below = distance if method == "stable" else distance[::-1]
    powers: Ints = np.floor(MAX_POWER * np.exp(-scale * below) + 0.5).astype(np.int64)
    return powers


def shares(method: str, values: list[int], table: Ints, low: int) -> list[int]:
    """Return the softmax of one position, computed with Python's unbounded integers."""
    greatest = max(values)
    if method == "argmax":
        return [255 * (i == values.index(greatest)) for i in range(len(values))]
    powers = [int(table[greatest - x if method == "stable" else x - low]) for x in values]
    inverse = (1 << 36) // max(1, sum(powers))
    return [min(255, (power * inverse + (1 << 27)) >> 28) for power in powers]


def softmax(seed: int, method: str, size: tuple[int, int], pe: int, value: Values, scale: float = 0.1) -> Case:
    """Return a case of softmax with ``size`` positions and channels."""
    positions, channels = size
    rng = np.random.default_rng(seed)
    drawn = value.draw(rng, FRAMES * positions, channels)
    drawn[0], drawn[-1] = value.high, value.low  # two positions have equal values only
    if value.step == 1:  # often one class exceeds all others, as in trained networks
        ahead = rng.random(len(drawn)) < 0.5
        drawn[ahead] = np.maximum(drawn[ahead] // 4, value.low)
        drawn[ahead, rng.integers(0, channels, ahead.sum())] = value.high
    table = powers_of(method, value, scale)
    expected = [shares(method, row.tolist(), table, value.low) for row in drawn]
    words = FRAMES * positions * channels // pe
    sizes = f"{positions}, {channels}, {pe}, {value.cpp}"
    kinds: tuple[Ints, ...] = (value.carrier(drawn).ravel(), table)
    name, by = f"softmax<SOFTMAX_{method.upper()}, {sizes}>", ""
    if method == "argmax":
        name, kinds = f"softmax_argmax<{sizes}>", kinds[:1]
    else:
        least = 0 if method == "stable" else value.low
        by = f"typedef table_t<20, false, {least}, {table.size}, 1> by_t; static by_t by; values_t at = in[1];"
        by += " fill(by, at);\n"
    call = f"{name}(frames, values, shares{', by' * bool(by)})"
    code = f"""{by}run_one<word<{value.carried}, {pe}>, word<integer<8, false>, {pe}>>(
        {words}, in[0], {words}, out, [&](auto &values, auto &shares) {{ {call}; }});"""
    flat: Ints = np.array(expected).ravel()
    cycles = 1 + FRAMES * steps(method, size, pe) - 1 + depth(method, pe)
    return Case(f"{name} {scale}", code, kinds, flat, cycles, ("softmax.h",))


def of_classes(seed: int) -> Case:
    """Return a case in which each position takes several words."""
    return softmax(seed, "stable", (6, 12), 3, INT4, 0.4)


def of_halves(seed: int) -> Case:
    """Return a case with sums of 512, in which a power of 1 is exactly half of 1/256."""
    case = softmax(seed, "latency", (16, 2), 2, INT2)
    values, table = case.inputs[0], np.array([1, 511, 3, 509])
    expected = [shares("latency", row.tolist(), table, INT2.low) for row in values.reshape(-1, 2)]
    return replace(case, inputs=(values, table), expected=np.array(expected).ravel())


def of_equal(seed: int) -> Case:
    """Return a case with few different values, so that many are equal."""
    return softmax(seed, "argmax", (8, 10), 5, UINT2)


CASES = (
    softmax(1, "stable", (1, 10), 1, INT8),
    softmax(2, "stable", (1, 10), 5, INT8, 0.03),
    softmax(3, "stable", (1, 10), 10, INT8),
    softmax(4, "stable", (6, 21), 7, UINT8, 0.05),
    softmax(5, "stable", (7, 4), 4, INT4, 0.9),
    softmax(6, "stable", (1, 1000), 8, INT8, 0.02),
    softmax(7, "stable", (3, 1), 1, INT8),
    softmax(8, "stable", (4, 6), 3, BIPOLAR, 1.5),
    softmax(9, "stable", (5, 12), 2, UINT4, 0.4),
    softmax(10, "latency", (1, 10), 1, INT8, 0.02),
    softmax(11, "latency", (1, 10), 10, UINT8, 0.01),
    softmax(12, "latency", (5, 12), 4, INT4, 0.3),
    softmax(13, "latency", (3, 40), 8, INT8, 0.2),  # some sums are 0
    softmax(14, "latency", (4, 6), 3, BIPOLAR, 0.5),
    softmax(15, "latency", (4, 1), 1, INT2, 3.0),
    softmax(16, "argmax", (1, 10), 1, signed(16)),
    softmax(17, "argmax", (5, 12), 4, INT4),
    softmax(18, "argmax", (3, 7), 7, signed(20)),
    softmax(19, "argmax", (4, 1), 1, INT8),
    softmax(20, "argmax", (4, 6), 3, BIPOLAR),
)

"""Cases of label select."""

from __future__ import annotations

import numpy as np

from tests.support.blocks.compute import BIPOLAR, FRAMES, Case, Ints, Values, signed, unsigned

INT4, INT8, INT16, INT20, UINT2, UINT4 = signed(4), signed(8), signed(16), signed(20), unsigned(2), unsigned(4)


Size = tuple[int, int, int]
"""The positions, the channels, and the number of chosen channels."""


def depth(pe: int, k: int) -> int:
    """Return the pipeline depth by hand: 3 stages, and K stages per level of a tree with PE inputs."""
    return 3 + k * int(np.ceil(np.log2(pe)))


def label_select(seed: int, size: Size, pe: int, value: Values, *, values: bool = False, equal: bool = True) -> Case:
    """Return a case of label select.

    Args:
        seed: The seed of the values.
        size: Positions, channels and chosen channels.
        pe: The lanes.
        value: The datatype.
        values: Whether the chosen values are also written.
        equal: Whether some positions have equal values.
    """
    positions, channels, k = size
    drawn = value.draw(np.random.default_rng(seed), FRAMES * positions, channels)
    if equal:
        drawn[0], drawn[-1] = value.high, value.low
        drawn[1, ::2] = value.low
    order = np.argsort(-drawn, axis=1, kind="stable")[:, :k]
    chosen = value.carrier(np.take_along_axis(drawn, order, axis=1))
    words = FRAMES * positions * channels // pe
    arguments = f"{positions}, {channels}, {pe}, {k}, {value.cpp}"
    lines = [
        "SYSTOLIC_DATAFLOW(0);",
        f"hls::stream<word<{value.carried}, {pe}>> ins;",
        f"hls::stream<word<number<{channels - 1}>, {k}>> labels;",
        "SYSTOLIC_STREAM(ins, 2);",
        "SYSTOLIC_STREAM(labels, 2);",
    ]
    if values:
        lines += [f"hls::stream<word<{value.carried}, {k}>> theirs;", "SYSTOLIC_STREAM(theirs, 2);"]
    outs = "labels, theirs" if values else "labels"
    lines += [f"feed({words}, in[0], ins);"]
    lines += [f"run_block([&] {{ label_select<{arguments}>(frames, ins, {outs}); }});"]
    lines += [f"drain({FRAMES * positions}, labels, out);"]
    if values:
        lines += [f"drain({FRAMES * positions}, theirs, out + {FRAMES * positions * k});"]
    expected: Ints = np.concatenate([order.ravel(), chosen.ravel()] if values else [order.ravel()])
    name = f"label_select {arguments}{' values' if values else ''}"
    cycles = 1 + words - 1 + depth(pe, k)
    return Case(name, "\n".join(lines), (value.carrier(drawn).ravel(),), expected, cycles, ("label_select.h",))


def of_lanes(seed: int) -> Case:
    """Return a case with many equal values in different lanes, so that only the merge decides."""
    return label_select(seed, (8, 10, 1), 10, UINT2)


def of_one_lane(seed: int) -> Case:
    """Return a case with many equal values in one lane, without a merge."""
    return label_select(seed, (8, 10, 3), 1, UINT2)


def of_short_lists(seed: int) -> Case:
    """Return a case whose lanes have fewer values than are chosen, with different values only."""
    return label_select(seed, (8, 5, 4), 5, INT16, values=True, equal=False)


CASES = (
    label_select(1, (1, 10, 1), 1, INT16),
    label_select(2, (1, 10, 3), 1, INT16, values=True),
    label_select(3, (1, 10, 3), 2, INT8),
    label_select(4, (1, 10, 5), 5, INT8, values=True),
    label_select(5, (1, 10, 10), 10, INT4, values=True),
    label_select(6, (3, 12, 2), 3, UINT4),
    label_select(7, (4, 12, 5), 6, UINT4, values=True),
    label_select(8, (2, 14, 4), 7, INT20),
    label_select(9, (5, 6, 1), 6, INT4),
    label_select(10, (6, 4, 4), 2, BIPOLAR, values=True),
    label_select(11, (3, 1, 1), 1, INT8, values=True),
    label_select(12, (2, 300, 5), 4, INT8),
    label_select(13, (4, 8, 3), 8, INT4),
    label_select(14, (3, 5, 4), 5, UINT4, values=True),
)

"""Cases of blocks that move values: maps as streams of words, and the outputs that numpy computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.support.blocks.compute import BIPOLAR, FRAMES, Case, Ints, Values, signed, unsigned

__all__ = ["BIPOLAR", "FRAMES", "INT4", "INT8", "INT16", "UINT4", "UINT8", "Padding", "Side"]

INT4, INT8, INT16, UINT4, UINT8 = signed(4), signed(8), signed(16), unsigned(4), unsigned(8)


@dataclass(frozen=True)
class Padding:
    """The padding of a map, in the blocks' order."""

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0

    def around(self, maps: Ints, value: int = 0) -> Ints:
        rows, columns = (self.top, self.bottom), (self.left, self.right)
        return np.pad(maps, ((0, 0), (0, 0), rows, columns), constant_values=value)


def draw(seed: int, value: Values, channels: int, height: int, width: int) -> Ints:
    """Return random maps [frames, channels, height, width], in the values of the carrier type."""
    maps = value.draw(np.random.default_rng(seed), FRAMES, channels, height, width)
    return value.carrier(maps)


def stream(maps: Ints, lanes: int, pixels: int = 1) -> Ints:
    """Return maps [frames, C, H, W] as words of ``pixels`` pixels × ``lanes`` channels, pixel by pixel."""
    frames, channels, height, width = maps.shape
    words = maps.transpose(0, 2, 3, 1).reshape(frames * height * width // pixels, pixels, channels // lanes, lanes)
    ordered: Ints = words.transpose(0, 2, 1, 3).ravel()
    return ordered


@dataclass(frozen=True, eq=False)
class Side:
    """A stream of the block: its flat values, and the values per word."""

    values: Ints
    lanes: int

    @property
    def words(self) -> int:
        return self.values.size // self.lanes


def case(
    block: str,
    value: Values,
    ins: Sequence[Side],
    outs: Sequence[Side],
    iterations: int,
    depth: int,
    header: str,
    out_first: bool = False,
) -> Case:
    """Return a case of a block.

    Args:
        block: The function with its template arguments.
        value: The datatype.
        ins: The input streams.
        outs: The output streams.
        iterations: The iterations of the block's loop.
        depth: Its pipeline depth.
        header: The header that declares it.
        out_first: Whether the output is the function's first argument.
    """
    names_in = [f"in_{i}" for i in range(len(ins))]
    names_out = [f"out_{i}" for i in range(len(outs))]
    sides = [*zip(names_in, ins, strict=True), *zip(names_out, outs, strict=True)]
    lines = ["(void)out;", "SYSTOLIC_DATAFLOW(0);"]
    lines += [f"hls::stream<word<{value.carried}, {side.lanes}>> {name};" for name, side in sides]
    lines += [f"SYSTOLIC_STREAM({name}, 2);" for name, _ in sides]
    lines += [f"feed({s.words}, in[{i}], {names_in[i]});" for i, s in enumerate(ins)]
    names = [*names_out, *names_in] if out_first else [*names_in, *names_out]
    lines += [f"run_block([&] {{ {block}(frames, {', '.join(names)}); }});"]
    at = 0
    for name, side in zip(names_out, outs, strict=True):
        lines += [f"drain({side.words}, {name}, out + {at});"]
        at += side.values.size
    expected = np.concatenate([*(side.values for side in outs), np.zeros(0, np.int64)])
    inputs = tuple(side.values for side in ins)
    return Case(block, "\n".join(lines), inputs, expected, 1 + iterations - 1 + depth, ("datatype.h", header))

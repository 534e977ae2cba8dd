"""Cases of weight streamers."""

from __future__ import annotations

import numpy as np

from scheduler.streaming.weights import beats_of, weight_image
from tests.support.blocks.compute import (
    BIPOLAR,
    FRAMES,
    Case,
    Ints,
    Values,
    narrow,
    signed,
    unsigned,
)

BITS = {"bipolar_t": 1}


def bits_of(weight: Values) -> int:
    return BITS.get(weight.cpp) or int(weight.cpp.split("<")[1][:-1])


def streamed(tiles: Ints, groups: int) -> Ints:
    """Return the words of all frames for tiles [PE][TILES][SIMD]."""
    return np.tile(tiles.transpose(1, 0, 2).ravel(), FRAMES * groups)


def call(seed: int, size: tuple[int, int, int, int], weight: Values, arguments: str, kind: str, beat: int = 0) -> Case:
    """Return a case of a weight streamer. ``size`` is groups per frame, tiles, PE and SIMD."""
    groups, count, pe, simd = size
    tiles = weight.carrier(weight.draw(np.random.default_rng(seed), pe, count, simd))
    out = f"word<{weight.carried}, {pe * simd}>"
    words = FRAMES * groups * count
    beats = count * beats_of(pe * simd, bits_of(weight), beat) if beat else 0
    if kind == "stream":
        given: Ints = tiles
        made = f"static {weight.carried} weights[{pe}][{count}][{simd}]; values_t from = in[0]; fill(weights, from);"
        block, cycles = f"stream_weights<{arguments}>(frames, results, weights)", 1 + words - 1 + 4
    else:
        # two beats of other data precede the image
        image = weight_image(tiles, bits_of(weight), beat).astype(np.int64).ravel()
        given = np.concatenate([np.full(2 * beat, 0x5A), image])
        made = f"""static memory_beat_t<{beat}> beats[{beats + 2}];
            for (long i = 0; i < {(beats + 2) * beat}; ++i) beats[i / {beat}].lane[i % {beat}] = uint8_t(in[0][i]);
            hls::burst_maxi<memory_beat_t<{beat}>> image(beats, {beats + 2}, "weights", 0);"""
        block = f"{kind}_weights<{arguments}>(frames, results, image, 2)"
        cycles = FRAMES * groups * beats if kind == "fetch" else beats + words
    code = f"""{made} SYSTOLIC_DATAFLOW(0); hls::stream<{out}> results; SYSTOLIC_STREAM(results, 2);
        run_block([&] {{ {block}; }}); drain({words}, results, out);"""
    return Case(f"{kind} {arguments}", code, (given.ravel(),), streamed(tiles, groups), cycles, ("weights.h",))


def stream(seed: int, size: tuple[int, int, int, int], weight: Values, ram: str) -> Case:
    return call(seed, size, weight, f"{', '.join(map(str, size))}, {weight.cpp}, {ram}", "stream")


def from_memory(seed: int, size: tuple[int, int, int, int], weight: Values, beat: int, kind: str) -> Case:
    return call(seed, size, weight, f"{', '.join(map(str, size))}, {weight.cpp}, {beat}", kind, beat)


CONSTANT = (
    stream(1, (4, 6, 2, 3), signed(8), "RAM_BRAM"),
    stream(2, (1, 5, 4, 1), narrow(4), "RAM_LUTRAM"),
    stream(3, (3, 1, 1, 8), BIPOLAR, "RAM_AUTO"),
)


MEMORY = (
    from_memory(10, (4, 6, 2, 4), signed(8), 8, "fetch"),
    from_memory(11, (2, 6, 2, 8), signed(8), 8, "fetch"),  # two beats per tile
    from_memory(12, (3, 4, 4, 8), signed(4), 16, "fetch"),
    from_memory(13, (3, 4, 3, 3), signed(3), 4, "fetch"),  # slots of four bits, and padding in the last beat
    from_memory(14, (3, 4, 4, 8), narrow(2), 4, "fetch"),
    from_memory(15, (3, 4, 4, 8), BIPOLAR, 4, "fetch"),
    from_memory(16, (3, 4, 2, 3), signed(12), 4, "fetch"),
    from_memory(17, (3, 4, 2, 3), unsigned(6), 4, "fetch"),
    from_memory(18, (3, 1, 2, 4), signed(8), 8, "fetch"),  # one beat per group
    from_memory(20, (4, 6, 2, 8), signed(4), 4, "load"),
    from_memory(21, (5, 3, 2, 4), signed(8), 8, "load"),
)


CASES = (*CONSTANT, *MEMORY)


FILL = 200  # cycles until the DDR's first answer, and of the ends of two loops

"""Weight streamers: the tiles that a matrix-vector unit asks for, from constants and from DDR."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.streaming.weights import beats_of, slot_bits, weight_image
from tests.hls_templates.streaming.compute import (
    BIPOLAR,
    FRAMES,
    Builds,
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
    """[PE][TILES][SIMD] → the words of all frames."""
    return np.tile(tiles.transpose(1, 0, 2).ravel(), FRAMES * groups)


def call(seed: int, size: tuple[int, int, int, int], weight: Values, arguments: str, kind: str, beat: int = 0) -> Case:
    """size: groups a frame, tiles, PE, SIMD."""
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
        # two beats of something else stand before the image
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
    from_memory(11, (2, 6, 2, 8), signed(8), 8, "fetch"),  # two beats a tile
    from_memory(12, (3, 4, 4, 8), signed(4), 16, "fetch"),
    from_memory(13, (3, 4, 3, 3), signed(3), 4, "fetch"),  # slots of four bits, the last beat filled up
    from_memory(14, (3, 4, 4, 8), narrow(2), 4, "fetch"),
    from_memory(15, (3, 4, 4, 8), BIPOLAR, 4, "fetch"),
    from_memory(16, (3, 4, 2, 3), signed(12), 4, "fetch"),
    from_memory(17, (3, 4, 2, 3), unsigned(6), 4, "fetch"),
    from_memory(18, (3, 1, 2, 4), signed(8), 8, "fetch"),  # a beat a group
    from_memory(20, (4, 6, 2, 8), signed(4), 4, "load"),
    from_memory(21, (5, 3, 2, 4), signed(8), 8, "load"),
)
CASES = (*CONSTANT, *MEMORY)
FILL = 200  # cycles until DDR answers the first request, and the ends of two loops


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    return Builds(CASES, tmp_path_factory.mktemp("weights"))


@pytest.mark.parametrize("build", ["native", "ap_int"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_tile_comes_in_order(builds: Builds, build: str, case: Case) -> None:
    np.testing.assert_array_equal(builds[build].run(case), case.expected)


@pytest.mark.parametrize("case", CONSTANT, ids=[case.name for case in CONSTANT])
def test_constants_come_one_word_a_cycle(builds: Builds, case: Case) -> None:
    block = builds["native"].time(case)
    assert (block.busy, block.wait_space) == (case.cycles, 0)


@pytest.mark.parametrize("case", MEMORY, ids=[case.name for case in MEMORY])
def test_ddr_is_waited_for_once_a_burst_at_most(builds: Builds, case: Case) -> None:
    block = builds["native"].time(case)
    assert case.cycles < block.busy < case.cycles + FILL
    assert block.wait_space == 0


def test_the_image_has_whole_beats_and_slots() -> None:
    tiles = np.array([[[1, -2, 3]], [[-4, 5, -6]]])  # 2 PEs, a tile, 3 lanes
    image = weight_image(tiles, 4, 4)
    assert image.tolist() == [[0xE1, 0xC3, 0xA5, 0]]
    assert weight_image(tiles, 8, 4).tolist() == [[1, 0xFE, 3, 0xFC, 5, 0xFA, 0, 0]]
    assert weight_image(np.array([[[1, 0, 1, 1]]]), 1, 1).tolist() == [[0b1101]]
    assert [slot_bits(bits) for bits in (1, 2, 3, 4, 5, 8, 9, 16)] == [1, 2, 4, 4, 8, 8, 16, 16]

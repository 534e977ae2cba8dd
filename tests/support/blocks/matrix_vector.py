"""Cases of matrix-vector and vector-vector units, and of activations."""

from __future__ import annotations

import numpy as np

from scheduler.streaming.blocks.kinds import KINDS
from scheduler.streaming.graph import Activate
from scheduler.streaming.model.depths import RESIDENT_DEPTH, unit_depth
from tests.support.blocks.compute import (
    BIPOLAR,
    FRAMES,
    Case,
    Ints,
    Values,
    in_pixels,
    make_activation,
    narrow,
    pieces,
    signed,
    unsigned,
)


def largest_sum(weights: Ints, value: Values) -> int:
    return int(np.abs(weights).sum(axis=1).max()) * max(abs(value.low), abs(value.high))


def matrix_vector(
    seed: int,
    size: tuple[int, int, int],
    fold: tuple[int, int, int],
    weight: Values,
    value: Values,
    kind: str = "identity",
    multiplier: str = "DSP48E2",
    streamed: bool = False,
    resident: bool = False,
) -> Case:
    """Return a case of a matrix-vector unit.

    ``size`` is positions, MW and MH. ``fold`` is SIMD, PE and PIXELS. A resident unit reads each tile once per frame.
    """
    rng = np.random.default_rng(seed)
    (positions, mw, mh), (simd, pe, pixels) = size, fold
    nf, sf = mh // pe, mw // simd
    weights, values = weight.draw(rng, mh, mw), value.draw(rng, FRAMES * positions, mw)
    weights[0], values[0] = weight.low, value.low
    values[-1] = np.where(weights[-1] < 0, value.low, value.high)
    largest = largest_sum(weights, value)
    activation = make_activation(rng, kind, mh, largest)
    expected = activation.apply(values @ weights.T)
    # [MH, MW] → [PE][NF · SF][SIMD]
    tiles = weights.reshape(nf, pe, sf, simd).transpose(1, 0, 2, 3).reshape(pe, nf * sf, simd)
    cycles = positions * nf * sf // pixels
    passes = FRAMES * (1 if resident else positions // pixels)
    stream = np.broadcast_to(tiles.transpose(1, 0, 2), (passes, nf * sf, pe, simd))
    function = "matrix_vector_resident" if resident else "matrix_vector_streamed"
    arguments = f"{positions}, {mw}, {mh}, {simd}, {pe}, {pixels}, {weight.cpp}, {value.cpp}, "
    arguments += f"{largest.bit_length() + 1}, {multiplier}"
    types = f"typedef {activation.type(pe, nf)} by_t; static by_t by; "
    types += "values_t from = in[2]; fill(by, from);\n"
    words = f"frames * {sf * positions // pixels}, in[0]", f"frames * {nf * positions // pixels}, out"
    kinds = f"word<{value.carried}, {pixels * simd}>", f"word<by_t::output_t, {pixels * pe}>"
    if streamed or resident:
        code = f"""{types} run_two<{kinds[0]}, word<{weight.carried}, {pe * simd}>, {kinds[1]}>({words[0]},
            {passes * nf * sf}, in[1], {words[1]},
            [&](auto &values, auto &weights, auto &results) {{
                {function}<{arguments}>(frames, values, weights, results, by); }});"""
    else:
        code = f"""{types} static {weight.carried} weights[{pe}][{nf * sf}][{simd}];
            values_t matrix = in[1]; fill(weights, matrix);
            run_one<{kinds[0]}, {kinds[1]}>({words[0]}, {words[1]}, [&](auto &values, auto &results) {{
                matrix_vector<{arguments}>(frames, values, results, weights, by); }});"""
    kept = weight.carrier(stream if streamed or resident else tiles).ravel()
    depth = unit_depth(simd)
    if resident:
        cycles, depth = positions // pixels * (sf + nf * sf + nf), unit_depth(simd) + RESIDENT_DEPTH
    header = function if resident else "matrix_vector"
    return Case(
        f"{arguments} {kind}{' streamed' * streamed}{' resident' * resident}",
        code,
        (in_pixels(value.carrier(values), pixels, simd), kept, activation.flat(pe)),
        in_pixels(expected, pixels, pe),
        1 + FRAMES * cycles - 1 + depth,
        (f"{header}.h",),
    )


def vector_vector(
    seed: int,
    size: tuple[int, int, int],
    fold: tuple[int, int, int],
    weight: Values,
    value: Values,
    kind: str = "identity",
    multiplier: str = "DSP48E2",
) -> Case:
    """Return a case of a vector-vector unit.

    ``size`` is positions, channels and taps. ``fold`` is SIMD (taps), PE (channels) and PIXELS.
    """
    rng = np.random.default_rng(seed)
    (positions, channels, taps), (simd, pe, pixels) = size, fold
    nf, sf = channels // pe, taps // simd
    weights, values = weight.draw(rng, channels, taps), value.draw(rng, FRAMES * positions, channels, taps)
    largest = largest_sum(weights, value)
    activation = make_activation(rng, kind, channels, largest)
    expected = activation.apply((values * weights).sum(axis=2))
    tiles = weights.reshape(nf, pe, sf, simd).transpose(1, 0, 2, 3).reshape(pe, nf * sf, simd)
    # [position, channel, tap] → words of (group, taps), lane = pixel, tap, channel
    groups = values.reshape(-1, pixels, nf, pe, sf, simd).transpose(0, 2, 4, 1, 5, 3)
    cycles = positions * nf * sf // pixels
    arguments = f"{positions}, {channels}, {taps}, {simd}, {pe}, {pixels}, {weight.cpp}, {value.cpp}, "
    arguments += f"{largest.bit_length() + 1}, {multiplier}"
    types = f"typedef {activation.type(pe, nf)} by_t; static by_t by; values_t from = in[2]; fill(by, from);\n"
    kinds = f"word<{value.carried}, {pixels * simd * pe}>", f"word<by_t::output_t, {pixels * pe}>"
    ends = f"frames * {cycles}, in[0]", f"frames * {nf * positions // pixels}, out"
    code = f"""{types} static {weight.carried} weights[{pe}][{nf * sf}][{simd}];
        values_t matrix = in[1]; fill(weights, matrix);
        run_one<{kinds[0]}, {kinds[1]}>({ends[0]}, {ends[1]}, [&](auto &values, auto &results) {{
            vector_vector<{arguments}>(frames, values, results, weights, by); }});"""
    return Case(
        f"depthwise {arguments} {kind}",
        code,
        (value.carrier(groups).ravel(), weight.carrier(tiles.ravel()), activation.flat(pe)),
        in_pixels(expected, pixels, pe),
        1 + FRAMES * cycles - 1 + unit_depth(simd),
        ("vector_vector.h",),
    )


def activate(
    seed: int, size: tuple[int, int], fold: tuple[int, int], value: Values, kind: str, out: Values | None = None
) -> Case:
    """Return a case of an activation.

    ``size`` is positions and channels. ``fold`` is PE and PIXELS. ``out`` is the output type of a piecewise-linear
    table.
    """
    rng = np.random.default_rng(seed)
    (positions, channels), (pe, pixels) = size, fold
    nf = channels // pe
    values = value.draw(rng, FRAMES * positions, channels)
    largest = max(-value.low, value.high)
    activation = pieces(rng, channels, value, out) if out else make_activation(rng, kind, channels, largest)
    words = FRAMES * positions * nf // pixels
    code = f"""typedef {activation.type(pe, nf)} by_t; static by_t by; values_t from = in[1]; fill(by, from);
        run_one<word<{value.carried}, {pixels * pe}>, word<by_t::output_t, {pixels * pe}>>(
            {words}, in[0], {words}, out, [&](auto &values, auto &results) {{
                activate<{positions}, {channels}, {pe}, {pixels}, {value.cpp}>(frames, values, results, by); }});"""
    return Case(
        f"activate {size} {fold} {value.cpp} {kind}{f' {out.cpp}' if out else ''}",
        code,
        (in_pixels(value.carrier(values), pixels, pe), activation.flat(pe)),
        in_pixels(activation.apply(values), pixels, pe),
        1 + words - 1 + KINDS[Activate].depth,
        ("activate.h",),
    )


INT4, INT8, UINT4, UINT8, TERNARY = signed(4), narrow(8), unsigned(4), unsigned(8), narrow(2)


CASES = (
    # positions, MW, MH; SIMD, PE, PIXELS
    matrix_vector(1, (6, 12, 8), (4, 2, 1), INT8, signed(8)),
    matrix_vector(2, (6, 12, 8), (12, 8, 1), INT8, UINT8, "requantise"),
    matrix_vector(3, (6, 12, 8), (1, 1, 1), INT8, signed(8), "multiply"),
    matrix_vector(4, (6, 12, 8), (3, 4, 2), INT8, UINT8, "thresholds"),
    matrix_vector(5, (6, 27, 5), (27, 5, 2), signed(8), signed(8)),
    matrix_vector(6, (6, 27, 5), (9, 5, 1), INT8, UINT8, "requantise", streamed=True),
    matrix_vector(7, (6, 36, 8), (18, 4, 2), INT4, UINT4, "multiply"),
    matrix_vector(8, (6, 36, 8), (36, 8, 2), INT4, INT4, streamed=True),
    matrix_vector(9, (6, 36, 5), (36, 5, 2), INT4, UINT4, "thresholds"),
    matrix_vector(10, (6, 36, 8), (9, 2, 1), INT4, UINT4, "multiply"),
    matrix_vector(11, (6, 16, 6), (8, 3, 1), TERNARY, TERNARY, "ternary", "LUT"),
    matrix_vector(12, (6, 16, 6), (8, 3, 2), BIPOLAR, BIPOLAR, "bipolar", "LUT"),
    matrix_vector(13, (6, 16, 6), (4, 6, 1), BIPOLAR, BIPOLAR, "identity", "LUT", streamed=True),
    matrix_vector(14, (6, 16, 6), (4, 2, 1), BIPOLAR, unsigned(2), "thresholds", "LUT"),
    matrix_vector(15, (6, 16, 6), (4, 2, 1), INT4, BIPOLAR, "requantise", "LUT"),
    matrix_vector(16, (6, 16, 6), (4, 2, 2), INT8, UINT8, "identity", "DSP48E1"),
    matrix_vector(17, (6, 36, 8), (12, 8, 2), INT4, UINT4, "identity", "DSP48E1"),
    matrix_vector(18, (1, 16, 10), (16, 10, 1), INT8, signed(8)),
    matrix_vector(19, (4, 16, 4), (8, 2, 1), INT8, signed(16)),
    matrix_vector(20, (12, 12, 8), (4, 2, 1), INT8, signed(8), "requantise", resident=True),
    matrix_vector(21, (12, 36, 8), (18, 4, 2), INT4, UINT4, "multiply", resident=True),
    matrix_vector(22, (1, 8, 4), (8, 4, 1), INT8, UINT8, resident=True),
    # positions, channels, taps; SIMD, PE, PIXELS
    vector_vector(30, (6, 8, 9), (1, 4, 1), INT8, UINT8, "requantise"),
    vector_vector(31, (6, 8, 9), (9, 2, 1), INT8, signed(8)),
    vector_vector(32, (6, 8, 9), (3, 8, 2), INT4, UINT4, "multiply"),
    vector_vector(33, (6, 8, 9), (9, 8, 2), INT8, UINT8, "thresholds"),
    vector_vector(34, (6, 6, 4), (4, 3, 1), BIPOLAR, BIPOLAR, "bipolar", "LUT"),
    # positions, channels; PE, PIXELS
    activate(40, (6, 8), (4, 1), signed(20), "requantise"),
    activate(41, (6, 8), (8, 2), signed(18), "multiply"),
    activate(42, (6, 8), (1, 1), signed(12), "thresholds"),
    activate(43, (6, 8), (2, 2), signed(12), "bipolar"),
    activate(44, (6, 8), (2, 1), signed(30), "requantise"),
    activate(45, (6, 8), (4, 2), signed(8), "table"),
    activate(46, (60, 8), (4, 2), signed(16), "pieces", signed(16)),
    activate(47, (60, 8), (2, 1), unsigned(16), "pieces", unsigned(16)),
    activate(48, (60, 8), (8, 4), signed(12), "pieces", signed(12)),
    activate(49, (60, 8), (2, 3), unsigned(12), "pieces", signed(16)),
    activate(50, (60, 8), (2, 1), signed(9), "pieces", signed(16)),
    activate(51, (60, 8), (4, 1), unsigned(9), "pieces", unsigned(4)),
    activate(52, (60, 8), (4, 5), signed(13), "pieces", signed(2)),
)

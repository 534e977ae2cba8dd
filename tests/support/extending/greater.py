"""A block with two input maps and words of several pixels, which returns the greater value of each pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cnn.extending.layers import Layer
from scheduler.streaming.area.part import Part
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.blocks.added import AddedBlock
from scheduler.streaming.blocks.kind import Kind
from scheduler.streaming.folded_block import FoldedBlock

GOLDEN = """
    map_t out = *in[0];
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = std::max(out.values[i], in[1]->values[i]);
    return out;
"""

HEADER = """// The greater value of each pair. One word per cycle, II 1: iterations = F · WORDS
#ifndef ACME_GREATER_H
#define ACME_GREATER_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int GREATER_DEPTH = 3;

template <int LANES, int WORDS, class T>
void greater_of(int frames, hls::stream<word<T, LANES>> &in0, hls::stream<word<T, LANES>> &in1,
                hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    progress_t<WORDS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, GREATER_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<T, LANES> first = in0.read(), second = in1.read();
        word<T, LANES> value;
        for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
            value.lane[l] = first.lane[l] < second.lane[l] ? second.lane[l] : first.lane[l];
        }
        out.write(value);
        done.next();
    }
}

#endif  // ACME_GREATER_H
"""

layer = Layer(lambda read, _: read[0], lambda maps, _: np.maximum(maps[0], maps[1]), GOLDEN, inputs=2)


def _words(place: FoldedBlock) -> int:
    return place.read.values // (place.fold.pe * place.fold.m)


def _arguments(place: FoldedBlock) -> tuple[object, ...]:
    return place.fold.pe * place.fold.m, _words(place)


def _parts(place: FoldedBlock, board: Any) -> list[Part]:
    bits = 2 * place.block.outputs[0].datatype.bits
    return [Part("choice", StreamingUsage(lut=bits * place.fold.pe * place.fold.m), "estimate: two LUTs per bit")]


block = AddedBlock(
    function="greater_of",
    header="greater.h",
    files={"greater.h": HEADER},
    kind=Kind(reads="pe", writes="pe", depth=3, several_pixels=True),
    arguments=_arguments,
    steps=_words,
    parts=_parts,
)


def broken(**fields: Any) -> AddedBlock:
    """Return the block with some fields replaced."""
    return replace(block, **fields)

"""A layer that a package adds (docs/how-to/extend.md), with a block of its own: negative values become 0.

The registries read the metadata of installed packages. ``installed`` puts such metadata on Python's path temporarily.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cnn.extending.layers import LAYERS, Layer
from cnn.extending.registry import Registry
from cnn.onnx.network import BUILDERS
from cnn.ops import Custom
from scheduler.streaming.area.part import Part
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.blocks.added import AddedBlock
from scheduler.streaming.blocks.kind import Kind
from scheduler.streaming.blocks.packages import BLOCKS
from scheduler.streaming.folded_block import FoldedBlock

_REGISTRIES: tuple[Registry[Any], ...] = (BUILDERS, LAYERS, BLOCKS)
DOMAIN, OPERATOR, NAME = "org.example", "Positive", "digests_positive"

_POINTS = f"""[systolic.operators]
{DOMAIN}.{OPERATOR} = {__name__}:operator
[systolic.layers]
{NAME} = {__name__}:layer
[systolic.blocks]
{NAME} = {__name__}:block
"""

_GOLDEN = """
    map_t out = *in[0];
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = std::max<integer>(out.values[i], 0);
    return out;
"""

_HEADER = """// Values below 0 become 0. One word per cycle, II 1
#ifndef DIGESTS_POSITIVE_H
#define DIGESTS_POSITIVE_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int POSITIVE_DEPTH = 2;

template <int LANES, int WORDS, class T>
void positive(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    progress_t<WORDS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, POSITIVE_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<T, LANES> read = in.read();
        word<T, LANES> value;
        for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
            value.lane[l] = read.lane[l] < 0 ? T(0) : read.lane[l];
        }
        out.write(value);
        done.next();
    }
}

#endif  // DIGESTS_POSITIVE_H
"""


@contextmanager
def installed() -> Iterator[None]:
    """Make the registries find the layer until the end of the context."""
    with tempfile.TemporaryDirectory() as folder:
        about = Path(folder) / "digests_positive-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: digests-positive\nVersion: 1\n", "utf-8")
        (about / "entry_points.txt").write_text(_POINTS, "utf-8")
        sys.path.append(folder)
        for registry in _REGISTRIES:
            registry.refresh()
        try:
            yield
        finally:
            sys.path.remove(folder)
            for registry in _REGISTRIES:
                registry.refresh()


def operator(layers: Any, operation: Any) -> Any:
    """Read the ONNX operator."""
    source, read = layers.picture(operation)
    op = Custom(NAME, ())
    return layers.with_node(operation, "positive", op, op.output_shape([read]), source.node)


layer = Layer(lambda read, _: read[0], lambda maps, _: np.maximum(maps[0], 0), _GOLDEN)


def _words(place: FoldedBlock) -> int:
    return place.read.values // (place.fold.pe * place.fold.m)


def _arguments(place: FoldedBlock) -> tuple[object, ...]:
    return place.fold.pe * place.fold.m, _words(place)


def _parts(place: FoldedBlock, _: Any) -> list[Part]:
    bits = place.block.outputs[0].datatype.bits
    return [Part("choice", StreamingUsage(lut=bits * place.fold.pe * place.fold.m), "estimate: one LUT per bit")]


block = AddedBlock(
    function="positive",
    header="positive.h",
    files={"positive.h": _HEADER},
    kind=Kind(reads="pe", writes="pe", depth=2, several_pixels=True),
    arguments=_arguments,
    steps=_words,
    parts=_parts,
)

"""The table of all kinds of blocks. The word widths, constraints, searches and reports use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cnn.ops import MaxPool
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kind import Kind

WALK_DEPTH = 8
"""The pipeline stages of default windows and of blocks that reorder a map (walk.h)."""

_ROWS = ("lutram", "bram")

KINDS: Mapping[type[Any], Kind] = {
    g.Source: Kind(depth=3, several_pixels=True),
    g.Sink: Kind(depth=3, several_pixels=True),
    g.Discard: Kind(depth=1, several_pixels=True),
    g.Window: Kind(keeps=True, pads=True, several_pixels=True),
    g.MatrixVector: Kind(writes="pe", pads=True, several_pixels=True),
    g.VectorVector: Kind("pe", "pe", keeps=True, pads=True, several_pixels=True),
    g.Activate: Kind("pe", "pe", 12, keeps=True, pads=True, several_pixels=True),
    MaxPool: Kind("pe", "pe", keeps=True, pads=True, several_pixels=True, rams=_ROWS),
    g.GlobalPool: Kind("pe", "pe", 12, keeps=True, pads=True),
    g.Add: Kind("pe", "pe", 16, keeps=True, pads=True, several_pixels=True),
    g.Multiply: Kind("pe", "pe", 16, keeps=True, pads=True, several_pixels=True),
    g.Duplicate: Kind("pe", "pe", 2, keeps=True, pads=True, several_pixels=True),
    g.Concat: Kind(depth=2),
    g.Split: Kind(depth=2),
    g.Reorg: Kind(depth=WALK_DEPTH, rams=_ROWS),
    g.DepthToSpace: Kind(depth=WALK_DEPTH, rams=_ROWS),
    g.Upsample: Kind(depth=WALK_DEPTH, keeps=True, rams=_ROWS),
    g.DownSample: Kind(depth=2, keeps=True, pads=True),
    g.LabelSelect: Kind("pe", "pe"),
    g.Softmax: Kind("pe", "pe"),
}
"""The blocks of hls_templates/streaming. If a depth is 0, the operation and its fold decide it (model/depths.py)."""


def kind_of(op: g.BlockOp) -> Kind:
    """Return the ``Kind`` of a block with operation ``op``: its parallelism, pipeline depth and padding. A package
    states its own."""
    return op.block.kind if isinstance(op, g.Custom) else KINDS[type(op)]

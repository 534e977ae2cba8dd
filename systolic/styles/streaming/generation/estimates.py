"""The estimated DSPs and memories of each process of a pipeline, computed again from the folds in its manifest."""

from __future__ import annotations

from boards import board as board_room
from scheduler.streaming import graph as g
from scheduler.streaming.area.parts import parts
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.lower import lower
from systolic.styles.estimates import Estimates
from systolic.styles.streaming.fold_words import fold_of
from systolic.styles.streaming.simulate import StreamingDesign

VARIABLES = {
    "rows": ("rows", "buffer"),
    "columns": ("columns",),
    "vectors": ("vectors",),
    "results": ("results",),
    "sums": ("waiting",),
    "weights": ("weights",),
}
"""The C++ variables for the memory of each part of a block, in the headers of hls_templates/streaming."""


def estimates(design: StreamingDesign) -> Estimates:
    """Return the estimated DSPs and memories of every process of a generated pipeline.

    Raises:
        InvalidValueError: The manifest has a fold that ``fold_text`` did not write.
    """
    graph, board = lower(design.network), board_room.of_design(design.path, design.manifest.board)
    folds = tuple(fold_of(block.folding) for block in design.manifest.blocks)
    folding = g.StreamingFolding(graph, folds)
    dsps: dict[str, int] = {}
    memories: dict[tuple[str, str], tuple[str, int]] = {}
    for index, block in enumerate(graph.blocks):
        for part in parts(folding.graph, index, folds[index], board):
            dsps[f"{block.name}_process"] = dsps.get(f"{block.name}_process", 0) + part.usage.dsp
            memories |= _memories(block.name, folds[index], part.name, part.usage)
    return Estimates({process: count for process, count in dsps.items() if count}, memories, halves=True)


def _memories(block: str, fold: g.Fold, part: str, usage: StreamingUsage) -> dict[tuple[str, str], tuple[str, int]]:
    """Return the memory of one part of a block: {(process, variable): (primitive, number of primitives)}.

    The part is listed under each name that its variable can have.
    """
    counts = {"bram": usage.bram18, "uram": usage.uram, "lutram": usage.lut}
    kind, count = next(((kind, count) for kind, count in counts.items() if count), ("", 0))
    process = f"{block}_process" if part != "weights" or fold.memory == "embedded" else f"stream_{block}_process"
    names = {
        "weights": (f"{block}_weights",) if fold.memory != "external" else (),
        "table": (f"{block}_activation.value",),
        "slopes": (f"{block}_activation.slope",),
    }.get(part, ())
    return {(process, name): (kind, count) for name in (*names, *VARIABLES.get(part, ())) if kind}

"""Folding → plan: the pipeline is built, traced for the depths of its FIFOs, and finished with them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from boards.board import Board
from host.vision.picture import Pixels
from scheduler.hardware.budget import Budget
from scheduler.streaming.area.budget import area, fits, limits
from scheduler.streaming.area.total import usage_with
from scheduler.streaming.result import FoldingResult
from systolic.files import DesignFiles, write
from systolic.model import DesignInputs
from systolic.styles.streaming.cycles import StreamingTrace
from systolic.styles.streaming.fifos import Fifos
from systolic.styles.streaming.generation.generate import FoldedNetwork, parts
from systolic.styles.streaming.generation.plan import StreamingPlan
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.streaming.simulate import open_design

WHOLE_BOARD = Budget(lut=1.0, dsp=1.0, bram=1.0, uram=1.0)


def generate_with_fifos(
    mapping: StreamingMapping, inputs: DesignInputs, options: StreamingOptions, tell: Callable[[str], None]
) -> StreamingPlan:
    """The pipeline with the FIFO depths that its own trace asks for, or with estimated ones where that is asked for."""
    tell("generating")
    source = FoldedNetwork(mapping.network, mapping.folded.folding, mapping.board, mapping.clock, mapping.ddr)
    pipeline = parts(source, inputs)
    rough = pipeline.files(mapping.estimate)
    if options.estimated_fifos:
        return StreamingPlan(mapping, rough, None)
    fifos = _sized(rough, inputs.picture, tell)
    mapping = replace(mapping, folded=recounted(mapping.folded, mapping.board, fifos))
    return StreamingPlan(mapping, pipeline.files(mapping.estimate, fifos.depths), fifos)


def _sized(files: DesignFiles, picture: Pixels, tell: Callable[[str], None]) -> Fifos:
    """The depths that the trace of the design itself asks for."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "design"
        write(files, folder)
        design = open_design(folder)
        traced = StreamingTrace.of(design, picture, tell)
        tell("sizing FIFOs")
        return traced.least_fifos()


def recounted(folded: FoldingResult, board: Board, fifos: Fifos) -> FoldingResult:
    """With the FIFOs that the trace has sized, which the search could not know; ``fits``: the board, all of it."""
    words = [(fifos.widths[name], depth) for name, depth in fifos.depths.items()]
    used = usage_with(folded.folding, board, words)
    used = replace(used, ddr_bits=folded.usage.ddr_bits)
    return replace(folded, usage=used, area=area(used, board), fits=fits(used, limits(board, WHOLE_BOARD)))

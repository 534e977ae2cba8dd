"""Folding → plan: the pipeline is built, traced for the depths of its FIFOs, and finished with them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from boards.board import Board
from boards.errors import GenerateError
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
from systolic.trace.timing import DeadlockError

WHOLE_BOARD = Budget(lut=1.0, dsp=1.0, bram=1.0, uram=1.0)


def generate_with_fifos(
    mapping: StreamingMapping, inputs: DesignInputs, options: StreamingOptions, tell: Callable[[str], None]
) -> StreamingPlan:
    """The pipeline with the FIFO depths that its own trace asks for, or with estimated ones where that is asked for and
    where the trace has shown that they do not deadlock; GenerateError else."""
    tell("generating")
    source = FoldedNetwork(mapping.network, mapping.folded.folding, mapping.board, mapping.clock, mapping.ddr)
    pipeline = parts(source, inputs)
    rough = pipeline.files(mapping.estimate)
    fifos = _traced(rough, inputs.picture, options.estimated_fifos, tell)
    mapping = replace(mapping, folded=recounted(mapping.folded, mapping.board, fifos))
    return StreamingPlan(mapping, pipeline.files(mapping.estimate, fifos.depths), fifos)


def _traced(files: DesignFiles, picture: Pixels, estimated: bool, tell: Callable[[str], None]) -> Fifos:
    """The depths that the trace of the design itself asks for, or its estimated ones."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "design"
        write(files, folder)
        design = open_design(folder)
        traced = StreamingTrace.of(design, picture, tell)
        if not estimated:
            tell("sizing FIFOs")
            return traced.least_fifos()
        try:
            return traced.declared_fifos()
        except DeadlockError as error:
            raise GenerateError(
                f"nothing is written: with FIFOs as deep as estimated the pipeline deadlocks; leave out "
                f"--estimated-fifos, and the trace sizes them ({error})"
            ) from error


def recounted(folded: FoldingResult, board: Board, fifos: Fifos) -> FoldingResult:
    """With the FIFOs that the trace has sized, which the search could not know; ``fits``: the board, all of it."""
    words = [(fifos.widths[name], depth) for name, depth in fifos.depths.items()]
    used = usage_with(folded.folding, board, words)
    used = replace(used, ddr_bits=folded.usage.ddr_bits)
    return replace(folded, usage=used, area=area(used, board), fits=fits(used, limits(board, WHOLE_BOARD)))

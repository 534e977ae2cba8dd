"""From a folding to the files of a design: build the pipeline, trace it, size its FIFOs, search again with these."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from boards.board import Board
from boards.errors import DoesNotFitError, SystolicError, ToolError
from boards.progress import Progress
from host.vision.picture import Pixels
from scheduler.hardware.budget import Budget
from scheduler.streaming.area.budget import area, fits, limits
from scheduler.streaming.area.total import usage_with
from scheduler.streaming.graph import Fold, StreamingFolding
from scheduler.streaming.model.converters import edges
from scheduler.streaming.model.waiting import Fifos, TracedStreams
from scheduler.streaming.result import FoldingResult
from systolic.files import DesignFiles, write
from systolic.model import DesignInputs
from systolic.styles.streaming.cycles import StreamingTrace
from systolic.styles.streaming.exploration import fold, with_saved_ddr
from systolic.styles.streaming.fifos import PipelineFifos
from systolic.styles.streaming.generation.generate import FoldedNetwork, StreamingParts, parts
from systolic.styles.streaming.generation.plan import StreamingPlan
from systolic.styles.streaming.generation.wiring.moving import edge_wires
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.streaming.simulate import open_design
from systolic.trace.report import board_memory
from systolic.trace.timing import DeadlockError

WHOLE_BOARD = Budget(lut=1.0, dsp=1.0, bram=1.0, uram=1.0)


ROUNDS = 4
"""Limit for the foldings that are traced. Each one costs a compilation and an execution."""


def generate_with_fifos(
    mapping: StreamingMapping, inputs: DesignInputs, options: StreamingOptions, progress: Progress
) -> StreamingPlan:
    """Generate the pipeline with the FIFO depths from its own trace, or with estimated depths if the options say so.

    The traced depths cost more or less than the folding search estimated. So the exact search runs again with the
    traced depths, and its folding is traced in turn, until the search finds no new folding. The best traced folding is
    the result.

    Raises:
        DeadlockError: The pipeline deadlocks with estimated FIFO depths, or with FIFOs of any depth.
        DoesNotFitError: A map needs a wider beat than the DMA has.
        UnsupportedError: A block cannot be wired.
    """
    first = _Traced.of(mapping, inputs, options, progress)
    if options.folding is not None or options.search != "exact" or options.estimated_fifos:
        return first.plan()
    designs = _folded_again(first, inputs, options, progress)
    return min(designs, key=lambda design: design.order(options)).plan()


def _folded_again(first: _Traced, inputs: DesignInputs, options: StreamingOptions, progress: Progress) -> list[_Traced]:
    """Return ``first``, and foldings that were searched again with traced FIFO depths and traced in turn.

    The searches end if one of them finds the same folding, an earlier folding or no folding, or after ROUNDS foldings.
    """
    designs = [first]
    for number in range(1, ROUNDS + 1):
        last = designs[-1]
        progress(f"folding again, with FIFOs as traced (round {number} of at most {ROUNDS})")
        again = _searched(last, options, progress)
        if again is None:
            break
        if again.folding.folds == last.folds:
            designs[-1] = last.proven(again, "FIFOs as its own trace sized them")
            break
        if number == ROUNDS or any(again.folding.folds == design.folds for design in designs):
            break
        counted = f"FIFOs as the trace of folding {number} sized them"
        try:
            designs.append(_Traced.of(replace(first.mapping, folded=again, counted=counted), inputs, options, progress))
        except (DeadlockError, DoesNotFitError, ToolError):
            break  # a folding that cannot run is not an alternative
    return designs


def _searched(design: _Traced, options: StreamingOptions, progress: Progress) -> FoldingResult | None:
    """Search for a folding whose cost counts the traced FIFO depths of ``design``.

    Return None if no folding fits with them, or if the search finds none before its deadline.
    """
    mapping, folding = design.mapping, design.mapping.folded.folding
    graph, traced = folding.graph, TracedStreams(streams_of(folding, design.fifos))
    try:
        return fold(graph, mapping.board, mapping.clock, with_saved_ddr(options, mapping.board), progress, traced)
    except SystolicError:  # the first search accepted the same options, so only these FIFOs can cause an error
        return None


@dataclass(frozen=True, eq=False)
class _Traced:
    """A folding whose pipeline was generated, executed and traced, with the FIFOs from the trace.

    Attributes:
        mapping: The folding. Its resources count the FIFOs with their traced depths.
        pipeline: The files that do not depend on FIFO depths.
        fifos: The traced FIFOs.
    """

    mapping: StreamingMapping
    pipeline: StreamingParts
    fifos: PipelineFifos

    @staticmethod
    def of(mapping: StreamingMapping, inputs: DesignInputs, options: StreamingOptions, progress: Progress) -> _Traced:
        """Generate, execute and trace a folding's pipeline. Raises the errors of ``generate_with_fifos``."""
        progress("generating")
        source = FoldedNetwork(mapping.network, mapping.folded.folding, mapping.board, mapping.clock, mapping.ddr)
        pipeline = parts(source, inputs)
        fifos = _traced(pipeline.files(mapping.estimate), inputs.picture, options.estimated_fifos, progress)
        mapping = replace(mapping, folded=recounted(mapping.folded, mapping.board, fifos))
        return _Traced(mapping, pipeline, fifos)

    @property
    def folds(self) -> tuple[Fold, ...]:
        return self.mapping.folded.folding.folds

    def order(self, options: StreamingOptions) -> tuple[bool, bool, int, int]:
        """Return the sort key of this traced folding; the best of several has the smallest key.

        A design within the budget comes first, then one that fits the board. If no frame rate was requested, fewer
        cycles are better. Of equal designs the one with the smaller area is better.
        """
        folded, board = self.mapping.folded, self.mapping.board
        within = fits(folded.usage, limits(board, options.budget))
        return not within, not folded.fits, 0 if options.fps else folded.cycles, folded.area

    def proven(self, again: FoldingResult, counted: str) -> _Traced:
        """Return this design with the proof of optimality of ``again``, a later search that found the same folding.

        Args:
            again: The result of that search.
            counted: The FIFOs that the proof covers, in words.
        """
        folded = replace(self.mapping.folded, state=again.state, gap=again.gap, rate_gap=again.rate_gap)
        return replace(self, mapping=replace(self.mapping, folded=folded, counted=counted))

    def plan(self) -> StreamingPlan:
        """Return the finished design: its files in memory, with the traced FIFO depths."""
        files = self.pipeline.files(self.mapping.estimate, self.fifos.depths)
        return StreamingPlan(self.mapping, files, self.fifos)


def streams_of(folding: StreamingFolding, fifos: PipelineFifos) -> dict[tuple[int, int], Fifos]:
    """Return, for each (block, input), the FIFOs before it as pairs: values per word, and depth in words.

    There is one FIFO per stream: the writer's, and one after each converter.
    """
    return {
        (edge.reader, edge.port): tuple(
            (size, fifos.depths[wire])
            for size, wire in zip(
                (edge.written.size, *(c.lanes_out for c in edge.converters)), edge_wires(edge), strict=True
            )
        )
        for edge in edges(folding.graph, folding.folds)
    }


def _traced(files: DesignFiles, picture: Pixels, estimated: bool, progress: Progress) -> PipelineFifos:
    """Write the design to a temporary folder, execute and trace it, and return its sized FIFOs.

    Args:
        files: The design with estimated FIFO depths.
        picture: The picture to execute, uint8 of shape (channels, height, width).
        estimated: Whether to keep the estimated depths; else the trace sizes the FIFOs.
    """
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "design"
        write(files, folder)
        design = open_design(folder)
        traced = StreamingTrace.of(design, picture, progress)
        if not estimated:
            progress("sizing FIFOs")
            return traced.sized_fifos(board_memory(design), design.manifest.clock_mhz)
        try:
            return traced.declared_fifos()
        except DeadlockError as error:
            raise error.at(
                "with estimated FIFO depths (nothing is written)",
                remedy="leave out --estimated-fifos, so that the trace sizes the FIFOs",
            ) from error


def recounted(folded: FoldingResult, board: Board, fifos: PipelineFifos) -> FoldingResult:
    """Return the folding with its LUTs, BRAMs and so on counted with the traced FIFO depths, not the estimated ones.

    ``fits`` of the result refers to the whole board, not to the budget of the search.
    """
    words = [(fifos.widths[name], depth) for name, depth in fifos.depths.items()]
    used = usage_with(folded.folding, board, words)
    used = replace(used, ddr_bits=folded.usage.ddr_bits)
    return replace(folded, usage=used, area=area(used, board), fits=fits(used, limits(board, WHOLE_BOARD)))

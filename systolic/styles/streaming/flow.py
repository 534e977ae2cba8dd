"""Folding → plan: the pipeline is built, traced for the depths of its FIFOs, and finished with them."""

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
from scheduler.streaming.model.waiting import Fifos as StreamFifos
from scheduler.streaming.model.waiting import TracedStreams
from scheduler.streaming.result import FoldingResult
from systolic.files import DesignFiles, write
from systolic.model import DesignInputs
from systolic.styles.streaming.cycles import StreamingTrace
from systolic.styles.streaming.exploration import fold, with_saved_ddr
from systolic.styles.streaming.fifos import Fifos
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
"""Foldings that are traced at most: each costs a compilation and an execution."""


def generate_with_fifos(
    mapping: StreamingMapping, inputs: DesignInputs, options: StreamingOptions, tell: Progress
) -> StreamingPlan:
    """Generate the pipeline with the FIFO depths that its own trace asks for, or with estimated ones if the options ask
    for these.

    What the trace asks for is counted in the next search, until that finds nothing cheaper.

    Raises:
        DeadlockError: The pipeline deadlocks with estimated FIFOs, or with FIFOs of any depth.
        DoesNotFitError: A map needs a wider beat than the DMA has.
        UnsupportedError: A block cannot be wired.
    """
    first = _Traced.of(mapping, inputs, options, tell)
    if options.folding is not None or options.search != "exact" or options.estimated_fifos:
        return first.plan()
    designs = _folded_again(first, inputs, options, tell)
    return min(designs, key=lambda design: design.order(options)).plan()


def _folded_again(first: _Traced, inputs: DesignInputs, options: StreamingOptions, tell: Progress) -> list[_Traced]:
    """What is searched for with the FIFOs of the design before, until nothing changes, or nothing new comes."""
    designs = [first]
    for number in range(1, ROUNDS + 1):
        last = designs[-1]
        tell(f"folding again, with FIFOs as traced (round {number} of at most {ROUNDS})")
        again = _searched(last, options, tell)
        if again is None:
            break
        if again.folding.folds == last.folds:
            designs[-1] = last.proven(again, "FIFOs as its own trace sized them")
            break
        if number == ROUNDS or any(again.folding.folds == design.folds for design in designs):
            break
        counted = f"FIFOs as the trace of folding {number} sized them"
        try:
            designs.append(_Traced.of(replace(first.mapping, folded=again, counted=counted), inputs, options, tell))
        except (DeadlockError, DoesNotFitError, ToolError):
            break  # a folding that cannot run is no alternative
    return designs


def _searched(design: _Traced, options: StreamingOptions, tell: Progress) -> FoldingResult | None:
    """Search again with the design's own FIFOs; None if nothing fits with them, or nothing is found in time."""
    mapping, folding = design.mapping, design.mapping.folded.folding
    graph, traced = folding.graph, TracedStreams(streams_of(folding, design.fifos))
    try:
        return fold(graph, mapping.board, mapping.clock, with_saved_ddr(options, mapping.board), tell, traced)
    except SystolicError:  # the first search took the same options, so that any error is about these FIFOs
        return None


@dataclass(frozen=True, eq=False)
class _Traced:
    """A folding as a pipeline that was traced. mapping: with FIFOs counted as traced."""

    mapping: StreamingMapping
    pipeline: StreamingParts
    fifos: Fifos

    @staticmethod
    def of(mapping: StreamingMapping, inputs: DesignInputs, options: StreamingOptions, tell: Progress) -> _Traced:
        """Built, executed and solved; errors as of ``generate_with_fifos``."""
        tell("generating")
        source = FoldedNetwork(mapping.network, mapping.folded.folding, mapping.board, mapping.clock, mapping.ddr)
        pipeline = parts(source, inputs)
        fifos = _traced(pipeline.files(mapping.estimate), inputs.picture, options.estimated_fifos, tell)
        mapping = replace(mapping, folded=recounted(mapping.folded, mapping.board, fifos))
        return _Traced(mapping, pipeline, fifos)

    @property
    def folds(self) -> tuple[Fold, ...]:
        return self.mapping.folded.folding.folds

    def order(self, options: StreamingOptions) -> tuple[bool, bool, int, int]:
        """The least is the best: what keeps the budget, fits, is fast where no rate is asked for, and takes least."""
        folded, board = self.mapping.folded, self.mapping.board
        within = fits(folded.usage, limits(board, options.budget))
        return not within, not folded.fits, 0 if options.fps else folded.cycles, folded.area

    def proven(self, again: FoldingResult, counted: str) -> _Traced:
        """With what a search that counts its FIFOs has proven of the same folding."""
        folded = replace(self.mapping.folded, state=again.state, gap=again.gap, rate_gap=again.rate_gap)
        return replace(self, mapping=replace(self.mapping, folded=folded, counted=counted))

    def plan(self) -> StreamingPlan:
        """The design with its FIFOs."""
        files = self.pipeline.files(self.mapping.estimate, self.fifos.depths)
        return StreamingPlan(self.mapping, files, self.fifos)


def streams_of(folding: StreamingFolding, fifos: Fifos) -> dict[tuple[int, int], StreamFifos]:
    """The FIFOs before every (block, input), as the trace has sized them."""
    return {
        (edge.reader, edge.port): tuple(
            (size, fifos.depths[wire])
            for size, wire in zip(
                (edge.written.size, *(c.lanes_out for c in edge.converters)), edge_wires(edge), strict=True
            )
        )
        for edge in edges(folding.graph, folding.folds)
    }


def _traced(files: DesignFiles, picture: Pixels, estimated: bool, tell: Progress) -> Fifos:
    """The depths that the trace of the design itself asks for, or its estimated ones."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "design"
        write(files, folder)
        design = open_design(folder)
        traced = StreamingTrace.of(design, picture, tell)
        if not estimated:
            tell("sizing FIFOs")
            return traced.sized_fifos(board_memory(design), design.manifest.clock_mhz)
        try:
            return traced.declared_fifos()
        except DeadlockError as error:
            raise error.at(
                "nothing is written, with FIFOs as deep as estimated",
                remedy="leave out --estimated-fifos, and the trace sizes them",
            ) from error


def recounted(folded: FoldingResult, board: Board, fifos: Fifos) -> FoldingResult:
    """With the FIFOs that the trace has sized, which the search could not know; ``fits``: the board, all of it."""
    words = [(fifos.widths[name], depth) for name, depth in fifos.depths.items()]
    used = usage_with(folded.folding, board, words)
    used = replace(used, ddr_bits=folded.usage.ddr_bits)
    return replace(folded, usage=used, area=area(used, board), fits=fits(used, limits(board, WHOLE_BOARD)))

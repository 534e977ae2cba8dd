"""Traced cycles of a pipeline, compared with the model."""

from __future__ import annotations

from scheduler.streaming import graph as g
from systolic.styles.streaming.fifos import FIXED_DEPTH
from systolic.styles.streaming.measure import StreamingReport, cycle_report, trace_design
from systolic.trace.report import board_memory
from tests.support.pipelines import (
    Made,
)


def deep_report(made: Made) -> StreamingReport:
    """Return the report of a trace with FIFOs that never fill."""
    trace = trace_design(made.pipeline, made.picture)
    deep = {fifo.name: FIXED_DEPTH for fifo in made.pipeline.manifest.fifos}
    return cycle_report(made.pipeline, trace, board_memory(made.pipeline), depths=deep)


def check_rate(made: Made, report: StreamingReport) -> None:
    """Assert that the model and the trace agree for every block, and that the slowest block sets the pipeline's rate.

    A sink may take one more step, to fill its last beat.
    """
    assert report.cycles_per_frame == made.pipeline.manifest.cycles == report.slowest.cycles
    for layer, block in zip(report.layers, made.folding.graph.blocks, strict=True):
        assert 0 <= layer.cycles - layer.modelled_cycles <= isinstance(block.op, g.Sink), layer.name

"""The report page of a folding: its tables add up, its figures are drawn, and it is readable on a phone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.board import load
from boards.errors import StateError
from cnn.quantized import QuantizedNetwork
from scheduler.streaming.area.usage import NOTHING, StreamingUsage
from scheduler.streaming.graph import MatrixVector, Window
from systolic.designs import GeneratedDesign, design
from systolic.files import DesignFiles
from systolic.loading import load_model
from systolic.model import sample_pictures
from systolic.report.figures import svg
from systolic.styles.comparison import ComparisonRow
from systolic.styles.streaming import figures
from systolic.styles.streaming.comparison import StreamingComparison
from systolic.styles.streaming.exploration import compare
from systolic.styles.streaming.fifos import PipelineFifos
from systolic.styles.streaming.generation.plan import StreamingPlan
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.streaming.report import (
    BLOCK_HEAD,
    block_rows,
    budget_rows,
    fifos_html,
    fullest,
    mapping_html,
)
from tests.support.low_bit import Layers
from tests.support.pages import one_whole_page, readable
from tests.support.small_network import write_small

pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")

BOARD = load("ultra96-v2")


@pytest.fixture(scope="module")
def network() -> QuantizedNetwork:
    """Return a network with a fork and a join, so that FIFOs and width converters take resources."""
    made = Layers(3, 16, 16).conv(8, 3)
    fork = made.last
    made.depthwise().conv(8, 3).sum(fork, made.last).pool()
    return made.conv(10, 1).wide().network("a<b")


@pytest.fixture(scope="module")
def compared(network: QuantizedNetwork) -> StreamingComparison:
    return compare(network, BOARD, None, StreamingOptions(fps=40_000))


@pytest.fixture(scope="module")
def mapping(compared: StreamingComparison) -> StreamingMapping:
    assert compared.rows[0].mapping is not None
    return compared.rows[0].mapping


def test_mapping_text_of_a_slow_folding_reports_the_missed_rate(mapping: StreamingMapping) -> None:
    assert "STAYS BELOW" not in mapping.text()
    slow = replace(mapping, fps=1e6)
    assert slow.text().endswith(
        "IT STAYS BELOW the requested 1e+06 frames/s: --folding exact finds a folding that reaches them, or reports "
        "the missing resources"
    )


def test_block_usages_add_up_to_the_folding(compared: StreamingComparison) -> None:
    for row in compared.rows:
        assert row.mapping is not None
        assert sum(row.mapping.block_usages, NOTHING) == row.mapping.folded.usage


def test_block_rows_have_one_row_per_block(mapping: StreamingMapping) -> None:
    rows = [dict(zip(BLOCK_HEAD, row, strict=True)) for row in block_rows(mapping)]
    blocks, folds = mapping.folded.folding.graph.blocks, mapping.folded.folding.folds
    assert [row["block"] for row in rows] == [block.name for block in blocks]
    for row, block, fold in zip(rows, blocks, folds, strict=True):
        assert row["style"] == (fold.style if isinstance(block.op, Window) else None)
        if isinstance(block.op, MatrixVector):
            assert (row["PE"], row["SIMD"], row["memory"]) == (fold.pe, fold.simd, fold.memory)
    assert max(row["cycles"] for row in rows) == mapping.cycles_per_frame  # type: ignore[type-var]
    assert "100%" in {row["of the slowest"] for row in rows}


def test_budget_rows_show_the_allowed_resources(mapping: StreamingMapping) -> None:
    rows = {row[0]: row[1:] for row in budget_rows(mapping)}
    assert rows["LUT"] == [mapping.folded.usage.lut, 56_448, 70_560, f"{mapping.folded.usage.lut / 70_560:.1%}"]
    assert rows["DSP"][1:3] == [349, 360]
    assert "URAM" not in rows, "the board has none"


def test_cycles_figure_ends_at_the_slowest_block(mapping: StreamingMapping) -> None:
    (axes,) = figures.cycles(mapping).axes
    (bound,) = axes.lines
    assert set(np.asarray(bound.get_xdata())) == {mapping.cycles_per_frame}
    assert max(bar.get_width() for bar in axes.patches) == mapping.cycles_per_frame  # type: ignore[attr-defined]


def test_shares_figure_adds_up_to_the_cost(mapping: StreamingMapping) -> None:
    (axes,) = figures.shares([("exact", mapping)]).axes
    lengths = [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]
    assert sum(lengths) / 100 == pytest.approx(mapping.folded.boards, rel=1e-4)
    assert all(bar.get_x() == 0 for bar in axes.patches)  # type: ignore[attr-defined]
    assert max(lengths) <= 100, "the folding fits"


def test_comparison_of_a_fitting_folding_shows_the_fullest_resource(
    mapping: StreamingMapping, compared: StreamingComparison
) -> None:
    """Report the fullest resource: two nearly full resources have a cost of almost 2, but still fit one board."""
    full = replace(
        mapping, folded=replace(mapping.folded, usage=StreamingUsage(70_000, 10, 342, 20), area=1_985_000_000)
    )
    assert fullest(full) == "LUT 99%"
    whole = replace(compared, rows=(replace(compared.rows[0], mapping=full), *compared.rows[1:]))
    for text in (whole.text(), whole.page()):
        assert "LUT 99%" in text
        assert not re.search(r"[\d.]+ boards|area", text)
    assert dict(zip(whole.head, whole.cells()[0], strict=True))["cost"] == 1.985


def test_comparison_page_is_one_file_without_links(compared: StreamingComparison) -> None:
    text = compared.page()
    one_whole_page(text)
    assert text.count("<svg") == 3 + 2 * 3
    assert "<b> as" not in text
    assert "a&lt;b as a streaming pipeline on Ultra96-V2" in text


def test_comparison_in_jupyter_is_part_of_the_page(compared: StreamingComparison) -> None:
    text = compared._repr_html_()
    assert text.count("<svg") == 3
    alone = replace(compared, rows=compared.rows[:1])
    assert alone._repr_html_().count("<svg") == 2
    assert alone._repr_html_() in alone.page()


@pytest.mark.engine
def test_generated_design_in_jupyter_shows_mapping_and_fifos(tmp_path: Path) -> None:
    model = load_model(str(write_small(tmp_path)), seed=1)
    made = design(model, BOARD, "streaming", calibrate=sample_pictures()[:1], fps=20_000, estimated_fifos=True)
    text = made._repr_html_()
    assert isinstance(made.mapping, StreamingMapping)
    assert isinstance(made.plan, StreamingPlan)
    assert text == mapping_html(made.mapping) + fifos_html(made.plan.fifos)
    fifos = PipelineFifos(
        {"from_first": 17}, {"from_first": 8}, 4_000, 5_000, 4_000, bits=1_234, fixed_bits=56_789, solved=3
    )
    sized = GeneratedDesign(replace(made.plan, fifos=fifos))._repr_html_()
    assert "FIFOs: 1,234 bits (56,789 at a fixed depth); a frame every 4,000 cycles, latency 5,000 (traced)" in sized
    numbers = "".join(f'<td class="n">{number}</td>' for number in (1, 8, 17))
    assert f'<td>from_first</td>{numbers}<td>srl</td><td class="n">1</td>' in sized


def test_plan_text_gives_the_rate_of_the_traced_interval(mapping: StreamingMapping) -> None:
    fifos = PipelineFifos(
        {"from_first": 17}, {"from_first": 8}, 4_000, 5_000, 4_000, bits=1_234, fixed_bits=56_789, solved=3
    )
    text = StreamingPlan(replace(mapping, clock=replace(mapping.clock, mhz=250.0)), DesignFiles({}), fifos).text()
    assert "a frame every 4,000 cycles, 62500.0 frames/s at 250 MHz (target), latency 5,000 cycles (traced)" in text
    assert "with FIFOs sized by the trace" not in text
    slower = StreamingPlan(mapping, DesignFiles({}), replace(fifos, interval=4_001)).text()
    assert slower.endswith("with FIFOs sized by the trace: a frame every 4,000 cycles")


def with_folded(mapping: StreamingMapping, **changes: Any) -> StreamingMapping:
    return replace(mapping, folded=replace(mapping.folded, **changes))


def test_comparison_reports_failures_and_missed_targets(
    compared: StreamingComparison, mapping: StreamingMapping
) -> None:
    lost = replace(compared, rows=(ComparisonRow("greedy", None, StateError("no way", "<out>")),))
    assert "no way &lt;out&gt;" in lost.page()
    assert "<svg" not in lost.page()
    assert "does not fit the budget of this board" in mapping_html(with_folded(mapping, fits=False))
    assert "within 2.0% of the best" in mapping_html(with_folded(mapping, state="feasible", gap=0.02))
    slow = replace(compared, fps=1e9, rows=(ComparisonRow("exact", with_folded(mapping, fits=False)),))
    assert slow.text().splitlines()[1].endswith(" too slow, does not fit")
    assert not slow.values()["foldings"][0]["reached"]
    assert "the sum of all shares; not searched for." in mapping_html(with_folded(mapping, state="given"))
    assert "nothing proven" in mapping_html(with_folded(mapping, state="heuristic"))


def test_figures_of_one_folding_are_svg(mapping: StreamingMapping) -> None:
    for figure in (figures.cycles(mapping), figures.resources(mapping), figures.cycles_by_search([("x", mapping)])):
        assert svg(figure).startswith("<svg")


@pytest.mark.engine
def test_comparison_page_in_chromium_is_readable(tmp_path: Path, compared: StreamingComparison) -> None:
    assert readable(compared.page(), tmp_path) == 9

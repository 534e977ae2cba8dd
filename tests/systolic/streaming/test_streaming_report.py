"""The page of a folding: its tables add up, its pictures draw, a telephone can read it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from scheduler.streaming.area.usage import NOTHING
from scheduler.streaming.graph import MatrixVector, StreamGraph, Window
from scheduler.streaming.lower import lower
from scheduler.streaming.result import FoldingResult
from systolic.model import Calibration, load_model, sample_pictures
from systolic.report.figures import svg
from systolic.styles.streaming import figures
from systolic.styles.streaming.compare import ShownComparison, compare_folders
from systolic.styles.streaming.compared import Comparison, Row
from systolic.styles.streaming.fifos import Fifos
from systolic.styles.streaming.flow import StreamingOptions, make_pipeline
from systolic.styles.streaming.report import BLOCK_HEAD, block_rows, budget_rows, folded_html, folding_page
from tests.low_bit import Layers
from tests.systolic.pages import one_whole_page, readable_at_phone_width
from tests.systolic.streaming.small import write_small

pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")

BOARD = load("ultra96-v2")
CLOCK = BOARD.clocks()[-1]


@pytest.fixture(scope="module")
def graph() -> StreamGraph:
    """With a fork and a join, so that FIFOs and converters count."""
    made = Layers(3, 16, 16).conv(8, 3)
    fork = made.last
    made.depthwise().conv(8, 3).sum(fork, made.last).pool()
    return lower(made.conv(10, 1).wide().network("a<b"))


@pytest.fixture(scope="module")
def compared(graph: StreamGraph) -> ShownComparison:
    return compare_folders(graph, BOARD, CLOCK, StreamingOptions(fps=40_000))


@pytest.fixture(scope="module")
def found(compared: Comparison) -> FoldingResult:
    assert compared.rows[0].found is not None
    return compared.rows[0].found


def test_the_blocks_together_are_the_folding(compared: Comparison) -> None:
    for row in compared.rows:
        assert row.found is not None
        assert sum(figures.block_usages(row.found, BOARD), NOTHING) == row.found.usage


def test_the_table_has_a_line_a_block(found: FoldingResult) -> None:
    rows = [dict(zip(BLOCK_HEAD, row, strict=True)) for row in block_rows(found, BOARD)]
    blocks, folds = found.folding.graph.blocks, found.folding.folds
    assert [row["block"] for row in rows] == [block.name for block in blocks]
    for row, block, fold in zip(rows, blocks, folds, strict=True):
        assert row["style"] == (fold.style if isinstance(block.op, Window) else None)
        if isinstance(block.op, MatrixVector):
            assert (row["PE"], row["SIMD"], row["memory"]) == (fold.pe, fold.simd, fold.memory)
    assert max(row["cycles"] for row in rows) == found.cycles  # type: ignore[type-var]
    assert "100%" in {row["of the slowest"] for row in rows}


def test_the_budget_is_what_a_folding_may_take(found: FoldingResult) -> None:
    rows = {row[0]: row[1:] for row in budget_rows(found, BOARD)}
    assert rows["LUT"] == [found.usage.lut, 56_448, 70_560, f"{found.usage.lut / 70_560:.1%}"]
    assert rows["DSP"][1:3] == [360, 360]
    assert "URAM" not in rows, "the board has none"


def test_bars_end_at_the_bound(found: FoldingResult) -> None:
    (axes,) = figures.cycles(found).axes
    (bound,) = axes.lines
    assert set(np.asarray(bound.get_xdata())) == {found.cycles}
    assert max(bar.get_width() for bar in axes.patches) == found.cycles  # type: ignore[attr-defined]


def test_the_bar_of_a_folder_is_its_cost(found: FoldingResult) -> None:
    (axes,) = figures.shares([("exact", found)], BOARD).axes
    length = sum(bar.get_width() for bar in axes.patches)  # type: ignore[attr-defined]
    assert length / 100 == pytest.approx(found.boards, rel=1e-4)


def test_the_page_is_one_file_that_asks_for_nothing(compared: Comparison) -> None:
    text = folding_page(compared)
    one_whole_page(text)
    assert text.count("<svg") == 3 + 2 * 3
    assert "<b> as" not in text
    assert "a&lt;b as a streaming pipeline on Ultra96-V2" in text


def test_jupyter_shows_the_same(compared: ShownComparison) -> None:
    text = compared._repr_html_()
    assert text.count("<svg") == 3
    alone = replace(compared, rows=compared.rows[:1])
    assert alone._repr_html_().count("<svg") == 2
    assert alone._repr_html_() in folding_page(alone)


def test_jupyter_shows_what_was_generated(tmp_path: Path) -> None:
    model = load_model(str(write_small(tmp_path)), seed=1)
    made = make_pipeline(
        model, BOARD, None, Calibration(sample_pictures()[:1]), StreamingOptions(fps=20_000, sized=False)
    )
    text = made._repr_html_()
    assert text == folded_html(made.folded, BOARD, made.clock.mhz)
    fifos = Fifos({"from_first": 17}, {"from_first": 8}, 4_000, 5_000, 4_000, bits=1_234, fixed_bits=56_789, solved=3)
    sized = replace(made, fifos=fifos)._repr_html_()
    assert "FIFOs: 1,234 bits (56,789 at a fixed depth); a frame every 4,000 cycles, latency 5,000 (traced)" in sized
    assert '<td>from_first</td><td class="n">17</td>' in sized


def test_what_is_not_good_is_said(compared: Comparison, found: FoldingResult) -> None:
    lost = replace(compared, rows=(Row("greedy", None, "no way <out>"),))
    assert "no way &lt;out&gt;" in folding_page(lost)
    assert "<svg" not in folding_page(lost)
    assert "does not fit the budget of this board" in folded_html(replace(found, fits=False), BOARD, 300)
    assert "within 2.0% of the best" in folded_html(replace(found, state="feasible", gap=0.02), BOARD, 300)
    slow = replace(compared, fps=1e9, rows=(Row("exact", replace(found, fits=False)),))
    assert slow.text().splitlines()[1].endswith(" too slow, does not fit")
    assert not slow.values()["folders"][0]["reached"]
    assert "boards, not searched for." in folded_html(replace(found, state="given"), BOARD, 300)
    assert "nothing proven" in folded_html(replace(found, state="heuristic"), BOARD, 300)


def test_pictures_of_one_folding_are_svg(found: FoldingResult) -> None:
    for figure in (figures.cycles(found), figures.resources(found, BOARD), figures.cycles_by_folder([("x", found)])):
        assert svg(figure).startswith("<svg")


def test_chromium_renders_it_at_phone_width(tmp_path: Path, compared: Comparison) -> None:
    assert readable_at_phone_width(folding_page(compared), tmp_path)["pictures"] == 9

"""The trained UltraNet as a pipeline on an Ultra96-V2: the integers of every layer, the box and the rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from scheduler.streaming.lower import lower
from scheduler.streaming.model.depths import unit_depth
from scheduler.streaming.result import FoldingResult, Goal
from scheduler.streaming.search import exact
from scheduler.streaming.search.candidates import Options
from systolic.execution.build import Variant
from systolic.execution.run import run
from systolic.files import write
from systolic.loading import load_model
from systolic.model import DesignInputs
from systolic.styles.streaming.fifos import FIXED_DEPTH
from systolic.styles.streaming.generation.generate import FoldedNetwork, generate
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.measure import cycle_report, trace_design
from systolic.styles.streaming.simulate import StreamingDesign, open_design, simulate
from systolic.trace.report import board_memory

pytestmark = pytest.mark.engine

BALANCE = 102_400 + unit_depth(72)
"""The cycles per frame of the 2022 contest's fastest design, plus the cycles in which our slowest block drains."""

BOARD = load("ultra96-v2")


@pytest.fixture(scope="module")
def folded(shared: Path) -> FoldingResult:
    network = load_model("ultranet", shared / "data/ultranet/ultranet_4w4a.npz").quantized
    assert network is not None
    return exact.fold(lower(network), BOARD, Goal(BALANCE), Options(uram_weights=False))


@pytest.fixture(scope="module")
def pipeline(shared: Path, folded: FoldingResult, tmp_path_factory: pytest.TempPathFactory) -> StreamingDesign:
    model = load_model("ultranet", shared / "data/ultranet/ultranet_4w4a.npz")
    assert model.quantized is not None
    folder = tmp_path_factory.mktemp("ultranet") / "design"
    mapping = StreamingMapping(model.quantized, BOARD, BOARD.clocks()[-1], folded)
    source = FoldedNetwork(model.quantized, folded.folding, BOARD, mapping.clock)
    inputs = DesignInputs(model.files, _picture(shared), model.fit)
    depths = dict.fromkeys(("from_pool0", "from_pool1", "from_pool2"), 256)
    write(generate(source, inputs, mapping.estimate, depths), folder)
    return open_design(folder)


def _picture(shared: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return the contest's own pixels as RGB (channels, height, width); the file has BGR (height, width, channels)."""
    with np.load(shared / "data/ultranet/boat6_0_int_golden.npz") as golden:
        return np.ascontiguousarray(golden["input"][:, :, ::-1].transpose(2, 0, 1))


@pytest.mark.shared
@pytest.mark.parametrize("variant", [Variant(), Variant(ap_int=True)], ids=lambda one: one.name)
def test_ultranet_layers_equal_the_contest_integers(shared: Path, pipeline: StreamingDesign, variant: Variant) -> None:
    result = simulate(pipeline, _picture(shared), variant)
    assert result.mismatches == 0
    found = {layer.name: out for layer, out in zip(pipeline.manifest.layers, result.outputs, strict=True)}
    with np.load(shared / "data/ultranet/boat6_0_int_golden.npz") as golden:
        for number in range(8):
            assert np.array_equal(found[f"conv{number}"], golden[f"conv{number}_out"])
        assert np.array_equal(found["conv8"], golden["conv8_acc"])


@pytest.mark.shared
def test_ultranet_run_on_a_picture_gives_the_box(shared: Path, pipeline: StreamingDesign) -> None:
    done = run(pipeline, shared / "data/ultranet/boat6_0.jpg", threshold=0.0)
    (one,) = done.detections
    assert one.box == pytest.approx((334.0, 81.6, 349.9, 90.6), abs=0.05)
    assert one.probability == pytest.approx(0.704, abs=5e-4)


@pytest.mark.shared
def test_ultranet_at_the_fastest_contest_rate_fits(
    shared: Path, folded: FoldingResult, pipeline: StreamingDesign
) -> None:
    assert folded.state == "optimal"
    assert folded.fits
    assert folded.usage.dsp <= BOARD.resources.dsp
    trace = trace_design(pipeline, _picture(shared))
    deep = {fifo.name: FIXED_DEPTH for fifo in pipeline.manifest.fifos}
    report = cycle_report(pipeline, trace, board_memory(pipeline), depths=deep)
    assert folded.cycles <= BALANCE
    assert folded.cycles <= report.cycles_per_frame <= 1.02 * folded.cycles

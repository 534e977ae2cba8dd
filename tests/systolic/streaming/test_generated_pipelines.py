"""Generated pipelines, executed: every layer of every design is equal to the golden model in every bit."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from boards.errors import MissingValueError, RangeError, ShapeError, UnsupportedError
from cnn.datatype import BIPOLAR, TensorType
from cnn.maps import Padding
from cnn.ops import QConvolution
from cnn.quantized import QuantizedNetwork
from cnn.requantise import MultiplyShift, Requantiser, Requantising, Thresholds
from hls_templates.lint import lint
from host.contract.libraries import StreamingLibrary
from host.streaming.layout import unpack_packet
from scheduler.streaming import graph as g
from scheduler.streaming.search.candidates import Options, candidates
from systolic.execution.build import Variant, build
from systolic.styles.streaming import measure as measure_room
from systolic.styles.streaming.fifos import FIXED_DEPTH, size_fifos
from systolic.styles.streaming.measure import FRAMES, cycle_report, trace_design
from systolic.styles.streaming.simulate import open_design, pack_picture, simulate
from systolic.trace.report import board_memory
from systolic.trace.solver import DeadlockError
from tests.support.cases import by_default
from tests.support.errors import raises
from tests.support.fifo_widths import stated_widths, widths_of_words
from tests.support.low_bit import Layers
from tests.support.pipeline_rates import check_rate, deep_report
from tests.support.pipelines import (
    BOARD,
    CLOCK,
    Made,
    bipolar,
    choosing,
    every_block,
    folded,
    make,
    sharing,
    skip,
    with_memory,
)
from tests.support.quantised import with_zero_points

Networks = dict[str, tuple[QuantizedNetwork, int]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Made:
    network = every_block()
    return make(network, folded(network, 2000), tmp_path_factory.mktemp("whole") / "design")


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Made:
    network = skip()
    return make(network, folded(network, 2500), tmp_path_factory.mktemp("forked") / "design")


@pytest.mark.engine
def test_generated_sources_have_no_lint_finding(whole: Made, forked: Made) -> None:
    for made in (whole, forked):
        sources = {path.name: path.read_text() for path in (made.pipeline.path / "src").iterdir()}
        assert lint(sources, "streaming_top") == ()


@pytest.mark.engine
def test_fifo_widths_equal_their_words(whole: Made, forked: Made) -> None:
    for made in (whole, forked):
        sources = {path.name: path.read_text() for path in (made.pipeline.path / "src").iterdir()}
        assert len(stated_widths(sources)) == len(made.pipeline.manifest.fifos)
        assert widths_of_words(sources) == stated_widths(sources)


@pytest.mark.parametrize("variant", by_default(1, [Variant(), Variant(ap_int=True)]), ids=lambda one: one.name)
def test_pipeline_of_all_blocks_equals_the_golden_model(whole: Made, variant: Variant) -> None:
    kinds = {type(block.op).__name__ for block in whole.folding.graph.blocks}
    assert kinds >= {"Window", "MatrixVector", "VectorVector", "Activate", "Add", "Split", "Concat", "Upsample"}
    result = simulate(whole.pipeline, whole.picture, variant)
    assert [(layer.name, layer.mismatches) for layer in result.layers if layer.mismatches] == []
    assert len(result.layers) == len({b.node for b in whole.folding.graph.blocks if b.node})
    assert len(result.layers) > 10


@pytest.mark.parametrize("variant", by_default(1, [Variant(), Variant(ap_int=True)]), ids=lambda one: one.name)
def test_label_select_outputs_equal_the_golden_model(variant: Variant, tmp_path: Path) -> None:
    network = choosing()
    folding = folded(network, 60)
    selects = [fold.pe for block, fold in zip(folding.graph.blocks, folding.folds, strict=True) if is_choice(block)]
    assert max(selects) > 1
    made = make(network, folding, tmp_path / "design")
    result = simulate(made.pipeline, made.picture, variant)
    assert [(layer.name, layer.mismatches) for layer in result.layers if layer.mismatches] == []
    leaving = [made.pipeline.manifest.layers[output.layer].name for output in made.pipeline.manifest.outputs]
    assert leaving == ["choice3", "choice5", "choice8", "choice9"]
    assert {layer.name for layer in result.layers} >= {*leaving}


@pytest.mark.engine
@pytest.mark.parametrize("variant", [Variant(), Variant(ap_int=True)], ids=lambda one: one.name)
def test_softmax_outputs_equal_the_golden_model(variant: Variant, tmp_path: Path) -> None:
    network = sharing()
    folding = folded(network, 120)
    made = make(network, folding, tmp_path / "design")
    lanes = {
        block.name: fold.pe
        for block, fold in zip(folding.graph.blocks, folding.folds, strict=True)
        if isinstance(block.op, g.Softmax)
    }
    assert len(lanes) == 4
    assert max(lanes.values()) > 1
    result = simulate(made.pipeline, made.picture, variant)
    assert [(layer.name, layer.mismatches) for layer in result.layers if layer.mismatches] == []
    assert {layer.name for layer in result.layers} >= {*lanes}
    heads = [(head.head.kind, head.head.channels) for head in made.pipeline.manifest.heads]
    assert heads == [("segmentation", 5), ("segmentation", 2), ("labels-and-probabilities", 6)]


def is_choice(block: g.Block) -> bool:
    return isinstance(block.op, g.LabelSelect)


@pytest.mark.engine
def test_pipeline_outputs_start_at_whole_beats(tmp_path: Path) -> None:
    """Write output maps of 250 and 75 bytes, whose last beats end with unused bytes."""
    layers = Layers(3, 5, 5).conv(6, 3)
    stem = layers.last
    layers.conv(5, 1).wide().conv(3, 1, 1, None, False, stem).conv(4, 1, 1, None, False, stem).dense(7).wide()
    network = layers.network("three")
    made = make(network, folded(network, 20_000), tmp_path / "design")
    outputs = made.pipeline.manifest.outputs
    assert [output.bytes for output in outputs] == [250, 75, 14]
    assert [output.offset for output in outputs] == [0, 256, 336]
    assert simulate(made.pipeline, made.picture).mismatches == 0


@pytest.mark.engine
def test_discard_of_two_pixels_per_cycle_is_right(tmp_path: Path) -> None:
    layers = Layers(3, 4, 8).conv(6, 1)
    network = layers.slice(0, 4, layers.last).conv(5, 1).network("dropped")
    folding = folded(network, 2000)
    (index,) = (i for i, block in enumerate(folding.graph.blocks) if isinstance(block.op, g.Discard))
    dropped = [fold for fold in candidates(folding.graph, index, BOARD, Options()) if fold.m == 2]
    assert [fold.simd for fold in dropped] == [1, 2]
    folds = list(folding.folds)
    folds[index] = dropped[-1]
    made = make(network, replace(folding, folds=tuple(folds)), tmp_path / "design")
    assert simulate(made.pipeline, made.picture).mismatches == 0


@pytest.mark.engine
def test_bipolar_network_executed_equals_the_golden_model(tmp_path: Path) -> None:
    network = bipolar()
    made = make(network, folded(network, 3000), tmp_path / "design")
    for variant in (Variant(), Variant(ap_int=True)):
        assert simulate(made.pipeline, made.picture, variant).mismatches == 0


@pytest.mark.engine
@pytest.mark.parametrize(("cycles", "style"), [(200, "parallel"), (20_000, "default")])
def test_padding_with_a_zero_point_is_right(cycles: int, style: str, tmp_path: Path) -> None:
    drawn = Layers(3, 8, 8, "INT4", "INT4").conv(6, 3).depthwise().conv(4, 3, 2).wide().network("offset")
    network = with_zero_points(drawn, -5, 197)
    made = make(network, folded(network, cycles), tmp_path / "design")
    blocks = zip(made.folding.graph.blocks, made.folding.folds, strict=True)
    assert style in [fold.style for block, fold in blocks if isinstance(block.op, g.Window) and block.op.around == -5]
    result = simulate(made.pipeline, made.picture)
    assert result.mismatches == 0
    assert made.pipeline.manifest.outputs[0].zero_point == -5


@pytest.mark.engine
@pytest.mark.parametrize("form", [MultiplyShift, Requantiser])
def test_ternary_output_saturates_at_minus_one(form: type[Requantising], tmp_path: Path) -> None:
    """Saturate sums far below the range at −1: two bits could hold −2, but TERNARY has only −1, 0 and 1."""
    drawn = Layers(3, 8, 8, "INT4", "TERNARY").conv(6, 3).conv(6, 3).wide().network("saturated")
    first = drawn.nodes[1]
    assert isinstance(first.op, QConvolution)
    bias, factor, shift = (np.full(6, value, np.int64) for value in (-300, 40_000, 20))
    by = (
        MultiplyShift(factor, bias * factor, shift)
        if form is MultiplyShift
        else Requantiser(bias, factor, factor, shift)
    )
    nodes = (drawn.nodes[0], replace(first, op=replace(first.op, requantiser=by)), *drawn.nodes[2:])
    network = replace(drawn, nodes=nodes)
    made = make(network, folded(network, 3000), tmp_path / "design")
    for variant in (Variant(), Variant(ap_int=True)):
        result = simulate(made.pipeline, made.picture, variant)
        assert result.mismatches == 0
        assert set(np.unique(result.outputs[0])) == {-1, 0, 1}


@pytest.mark.engine
def test_weights_on_chip_and_in_ddr_are_right(tmp_path: Path) -> None:
    network = skip()
    folding = with_memory(
        folded(network, 20_000), conv1=("decoupled", "bram"), conv2=("external", "auto"), conv3=("external", "uram")
    )
    made = make(network, folding, tmp_path / "design")
    text = (tmp_path / "design/src/top.cpp").read_text()
    assert "stream_weights<" in text
    assert "m_axi port=weights_conv2" in text
    assert text.count("matrix_vector_resident<") == 2
    assert text.count("fetch_weights<1, ") == 2
    for variant in (Variant(), Variant(ap_int=True)):
        assert simulate(made.pipeline, made.picture, variant).mismatches == 0
    image = tmp_path / "design/data/weights_conv2.bin"
    data = image.read_bytes()
    other, manifest = bytes([data[0] ^ 0xFF]) + data[1:], tmp_path / "design/manifest.json"
    manifest.write_text(
        manifest.read_text().replace(str(crc32(data)), str(crc32(other)))
    )  # open_design refuses another CRC-32
    image.write_bytes(other)
    broken = open_design(tmp_path / "design")
    result = simulate(broken, made.picture)
    assert next(layer.name for layer in result.layers if layer.mismatches) == "conv2"


def test_simulate_finds_a_wrong_weight_in_its_layer(tmp_path: Path) -> None:
    network = skip()
    made = make(network, folded(network, 20_000), tmp_path / "design")
    path = tmp_path / "design/src/constants.h"
    head, values = path.read_text().split("conv2_weights", 1)
    path.write_text(head + "conv2_weights" + re.sub(r"\n    -?\d+", "\n    3 - 4 * 1", values, count=1))
    result = simulate(made.pipeline, made.picture)
    assert next(layer.name for layer in result.layers if layer.mismatches) == "conv2"


@pytest.mark.engine
def test_frames_run_together_equal_single_frames(forked: Made) -> None:
    """Run three different pictures in one call, as the trace does."""

    pictures = np.random.default_rng(7).integers(0, 256, (3, *forked.picture.shape), np.uint8)
    packets = np.stack([pack_picture(forked.pipeline, one) for one in pictures])
    library = StreamingLibrary(build(forked.pipeline.path), forked.pipeline.manifest)
    together = library.run(forked.pipeline.images, packets)
    for packet, left in zip(packets, together, strict=True):
        assert np.array_equal(library.run(forked.pipeline.images, packet[None])[0], left)
    first, second = (unpack_packet(forked.pipeline.manifest, packet)[0] for packet in together[:2])
    assert not np.array_equal(first, second)


def test_exception_in_a_tap_stops_the_pipeline_and_is_raised(forked: Made) -> None:
    library = StreamingLibrary(build(forked.pipeline.path), forked.pipeline.manifest)
    taps = []

    def take(tap: int, _: np.ndarray) -> None:
        taps.append(tap)
        raise KeyboardInterrupt

    packets = pack_picture(forked.pipeline, forked.picture)[np.newaxis]
    with pytest.raises(KeyboardInterrupt):
        library.run(forked.pipeline.images, packets, take)
    assert len(taps) == 1, "layers after it were executed"


def test_skip_with_shallow_fifos_deadlocks_until_they_are_sized(forked: Made) -> None:
    trace = trace_design(forked.pipeline, forked.picture)
    memory = board_memory(forked.pipeline)
    names = forked.pipeline.fifo_bits
    with raises(DeadlockError) as caught:
        cycle_report(forked.pipeline, trace, memory, depths=dict.fromkeys(names, 2))
    assert len(caught.value.ring) >= 2
    assert {waiting.waits_for for waiting in caught.value.ring} == {"data", "space"}
    assert caught.value.cure is not None
    sized = size_fifos(trace, memory, CLOCK.mhz, names)
    assert sized.interval == sized.best_interval
    assert 2 < max(sized.depths.values()) < FIXED_DEPTH
    assert sized.bits < sized.fixed_bits / 4
    report = cycle_report(forked.pipeline, trace, memory, depths=sized.depths)
    assert report.cycles_per_frame == sized.interval
    deepest = max(sized.depths, key=lambda name: sized.depths[name])
    shallower = {**sized.depths, deepest: sized.depths[deepest] // 4}
    with contextlib.suppress(DeadlockError):
        assert cycle_report(forked.pipeline, trace, memory, depths=shallower).cycles_per_frame > sized.interval


@pytest.mark.engine
@pytest.mark.parametrize(
    ("make_network", "cycles"),
    [
        *((every_block, None), (skip, None), (skip, 2000), (bipolar, None)),
        *((choosing, None), (choosing, 3000)),
        *((sharing, None), (sharing, 3000)),
    ],
)
def test_pipeline_of_small_maps_takes_the_modelled_cycles(
    make_network: Callable[[], QuantizedNetwork], cycles: int | None, tmp_path: Path
) -> None:
    """Compare modelled and traced cycles for small maps.

    A frame takes about a hundred cycles at the highest rate, and the cycles of a block between two frames matter.
    """
    network = make_network()
    made = make(network, folded(network, cycles), tmp_path / "design")
    check_rate(made, deep_report(made))


def two_heads() -> QuantizedNetwork:
    """Return a network with two outputs: a long path of fast units, and a short path with the slowest unit."""
    layers = Layers(3, 16, 16).conv(4, 1)
    fork = layers.last
    layers.conv(27, 3).wide().conv(4, 5, 1, None, False, fork)
    for _ in range(2):
        layers.conv(4, 5)
    return layers.conv(4, 1).wide().network("two_heads")


@pytest.mark.engine
def test_cycle_report_gives_the_rate_of_the_slowest_block(tmp_path: Path) -> None:
    """Report the slowest block's rate, although for many frames outputs follow at the faster rate of the long path."""
    network = two_heads()
    made = make(network, folded(network, 30_000), tmp_path / "design")
    report = deep_report(made)
    check_rate(made, report)
    (region,) = report.timing.regions
    assert (region.total - report.latency_cycles) / (report.frames - 1) < 0.95 * report.cycles_per_frame
    trace = trace_design(made.pipeline, made.picture)
    sized = size_fifos(trace, board_memory(made.pipeline), CLOCK.mhz, made.pipeline.fifo_bits)
    assert sized.interval == sized.best_interval == report.cycles_per_frame


@pytest.mark.engine
def test_trace_stops_at_a_steady_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace the fewest frames if the rate is steady at once, and the most frames if no rate counts as steady."""
    network = skip()
    made = make(network, folded(network, 2000), tmp_path / "design")
    for steady, frames in ((measure_room.STEADY, FRAMES[0]), (-1.0, FRAMES[-1])):
        monkeypatch.setattr(measure_room, "STEADY", steady)
        report = deep_report(made)
        ends = list(report.frame_ends)
        assert ends[-1] - ends[-2] == report.cycles_per_frame
        assert report.frames == len(ends) == frames
        assert f"over {report.frames} frames" in report.text()


@pytest.mark.engine
def test_steady_rate_equals_the_slowest_block(whole: Made) -> None:
    report = deep_report(whole)
    check_rate(whole, report)
    assert report.latency_cycles > report.cycles_per_frame / 2
    assert "frames/s" in report._repr_html_()
    assert report.slowest.name in report._repr_html_()


def test_generate_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    network = skip()
    folding = folded(network, 20_000)
    for name in ("a", "b"):
        make(network, folding, tmp_path / name)
    files = [{p.name: p.read_bytes() for p in sorted((tmp_path / n).rglob("*")) if p.is_file()} for n in ("a", "b")]
    assert files[0] == files[1]


def test_open_design_of_a_damaged_folder_is_refused(tmp_path: Path) -> None:
    network = skip()
    make(network, folded(network, 20_000), tmp_path / "design")
    with raises(ShapeError, what="the input", required="type uint8 and shape (3, 16, 16)"):
        pack_picture(open_design(tmp_path / "design"), np.zeros((3, 4, 4), np.uint8))
    path = tmp_path / "design" / "manifest.json"
    whole = path.read_text()
    path.write_text(whole.replace('"packet_out"', '"packet"'))
    with raises(
        MissingValueError, what="'packet_out'", where=f"{path}: networks[0]", remedy="generate the design again"
    ):
        open_design(tmp_path / "design")
    path.write_text(whole.replace('"node": 2', '"node": 99'))
    with raises(RangeError, what="the node of conv2 in network.npz", got=99, low=0, high=5):
        open_design(tmp_path / "design")


def test_generate_with_a_bipolar_output_is_refused(tmp_path: Path) -> None:
    made = Layers(3, 8, 8, "BIPOLAR", "UINT2").conv(4, 3, 1, Padding())
    thresholds = Thresholds(np.zeros((4, 1), np.int64), np.zeros(4, np.bool_))
    last = made.nodes[-1]
    assert isinstance(last.op, QConvolution)
    made.nodes[-1] = replace(last, op=replace(last.op, requantiser=thresholds), type=TensorType(BIPOLAR, 1.0))
    network = made.network("signs")
    with raises(UnsupportedError, subject="a BIPOLAR output map of the pipeline", where="net:2: conv1_out"):
        make(network, folded(network, 20_000), tmp_path / "design")


def test_embedded_weights_are_bound_to_the_chosen_primitive(whole: Made) -> None:
    text = (whole.pipeline.path / "src/top.cpp").read_text()
    for block, fold in zip(whole.folding.graph.blocks, whole.folding.folds, strict=True):
        bound = f"#pragma HLS BIND_STORAGE variable={block.name}_weights type=rom_1p impl={fold.ram}\n"
        weighs = type(block.op).__name__ in ("MatrixVector", "VectorVector") and fold.ram != "auto"
        assert (bound in text) == weighs
    assert "BIND_STORAGE" in text

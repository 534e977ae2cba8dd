"""A package that adds a layer with its own pipeline block, from an ONNX file to the executed and traced design."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from boards.board import load
from boards.errors import (
    ChoiceError,
    ConflictError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
    ToolError,
    UnsupportedError,
)
from cnn.extending.layers import LAYERS, Layer
from cnn.integer_model import run_integer
from cnn.onnx.network import BUILDERS
from cnn.ops import Custom
from cnn.quantized import QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.stored.quantized_file import from_npz, to_npz
from hls_templates.lint import lint
from scheduler.streaming import folding_file
from scheduler.streaming import graph as g
from scheduler.streaming.area.parts import parts
from scheduler.streaming.blocks.kind import Kind
from scheduler.streaming.blocks.packages import BLOCKS, added_block
from scheduler.streaming.folded_block import Constraint
from scheduler.streaming.lower import lower
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.model.lags import lag_of
from scheduler.streaming.result import Goal
from scheduler.streaming.rules import check
from scheduler.streaming.search import exact, greedy
from scheduler.streaming.search.candidates import Options, candidates
from scheduler.systolic.network.refusals import check_mappable
from systolic.checking.design import check_design
from systolic.cli.main import main
from systolic.execution.build import Variant
from systolic.files import write
from systolic.golden import checksums, golden_files, run_golden
from systolic.loading import load_model
from systolic.model import DesignInputs
from systolic.styles.streaming.exploration import explore
from systolic.styles.streaming.flow import generate_with_fifos
from systolic.styles.streaming.generation.wiring.wire_up import wire_up
from systolic.styles.streaming.measure import cycle_report, trace_design
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.streaming.simulate import open_design, simulate
from systolic.trace.report import board_memory
from tests.support.cases import cases
from tests.support.errors import faults_of, raises, raises_among
from tests.support.extending import greater
from tests.support.extending.acme import CHANNELS, documented, entry_points, write_onnx
from tests.support.extending.greater import HEADER, broken
from tests.support.extending.installing import installed
from tests.support.foldings import drawn_folding
from tests.support.low_bit import Layers

BOARD = load("zcu104")
GREATER = "".join(
    f"[systolic.{group}s]\nacme_greater = tests.support.extending.greater:{group}\n" for group in ("layer", "block")
)
REGISTRIES = (BUILDERS, LAYERS, BLOCKS)
LAYER = greater.layer
STYLE = ("--style", "streaming", "--folding", "exact", "--fps", "400000", "--estimated-fifos", "--calibrate")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = documented()
    points = entry_points(files.pop("pyproject.toml"))
    folder = tmp_path_factory.mktemp("acme")
    installed(folder, "acme_greater", {}, GREATER)
    return installed(folder, "acme_shuffle", files, points)


@pytest.fixture(scope="module")
def package(target: Path) -> Iterator[None]:
    """Put the package that the documentation shows on Python's path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(target))
        for registry in REGISTRIES:
            registry.refresh()
        yield
    for registry in REGISTRIES:
        registry.refresh()


@pytest.fixture(scope="module")
def files(package: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write net.onnx, a.png and the folder design, which holds the design of an exact folding."""
    folder = tmp_path_factory.mktemp("files")
    write_onnx(folder / "net.onnx")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "a.png")
    options = (*STYLE, str(folder / "a.png"), "-o", str(folder / "design"))
    assert main(["generate", str(folder / "net.onnx"), *options]) == 0
    return folder


@pytest.fixture(scope="module")
def quantised(files: Path) -> QuantizedNetwork:
    return from_npz((files / "design" / "network.npz").read_bytes())


@pytest.fixture(scope="module")
def graph(quantised: QuantizedNetwork) -> g.StreamGraph:
    return lower(quantised)


def place_of(graph: g.StreamGraph) -> int:
    (index,) = (i for i, block in enumerate(graph.blocks) if isinstance(block.op, g.Custom))
    return index


def with_block(graph: g.StreamGraph, **fields: Any) -> g.StreamGraph:
    """Return the graph with ``fields`` of the package's block replaced."""
    blocks = list(graph.blocks)
    index = place_of(graph)
    op = blocks[index].op
    assert isinstance(op, g.Custom)
    blocks[index] = replace(blocks[index], op=replace(op, block=replace(added_block(op), **fields)))
    return replace(graph, blocks=tuple(blocks))


def picture(files: Path) -> Any:
    return np.asarray(Image.open(files / "a.png")).transpose(2, 0, 1)


@pytest.mark.engine
@pytest.mark.parametrize("variant", [Variant(), Variant(ap_int=True)], ids=lambda one: one.name)
def test_added_block_executed_equals_the_golden_model(files: Path, variant: Variant) -> None:
    result = simulate(open_design(files / "design"), picture(files), variant)
    assert [(layer.name, layer.mismatches) for layer in result.layers] == [("conv1", 0), ("shuffle1", 0), ("conv2", 0)]


@pytest.mark.engine
def test_added_block_traced_takes_the_modelled_cycles(files: Path) -> None:
    design = open_design(files / "design")
    report = cycle_report(design, trace_design(design, picture(files)), board_memory(design))
    (block,) = (layer for layer in report.layers if layer.name == "shuffle1")
    (written,) = (block for block in design.manifest.blocks if block.kind == "acme_shuffle")
    assert block.cycles == block.modelled_cycles == written.modelled_cycles > 0


def test_added_layer_in_both_golden_models_agrees(files: Path, quantised: QuantizedNetwork) -> None:
    outputs = run_integer(quantised, picture(files))
    assert run_golden(files / "design" / "golden", picture(files)) == checksums(quantised, outputs)
    shuffled = np.asarray(outputs[2])
    np.testing.assert_array_equal(shuffled[:4], np.asarray(outputs[1])[[0, 4, 8, 1]])


def test_added_block_sources_have_no_lint_finding(files: Path) -> None:
    sources = {path.name: path.read_text() for path in (files / "design" / "src").iterdir()}
    assert "channel_shuffle.h" in sources
    assert lint(sources, "streaming_top") == ()


@pytest.mark.engine
def test_added_block_loop_reaches_its_declared_interval(files: Path) -> None:
    """Check that the block's loop is derived to reach the initiation interval that its pragma declares."""
    pytest.importorskip("ziglang", reason="the checker needs the compiler of the package ziglang")
    loops = check_design(files / "design", 300).loops
    (loop,) = (loop for loop in loops if loop.source.startswith("channel_shuffle.h"))
    assert (loop.derived_ii, loop.holds, loop.deeper) == (1, True, False)


def test_added_block_is_folded_by_every_search(graph: g.StreamGraph) -> None:
    index = place_of(graph)
    folds = candidates(graph, index, BOARD, Options())
    assert [fold.simd for fold in folds] == [1, 2, 3, 4, 6, 12]
    assert folds == [g.Fold(simd=fold.simd) for fold in folds]
    fast = exact.fold(graph, BOARD, Goal(400), Options())
    assert fast.cycles <= 400
    assert fast.folding.folds[index].simd >= 3  # 97 pixels of 12 channels
    slow = with_block(graph, steps=lambda place: 100_000 // place.fold.simd)
    assert greedy.fold(slow, BOARD, Goal(20_000)).folding.folds[index].simd == 6


def test_added_block_gives_cycles_lags_and_parts(graph: g.StreamGraph) -> None:
    index, fold = place_of(graph), g.Fold(simd=4)
    assert block_cycles(graph, index, fold) == 97 * 3 + 2
    lag = lag_of(graph, [fold] * len(graph.blocks), index)
    assert lag.low == 0
    assert lag.up == pytest.approx(1 / 96 + 1 / 288 + 2 / 288)  # one pixel, one word, and two stages of the pipeline
    control, choice = parts(graph, index, fold, BOARD)
    assert (control.name, choice.usage.lut) == ("control", 8 * CHANNELS)


def test_added_block_rules_limit_its_folds(graph: g.StreamGraph) -> None:
    index = place_of(graph)

    def folded(graph: g.StreamGraph, fold: g.Fold) -> g.StreamingFolding:
        folds = [g.Fold()] * len(graph.blocks)
        folds[index] = fold
        return check(g.StreamingFolding(graph, tuple(folds)))

    with raises_among(
        InvalidValueError, where="shuffle1", what="the lanes of its words", got="5 for 12 channels, 5 for 12 channels"
    ):
        folded(graph, g.Fold(simd=5))
    with raises_among(InvalidValueError, where="shuffle1", what="m", got=2):
        folded(graph, g.Fold(m=2))
    few = Constraint(
        "few",
        (g.Custom,),
        lambda place: place.fold.simd <= 4,
        lambda place: RangeError("simd", place.fold.simd, high=4),
    )
    narrow = with_block(graph, rules=(few,))
    assert [fold.simd for fold in candidates(narrow, index, BOARD, Options())] == [1, 2, 3, 4]
    slow = with_block(narrow, steps=lambda place: 100_000 // place.fold.simd)
    assert greedy.fold(slow, BOARD, Goal(20_000)).folding.folds[index].simd == 4
    with raises_among(RangeError, where="shuffle1", what="simd", got=6, high=4):
        folded(narrow, g.Fold(simd=6))


def test_added_layer_in_npz_is_preserved(quantised: QuantizedNetwork) -> None:
    assert to_npz(from_npz(to_npz(quantised))) == to_npz(quantised)


def test_added_layer_on_the_array_is_refused(quantised: QuantizedNetwork) -> None:
    with raises_among(UnsupportedError, subject="acme_shuffle 'shuffle1'") as caught:
        check_mappable(quantised)
    assert "acme_shuffle" in caught.value.remedy


def test_added_layer_with_unusable_parameters_is_refused(files: Path) -> None:
    write_onnx(files / "five.onnx", 5)
    with raises_among(ToolError, tool="acme_shuffle", where="org.acme.Shuffle 'shuffled'") as caught:
        load_model(files / "five.onnx")
    (error,) = faults_of(caught.value, ToolError, tool="acme_shuffle")
    assert error.reason.startswith("cannot read 12×8×12 with parameters 5: the number of groups must")


def test_added_layer_without_its_package_is_refused(
    quantised: QuantizedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = to_npz(quantised)
    monkeypatch.setitem(vars(LAYERS), "_added", {})
    with raises(ChoiceError, got="acme_shuffle", choices=()):
        from_npz(data)
    monkeypatch.undo()
    monkeypatch.setitem(vars(BLOCKS), "_added", {})
    with raises_among(UnsupportedError, subject="acme_shuffle 'shuffle1'"):
        lower(quantised)


def raising(*_: object) -> None:
    raise ZeroDivisionError("nothing to divide by")


@cases(
    "name, function, got",
    [
        ("steps", lambda _: 0, 0),
        ("steps", lambda _: 2.5, 2.5),
        ("lag", lambda _: 0.5, 0.5),
        ("parts", lambda *_: [3], [3]),
    ],
)
def test_added_block_with_a_wrong_result_is_refused(
    graph: g.StreamGraph, name: str, function: Callable[..., object], got: object
) -> None:
    where = "net.onnx: org.acme.Shuffle 'shuffled': shuffle1"
    with raises(InvalidValueError, where=where, what=f"{name} of the block of 'acme_shuffle'", got=got):
        greedy.fold(with_block(graph, **{name: function}), BOARD, Goal(400))


def test_added_block_whose_function_raises_is_refused(graph: g.StreamGraph) -> None:
    where = "net.onnx: org.acme.Shuffle 'shuffled': shuffle1"
    with raises(ToolError, where=where, tool="steps of the block of 'acme_shuffle'") as caught:
        greedy.fold(with_block(graph, steps=raising), BOARD, Goal(400))
    assert "nothing to divide by" in caught.value.reason


# --- a block with two inputs ----------------------------------------------------------------------------------------


def joined() -> QuantizedNetwork:
    """Return a network with the maximum of a map and its shuffled copy: the map waits in a FIFO for the copy."""
    made = Layers(3, 8, 12).conv(CHANNELS, 3)
    shape, first = made.nodes[-1].shape, made.last
    made.add("shuffle", Custom("acme_shuffle", (3,)), shape)
    return made.add("greater", Custom("acme_greater"), shape, first, made.last).conv(4, 1).wide().network("joined")


@pytest.mark.engine
@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("seed", range(2))
def test_added_blocks_under_drawn_foldings_do_not_deadlock(seed: int, tmp_path: Path) -> None:
    """Run a drawn folding whose FIFO depths are estimated from the lags: it does not deadlock."""
    network, noise = joined(), np.random.default_rng(seed).integers(0, 256, (3, 8, 12), np.uint8)
    options = StreamingOptions(
        folding=folding_file.to_json(drawn_folding(lower(network), BOARD, seed)), estimated_fifos=True
    )
    plan = generate_with_fifos(explore(network, BOARD, None, options), DesignInputs({}, noise), options, lambda _: None)
    assert not plan.fifos.sized
    write(plan.files, tmp_path / "design")
    design = open_design(tmp_path / "design")
    assert [layer.mismatches for layer in simulate(design, noise).layers] == [0] * 4
    report = cycle_report(design, trace_design(design, noise), board_memory(design))
    times = {layer.name: (layer.cycles, layer.modelled_cycles) for layer in report.layers}
    for name in ("shuffle2", "greater3"):
        assert times[name][0] == times[name][1]


@pytest.mark.usefixtures("package")
def test_added_block_with_words_of_several_pixels_is_folded() -> None:
    graph = lower(joined())
    (index,) = (i for i, block in enumerate(graph.blocks) if block.name == "greater3")
    folds = candidates(graph, index, BOARD, Options(max_pixels=4))
    assert {(fold.pe, fold.m) for fold in folds} == {(pe, m) for pe in (1, 2, 3, 4, 6, 12) for m in (1, 2, 4)}
    assert block_cycles(graph, index, g.Fold(pe=6, m=4)) == 8 * 12 // 4 * 2 + 3


@pytest.mark.usefixtures("package")
@cases("name", ["word.h", "top.h", "../other.h", "plain.hpp"])
def test_added_block_with_a_taken_header_name_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.extending.greater.block", broken(header=name, files={name: HEADER}))
    network, noise = joined(), np.zeros((3, 8, 12), np.uint8)
    folding = StreamingOptions(folding=folding_file.to_json(drawn_folding(lower(network), BOARD, 0)))
    mapping = explore(network, BOARD, None, folding)
    with raises(InvalidValueError, what="the name of a package's header", got=name):
        generate_with_fifos(mapping, DesignInputs({}, noise), folding, lambda _: None)


@pytest.mark.usefixtures("package")
def test_added_blocks_with_equal_header_names_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.extending.greater.block", broken(files={"channel_shuffle.h": HEADER}))
    network = joined()
    with raises(ConflictError, where="net:4: greater3"):
        wire_up(drawn_folding(lower(network), BOARD, 0), {}, "DSP48E2")


@pytest.mark.usefixtures("package")
@cases("kind", [Kind(), Kind(reads="lanes", depth=1), Kind(depth=1, rams=("uram",)), Kind(depth=1, pads=True)])
def test_added_block_of_an_unknown_kind_is_refused(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.extending.greater.block", broken(kind=kind))
    with raises(
        InvalidValueError, what="'acme_greater' of the package acme-greater", where="systolic.blocks"
    ) as caught:
        lower(joined())
    assert "AddedBlock (depth 1 or more" in caught.value.required


SUM = """
    map_t out = *in[0];
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] += in[1]->values[i];
    return out;
"""


@pytest.mark.usefixtures("package")
def test_added_layer_output_out_of_range_saturates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = Layer(greater.layer.shape, lambda maps, _: maps[0] + maps[1], SUM, inputs=2)
    monkeypatch.setattr("tests.support.extending.greater.layer", added)
    network, noise = joined(), np.random.default_rng(0).integers(0, 256, (3, 8, 12), np.uint8)
    outputs = run_integer(network, noise)
    assert np.asarray(outputs[3]).max() == network.nodes[3].type.datatype.high
    assert (np.asarray(outputs[1]).astype(int) + np.asarray(outputs[2])).max() > 15  # UINT4
    for name, data in golden_files(network).items():
        (tmp_path / name).write_bytes(data)
    assert run_golden(tmp_path, noise) == checksums(network, outputs)


OUTPUT = {"what": "the output of acme_greater", "required": "int64 12×8×12"}


@pytest.mark.usefixtures("package")
@cases(
    "fields, kind, told",
    [
        (
            {"values": raising},
            ToolError,
            {
                "tool": "acme_greater",
                "reason": "cannot compute values of 12×8×12, 12×8×12: nothing to divide by",
            },
        ),
        ({"values": lambda maps, _: maps[0][:3]}, ShapeError, {**OUTPUT, "got": "int64 3×8×12"}),
        ({"values": lambda maps, _: maps[0] / 2}, ShapeError, {**OUTPUT, "got": "float64 12×8×12"}),
    ],
)
def test_added_layer_with_wrong_values_is_refused(
    fields: dict[str, Any], kind: type[SystolicError], told: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.extending.greater.layer", replace(LAYER, **fields))
    with raises(kind, **told):
        run_integer(joined(), np.zeros((3, 8, 12), np.uint8))


@pytest.mark.usefixtures("package")
@cases(
    "fields, kind, told",
    [
        (
            {"inputs": 1},
            ShapeError,
            {"what": "the input of acme_greater", "got": "2 maps", "required": "1 maps"},
        ),
        (
            {"shape": lambda *_: (12, 8, 12)},
            InvalidValueError,
            {"what": "the shape of acme_greater", "got": (12, 8, 12), "required": "a cnn.maps.Shape"},
        ),
    ],
)
def test_added_layer_with_a_wrong_shape_is_refused(
    fields: dict[str, Any], kind: type[SystolicError], told: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.extending.greater.layer", replace(LAYER, **fields))
    with raises(kind, **told) as caught:
        check_quantized(joined())
    assert "greater3" in caught.value.where


@pytest.mark.usefixtures("package")
def test_added_layer_with_a_zero_point_is_refused() -> None:
    network = joined()
    moved = [replace(node, type=replace(node.type, zero_point=3)) for node in network.nodes[1:4]]
    nodes = (network.nodes[0], *moved, *network.nodes[4:])
    with raises(MismatchError, what="the zero point of what acme_shuffle reads", got=3, expected=0):
        check_quantized(replace(network, nodes=nodes))

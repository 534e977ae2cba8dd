"""Test the generated folder: its bytes are reproducible, its code is readable, and no name can inject code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from boards.errors import (
    ChoiceError,
    DoesNotFitError,
    InvalidValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    UnsupportedError,
)
from cnn.datatype import INT8, TensorType
from cnn.maps import Shape
from cnn.ops import Concat, Region, Reorg
from cnn.quantized import QNode, QuantizedNetwork
from contract.program import PASS_FIELDS, PASS_WORDS
from hls_templates.lint import lint
from hls_templates.systolic.sources import TOP
from scheduler.systolic.engines.hls.fifos import FIFOS
from scheduler.systolic.program.emit import emit
from scheduler.systolic.program.maps import place_maps
from scheduler.systolic.search.search import choose
from systolic.files import DesignFiles
from tests.support.accelerators import GEOMETRIES, HOSTILE, design_of, networks, start
from tests.support.cases import by_default, cases
from tests.support.errors import faults_of, raises, raises_among
from tests.support.fifo_widths import stated_widths, widths_of_words
from tests.support.host.manifests import fields_of_text
from tests.support.schedules import first_fit

ODD = GEOMETRIES["odd rows"]
CODE = (".cpp", ".h", ".tcl")


def manifest_of(made: DesignFiles) -> dict:  # type: ignore[type-arg]
    """Return the fields of the manifest in a design's files."""
    return fields_of_text(made.files["manifest.json"])


def detector(name: str = "small", labels: tuple[str, ...] = (), bits: int = 16) -> QuantizedNetwork:
    """Return a quantised network that ends in a region head."""
    made = start(3, 12, 12).convolution(8).pool().convolution(16, 1, slope=1.0, bits=bits)
    head = made.nodes[-1]
    op = Region(((1.0, 1.0), (2.0, 3.0)), 3, True)
    made.nodes.append(QNode("region4", op, (3,), head.shape, head.type, "net.cfg:40"))
    return made.network(name, labels)


def test_generate_with_same_arguments_gives_the_same_bytes() -> None:
    one, two = design_of(networks()["pools"], ODD), design_of(networks()["pools"], ODD)
    assert one.digest == two.digest
    assert one.files == two.files
    assert one.digest != design_of(networks()["pools"], GEOMETRIES["narrow"]).digest


def test_generated_folder_is_complete() -> None:
    files = design_of(networks()["pools"], GEOMETRIES["two rows"]).files
    weights = {f"data/weights_{port}.bin" for port in range(4)}
    sources = {f"src/{name}" for name in ("top.cpp", "top.h", "parameters.h", "load.h", "pe_array.h", "packed.h")}
    others = {"manifest.json", "network.npz", "data/program.bin", "data/requantisers.bin", "simulation/simulate.cpp"}
    assert weights | sources | others <= set(files)
    assert all(files.values()), "a generated file is empty"


@pytest.mark.parametrize("geometry", by_default(1, GEOMETRIES))
def test_lint_accepts_the_generated_sources(geometry: str) -> None:
    files = design_of(networks()["streamed"], GEOMETRIES[geometry]).files
    sources = {name.removeprefix("src/"): data.decode() for name, data in files.items() if name.startswith("src/")}
    assert [str(finding) for finding in lint(sources, TOP)] == []


@pytest.mark.parametrize("geometry", by_default(1, GEOMETRIES))
def test_fifo_bits_match_the_words(geometry: str) -> None:
    files = design_of(networks()["streamed"], GEOMETRIES[geometry]).files
    sources = {name.removeprefix("src/"): data.decode() for name, data in files.items() if name.startswith("src/")}
    assert len(stated_widths(sources)) >= len(FIFOS) - 1  # "added" exists only if the Saver fuses residual adds
    assert widths_of_words(sources) == stated_widths(sources)


def test_generated_comments_give_the_reasons_of_the_schedule() -> None:
    schedule = first_fit(networks()["streamed"], ODD)
    top = design_of(networks()["streamed"], ODD).files["src/top.cpp"].decode()
    for scheduled in schedule.layers:
        for reason in scheduled.reasons():
            assert f"//   {reason}\n" in top
    assert "weights resident: 24 steps in the buffer, read once per pass" in top


# ------------------------------------------------------------------------------------------ manifest


def test_manifest_meets_the_host_contract() -> None:
    made = design_of(networks()["skip"], ODD)
    values = manifest_of(made)
    assert (values["format"], values["version"], values["board"]) == ("systolic-manifest", 2, "zcu104")
    assert values["input"]["datatype"] == "UINT8"
    for image, size in zip(values["images"]["weights"], [16] * 2, strict=True):
        assert len(made.files[image["path"]]) % size == 0
    assert len(made.files[values["images"]["program"]["path"]]) == 4 * values["pass_words"] * values["passes"]
    assert [layer["first_pass"] for layer in values["layers"]] == sorted(
        layer["first_pass"] for layer in values["layers"]
    )
    for layer in values["layers"]:
        out = layer["output"]
        assert 0 <= out["offset"] <= out["offset"] + out["bytes"] <= values["maps_bytes"]
        assert (
            out["bytes"] == out["height"] * out["width"] * out["blocks"] * values["array"]["lanes"] * out["value_bytes"]
        )


def test_manifest_heads_name_their_layer() -> None:
    values = manifest_of(design_of(detector(labels=("a", "b", "c")), ODD))
    (head,) = values["heads"]
    assert values["layers"][head["layer"]]["name"] == "conv3"
    assert (head["kind"], head["classes"], head["anchors"]) == ("region", 3, [[1.0, 1.0], [2.0, 3.0]])
    assert values["layers"][head["layer"]]["output"]["value_bytes"] == 2


def test_first_fit_refuses_a_map_wider_than_a_lane() -> None:
    """Expect an error, because the engine reads lanes of 8 bits and would take each half of an INT16 value for a
    value."""
    made = start(3, 12, 12).convolution(8, bits=16).convolution(8)
    with raises_among(RangeError, where="conv2", what="the number of bits of the input", got=16, high=8):
        first_fit(made.network(), ODD)


def test_place_maps_keeps_a_head_until_the_frame_ends() -> None:
    """Let a later layer read the head's map too. No third layer may overwrite it before the host has read it."""
    network = detector(bits=8)
    made = start(3, 12, 12)
    made.nodes[:] = network.nodes
    made.convolution(8, source=3).convolution(8).convolution(8)
    schedule = first_fit(made.network(), ODD)
    maps, _ = place_maps(schedule)
    head = maps[3]
    for node in (5, 6, 7):
        assert maps[node].base >= head.base + head.words or maps[node].base + maps[node].words <= head.base


# ------------------------------------------------------------------------------------- hostile names


def test_generated_code_holds_no_name_or_label() -> None:
    made = design_of(detector(HOSTILE, (HOSTILE, "${bird}", 'a "dog"\nsecond line')), ODD)
    plain = design_of(detector("small", ("a", "b", "c")), ODD)
    assert set(made.files) == set(plain.files)
    for name, data in made.files.items():
        if name.endswith(CODE) and data != plain.files[name]:
            text = data.decode()
            assert text.count("\n") == plain.files[name].decode().count("\n"), f"{name} has another line"
            for part in ('a"b', "${evil}", "[exec x]", "*/ int", "\n#error", "${bird}", "second line"):
                assert part not in text, f"{name} holds {part!r}"
    values = manifest_of(made)
    assert values["network"] == HOSTILE
    assert values["labels"] == [HOSTILE, "${bird}", 'a "dog"\nsecond line']
    sources = {name.removeprefix("src/"): data.decode() for name, data in made.files.items() if "src/" in name}
    assert lint(sources, TOP) == ()


# ----------------------------------------------------------------------------------- what cannot be mapped


def test_generate_lists_every_unmappable_layer() -> None:
    made = start(3, 16, 16).convolution(8).convolution(8)
    eight, type = Shape(8, 16, 16), TensorType(INT8, 0.1)
    made.nodes.append(QNode("route3", Concat(), (1, 2), Shape(16, 16, 16), type, "net.cfg:30"))
    made.nodes.append(QNode("reorg4", Reorg(4), (2,), Shape(128, 4, 4), type, "net.cfg:40"))
    made.convolution(8, source=2)
    assert eight == made.nodes[2].shape
    with raises(SeveralFaultsError) as caught:
        design_of(made.network("odd one"), ODD)
    places = {(error.where, error.subject) for error in faults_of(caught.value, UnsupportedError)}
    assert places == {("net.cfg:30", "concat 'route3'"), ("net.cfg:40", "reorg 'reorg4'")}
    assert "the streaming style, which has concat, reorg" in caught.value.remedy


def test_first_layer_without_arithmetic_is_refused() -> None:
    with raises_among(UnsupportedError, where="net.cfg:10", subject="maxpool 'pool1'"):
        design_of(start(3, 8, 8).pool().network(), ODD)


@pytest.mark.engine
def test_choose_for_too_large_network_raises_does_not_fit_error() -> None:
    """Use a dense layer on a large map, of which one tile of weights exceeds every weight buffer."""
    network = start(3, 64, 64).convolution(64).dense(10).network("huge")
    with raises_among(DoesNotFitError, where="conv1", resource="steps of the weight buffer"):
        choose(network, load("pynq-z2"))


def test_emit_with_sums_beyond_32_bits_is_refused() -> None:
    made = start(3, 8, 8).convolution(8)
    made.nodes[1].op.requantiser.bias[3] = 2**31 - 10  # type: ignore[union-attr]
    with raises(RangeError, where="conv1", high=2**31 - 1):
        emit(first_fit(made.network(), ODD))


@cases(
    "what, got, kind",
    [
        ("rows", 1, RangeError),
        ("columns", 9, InvalidValueError),
        ("columns", 12, InvalidValueError),
        ("lanes", 6, ChoiceError),
        ("map_ports", 3, ChoiceError),
        ("weight_ports", 3, ChoiceError),
        ("save_rows", 3, InvalidValueError),
        ("row_depth", 101, InvalidValueError),
        ("dsp", "DSP58", ChoiceError),
        ("chunk", 0, RangeError),
    ],
)
def test_illegal_array_is_refused_with_its_rule(what: str, got: object, kind: type[SystolicError]) -> None:
    with raises_among(kind, what=what, got=got):
        first_fit(networks()["pools"], replace(ODD, **{what: got}))  # type: ignore[arg-type]


def test_generated_images_are_little_endian_words(tmp_path: Path) -> None:
    made = design_of(networks()["pools"], ODD)
    words = np.frombuffer(made.files["data/program.bin"], "<u4").reshape(-1, PASS_WORDS)
    assert words[0, PASS_FIELDS.index("in_height")] == 23
    assert words[0, PASS_FIELDS.index("limits")] == (127 << 16) + 2**16 - 128
    assert words[-1, PASS_FIELDS.index("limits")] == (32767 << 16) + 2**15

"""The generated folder: the same bytes for the same arguments, readable, and no name that does harm."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from boards.errors import ScheduleError
from cnn.datatype import INT8
from cnn.network import Concat, Detection, Reorg, Shape
from cnn.quantized import QNode, QuantizedNetwork, TensorType
from hls_templates.headers import fixed_files, include_folders
from hls_templates.lint import lint
from hls_templates.systolic.sources import TOP
from scheduler.systolic.array import Array
from scheduler.systolic.network.layer import ADDED_WORDS
from scheduler.systolic.program.emit import emit
from scheduler.systolic.program.maps import place_maps
from scheduler.systolic.program.passes import ADDED_FIELDS, PASS_FIELDS, PASS_WORDS
from scheduler.systolic.search.search import choose
from systolic.files import DesignFiles
from tests.support.schedules import first_fit
from tests.systolic.accelerators import GEOMETRIES, HOSTILE, design_of, networks, start

ODD = GEOMETRIES["odd rows"]
CODE = (".cpp", ".h", ".tcl")


def manifest_of(made: DesignFiles) -> dict:  # type: ignore[type-arg]
    values = json.loads(made.files["manifest.json"])
    assert isinstance(values, dict)
    return values


def detector(name: str = "small", labels: tuple[str, ...] = (), bits: int = 16) -> QuantizedNetwork:
    made = start(3, 12, 12).convolution(8).pool().convolution(16, 1, slope=1.0, bits=bits)
    head = made.nodes[-1]
    op = Detection("region", ((1.0, 1.0), (2.0, 3.0)), 3, True)
    made.nodes.append(QNode("region4", op, (3,), head.shape, head.type, "net.cfg:40"))
    return made.network(name, labels)


def test_the_same_arguments_give_the_same_bytes() -> None:
    one, two = design_of(networks()["pools"], ODD), design_of(networks()["pools"], ODD)
    assert one.digest == two.digest
    assert one.files == two.files
    assert one.digest != design_of(networks()["pools"], GEOMETRIES["narrow"]).digest


def test_the_folder_is_whole() -> None:
    files = design_of(networks()["pools"], GEOMETRIES["two rows"]).files
    weights = {f"data/weights_{port}.bin" for port in range(4)}
    sources = {f"src/{name}" for name in ("top.cpp", "top.h", "parameters.h", "load.h", "pe_array.h", "packed.h")}
    others = {"manifest.json", "network.npz", "data/program.bin", "data/requantisers.bin", "simulation/simulate.cpp"}
    assert weights | sources | others <= set(files)
    assert all(files.values()), "an empty file"


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_the_linter_accepts_what_is_generated(geometry: str) -> None:
    files = design_of(networks()["streamed"], GEOMETRIES[geometry]).files
    sources = {name.removeprefix("src/"): data.decode() for name, data in files.items() if name.startswith("src/")}
    assert [str(finding) for finding in lint(sources, TOP)] == []


def test_comments_carry_the_reasons_of_the_schedule() -> None:
    schedule = first_fit(networks()["streamed"], ODD)
    top = design_of(networks()["streamed"], ODD).files["src/top.cpp"].decode()
    for scheduled in schedule.layers:
        for reason in scheduled.reasons():
            assert f"//   {reason}\n" in top
    assert "weights resident: 24 steps in the buffer, read once a pass" in top


def test_the_program_has_the_fields_of_the_header() -> None:
    text = fixed_files(*include_folders("systolic"))["pass.h"]
    listing = text.partition("#define SYSTOLIC_PASS_FIELDS(X)")[2].partition("#define SYSTOLIC_DECLARE")[0]
    assert tuple(re.findall(r"X\((\w+)\)", listing)) == PASS_FIELDS
    assert f"static const int PASS_WORDS = {PASS_WORDS} + (ADDED_MAPS > 0 ? ADDED_FIELDS : 0);" in text
    further = text.partition("#define SYSTOLIC_ADDED_FIELDS(X)")[2].partition("// clang-format on")[0]
    assert tuple(re.findall(r"X\((\w+)\)", further)) == ADDED_FIELDS
    assert len(ADDED_FIELDS) == ADDED_WORDS


# ------------------------------------------------------------------------------------------ manifest


def test_the_manifest_is_the_contract_of_the_host() -> None:
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


def test_heads_name_the_layer_that_they_read() -> None:
    values = manifest_of(design_of(detector(labels=("a", "b", "c")), ODD))
    (head,) = values["heads"]
    assert values["layers"][head["layer"]]["name"] == "conv3"
    assert (head["kind"], head["classes"], head["anchors"]) == ("region", 3, [[1.0, 1.0], [2.0, 3.0]])
    assert values["layers"][head["layer"]]["output"]["value_bytes"] == 2


def test_a_map_that_no_lane_holds_is_refused() -> None:
    """The engine reads lanes: it would take the halves of an INT16 for two values."""
    made = start(3, 12, 12).convolution(8, bits=16).convolution(8)
    with pytest.raises(
        ScheduleError,
        match=r"has lanes of 8 bits, but small has conv2: an input of 16 bits; quantise it to 8 bits",
    ):
        first_fit(made.network(), ODD)


def test_what_the_host_reads_stands_until_the_frame_is_done() -> None:
    """A head's map that a later layer reads too must not be given to a third."""
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


def test_no_name_or_label_ends_in_code() -> None:
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


def sentence(network: QuantizedNetwork, array: Array = ODD) -> str:
    with pytest.raises(ScheduleError) as caught:
        design_of(network, array)
    return str(caught.value)


def test_every_layer_without_a_mapping_is_listed_with_its_line() -> None:
    made = start(3, 16, 16).convolution(8).convolution(8)
    eight, type = Shape(8, 16, 16), TensorType(INT8, 0.1)
    made.nodes.append(QNode("route3", Concat(), (1, 2), Shape(16, 16, 16), type, "net.cfg:30"))
    made.nodes.append(QNode("reorg4", Reorg(4), (2,), Shape(128, 4, 4), type, "net.cfg:40"))
    made.convolution(8, source=2)
    assert eight == made.nodes[2].shape
    assert sentence(made.network("odd one")) == (
        "the systolic back-end cannot map 2 layer(s) of odd one yet:\n"
        "  net.cfg:30: route3: concat that no layer of the array reads\n"
        "  net.cfg:40: reorg4: reorg by 4 in darknet's order (by 2)\n"
        "the streaming style has concat, reorg: systolic fold NET, systolic generate NET --style streaming"
    )


def test_the_first_layer_computes() -> None:
    assert "pool1: what reads the picture has to compute: a convolution, connected, an average pool, or" in sentence(
        start(3, 8, 8).pool().network()
    )


def test_a_network_that_no_array_on_the_board_holds() -> None:
    """A connected layer on a large map: its one tile of weights is beyond every weight buffer."""
    network = start(3, 64, 64).convolution(64).dense(10).network("huge")
    with pytest.raises(ScheduleError, match=r"(?s)huge does not fit PYNQ-Z2: .*weight buffer holds .* would fit"):
        choose(network, load("pynq-z2"))


def test_sums_beyond_32_bits_are_refused() -> None:
    made = start(3, 8, 8).convolution(8)
    made.nodes[1].op.requantiser.bias[3] = 2**31 - 10  # type: ignore[union-attr]
    with pytest.raises(
        ScheduleError, match=r"conv1: the array's accumulators are 32 bits, but channel 3 may reach \d+; "
    ):
        emit(first_fit(made.network(), ODD))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"rows": 1}, "rows is at least 2"),
        ({"columns": 9}, "columns is even"),
        ({"columns": 12}, "columns is a multiple of lanes"),
        ({"lanes": 6}, "lanes is a power of two"),
        ({"map_ports": 3}, "map_ports is 1, 2 or 4 and not more than rows"),
        ({"weight_ports": 3}, "weight_ports is 1, 2 or 4 and divides columns"),
        ({"save_rows": 3}, "save_rows is a power of two"),
        ({"row_depth": 101}, "row_depth is even"),
        ({"dsp": "DSP58"}, "dsp is DSP48E2 or DSP48E1"),
        ({"chunk": 0}, "every number of the array is at least 1"),
    ],
)
def test_an_array_that_is_not_legal(change: dict[str, object], rule: str) -> None:
    with pytest.raises(ScheduleError, match=rf"the array .* is not legal: .*{rule}"):
        first_fit(networks()["pools"], replace(ODD, **change))  # type: ignore[arg-type]


def test_images_are_little_endian_words(tmp_path: Path) -> None:
    made = design_of(networks()["pools"], ODD)
    words = np.frombuffer(made.files["data/program.bin"], "<u4").reshape(-1, PASS_WORDS)
    assert words[0, PASS_FIELDS.index("in_height")] == 23
    assert words[0, PASS_FIELDS.index("limits")] == (127 << 16) + 2**16 - 128
    assert words[-1, PASS_FIELDS.index("limits")] == (32767 << 16) + 2**15

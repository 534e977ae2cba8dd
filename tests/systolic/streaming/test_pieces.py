"""Piecewise-linear tables in pipelines, for functions of inputs above 8 bits, compared with the golden model."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cnn.activations import FUNCTIONS
from cnn.datatype import DataType
from cnn.maps import Shape
from cnn.network import Network
from cnn.ops import Activate, QActivate
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise, quantise_format
from cnn.quantized import QuantizedNetwork
from cnn.tables import Table
from hls_templates.lint import lint
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower
from scheduler.streaming.rules import check
from systolic.execution.build import Variant
from systolic.styles.streaming.generation.wiring.constants import lookup
from systolic.styles.streaming.simulate import simulate
from tests.support import networks
from tests.support.cases import cases
from tests.support.foldings import drawn_folding
from tests.support.pipeline_rates import check_rate, deep_report
from tests.support.pipelines import BOARD, Made, folded, make

HEIGHT, WIDTH = 6, 8


def curved(name: str) -> Network:
    """Return a network with the function ``name`` between two convolutions and again at the output."""
    random = np.random.default_rng(3)
    function = Activate(name, FUNCTIONS[name].defaults)
    return networks.network(
        Shape(3, HEIGHT, WIDTH),
        ("conv1", networks.convolution(random, 3, 8, activation="linear"), [0], Shape(8, HEIGHT, WIDTH)),
        ("inner", function, [1], Shape(8, HEIGHT, WIDTH)),
        ("conv2", networks.convolution(random, 8, 4, kernel=1, activation="linear"), [2], Shape(4, HEIGHT, WIDTH)),
        ("outer", function, [3], Shape(4, HEIGHT, WIDTH)),
        name=name,
    )


def wide(name: str, bits: int) -> QuantizedNetwork:
    """Return the network of ``name`` quantised so that both its functions read ``bits`` bits.

    Args:
        bits: 16 quantises weights and activations to 16 bits; another number sets the bits of the activations alone.
    """
    network = curved(name)
    ranges = calibrate(network, networks.pictures(network.input_shape), bits=16)
    made = quantise_format(network, ranges, 16) if bits == 16 else quantise(network, ranges, activation_bits=bits)
    read = [made.nodes[node.inputs[0]].type.datatype.bits for node in made.nodes if isinstance(node.op, QActivate)]
    assert read == [bits, bits]
    return made


def with_lanes(folding: g.StreamingFolding, pe: int, m: int) -> g.StreamingFolding:
    """Return the folding in which functions compute ``pe`` channels, or all if fewer, of ``m`` pixels per cycle."""
    folds = tuple(
        replace(fold, pe=min(pe, block.outputs[0].shape.channels), m=m) if isinstance(block.op, g.Activate) else fold
        for block, fold in zip(folding.graph.blocks, folding.folds, strict=True)
    )
    return check(replace(folding, folds=folds))


def wrong(made: Made, variant: Variant) -> list[tuple[str, int]]:
    layers = simulate(made.pipeline, made.picture, variant).layers
    assert {"inner", "outer"} <= {layer.name for layer in layers}
    return [(layer.name, layer.mismatches) for layer in layers if layer.mismatches]


@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "bits", "pe", "m"),
    [("silu", 16, 1, 1), ("silu", 16, 4, 2), ("silu", 16, 8, 4), ("tanh", 12, 2, 1), ("tanh", 12, 8, 8)],
)
def test_piecewise_tables_are_right_in_the_modelled_cycles(
    name: str, bits: int, pe: int, m: int, tmp_path: Path
) -> None:
    network = wide(name, bits)
    made = make(network, with_lanes(folded(network, 2000), pe, m), tmp_path / "design")
    top = (tmp_path / "design/src/top.cpp").read_text()
    assert f"activate<{HEIGHT * WIDTH}, 8, {pe}, {m}, int_t<{bits}>>" in top
    for variant in (Variant(), Variant(ap_int=True)):
        assert wrong(made, variant) == []
    check_rate(made, deep_report(made))
    sources = {path.name: path.read_text() for path in (tmp_path / "design/src").iterdir()}
    assert lint(sources, "streaming_top") == ()


@pytest.mark.engine
@pytest.mark.parametrize(("name", "bits", "seed"), [("silu", 16, 1), ("tanh", 12, 2), ("mish", 9, 3)])
def test_piecewise_tables_under_drawn_folds_are_right(name: str, bits: int, seed: int, tmp_path: Path) -> None:
    network = wide(name, bits)
    made = make(network, drawn_folding(lower(network), BOARD, seed), tmp_path / "design")
    assert wrong(made, Variant()) == []


@pytest.mark.engine
def test_simulate_finds_shifted_slopes_in_their_layer(tmp_path: Path) -> None:
    network = wide("tanh", 12)
    made = make(network, folded(network, 2000), tmp_path / "design")
    path = tmp_path / "design/src/constants.h"
    text = path.read_text()
    aggregate = re.search(r"pieces_t<[^>]*> inner_activation = \{\n    \{\n.*?\},\n    \{\n(.*?)\}", text, re.DOTALL)
    assert aggregate is not None
    slopes = [int(slope) for slope in re.findall(r"-?\d+", aggregate[1])]
    table = next(block.op.activation for block in made.folding.graph.blocks if isinstance(block.op, g.Activate))
    assert isinstance(table, Table)
    assert table.slopes is not None
    assert slopes == [*table.slopes] * (len(slopes) // 256)
    moved = ", ".join(map(str, [*slopes[1:], slopes[0]]))
    path.write_text(text[: aggregate.start(1)] + moved + text[aggregate.end(1) :])
    assert wrong(made, Variant())[0][0] == "inner"


@cases(
    "read, lanes, low_and_places, copies",
    [
        (DataType(12, True), (16, 1), "-2048, 4", 1),
        (DataType(12, True), (17, 1), "-2048, 4", 2),
        (DataType(9, False), (8, 4), "0, 1", 2),
        (DataType(16, False), (3, 1), "0, 8", 1),
    ],
)
def test_lookup_gives_the_width_and_copies_of_a_table(
    read: DataType, lanes: tuple[int, int], low_and_places: str, copies: int
) -> None:
    """Store slopes in the ten bits that the steepest one, −511, needs, and one copy of the table per 16 lanes."""
    values, slopes = np.arange(256), np.arange(256) - 511
    made = lookup(Table(values, slopes), (read, DataType(16, True)), *lanes)
    assert made.type == f"pieces_t<16, true, {low_and_places}, 10, {copies}>"
    for field, constants in zip(made.fields, (values, slopes), strict=True):
        np.testing.assert_array_equal(field, [constants] * copies)

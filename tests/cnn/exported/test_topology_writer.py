"""Tests that a written topology file is read as the same topology."""

from __future__ import annotations

from dataclasses import replace

import pytest

from boards.errors import UnsupportedError
from cnn import zoo
from cnn.exported.topology import Kernel, Topology
from cnn.exported.topology_file import parse_topology
from cnn.exported.topology_writer import topology_text
from cnn.maps import Padding
from cnn.ops import Ssd
from tests.support.errors import raises

EXPORTED = ("ultranet", "ultranet-skip", "cnv-w1a1", "mobilenet-w4a4")


def read(name: str) -> Topology:
    return parse_topology(zoo.topology_file(name).read_text(), name)


def without_sources(topology: Topology) -> Topology:
    return replace(topology, layers=tuple(replace(layer, source="") for layer in topology.layers))


@pytest.mark.parametrize("name", EXPORTED)
def test_built_in_network_survives_writing_and_reading(name: str) -> None:
    topology = read(name)
    assert without_sources(parse_topology(topology_text(topology), name)) == without_sources(topology)


def test_integers_scales_and_uneven_padding_survive_writing_and_reading() -> None:
    topology = read("ultranet")
    layers = list(topology.layers)
    for index, layer in enumerate(layers):
        if isinstance(layer.op, Kernel):
            scale = 0.125 if layer.op.output_bits is None else 1.0
            padding = Padding(2, 1, 0, 1) if layer.op.size == 3 else Padding()
            layers[index] = replace(layer, op=replace(layer.op, integers=True, scale=scale, padding=padding))
    topology = replace(topology, layers=tuple(layers))
    assert without_sources(parse_topology(topology_text(topology), "x")) == without_sources(topology)


def test_head_without_a_file_form_is_refused() -> None:
    topology = read("ultranet")
    head = Ssd(((1.0, 1.0),), 2, True)
    layers = (*topology.layers[:-1], replace(topology.layers[-1], op=head, source="x:9"))
    with raises(UnsupportedError, subject="a head of kind ssd", where="x:9", remedy="end the network before it"):
        topology_text(replace(topology, layers=layers))

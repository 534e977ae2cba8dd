"""The register map against the engine's real signature and against maps that Vitis HLS published."""

from __future__ import annotations

import re

import pytest

from boards.errors import ChoiceError, RangeError
from hls_templates.streaming.sources import (
    Connection,
    Element,
    Instance,
    Packet,
    StreamingValues,
    WeightPort,
    Wire,
    streaming_sources,
)
from hls_templates.systolic.sources import Fifo, Parameter, SystolicValues, systolic_sources
from hls_templates.vendor.ports import Output, StreamingPorts, SystolicPorts
from hls_templates.vendor.registers import CONTROL, Argument, address_bits, bundles, place, registers
from scheduler.systolic.engines.hls.fifos import FIFOS
from tests.support.cases import cases
from tests.support.errors import raises

PORTS = [(1, 1), (2, 2), (4, 2), (4, 4)]


def ports(map_ports: int, weight_ports: int) -> SystolicPorts:
    return SystolicPorts(map_ports, weight_ports, 1, (Output("o", 0, 1),))


def sources(map_ports: int, weight_ports: int) -> dict[str, str]:
    """Return the generated sources of an engine, of which only the ports matter here."""
    streams = {fifo.name for fifo in FIFOS}
    bounds = ("maps", "weights", "requantisers", "program", "passes")
    return systolic_sources(
        SystolicValues(
            title="registers",
            parameters=(Parameter("ROWS", 4, ""),),
            map_ports=map_ports,
            weight_ports=weight_ports,
            fifos=dict.fromkeys(streams, Fifo(8, 4, "srl")),
            bounds=dict.fromkeys(bounds, 4),
            burst_words=16,
            outstanding=16,
            latency=27,
            memories=(),
            map_depth=0,
            reasons=(),
        )
    )


@cases("map_ports, weight_ports", PORTS)
def test_arguments_equal_the_signature_of_the_top_function(map_ports: int, weight_ports: int) -> None:
    header = sources(map_ports, weight_ports)["top.h"]
    signature = re.search(r"void systolic_top\((.*?)\);", header, re.S)
    assert signature
    found = [
        (name, "pointer" if type_.startswith("hls::burst_maxi") else "output" if star else "scalar")
        for type_, star, name in re.findall(r"(hls::burst_maxi<\w+>|uint32_t)\s+(\*?)(\w+)", signature[1])
    ]
    assert found == [(a.name, a.kind) for a in ports(map_ports, weight_ports).arguments]
    assert "volatile uint32_t *current" in header  # written in a loop: a tool may keep the last value alone


@cases("map_ports, weight_ports", PORTS)
def test_bundles_equal_the_interface_pragmas(map_ports: int, weight_ports: int) -> None:
    source = sources(map_ports, weight_ports)["top.cpp"]
    pragmas = dict(re.findall(r"mode=m_axi port=(\w+) bundle=(\w+)", source))
    assert pragmas == {a.name: a.bundle for a in ports(map_ports, weight_ports).arguments if a.bundle}
    assert set(bundles(ports(map_ports, weight_ports).arguments)) == set(pragmas.values())
    assert len(bundles(ports(map_ports, weight_ports).arguments)) == map_ports + weight_ports + 2


def test_place_equals_a_map_that_vitis_hls_2022_2_generated() -> None:
    """Compare the offsets of eight scalars, an output and three pointers with a published x<top>_hw.h."""
    scalars = [Argument(f"s{i}", "scalar") for i in range(8)]
    pointers = [Argument(name, "pointer", "g") for name in ("inputs", "outputs", "paras")]
    found = {r.name: r.offset for r in place([*scalars, Argument("done", "output"), *pointers])}
    assert found == {
        **{f"s{i}": 0x10 + 8 * i for i in range(8)},
        **{"done": 0x50, "done_ctrl": 0x54, "inputs_1": 0x60, "inputs_2": 0x64},
        **{"outputs_1": 0x6C, "outputs_2": 0x70, "paras_1": 0x78, "paras_2": 0x7C},
    }


def test_pointers_are_12_bytes_apart_and_scalars_8() -> None:
    found = {r.name: r.offset for r in registers(ports(2, 2).arguments)}
    assert found["maps_read_0_1"] == 0x10
    assert found["maps_read_0_2"] == 0x14
    assert found["maps_write_0_1"] == 0x1C
    assert found["first"] == 0x10 + 8 * 0x0C
    assert found["count"] == found["first"] + 8
    assert found["current"] == found["count"] + 8
    assert found["current_ctrl"] == found["current"] + 4


def test_registers_do_not_overlap_and_are_within_the_address_bits() -> None:
    found = registers(ports(4, 4).arguments)
    offsets = [r.offset for r in found]
    assert offsets == sorted(set(offsets))
    assert all(offset % 4 == 0 for offset in offsets)
    assert offsets[-1] < 1 << address_bits(found) <= 2 * (offsets[-1] + 4)
    assert len({r.name for r in found}) == len(found)


def test_block_control_is_ap_ctrl_hs() -> None:
    bits = {f.name: (r.offset, f.bit) for r in CONTROL for f in r.fields}
    assert bits["AP_START"] == (0, 0)
    assert bits["AP_DONE"] == (0, 1)
    assert bits["AP_IDLE"] == (0, 2)
    assert bits["AP_READY"] == (0, 3)
    assert bits["Enable"] == (4, 0)
    assert bits["CHAN0_INT_EN"] == (8, 0)
    assert bits["CHAN0_INT_ST"] == (12, 0)


def test_ports_of_an_unsupported_number_are_refused() -> None:
    with raises(ChoiceError, what="map_ports", got=3, choices=(1, 2, 4)):
        ports(3, 2).check()
    with raises(ChoiceError, what="weight_ports", got=0):
        ports(2, 0).check()


# --- the streaming style


def pipeline(*external: str) -> dict[str, str]:
    """Return a pipeline of one block that reads its weights from ``external``; only its ports matter here."""
    weight_ports = tuple(WeightPort(name, "word<integer<8, true>, 4>", 8) for name in external)
    block = Instance(
        "block",
        "block",
        "block.h",
        (),
        (Connection("in", "in"), Connection("out", "out")),
        (),
        weight_ports=weight_ports,
    )
    wires = (Wire("between", Element(8, True, 4), 2),)
    return streaming_sources(StreamingValues("registers", (), (block,), wires, (), Packet(9, 8), Packet(4, 2), 16, 16))


@pytest.mark.parametrize("external", [(), ("weights_conv1",), ("weights_conv1", "weights_conv7")])
def test_streaming_arguments_equal_the_generated_signature(external: tuple[str, ...]) -> None:
    of = StreamingPorts(Packet(9, 8), Packet(4, 2), tuple(WeightPort(name, "char", 8) for name in external))
    files = pipeline(*external)
    signature = re.search(r"void streaming_top\((.*?)\);", files["top.h"], re.S)
    assert signature
    kinds = {"hls::stream": "stream", "hls::burst_maxi": "pointer", "int": "scalar"}
    found = re.findall(r"(hls::\w+|int)(?:<.*?>)? &?(\w+)(?:,|$)", signature[1])
    assert [(name, kinds[kind]) for kind, name in found] == [(a.name, a.kind) for a in of.arguments]
    pragmas = re.findall(r"mode=m_axi port=(\w+) bundle=(\w+)", files["top.cpp"])
    assert pragmas == [(name, name) for name in external]
    assert bundles(of.arguments) == external
    assert re.findall(r"mode=axis port=(\w+)", files["top.cpp"]) == ["in", "out"]


def test_streams_have_no_register() -> None:
    of = StreamingPorts(Packet(9, 8), Packet(4, 2), (WeightPort("weights_conv1", "char", 8),))
    found = {r.name: r.offset for r in registers(of.arguments)[len(CONTROL) :]}
    assert found == {"weights_conv1_1": 0x10, "weights_conv1_2": 0x14, "frames": 0x1C}


def test_packets_that_no_dma_carries_are_refused() -> None:
    with raises(ChoiceError, got=24) as caught:
        StreamingPorts(Packet(9, 8), Packet(48, 24)).check()
    assert "packet_out" in caught.value.what
    StreamingPorts(Packet((1 << 26) - 8, 8), Packet(4, 2)).check()
    with raises(RangeError, got=1 << 26, low=1, high=(1 << 26) - 1) as far:
        StreamingPorts(Packet((1 << 26) - 7, 8), Packet(4, 2)).check()
    assert "packet_in" in far.value.what

"""Values for the files of the vendor's tools, and what must not reach a tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from boards.board import Board, load
from hls_templates.streaming.sources import Packet, WeightPort
from hls_templates.vendor.ports import Output, Ports, StreamingPorts, SystolicPorts
from hls_templates.vendor.values import VendorValues

HOSTILE = "a\"b' ${evil} $evil [exec touch OWNED]; */ int trap;\n#error trap\n// ?\\"


CLOCKS = {"zcu104": 300, "zcu102": 300, "ultra96-v2": 250, "kv260": 250, "pynq-z2": 100, "aup-zu3": 300, "kr260": 250}


def systolic(map_ports: int, weight_ports: int) -> SystolicPorts:
    return SystolicPorts(map_ports, weight_ports, 100, (Output("conv2", 0, 40),))


def streams(*external: str) -> StreamingPorts:
    return StreamingPorts(Packet(900, 8), Packet(40, 4), tuple(WeightPort(name, "word_t", 64) for name in external))


BOTH: list[Ports] = [systolic(2, 2), streams("weights_conv1")]


STYLES: list[Ports] = [*(systolic(*n) for n in ((1, 1), (2, 2), (4, 2), (4, 4))), streams(), streams("a", "b", "c")]


def edited(board: Board, key: str, text: str) -> Board:
    room, _, name = key.rpartition(".")
    change: dict[str, Any] = {name: text}
    if room == "port":
        return replace(board, ports=(replace(board.ports[0], **change), *board.ports[1:]))
    if room:
        change = {room: replace(getattr(board, room), **change)}
    return replace(board, **change)


WRAPPER = "src/systolic_top_ip.v"


def rtl_values(board: str = "zcu104", ports: SystolicPorts | None = None, dsp_clock: int = 1) -> VendorValues:
    facts = load(board)
    return VendorValues(
        title="tiny on a 4×8×8 systolic array",
        board=facts,
        clock=facts.nearest_clock(CLOCKS[board]),
        ports=ports or systolic(2, 2),
        sources=("src/systolic_geometry.sv", "src/systolic_top.sv", WRAPPER),
        dsp_clock=dsp_clock,
        argument_cells=("top/control/first_reg[*]", "top/control/count_reg[*]"),
    )


SMUGGLED = ["a}; exec touch OWNED; {", "[exec touch OWNED]", "$x", 'a"b', "a\nb", "a\n", "a\\b", ""]

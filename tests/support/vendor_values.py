"""Values for the files of the vendor's tools, and what must not reach a tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from boards.board import Board, load, names
from hls_templates.streaming.sources import Packet, WeightPort
from hls_templates.vendor.ports import Output, Ports, StreamingPorts, SystolicPorts

HOSTILE = "a\"b' ${evil} $evil [exec touch OWNED]; */ int trap;\n#error trap\n// ?\\"

CLOCKS = {name: round(load(name).clocks()[-1].mhz) for name in names()}
"""The highest PL clock of every board in MHz, in the round number that a user would ask for."""


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


SMUGGLED = ["a}; exec touch OWNED; {", "[exec touch OWNED]", "$x", 'a"b', "a\nb", "a\n", "a\\b", ""]

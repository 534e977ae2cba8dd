"""Blocks with one port a map → a graph in which every port has one reader."""

from __future__ import annotations

from dataclasses import replace

from scheduler.streaming import graph as g

MOST_STREAMS = 4
"""Inputs of a concat, outputs of a duplicate and of a split (concat.h, duplicate.h, split.h); more are a chain."""


def connect(name: str, blocks: list[g.Block], leaving: dict[g.Port, int]) -> g.StreamGraph:
    """Every port one reader: sinks for what leaves, a duplicate behind a port that several read."""
    blocks = blocks + [_sink(blocks[port.block], port, node) for port, node in leaving.items()]
    readers: dict[g.Port, int] = {}
    for block in blocks:
        for port in block.inputs:
            readers[port] = readers.get(port, 0) + 1
    connected: list[g.Block] = []
    unread: dict[g.Port, list[g.Port]] = {}  # of every port of ``blocks``, one a reader that is to come
    for number, block in enumerate(blocks):
        connected.append(replace(block, inputs=tuple(unread[port].pop(0) for port in block.inputs)))
        index = len(connected) - 1
        for output, kind in enumerate(block.outputs):
            port, copies = g.Port(index, output), readers.get(g.Port(number, output), 0)
            ports = [port]
            if copies > 1:
                label = f"{block.name}_copy" + f"{output}" * (output > 0)
                ports = _copies(connected, label, port, kind, copies, block.source)
            unread[g.Port(number, output)] = ports
    return g.StreamGraph(name, tuple(connected))


def _copies(
    connected: list[g.Block], label: str, port: g.Port, kind: g.StreamType, copies: int, source: str
) -> list[g.Port]:
    """Duplicates behind ``port``, appended to ``connected``; their outputs, one a reader."""
    fit = min(copies, MOST_STREAMS)
    connected.append(g.Block(label, g.Duplicate(fit), (port,), (kind,) * fit, None, source))
    ports = [g.Port(len(connected) - 1, i) for i in range(fit)]
    if copies <= MOST_STREAMS:
        return ports
    return ports[:-1] + _copies(connected, _next(label), ports[-1], kind, copies - fit + 1, source)


def _next(label: str) -> str:
    """Of the Duplicate behind: x_copy, x_copy_more, x_copy_more2 and so on, as identifiers have an end."""
    first, more, number = label.rpartition("_more")
    if not more or not (number.isdecimal() or not number):
        return f"{label}_more"
    return f"{first}_more{int(number or 1) + 1}"


def _sink(producer: g.Block, port: g.Port, node: int) -> g.Block:
    name = f"{producer.name}_out" + f"{port.output}" * (port.output > 0)
    return g.Block(name, g.Sink(), (port,), (), node, producer.source)

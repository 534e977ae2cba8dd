"""Connects the blocks of a network to a graph in which every output port has exactly one reader."""

from __future__ import annotations

from dataclasses import replace

from scheduler.streaming import graph as g

MAX_STREAMS = 4
"""The maximum number of inputs of a concat, and of outputs of a duplicate or split.

More of them need a chain of blocks.
The headers concat.h, duplicate.h and split.h of hls_templates/streaming set this limit.
"""


def connect(name: str, blocks: list[g.Block], outputs: dict[g.Port, int]) -> g.StreamGraph:
    """Return ``blocks`` as a graph with one reader per output: a sink per network output, and duplicates after outputs
    with several readers.

    Args:
        name: The name of the network.
        blocks: The blocks in topological order. Several of them may read the same port.
        outputs: The ports whose maps are sent to the host, each with the layer of its map.
    """
    blocks = blocks + [_sink(blocks[port.block], port, node) for port, node in outputs.items()]
    readers: dict[g.Port, int] = {}
    for block in blocks:
        for port in block.inputs:
            readers[port] = readers.get(port, 0) + 1
    connected: list[g.Block] = []
    unread: dict[g.Port, list[g.Port]] = {}  # per port of ``blocks``: one per unconnected reader
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
    """Append duplicate blocks of the output ``port`` to ``connected`` and return their output ports, one per reader.

    More than MAX_STREAMS readers need a chain: the last output of a duplicate is the input of the next one.
    """
    fit = min(copies, MAX_STREAMS)
    connected.append(g.Block(label, g.Duplicate(fit), (port,), (kind,) * fit, None, source))
    ports = [g.Port(len(connected) - 1, i) for i in range(fit)]
    if copies <= MAX_STREAMS:
        return ports
    return ports[:-1] + _copies(connected, _next(label), ports[-1], kind, copies - fit + 1, source)


def _next(label: str) -> str:
    """Return the name of the next duplicate block in a chain: x_copy, x_copy_more, x_copy_more2 and so on.

    A number keeps the label short in a long chain, because C++ tools limit the length of identifiers.
    """
    first, more, number = label.rpartition("_more")
    if not more or not (number.isdecimal() or not number):
        return f"{label}_more"
    return f"{first}_more{int(number or 1) + 1}"


def _sink(producer: g.Block, port: g.Port, node: int) -> g.Block:
    """Return a sink block that sends the feature map at ``port``, the output of layer ``node``, to DDR."""
    name = f"{producer.name}_out" + f"{port.output}" * (port.output > 0)
    return g.Block(name, g.Sink(), (port,), (), node, producer.source)

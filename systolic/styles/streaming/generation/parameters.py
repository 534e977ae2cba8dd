"""The weights and activations of a folding as param.h and config.h, in the format of UltraNet's own accelerator."""

from __future__ import annotations

from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import UP, MultiplyShift
from hls_templates.param_header import LayerParameters, header_files
from scheduler.streaming.graph import Block, DownSample, Fold, MatrixVector, StreamingFolding, VectorVector, Window

MAX_WEIGHTS = 1 << 20
"""Limit for the weights in headers. More weights would give many megabytes of text, which compilers handle badly."""


def can_be_written(folding: StreamingFolding) -> bool:
    """Return whether param.h can describe the folding: no added channels, and at most MAX_WEIGHTS weights.

    Their format has no channels in addition to the network's, and a large network would make them too long.
    """
    folds = [
        (block.op, fold)
        for block, fold in zip(folding.graph.blocks, folding.folds, strict=True)
        if isinstance(block.op, (MatrixVector, VectorVector))
    ]
    few = sum(op.weights.size for op, _ in folds) <= MAX_WEIGHTS
    return few and all(fold.pad_in == fold.pad_out == 0 for _, fold in folds)


def parameter_files(network: QuantizedNetwork, folding: StreamingFolding) -> dict[str, str]:
    """Return {"param.h": text, "config.h": text} with weights, sizes, PE and SIMD of each layer with weights.

    ``inc`` and ``bias`` are written only for a MultiplyShift that has a single shift and rounds halves up. The format
    has no other activations. A filter of a vector-vector unit is the taps of its channel.
    """
    graph = folding.graph
    layers = []
    for block, fold in zip(graph.blocks, folding.folds, strict=True):
        if isinstance(block.op, (MatrixVector, VectorVector)):
            assert block.node is not None  # the output of a unit is always a layer's output
            gatherer = graph.blocks[block.inputs[0].block]
            layers.append(_layer(network, network.nodes[block.node], block, gatherer, fold))
    return header_files(layers)


def _layer(network: QuantizedNetwork, node: QNode, block: Block, gatherer: Block, fold: Fold) -> LayerParameters:
    unit = block.op
    assert isinstance(unit, (MatrixVector, VectorVector))
    source = network.nodes[node.inputs[0]]
    stride = gatherer.op.stride if isinstance(gatherer.op, (Window, DownSample)) else 1
    padding = gatherer.op.padding.top if isinstance(gatherer.op, Window) else 0
    by = unit.activation if isinstance(unit.activation, MultiplyShift) else None
    if by is not None and (len(set(by.shift.tolist())) > 1 or by.halves != UP):
        by = None
    return LayerParameters(
        name=node.name,
        weights=unit.weights,
        weight_bits=unit.weight_type.bits,
        pe=fold.pe,
        simd=fold.simd,
        input=(source.shape.channels, source.shape.height, source.shape.width),
        output=(node.shape.channels, node.shape.height, node.shape.width),
        stride=stride,
        padding=padding,
        in_bits=source.type.datatype.bits,
        out_bits=node.type.datatype.bits,
        inc=by.multiplier if by else None,
        bias=by.bias if by else None,
        shift=int(by.shift[0]) if by else 0,
    )

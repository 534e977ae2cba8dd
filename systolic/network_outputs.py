"""The heads, output maps and named output tensors of a network, as the manifest of a design lists them.

The generators of both styles call this module. The fields of the manifest are in ``host/contract/parts.py``.

Throughout, ``layer_of`` maps the index of a node to the index in the manifest's ``layers`` of the layer that writes the
node's map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cnn.maps import Shape
from cnn.named_outputs import NamedOutput
from cnn.network import Network
from cnn.ops import Detection, Op, QOp, QSoftmax, Softmax, TopK
from cnn.quantisation.fidelity import heads as leaves
from cnn.quantized import QuantizedNetwork, has_integers
from host.contract.named_outputs import (
    CHOSEN_LABELS,
    CHOSEN_VALUES,
    LOG_SOFTMAX,
    MAP,
    RESHAPE,
    SOFTMAX,
    WHOLE,
    OutputStep,
    OutputTensor,
)
from host.contract.parts import NetworkHead
from host.vision.detection import TOP
from host.vision.heads.head import CLASSES, LABELS, PROBABILITIES, PROBABLE, SEGMENTATION, VALUED, VALUES, Head
from scheduler.nodes import nodes_of, resolve


def heads(network: QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[NetworkHead, ...]:
    """Return the manifest's heads: how the host decodes boxes or class labels, and from which layers' outputs.

    Heads of labels are made only if they explain every output that the file names. A softmax next to another output may
    mean anything: a detector of faces has one next to its boxes.
    """
    boxes = tuple(
        NetworkHead(tuple(layer_of[resolve(network, source)] for source in node.inputs), head_of(node.op))
        for node in network.nodes
        if isinstance(node.op, Detection)
    )
    if not _is_classifier(network):
        return boxes
    shares = tuple(_probability_head(network, index, layer_of) for index in _probability_nodes(network))
    return boxes + shares + tuple(_top_k_head(network, index, layer_of) for index in _top_k_nodes(network))


def _is_classifier(network: QuantizedNetwork) -> bool:
    """Return whether every output that the file names is the classes of one map, or an output of a box head.

    True if the file's format does not name outputs.
    """
    chosen = {_compared_node(network, index) for index in (*_probability_nodes(network), *_top_k_nodes(network))}
    index_of = {node.name: index for index, node in enumerate(network.nodes)}
    named = {_compared_node(network, index_of[name]) for output in network.named_outputs for name in output.nodes}
    return not named or (len(chosen) <= 1 and named <= chosen | _read_by_boxes(network))


def tensors(network: Network | QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[OutputTensor, ...]:
    """Return the outputs that the network's file names, with the layers and host steps of each; () if it names none."""
    index_of = {node.name: index for index, node in enumerate(nodes_of(network))}
    return tuple(
        _tensor(network, output, [index_of[name] for name in output.nodes], layer_of)
        for output in network.named_outputs
    )


def _tensor(
    network: Network | QuantizedNetwork, output: NamedOutput, nodes: Sequence[int], layer_of: Mapping[int, int]
) -> OutputTensor:
    """Return one named output, with the manifest's layers and the host's steps that compute it from ``nodes``."""
    layers: list[int] = []
    steps: list[OutputStep] = []
    for step in output.steps:
        if step.kind != MAP:
            steps.append(OutputStep(step.kind, step.numbers))
            continue
        layer, steps_after = _host_steps(network, nodes[step.numbers[0]], layer_of)
        if layer not in layers:
            layers.append(layer)
        steps += [OutputStep(MAP, (layers.index(layer),)), *steps_after]
    return OutputTensor(output.name, tuple(layers), tuple(steps))


def layer_per_node(network: Network | QuantizedNetwork) -> dict[int, int]:
    """Return a ``layer_of`` in which each node that the golden model computes is a layer: {index: index}."""
    return {index: index for index in range(len(network.nodes)) if has_integers(network.nodes, index)}


def _host_steps(
    network: Network | QuantizedNetwork, index: int, layer_of: Mapping[int, int]
) -> tuple[int, tuple[OutputStep, ...]]:
    """Return the manifest index of the layer whose map the host reads for a node, and the host's steps after that."""
    index = resolve(network, index)
    node = network.nodes[index]
    if index in layer_of or not node.op.on_host:
        return layer_of[index], (OutputStep(WHOLE, ()),) * (isinstance(node.op, TopK) and node.op.labels)
    layer, before = _host_steps(network, node.inputs[0], layer_of)
    return layer, (*before, *_steps_of(node.op, node.shape))


def _steps_of(op: Op | QOp, shape: Shape) -> tuple[OutputStep, ...]:
    """Return the host's steps for a softmax or a top-k; input and result are [1, channels, height, width]."""
    if isinstance(op, TopK):
        return (OutputStep(CHOSEN_LABELS if op.labels else CHOSEN_VALUES, (op.k,)),)
    if not isinstance(op, Softmax):
        return ()
    kind = LOG_SOFTMAX if op.logarithm else SOFTMAX
    if op.each:
        return (OutputStep(kind, (1,)),)
    parts, whole = (op.groups, shape.values // op.groups), (1, shape.channels, shape.height, shape.width)
    return OutputStep(RESHAPE, parts), OutputStep(kind, (1,)), OutputStep(RESHAPE, whole)


def _probability_nodes(network: QuantizedNetwork) -> tuple[int, ...]:
    """Return the indices of the softmax nodes whose probabilities are outputs and are not read by a top-k.

    The pipeline computes them, or the host computes them for each position.
    """
    chosen, read = _read_by_heads(network), {i for node in network.nodes for i in node.inputs}
    pipeline = (i for i in leaves(network) if isinstance(network.nodes[i].op, QSoftmax) and i not in chosen)
    host = (
        i for i, node in enumerate(network.nodes) if isinstance(node.op, Softmax) and node.op.each and i not in read
    )
    return (*pipeline, *host)


def _read_by_heads(network: QuantizedNetwork) -> set[int]:
    """Return the indices of the nodes whose outputs box heads and top-k nodes read."""
    return _read_by_boxes(network) | {_compared_node(network, index) for index in _top_k_nodes(network)}


def _read_by_boxes(network: QuantizedNetwork) -> set[int]:
    return {source for node in network.nodes if isinstance(node.op, Detection) for source in node.inputs}


def _probability_head(network: QuantizedNetwork, index: int, layer_of: Mapping[int, int]) -> NetworkHead:
    """Return the manifest's head of a softmax: the image's most probable classes, or the class of each position."""
    shape = network.nodes[index].shape
    if shape.height * shape.width > 1:
        head = Head(SEGMENTATION, (), shape.channels)
    else:
        head = Head(PROBABILITIES, (), shape.channels, k=min(TOP, shape.channels))
    return NetworkHead((layer_of[_compared_node(network, index)],), head)


def _top_k_nodes(network: QuantizedNetwork) -> tuple[int, ...]:
    """Return the indices of top-k nodes that give class labels, or values if no node gives the labels for them."""
    nodes = [(i, node.op, node.inputs) for i, node in enumerate(network.nodes) if isinstance(node.op, TopK)]
    labelled = {(op, inputs) for _, op, inputs in nodes if op.labels}
    return tuple(i for i, op, inputs in nodes if op.labels or (replace(op, labels=True), inputs) not in labelled)


def _top_k_head(network: QuantizedNetwork, index: int, layer_of: Mapping[int, int]) -> NetworkHead:
    """Return the manifest's head of a top-k: the accelerator writes its labels, or the host chooses among a map."""
    node = network.nodes[index]
    assert isinstance(node.op, TopK)
    read = network.nodes[node.inputs[0]].shape
    if index in layer_of:
        values = replace(node.op, labels=False)
        with_values = [i for i in layer_of if (network.nodes[i].op, network.nodes[i].inputs) == (values, node.inputs)]
        valued = PROBABLE if isinstance(network.nodes[node.inputs[0]].op, QSoftmax) else VALUED
        kind = (valued if with_values else LABELS) if node.op.labels else VALUES
        head = Head(kind, (), read.channels, k=node.op.k)
        return NetworkHead((layer_of[index], *(layer_of[i] for i in with_values[: node.op.labels])), head)
    kind = CLASSES if read.height == read.width == 1 else SEGMENTATION
    head = Head(kind, (), read.channels, k=node.op.k if kind == CLASSES else 0)
    return NetworkHead((layer_of[_compared_node(network, index)],), head)


def _compared_node(network: QuantizedNetwork, index: int) -> int:
    """Return the index of the last node before the host's layers, whose integers the host reads."""
    while network.nodes[index].op.on_host:
        index = network.nodes[index].inputs[0]
    return resolve(network, index)


def outputs(network: QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[int, ...]:
    """Return the manifest indices of output maps without a head; () if the only output is such a map."""
    read = _read_by_boxes(network)
    if _is_classifier(network):
        read |= {_compared_node(network, index) for index in (*_top_k_nodes(network), *_probability_nodes(network))}
    leaving = dict.fromkeys(resolve(network, node) for node in leaves(network) if node not in read)
    layers = tuple(layer_of[node] for node in leaving)
    return () if not read and len(layers) == 1 else layers


def head_of(op: Detection) -> Head:
    """Return the manifest's head of a detection node: box format, anchors, number of classes and scale."""
    anchors = tuple((float(width), float(height)) for width, height in op.anchors)
    bias, sizes = tuple(op.bias), (op.scale_xy, op.bins)
    return Head(op.kind, anchors, op.classes, op.coords, op.softmax, bias, *sizes)

"""The heads, outputs and named tensors of a manifest, for the generators of both styles.

The fields of the manifest themselves are in ``host/contract/parts.py``.
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
from scheduler.systolic.network.views import nodes_of, resolve


def heads(network: QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[NetworkHead, ...]:
    """Each head, of boxes or of labels, with the layers (by index in ``layers``) whose outputs it reads.

    Labels and shares are told only where they account for every output that the file names: a softmax beside another
    output may be of anything, as the faces of a detector that boxes stand beside.

    layer_of: node → index in ``layers``.
    """
    boxes = tuple(
        NetworkHead(tuple(layer_of[resolve(network, source)] for source in node.inputs), head_of(node.op))
        for node in network.nodes
        if isinstance(node.op, Detection)
    )
    if not _told_by_classes(network):
        return boxes
    shares = tuple(_probabilities(network, index, layer_of) for index in _shares(network))
    return boxes + shares + tuple(_choice(network, index, layer_of) for index in _choices(network))


def _told_by_classes(network: QuantizedNetwork) -> bool:
    """Whether what the host tells of classes, of one map alone, and of boxes are all outputs of the file; True of a
    network that came from a format that names none."""
    chosen = {_compared(network, index) for index in (*_shares(network), *_choices(network))}
    index_of = {node.name: index for index, node in enumerate(network.nodes)}
    named = {_compared(network, index_of[name]) for output in network.named_outputs for name in output.nodes}
    return not named or (len(chosen) <= 1 and named <= chosen | _read_by_boxes(network))


def tensors(network: Network | QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[OutputTensor, ...]:
    """The outputs of the file that the network came from; () where the format names none."""
    index_of = {node.name: index for index, node in enumerate(nodes_of(network))}
    return tuple(
        _tensor(network, output, [index_of[name] for name in output.nodes], layer_of)
        for output in network.named_outputs
    )


def _tensor(
    network: Network | QuantizedNetwork, output: NamedOutput, nodes: Sequence[int], layer_of: Mapping[int, int]
) -> OutputTensor:
    """nodes: whose values it is made of, by index."""
    layers: list[int] = []
    steps: list[OutputStep] = []
    for step in output.steps:
        if step.kind != MAP:
            steps.append(OutputStep(step.kind, step.numbers))
            continue
        layer, by_host = _by_host(network, nodes[step.numbers[0]], layer_of)
        if layer not in layers:
            layers.append(layer)
        steps += [OutputStep(MAP, (layers.index(layer),)), *by_host]
    return OutputTensor(output.name, tuple(layers), tuple(steps))


def each_its_layer(network: Network | QuantizedNetwork) -> dict[int, int]:
    """``layer_of`` where every node that has values of its own is a layer."""
    return {index: index for index in range(len(network.nodes)) if has_integers(network.nodes, index)}


def _by_host(
    network: Network | QuantizedNetwork, index: int, layer_of: Mapping[int, int]
) -> tuple[int, tuple[OutputStep, ...]]:
    """The layer whose map the host reads for a node's values, and the steps by which it makes them."""
    index = resolve(network, index)
    node = network.nodes[index]
    if index in layer_of or not node.op.on_host:
        return layer_of[index], (OutputStep(WHOLE, ()),) * (isinstance(node.op, TopK) and node.op.labels)
    layer, before = _by_host(network, node.inputs[0], layer_of)
    return layer, (*before, *_steps_of(node.op, node.shape))


def _steps_of(op: Op | QOp, shape: Shape) -> tuple[OutputStep, ...]:
    """What the host does for a node, from [1, channels, height, width] to such."""
    if isinstance(op, TopK):
        return (OutputStep(CHOSEN_LABELS if op.labels else CHOSEN_VALUES, (op.k,)),)
    if not isinstance(op, Softmax):
        return ()
    kind = LOG_SOFTMAX if op.logarithm else SOFTMAX
    if op.each:
        return (OutputStep(kind, (1,)),)
    parts, whole = (op.groups, shape.values // op.groups), (1, shape.channels, shape.height, shape.width)
    return OutputStep(RESHAPE, parts), OutputStep(kind, (1,)), OutputStep(RESHAPE, whole)


def _shares(network: QuantizedNetwork) -> tuple[int, ...]:
    """Nodes that give the shares of a softmax, computed by the pipeline, or of each position by the host, which nothing
    chooses among."""
    chosen, read = _read_by_heads(network), {i for node in network.nodes for i in node.inputs}
    pipeline = (i for i in leaves(network) if isinstance(network.nodes[i].op, QSoftmax) and i not in chosen)
    host = (
        i for i, node in enumerate(network.nodes) if isinstance(node.op, Softmax) and node.op.each and i not in read
    )
    return (*pipeline, *host)


def _read_by_heads(network: QuantizedNetwork) -> set[int]:
    """Nodes that heads of boxes and choices read."""
    return _read_by_boxes(network) | {_compared(network, index) for index in _choices(network)}


def _read_by_boxes(network: QuantizedNetwork) -> set[int]:
    return {source for node in network.nodes if isinstance(node.op, Detection) for source in node.inputs}


def _probabilities(network: QuantizedNetwork, index: int, layer_of: Mapping[int, int]) -> NetworkHead:
    """Of the picture the most probable classes; of each position the most probable one."""
    shape = network.nodes[index].shape
    if shape.height * shape.width > 1:
        head = Head(SEGMENTATION, (), shape.channels)
    else:
        head = Head(PROBABILITIES, (), shape.channels, k=min(TOP, shape.channels))
    return NetworkHead((layer_of[_compared(network, index)],), head)


def _choices(network: QuantizedNetwork) -> tuple[int, ...]:
    """Nodes that give labels, or values whose labels no node gives."""
    nodes = [(i, node.op, node.inputs) for i, node in enumerate(network.nodes) if isinstance(node.op, TopK)]
    labelled = {(op, inputs) for _, op, inputs in nodes if op.labels}
    return tuple(i for i, op, inputs in nodes if op.labels or (replace(op, labels=True), inputs) not in labelled)


def _choice(network: QuantizedNetwork, index: int, layer_of: Mapping[int, int]) -> NetworkHead:
    """As the accelerator chose, labels with the values beside them; or of what the host chooses."""
    node = network.nodes[index]
    assert isinstance(node.op, TopK)
    read = network.nodes[node.inputs[0]].shape
    if index in layer_of:
        values = replace(node.op, labels=False)
        beside = [i for i in layer_of if (network.nodes[i].op, network.nodes[i].inputs) == (values, node.inputs)]
        valued = PROBABLE if isinstance(network.nodes[node.inputs[0]].op, QSoftmax) else VALUED
        kind = (valued if beside else LABELS) if node.op.labels else VALUES
        head = Head(kind, (), read.channels, k=node.op.k)
        return NetworkHead((layer_of[index], *(layer_of[i] for i in beside[: node.op.labels])), head)
    kind = CLASSES if read.height == read.width == 1 else SEGMENTATION
    head = Head(kind, (), read.channels, k=node.op.k if kind == CLASSES else 0)
    return NetworkHead((layer_of[_compared(network, index)],), head)


def _compared(network: QuantizedNetwork, index: int) -> int:
    """The integers that the host chooses among, perhaps behind a softmax."""
    while network.nodes[index].op.on_host:
        index = network.nodes[index].inputs[0]
    return resolve(network, index)


def outputs(network: QuantizedNetwork, layer_of: Mapping[int, int]) -> tuple[int, ...]:
    """The layers whose maps leave without a head; () where that is the last one alone, or none."""
    read = _read_by_boxes(network)
    if _told_by_classes(network):
        read |= {_compared(network, index) for index in (*_choices(network), *_shares(network))}
    leaving = dict.fromkeys(resolve(network, node) for node in leaves(network) if node not in read)
    layers = tuple(layer_of[node] for node in leaving)
    return () if not read and len(layers) == 1 else layers


def head_of(op: Detection) -> Head:
    """What the host decodes by."""
    anchors = tuple((float(width), float(height)) for width, height in op.anchors)
    bias, sizes = tuple(op.bias), (op.scale_xy, op.bins)
    return Head(op.kind, anchors, op.classes, op.coords, op.softmax, bias, *sizes)

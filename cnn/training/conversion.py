"""Turns a float network into a topology of low bits, and its numbers into the start values of training.

Leaky ReLU, ReLU and ReLU6 become the clipped activation, whose values few unsigned bits hold. Additions, and linear
layers that an addition reads, are clipped too. Batch norms are kept. Training compensates for the loss of accuracy.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from boards.errors import ChoiceError, InvalidValueError, ShapeError, UnsupportedError
from cnn.activations import UNIT
from cnn.exported.topology import Kernel, LayerOp, Sum, Topology, TopologyLayer
from cnn.float_model import run_float
from cnn.maps import FloatArray, Padding
from cnn.network import Network, Node
from cnn.ops import Add, AveragePool, Concat, Convolution, Dense, Detection, MaxPool, Output, Reorg, Softmax, Upsample
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.training.convolution import QuantisedConvolution
from cnn.training.grid import UNTRAINED
from cnn.training.network import QuantisedNetwork, rearranged
from cnn.training.straight_through import least_error_steps, quantised_activations

ACTIVATIONS = ("leaky", "relu", "relu6", UNIT)
"""The activations of layers that can be trained."""

EXTRA_BITS = 8
EPSILON = 1e-5


def topology_of(network: Network, bits: int, fit: str) -> Topology:
    """Return the topology (layers without numbers) to train a float network with weights and activations of ``bits``.

    The place of every error is a layer that cannot be trained.

    Args:
        network: The float network.
        bits: The bits of weights and activations.
        fit: The method by which pictures are resized.
    """
    nodes = network.nodes
    layers: list[TopologyLayer] = []
    for index, node in enumerate(nodes[1:], 1):
        if isinstance(node.op, Softmax) and index == len(nodes) - 1:
            break  # softmax does not change the order of the classes
        op = _layer_op(network, index, bits, sum(isinstance(layer.op, Kernel) for layer in layers))
        layers.append(TopologyLayer(node.name, op, node.inputs, node.shape, node.source))
    return Topology(
        name=network.name,
        input=network.input_shape,
        order="RGB",
        extra_bits=EXTRA_BITS,
        epsilon=EPSILON,
        epsilon_of="variance",
        requantise="multiply_shift",
        fit=fit,
        labels=network.labels,
        layers=tuple(layers),
    )


def _layer_op(network: Network, index: int, bits: int, number: int) -> LayerOp:
    node = network.nodes[index]
    op = node.op
    if isinstance(op, (Convolution, Dense)):
        return _kernel(network, index, bits, number)
    if isinstance(op, (MaxPool, AveragePool, Concat, Reorg, Detection)) or (
        isinstance(op, Upsample) and op.scale == 1.0 and op.columns == op.stride
    ):
        return op
    if isinstance(op, Add) and 0 not in node.inputs and not _leaves(network, index):
        return Sum(bits)
    subject = f"training of {type(op).__name__} {node.name!r} in low precision"
    reason = (
        "only convolutions, dense layers, pools, joins, heads, and additions that another layer reads can be trained"
    )
    raise UnsupportedError(subject, reason, where=node.source, remedy=UNTRAINED)


def _kernel(network: Network, index: int, bits: int, number: int) -> Kernel:
    node = network.nodes[index]
    op = _weighted(node)
    leaves = _leaves(network, index)
    allowed = ("linear",) if leaves else ACTIVATIONS
    if op.activation == "linear" and any(isinstance(reader.op, Add) for reader in _readers(network, index)):
        allowed = ("linear",)
    if op.activation not in allowed:
        what = f"the activation of {node.name!r}, which is trained in low precision,"
        raise ChoiceError(what, op.activation, allowed, where=node.source, remedy=UNTRAINED)
    shape = network.nodes[node.inputs[0]].shape
    sides = op.weights.shape[2:] if isinstance(op, Convolution) else (shape.height, shape.width)
    if sides[0] != sides[1]:
        what, got = f"the window of {node.name!r}, which is trained in low precision,", f"{sides[0]}×{sides[1]}"
        raise ShapeError(what, got, "equal sides", where=node.source, remedy=UNTRAINED)
    if isinstance(op, Convolution) and op.dilation != (1, 1):
        what, one = f"the dilation of {node.name!r}, which is trained in low precision,", "1 for rows and for columns"
        raise InvalidValueError(what, op.dilation, one, where=node.source, remedy=UNTRAINED)
    form = (op.stride, op.padding, op.groups) if isinstance(op, Convolution) else (1, Padding(), 1)
    return Kernel(number, shape.channels, op.weights.shape[0], sides[0], *form, bits, None if leaves else bits)


def _leaves(network: Network, index: int) -> bool:
    """Return whether only layers of the host read the layer's output, or no layer does."""
    return all(isinstance(reader.op, (Detection, Output, Softmax)) for reader in _readers(network, index))


def _readers(network: Network, index: int) -> list[Node]:
    return [node for node in network.nodes if index in node.inputs]


def normalised(network: Network, topology: Topology) -> list[bool]:
    """Return, per convolution or dense layer, whether the float network has a batch norm, which training keeps."""
    nodes = {node.name: node for node in network.nodes}
    return [
        kernel.output_bits is not None and _weighted(nodes[layer.name]).batch_norm is not None
        for layer, kernel in topology.kernels
    ]


def initialise(trained: QuantisedNetwork, network: Network, pictures: Tensor) -> None:
    """Initialise a trainable network from a float network; images decide quantisation steps, means and variances.

    A value of the float network is the trained network's value times a factor per channel. This function tracks the
    factors from layer to layer.

    Args:
        trained: The network to initialise.
        network: The float network.
        pictures: [pictures, channels, height, width].
    """
    folded = fold_batch_norms(network)
    trained.train()
    with torch.no_grad():
        values, worth = [pictures], [torch.ones_like(pictures[:1])]
        reaches = _reaches(trained, folded, pictures)
        for index, layer in enumerate(trained.topology.layers, 1):
            op = layer.op
            if isinstance(op, Kernel):
                node = (network if op.output_bits is not None else folded).nodes[index]
                reading = worth[layer.inputs[0]].mean((0, 2, 3))
                reach = reaches.get(trained.groups[index])
                result = _begin_layer(trained, index, _weighted(node), (values[layer.inputs[0]], reading), reach)
                values.append(result[0])
                worth.append(torch.full_like(result[0][:1], result[1]))
            elif isinstance(op, Sum):
                values.append(trained.added(index, [values[i] for i in layer.inputs]))
                worth.append(worth[layer.inputs[0]])
            elif isinstance(op, AveragePool):
                values.append(values[layer.inputs[0]].mean((2, 3), keepdim=True))
                worth.append(worth[layer.inputs[0]][:, :, :1, :1])
            else:
                values.append(rearranged(op, [values[i] for i in layer.inputs]))
                worth.append(rearranged(op, [worth[i] for i in layer.inputs]))


def _reaches(trained: QuantisedNetwork, folded: Network, pictures: Tensor) -> dict[int, float]:
    """Return, per group of tensors that share a step because they are added, the real value of the greatest integer.

    The value suits the largest range of the group's tensors. folded: the float network without batch norms.
    """
    layers, groups = trained.topology.layers, trained.groups
    tied = {groups[index] for index, layer in enumerate(layers, 1) if isinstance(layer.op, Sum)}
    outputs = [run_float(folded, picture) for picture in pictures.cpu().numpy()] if tied else []
    reaches: dict[int, float] = {}
    for index, layer in enumerate(layers, 1):
        group = groups[index]
        if group in tied and isinstance(layer.op, (Kernel, Sum)):
            values = _tensor(np.stack([output[index] for output in outputs])).clamp(min=0)
            step = float(least_error_steps(values.reshape(1, -1), 0, trained.levels[group]))
            reaches[group] = max(reaches.get(group, 0.0), step * trained.levels[group])
    return reaches


def _weighted(node: Node) -> Convolution | Dense:
    assert isinstance(node.op, (Convolution, Dense))
    return node.op


def _begin_layer(
    trained: QuantisedNetwork,
    index: int,
    op: Convolution | Dense,
    reading: tuple[Tensor, Tensor],
    reach: float | None,
) -> tuple[Tensor, float]:
    """Initialise one layer; return its output, and the factor by which the float network's output is greater.

    Args:
        trained: The network to initialise.
        index: The layer.
        op: The layer of the float network.
        reading: The layer's input, and the factor per channel by which the float network's input is greater.
        reach: The real value of the greatest integer, as ``_reaches`` returns it; None chooses it by the layer's own
            values.
    """
    layer = trained.topology.layers[index - 1]
    kernel = layer.op
    assert isinstance(kernel, Kernel)
    module = trained.convolutions[kernel.number]
    values, worth = reading
    factor = module.load_weights(_scaled(op, kernel, worth.cpu().numpy()))
    if kernel.output_bits is None:
        module.bias.copy_(_tensor(op.bias))
        if not module.learns_step:
            module.scale.fill_(factor)
        return module(values, trained.step(layer.inputs[0]), None), 1.0
    _begin_norm(module, op, values, factor)
    normal = module.plain(values).clamp(min=0)
    greatest, group = 2**kernel.output_bits - 1, trained.groups[index]
    step = float(least_error_steps(normal.reshape(1, -1), 0, greatest)) if reach is None else reach / greatest
    if trained.method == "lsq":
        shared = [i for i in range(1, index) if trained.groups[i] == group]
        trained.log_steps[group] = np.log(max(step, float(trained.steps[group])) if shared else step)
        return quantised_activations(normal, trained.steps[group], greatest), 1.0
    module.gamma /= step * greatest
    module.beta /= step * greatest
    return quantised_activations(normal / (step * greatest), trained.steps[group], greatest), step * greatest


def _scaled(op: Convolution | Dense, kernel: Kernel, worth: FloatArray) -> FloatArray:
    """Return a float layer's weights times the factors by which its inputs are greater than the trained network's."""
    weights = op.weights.reshape(kernel.weights)
    by_filter = np.repeat(worth.reshape(kernel.groups, -1), kernel.filters // kernel.groups, axis=0)
    return np.asarray(weights * by_filter[:, :, None, None], np.float32)


def _begin_norm(module: QuantisedConvolution, op: Convolution | Dense, values: Tensor, factor: float) -> None:
    module.beta.copy_(_tensor(op.bias))
    if op.batch_norm is None:
        module.gamma.fill_(factor)
        module.mean.zero_()
        module.var.fill_(1 - module.epsilon)
        return
    sums = module.real_sums(values)
    module.gamma.copy_(_tensor(op.batch_norm.scale))
    module.mean.copy_(sums.mean((0, 2, 3)))
    module.var.copy_(sums.var((0, 2, 3)))


def _tensor(values: FloatArray) -> Tensor:
    return torch.from_numpy(np.array(values, np.float32))

"""A PyTorch module of all layers of a topology (cnn.exported), which can be exported to a topology and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from boards.errors import ChoiceError, MismatchError, MissingValueError, RangeError
from cnn.datatype import UINT8, DataType, TensorType
from cnn.exported.integers import NORM, LayerTypes, multiply_shift, output_type
from cnn.exported.network import heads_alone_read, mean_requantiser, sum_scale
from cnn.exported.topology import Kernel, Sum, Topology, TopologyLayer
from cnn.maps import FloatArray
from cnn.ops import AveragePool, Concat, Detection, MaxPool, Reorg, Upsample
from cnn.requantise import MULTIPLIER_LIMIT
from cnn.training.convolution import METHODS, QuantisedConvolution
from cnn.training.grid import UNTRAINED
from cnn.training.straight_through import learnable, quantised_activations, round_through

PICTURE_LEVELS = UINT8.high


class QuantisedNetwork(nn.Module):
    """A trainable low-bit network as a PyTorch module, built from a topology (cnn.exported).

    The values of a tensor are multiples of its step. The picture's step is 1/255. LSQ learns the steps of all other
    tensors, and DoReFa has 1 / (2^bits − 1).

    Args:
        topology: The layers.
        method: One of METHODS.
        normalised: Per kernel, whether its batch norm uses the statistics of each batch. None means all.

    Raises:
        ChoiceError: The method, an activation or a requantiser cannot be trained.
        RangeError: Weights have one bit.
        MissingValueError: An addition has no output_bits; MismatchError if they differ from its inputs' bits.
    """

    def __init__(self, topology: Topology, method: str, normalised: Sequence[bool] | None = None) -> None:
        super().__init__()
        if method not in METHODS:
            raise ChoiceError("a method of training", method, METHODS)
        _check(topology)
        self.topology, self.method = topology, method
        kernels = topology.kernels
        follows = normalised if normalised is not None else [True] * len(kernels)
        self.convolutions = nn.ModuleList(
            QuantisedConvolution(kernel, method, follow, topology.epsilon)
            for (_, kernel), follow in zip(kernels, follows, strict=True)
        )
        self.groups = _groups(topology)
        self.levels = _levels(topology, self.groups)
        _check_sums(topology, self.groups, self.levels)
        logarithms = torch.tensor([1.0 / level for level in self.levels]).log()
        if method == "lsq":
            self.log_steps = nn.Parameter(logarithms)
        else:
            self.register_buffer("log_steps", logarithms)

    # ------------------------------------------------------------ forward

    def forward(self, pictures: Tensor) -> list[Tensor]:
        """Return the inputs of the detection heads, or the last layer's output, for images [n, C, H, W]."""
        outputs = self.layers_of(pictures)
        heads = [layer.inputs[0] for layer in self.topology.layers if isinstance(layer.op, Detection)]
        return [outputs[index] for index in heads or [len(outputs) - 1]]

    def layers_of(self, pictures: Tensor) -> list[Tensor]:
        """Return the input image and every layer's output as real values: integers times their step, or float sums."""
        outputs = [pictures.flip(1) if self.topology.order == "BGR" else pictures]
        for index in range(1, len(self.topology.layers) + 1):
            outputs.append(self._layer(index, outputs))
        return outputs

    def integers(self, pictures: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.int64]]:
        """Return every layer's output as integers, as the accelerator computes them, for uint8 images [n, C, H, W]."""
        self.eval()
        with torch.no_grad():
            values = torch.from_numpy(pictures).to(self.log_steps.device).float() / PICTURE_LEVELS
            outputs = self.layers_of(values)[1:]
            return [self._integers(index, output) for index, output in enumerate(outputs, 1)]

    def train(self, mode: bool = True) -> QuantisedNetwork:
        """Switch to training (floats), or to evaluation with the integer arithmetic of the exported network."""
        super().train(mode)
        if not mode:
            topology, arrays = self.exported()
            for layer, kernel in topology.kernels:
                module = self.convolutions[kernel.number]
                if kernel.output_bits is None:
                    values = 1 / self._datatype(layer.inputs[0]).high
                    bias = None if heads_alone_read(topology, layer) else module.bias.detach()
                    scale = sum_scale(kernel, values, module.greatest)
                    module.whole_bias = None if bias is None else torch.round(bias.double() / scale)
                    continue
                norm = {part: arrays[f"bn{kernel.number}_{part}"] for part in NORM}
                module.requantiser = multiply_shift(topology, self._step_of(layer, kernel), norm)
        return self

    def freeze_batch_norms(self, settled: bool) -> None:
        """Set whether batch norms use their stored means and variances in training too, as in evaluation."""
        for module in self.convolutions:
            module.settled = settled

    @property
    def steps(self) -> Tensor:
        """The quantisation step (real value of an integer 1) of each group of tensors that share one."""
        steps = self.log_steps.exp()
        return steps if self.training else steps.detach()

    def step(self, index: int) -> Tensor:
        """Return the real value of an integer 1 (step) of the input image, index 0, or of a layer's output."""
        group = self.groups[index]
        return self.log_steps.new_tensor(1 / PICTURE_LEVELS) if group < 0 else self.steps[group]

    def _layer(self, index: int, outputs: Sequence[Tensor]) -> Tensor:
        layer = self.topology.layers[index - 1]
        op, values = layer.op, outputs[layer.inputs[0]]
        if isinstance(op, Kernel):
            out = None if op.output_bits is None else self._learnable_step(index)
            result: Tensor = self.convolutions[op.number](values, self.step(layer.inputs[0]), out)
            return result
        if isinstance(op, Sum):
            return self.added(index, [outputs[i] for i in layer.inputs])
        if isinstance(op, AveragePool):
            return self._mean(layer, values)
        return rearranged(op, [outputs[i] for i in layer.inputs])

    def added(self, index: int, inputs: list[Tensor]) -> Tensor:
        """Return the clipped, quantised sum of the addition layer ``index`` for inputs [n, channels, height, width]."""
        return quantised_activations(
            sum(inputs[1:], inputs[0]), self._learnable_step(index), self.levels[self.groups[index]]
        )

    def _learnable_step(self, index: int) -> Tensor:
        group = self.groups[index]
        if self.method != "lsq" or not self.training:
            return self.steps[group]
        return learnable(self.steps[group], self.topology.layers[index - 1].shape.values, self.levels[group])

    def _mean(self, layer: TopologyLayer, values: Tensor) -> Tensor:
        step = self.step(layer.inputs[0])
        if self.training:
            return round_through(values.mean((2, 3), keepdim=True) / step) * step
        by = mean_requantiser(self.topology, layer)
        total = torch.round(values / step).double().sum((2, 3), keepdim=True)
        shift = int(by.shift[0])
        return torch.floor((total * int(by.multiplier[0]) + 2.0 ** (shift - 1)) * 2.0**-shift).float() * step

    def _integers(self, index: int, output: Tensor) -> npt.NDArray[np.int64]:
        layer = self.topology.layers[index - 1]
        op, step = layer.op, self.step(index)
        if isinstance(op, Detection):
            return self._integers(layer.inputs[0], output)
        if isinstance(op, Kernel) and op.output_bits is None:
            module = self.convolutions[op.number]
            step = module.sum_scale(self.step(layer.inputs[0]))
            output = output - module.bias.view(-1, 1, 1) if module.whole_bias is None else output
        return np.asarray(torch.round(output / step).cpu().numpy(), np.int64)

    # ------------------------------------------------------------ from and to the exporters' form

    def load(self, arrays: Mapping[str, FloatArray]) -> None:
        """Set the parameters from the arrays of a network that DoReFa trained, to evaluate it or train it further."""
        with torch.no_grad():
            for (_, kernel), convolution in zip(self.topology.kernels, self.convolutions, strict=True):
                for name, parameter in _named(kernel, convolution).items():
                    parameter.copy_(torch.from_numpy(np.array(arrays[name], np.float32)))

    def exported(self) -> tuple[Topology, dict[str, FloatArray]]:
        """Return the topology and the float arrays of the trained network, as ``make_exported`` takes them."""
        with torch.no_grad():
            arrays = self._folded_arrays() if self.method == "lsq" else self._plain_arrays()
            return self._fitting(self._with_scales(), arrays), arrays

    def _plain_arrays(self) -> dict[str, FloatArray]:
        pairs = zip(self.topology.kernels, self.convolutions, strict=True)
        return {
            name: _array(values) for (_, kernel), module in pairs for name, values in _named(kernel, module).items()
        }

    def _folded_arrays(self) -> dict[str, FloatArray]:
        """Return the arrays to export after LSQ training: integer weights, and batch norms that include the steps.

        ``q`` is the real value, in this network, of a sum of 1 in the exporters' units (weights and values in ±1).
        """
        arrays: dict[str, FloatArray] = {}
        for (layer, kernel), module in zip(self.topology.kernels, self.convolutions, strict=True):
            number = kernel.number
            arrays[f"conv{number}_w"] = _array(module.integers())
            if kernel.output_bits is None:
                arrays[f"conv{number}_b"] = _array(module.bias)
                continue
            q = module.step.double().view(-1) * module.greatest * self._top(layer.inputs[0])
            gain = module.gamma.double() / torch.sqrt(module.var.double() + module.epsilon)
            top = self._top(self.topology.layers.index(layer) + 1)
            parts = (gain * q / top, module.beta / top, module.mean / q, torch.ones_like(q))
            arrays.update({f"bn{number}_{name}": _array(part) for name, part in zip(NORM, parts, strict=True)})
        return arrays

    def _with_scales(self) -> Topology:
        layers = []
        for layer in self.topology.layers:
            if isinstance(layer.op, Kernel):
                module, scale = self.convolutions[layer.op.number], 1.0
                if layer.op.output_bits is None:
                    levels = self._top(layer.inputs[0]) / float(self.step(layer.inputs[0]).detach())
                    scale = float(module.sum_scale(self.step(layer.inputs[0])).detach()) * module.greatest * levels
                layer = replace(layer, op=replace(layer.op, integers=self.method == "lsq", scale=scale))
            layers.append(layer)
        topology = replace(self.topology, layers=tuple(layers))
        return replace(topology, epsilon=0.0, epsilon_of="variance") if self.method == "lsq" else topology

    def _top(self, index: int) -> float:
        """Return the real value of the greatest integer that a tensor can hold, by the tensor's index."""
        group = self.groups[index]
        return float(self.step(index).detach()) * (PICTURE_LEVELS if group < 0 else self.levels[group])

    def _fitting(self, topology: Topology, arrays: Mapping[str, FloatArray]) -> Topology:
        """Return the topology with extra_bits, the precision of multipliers, lowered until every multiplier fits."""
        greatest = max((self._multiplier(layer, kernel, arrays) for layer, kernel in self._clipped), default=0.0)
        bits = topology.extra_bits
        while bits and greatest * 2.0**bits > MULTIPLIER_LIMIT - 1:
            bits -= 1
        return replace(topology, extra_bits=bits)

    def _multiplier(self, layer: TopologyLayer, kernel: Kernel, arrays: Mapping[str, FloatArray]) -> float:
        """Return the greatest requantisation multiplier of a layer, as a float, if extra_bits is 0."""
        gamma, variance = (arrays[f"bn{kernel.number}_{part}"].astype(np.float64) for part in ("gamma", "var"))
        step = self._step_of(layer, kernel)
        gain = np.abs(gamma / np.sqrt(variance + (self.topology.epsilon if self.method == "dorefa" else 0.0))).max()
        return float(gain * step.out.high / step.sums * 2.0 ** (step.weights.bits - 1 + step.values.datatype.bits))

    @property
    def _clipped(self) -> list[tuple[TopologyLayer, Kernel]]:
        """The layers with weights whose output has an activation and integers, unlike sums for the host."""
        return [(layer, kernel) for layer, kernel in self.topology.kernels if kernel.output_bits is not None]

    def _step_of(self, layer: TopologyLayer, kernel: Kernel) -> LayerTypes:
        weights, values = DataType(kernel.weight_bits, True), self._datatype(layer.inputs[0])
        return LayerTypes(layer, weights, TensorType(values, 1 / values.high), output_type(kernel))

    def _datatype(self, index: int) -> DataType:
        group = self.groups[index]
        return UINT8 if group < 0 else DataType(self.levels[group].bit_length(), False)


def _named(kernel: Kernel, module: Any) -> dict[str, Tensor]:
    """Return a layer's trainable parameters by the array names of the export files, such as "conv1_w"."""
    number = kernel.number
    if kernel.output_bits is None:
        return {f"conv{number}_w": module.weight, f"conv{number}_b": module.bias}
    norm = {f"bn{number}_{part}": getattr(module, part) for part in NORM}
    return {f"conv{number}_w": module.weight, **norm}


def _array(values: Tensor) -> FloatArray:
    return np.array(values.detach().cpu().numpy(), np.float32)


def rearranged(op: Any, inputs: list[Tensor]) -> Tensor:
    """Return the output of a pool, concat, upsample or reorg for inputs [n, C, H, W]; for others, the input."""
    values = inputs[0]
    if isinstance(op, MaxPool):
        pad = op.padding
        padded = functional.pad(values, (pad.left, pad.right, pad.top, pad.bottom))  # no value is below 0
        return functional.max_pool2d(padded, op.window, op.stride)
    if isinstance(op, Concat):
        return torch.cat(inputs, 1)
    if isinstance(op, Upsample):
        return functional.interpolate(values, scale_factor=op.stride, mode="nearest")
    if isinstance(op, Reorg):
        return _space_to_depth(values, op)
    return values


def _space_to_depth(values: Tensor, op: Reorg) -> Tensor:
    (count, channels, height, width), s = values.shape, op.stride
    if op.order == "block":
        blocks = values.view(count, channels, height // s, s, width // s, s).permute(0, 3, 5, 1, 2, 4)
    else:
        blocks = values.reshape(count, channels // s**2, height, s, width, s).permute(0, 3, 5, 1, 2, 4)
    return blocks.reshape(count, channels * s * s, height // s, width // s)


def _groups(topology: Topology) -> tuple[int, ...]:
    """Return, per tensor, the number of its group: tensors with one quantisation step. The input image is first, −1.

    The picture's group is −1. Sums of kernels, and heads, have the group of their input.
    """
    groups, joined = [-1], {-1: -1}
    for layer in topology.layers:
        sources = [groups[i] for i in layer.inputs]
        if isinstance(layer.op, Kernel) and layer.op.output_bits is not None:
            groups.append(len(joined) - 1)
            joined[groups[-1]] = groups[-1]
            continue
        first = min(_root(joined, source) for source in sources)
        for source in sources:
            joined[_root(joined, source)] = first
        groups.append(sources[0])
    roots = [_root(joined, group) for group in groups]
    numbers = {root: number for number, root in enumerate(sorted({root for root in roots if root >= 0}))}
    return tuple(numbers.get(root, -1) for root in roots)


def _root(joined: Mapping[int, int], group: int) -> int:
    while joined[group] != group:
        group = joined[group]
    return group


def _levels(topology: Topology, groups: Sequence[int]) -> tuple[int, ...]:
    """Return the greatest integer of each group of tensors that share a quantisation step."""
    levels: dict[int, int] = {}
    for layer, group in zip(topology.layers, groups[1:], strict=True):
        if isinstance(layer.op, Kernel) and layer.op.output_bits is not None:
            levels[group] = 2**layer.op.output_bits - 1
    return tuple(levels[group] for group in sorted(levels))


def _check(topology: Topology) -> None:
    """Raise an error if a layer cannot be trained: one-bit weights, or an unsupported activation or requantiser."""
    for layer, kernel in topology.kernels:
        if kernel.weight_bits == 1:
            raise RangeError(
                f"the bits of the weights of {layer.name!r}", 1, 2, 8, where=layer.source, remedy=UNTRAINED
            )
        if kernel.activation != "unit":
            what = f"the activation of {layer.name!r}"
            raise ChoiceError(what, kernel.activation, ("unit",), where=layer.source, remedy=UNTRAINED)
    forms = {topology.requantise, *(topology.requantise_of(kernel) for _, kernel in topology.kernels)}
    if forms != {"multiply_shift"}:
        got = max(forms - {"multiply_shift"})
        raise ChoiceError("the requantiser", got, ("multiply_shift",), where=topology.name, remedy=UNTRAINED)


def _check_sums(topology: Topology, groups: Sequence[int], levels: Sequence[int]) -> None:
    """Raise an error if an addition in the topology has no output_bits, or other bits than its inputs."""
    for layer, group in zip(topology.layers, groups[1:], strict=True):
        if isinstance(layer.op, Sum) and (layer.op.output_bits is None or 2**layer.op.output_bits - 1 != levels[group]):
            what, bits = f"'output_bits' of {layer.name!r}", levels[group].bit_length()
            if layer.op.output_bits is None:
                reason = f"an add is trained with the bits of the values that it adds, {bits}"
                raise MissingValueError(what, reason, where=layer.source)
            what = f"{what}, the same as for the values that it adds,"
            raise MismatchError(what, layer.op.output_bits, bits, where=layer.source)

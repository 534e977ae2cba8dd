"""All layers of a topology (cnn.exported) as one PyTorch module, and back to the topology and its arrays."""

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
    """method: of METHODS. normalised: by kernel whether its batch norm follows the batches; all where it is None.

    Tensors are whole numbers times a step: 1/255 of the picture, a learned one by LSQ, 1 / (2^bits − 1) by DoReFa.
    An error says what of a topology is not trained: a ChoiceError, a RangeError, or the addition whose bits are wrong.
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
        """What each head reads, or the last layer gives: pictures RGB [n, channels, height, width], 0…1."""
        outputs = self.layers_of(pictures)
        heads = [layer.inputs[0] for layer in self.topology.layers if isinstance(layer.op, Detection)]
        return [outputs[index] for index in heads or [len(outputs) - 1]]

    def layers_of(self, pictures: Tensor) -> list[Tensor]:
        """The picture, then every layer's output: whole numbers times its step; sums in float."""
        outputs = [pictures.flip(1) if self.topology.order == "BGR" else pictures]
        for index in range(1, len(self.topology.layers) + 1):
            outputs.append(self._layer(index, outputs))
        return outputs

    def integers(self, pictures: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.int64]]:
        """Every layer's whole numbers in evaluation: pictures uint8 [n, channels, height, width]."""
        self.eval()
        with torch.no_grad():
            values = torch.from_numpy(pictures).to(self.log_steps.device).float() / PICTURE_LEVELS
            outputs = self.layers_of(values)[1:]
            return [self._integers(index, output) for index, output in enumerate(outputs, 1)]

    def train(self, mode: bool = True) -> QuantisedNetwork:
        """In evaluation each layer has the integers of its batch norm, as ``exported`` gives them."""
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

    def settle(self, settled: bool) -> None:
        """Whether batch norms keep their means and variances from now on, as evaluation does."""
        for module in self.convolutions:
            module.settled = settled

    @property
    def steps(self) -> Tensor:
        """By group what a whole number is worth."""
        steps = self.log_steps.exp()
        return steps if self.training else steps.detach()

    def step(self, index: int) -> Tensor:
        """What a whole number of the picture (0) or of a layer's output is worth."""
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
        """The sum of an addition's inputs [n, channels, height, width], clipped; all have the step of the group."""
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
        """Take the arrays of an exported network that DoReFa trained, to be used or trained on."""
        with torch.no_grad():
            for (_, kernel), convolution in zip(self.topology.kernels, self.convolutions, strict=True):
                for name, parameter in _named(kernel, convolution).items():
                    parameter.copy_(torch.from_numpy(np.array(arrays[name], np.float32)))

    def exported(self) -> tuple[Topology, dict[str, FloatArray]]:
        """The topology and its arrays, of which ``cnn.exported.network.make_exported`` makes the integers."""
        with torch.no_grad():
            arrays = self._folded_arrays() if self.method == "lsq" else self._plain_arrays()
            return self._fitting(self._with_scales(), arrays), arrays

    def _plain_arrays(self) -> dict[str, FloatArray]:
        pairs = zip(self.topology.kernels, self.convolutions, strict=True)
        return {
            name: _array(values) for (_, kernel), module in pairs for name, values in _named(kernel, module).items()
        }

    def _folded_arrays(self) -> dict[str, FloatArray]:
        """LSQ's: weights as whole numbers, and batch norms that hold the steps.

        A sum in the exporters' units (weights and values within ±1) is worth q of ours.
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
        """What the greatest whole number of a tensor is worth."""
        group = self.groups[index]
        return float(self.step(index).detach()) * (PICTURE_LEVELS if group < 0 else self.levels[group])

    def _fitting(self, topology: Topology, arrays: Mapping[str, FloatArray]) -> Topology:
        """With fewer extra_bits, where a multiplier would need more than its bits otherwise."""
        greatest = max((self._multiplier(layer, kernel, arrays) for layer, kernel in self._clipped), default=0.0)
        bits = topology.extra_bits
        while bits and greatest * 2.0**bits > MULTIPLIER_LIMIT - 1:
            bits -= 1
        return replace(topology, extra_bits=bits)

    def _multiplier(self, layer: TopologyLayer, kernel: Kernel, arrays: Mapping[str, FloatArray]) -> float:
        """The greatest of a layer without extra_bits."""
        gamma, variance = (arrays[f"bn{kernel.number}_{part}"].astype(np.float64) for part in ("gamma", "var"))
        step = self._step_of(layer, kernel)
        gain = np.abs(gamma / np.sqrt(variance + (self.topology.epsilon if self.method == "dorefa" else 0.0))).max()
        return float(gain * step.out.high / step.sums * 2.0 ** (step.weights.bits - 1 + step.values.datatype.bits))

    @property
    def _clipped(self) -> list[tuple[TopologyLayer, Kernel]]:
        """Kernels with an activation."""
        return [(layer, kernel) for layer, kernel in self.topology.kernels if kernel.output_bits is not None]

    def _step_of(self, layer: TopologyLayer, kernel: Kernel) -> LayerTypes:
        weights, values = DataType(kernel.weight_bits, True), self._datatype(layer.inputs[0])
        return LayerTypes(layer, weights, TensorType(values, 1 / values.high), output_type(kernel))

    def _datatype(self, index: int) -> DataType:
        group = self.groups[index]
        return UINT8 if group < 0 else DataType(self.levels[group].bit_length(), False)


def _named(kernel: Kernel, module: Any) -> dict[str, Tensor]:
    """A layer's numbers by the exporters' names."""
    number = kernel.number
    if kernel.output_bits is None:
        return {f"conv{number}_w": module.weight, f"conv{number}_b": module.bias}
    norm = {f"bn{number}_{part}": getattr(module, part) for part in NORM}
    return {f"conv{number}_w": module.weight, **norm}


def _array(values: Tensor) -> FloatArray:
    return np.array(values.detach().cpu().numpy(), np.float32)


def rearranged(op: Any, inputs: list[Tensor]) -> Tensor:
    """What a layer that computes nothing makes of its inputs [n, channels, height, width]."""
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
    """By layer, the picture first, which step its values have: −1 the picture's; sums and heads have their input's."""
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
    """By group the greatest whole number of its values."""
    levels: dict[int, int] = {}
    for layer, group in zip(topology.layers, groups[1:], strict=True):
        if isinstance(layer.op, Kernel) and layer.op.output_bits is not None:
            levels[group] = 2**layer.op.output_bits - 1
    return tuple(levels[group] for group in sorted(levels))


def _check(topology: Topology) -> None:
    """Raise RangeError for weights of one bit, ChoiceError for an activation or a requantiser that is not trained."""
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
    """Raise MissingValueError or MismatchError for an addition whose values have other bits than those that it adds."""
    for layer, group in zip(topology.layers, groups[1:], strict=True):
        if isinstance(layer.op, Sum) and (layer.op.output_bits is None or 2**layer.op.output_bits - 1 != levels[group]):
            what, bits = f"'output_bits' of {layer.name!r}", levels[group].bit_length()
            if layer.op.output_bits is None:
                reason = f"an add is trained with the bits of the values that it adds, {bits}"
                raise MissingValueError(what, reason, where=layer.source)
            what = f"{what}, as many as the values that it adds have,"
            raise MismatchError(what, layer.op.output_bits, bits, where=layer.source)

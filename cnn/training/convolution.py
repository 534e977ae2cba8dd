"""A trainable convolution of low-bit integers with batch norm and clipped activation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cnn.exported.topology import Kernel
from cnn.maps import FloatArray
from cnn.requantise import MultiplyShift
from cnn.training.straight_through import (
    learnable,
    least_error_steps,
    quantised_activations,
    squeezed_integers,
    stepped_integers,
)

METHODS = ("lsq", "dorefa")
MOMENTUM = 0.1
"""The momentum of the running mean and variance."""


class QuantisedConvolution(nn.Module):
    """A trainable convolution with low-bit integer weights and activations, followed by batch norm and activation.

    A kernel without output_bits has a bias instead of these. Training computes with rounded floats, and batch norm in
    float. Evaluation computes the integers themselves.

    Attributes:
        learns_step: Whether the method is LSQ, which learns the quantisation step of the weights.
        normalised: Whether the batch norm uses the statistics of each batch; otherwise its mean and variance are fixed.
        settled: Whether the batch norm uses its stored mean and variance from now on.
        requantiser: The requantiser, which must be set before evaluation.
        whole_bias: [filters], the bias rounded to the sums' scale. It must be set before evaluation if the accelerator
            adds the bias.
        greatest: The greatest integer of a weight.
    """

    def __init__(self, kernel: Kernel, method: str, normalised: bool, epsilon: float) -> None:
        super().__init__()
        self.kernel, self.learns_step, self.normalised, self.epsilon = kernel, method == "lsq", normalised, epsilon
        self.settled = False
        self.requantiser: MultiplyShift | None = None
        self.whole_bias: Tensor | None = None
        self.greatest = 2 ** (kernel.weight_bits - 1) - 1
        filters = kernel.filters
        self.weight = nn.Parameter(torch.zeros(kernel.weights))
        if self.learns_step:
            count = 1 if kernel.output_bits is None else filters  # the sums of a head have one scale
            self.log_step = nn.Parameter(torch.zeros(count, 1, 1, 1))
        if kernel.output_bits is None:
            self.bias = nn.Parameter(torch.zeros(filters))
            self.register_buffer("scale", torch.tensor(float(kernel.scale)))
        else:
            self.gamma, self.beta = nn.Parameter(torch.ones(filters)), nn.Parameter(torch.zeros(filters))
            self.register_buffer("mean", torch.zeros(filters))
            self.register_buffer("var", torch.ones(filters))

    @property
    def step(self) -> Tensor:
        """The real value of a weight's integer 1 per filter (quantisation step), which LSQ learns by its logarithm."""
        return self.log_step.exp()

    def forward(self, values: Tensor, step: Tensor, out_step: Tensor | None) -> Tensor:
        """Return the layer's output for activations [images, channels, height, width], as real values.

        A kernel without output_bits returns sums plus bias in float.

        Args:
            values: The input, whole numbers times ``step``.
            step: The real value of an input integer 1.
            out_step: The same for the output; None without output_bits.
        """
        if self.kernel.output_bits is None:
            if self.training or self.whole_bias is None:
                return self.sums(values, step) * self.sum_scale(step) + self.bias.view(-1, 1, 1)
            return (self.sums(values, step) + self.whole_bias.view(-1, 1, 1)) * self.sum_scale(step)
        assert out_step is not None
        if not self.training:
            return self._requantised(self.sums(values, step)) * out_step
        return quantised_activations(self.normal(values), out_step, 2**self.kernel.output_bits - 1)

    def sum_scale(self, step: Tensor) -> Tensor:
        """Return the real value of a sum of 1 in a layer whose sums are a network output, for the input's ``step``."""
        scale: Tensor = self.step.view(()) * step if self.learns_step else self.scale * step / self.greatest
        return scale.detach() if not self.training else scale

    def integers(self) -> Tensor:
        """Return the quantised weights as integers, in a float64 tensor that passes gradients."""
        if not self.learns_step:
            return squeezed_integers(self.weight, self.greatest)
        each = self.weight.numel() // self.log_step.numel()
        return stepped_integers(self.weight, learnable(self.step, each, self.greatest), self.greatest)

    def sums(self, values: Tensor, step: Tensor) -> Tensor:
        """Return the sums of integer weights times integer inputs, in floats that are exact in evaluation."""
        if self.training:
            return self._convolve(values / step, self.integers().float())
        return torch.round(self._convolve(torch.round(values / step).double(), self.integers()))

    def normal(self, values: Tensor) -> Tensor:
        """Return the batch-normalised sums in training, by the batch's own or by the stored mean and variance."""
        if self.settled or not self.normalised:
            return self.plain(values)
        sums = self.real_sums(values)
        return functional.batch_norm(
            sums, self.mean, self.var, self.gamma, self.beta, True, MOMENTUM, max(self.epsilon, 1e-12)
        )

    def plain(self, values: Tensor) -> Tensor:
        """Return the sums after batch norm with the stored mean and variance, which are the activation's input."""
        gain = self.gamma / torch.sqrt(self.var + self.epsilon)
        return (self.real_sums(values) - self.mean.view(-1, 1, 1)) * gain.view(-1, 1, 1) + self.beta.view(-1, 1, 1)

    def real_sums(self, values: Tensor) -> Tensor:
        """Return the sums before batch norm in real values: the quantised weights times the inputs."""
        integers = self.integers().float()
        return self._convolve(values, integers * self.step if self.learns_step else integers / self.greatest)

    def load_weights(self, weights: FloatArray) -> float:
        """Set the weights from a float network's; return the factor by which the float weights are greater."""
        with torch.no_grad():
            values = torch.from_numpy(np.array(weights, np.float32)).view(self.kernel.weights)
            if self.learns_step:
                self.weight.copy_(values)
                rows = values.view(self.log_step.numel(), -1)
                steps = least_error_steps(rows, -self.greatest, self.greatest)
                self.log_step.copy_(steps.log().view(self.log_step.shape))
                return 1.0
            largest = float(values.abs().max()) or 1.0
            self.weight.copy_(torch.atanh(0.8 * values / largest))
            return largest

    def _requantised(self, sums: Tensor) -> Tensor:
        """Return the output integers for integer sums, by the accelerator's requantisation computed in float64."""
        by, bits = self.requantiser, self.kernel.output_bits
        assert by is not None
        assert bits is not None
        multiplier, bias, shift = (
            torch.from_numpy(part.astype(np.float64)).to(sums.device).view(-1, 1, 1)
            for part in (by.multiplier, by.bias, by.shift)
        )
        product = sums * multiplier + bias + 2.0 ** (shift - 1)
        return torch.floor(product * 2.0**-shift).clamp(0, 2**bits - 1).float()

    def _convolve(self, values: Tensor, weights: Tensor) -> Tensor:
        kernel, pad = self.kernel, self.kernel.padding
        if (pad.top, pad.left) != (pad.bottom, pad.right):
            values = functional.pad(values, (pad.left, pad.right, pad.top, pad.bottom))
            return functional.conv2d(values, weights, stride=kernel.stride, groups=kernel.groups)
        return functional.conv2d(
            values, weights, stride=kernel.stride, padding=(pad.top, pad.left), groups=kernel.groups
        )

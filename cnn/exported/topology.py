"""The layers of a network that was quantised by training, before it has numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cnn.maps import Padding, Shape
from cnn.ops import AveragePool, Concat, Detection, IntegerSoftmax, MaxPool, Reorg, Softmax, TopK, Upsample


@dataclass(frozen=True)
class Kernel:
    """A convolution before it has weights. ``number``: the N of its arrays convN_w, bnN_gamma …

    output_bits: of the activation; None where the sums themselves leave. activation: "unit", 0…1 in 2^bits − 1 steps
    (UINT), or "symmetric", −1 and +1 of one bit (BIPOLAR) or −1, 0 and +1 of two (TERNARY). integers: whether convN_w
    holds the whole numbers themselves. scale: what the sums of a kernel without output_bits are multiplied by.
    requantise, extra_bits: as the topology's, None where they are those. bias: whether convN_b is added before its
    batch norm; the sums that leave a kernel without output_bits have theirs in any case.
    """

    number: int
    channels: int
    filters: int
    size: int
    stride: int
    padding: Padding
    groups: int
    weight_bits: int
    output_bits: int | None
    activation: str = "unit"
    integers: bool = False
    scale: float = 1.0
    requantise: str | None = None
    extra_bits: int | None = None
    bias: bool = False

    @property
    def weights(self) -> tuple[int, int, int, int]:
        """The shape of its weights: filters, channels / groups, height, width."""
        return self.filters, self.channels // self.groups, self.size, self.size


@dataclass(frozen=True)
class Sum:
    """Of maps of one shape and datatype. output_bits: of the unit activation; None where the sums themselves leave."""

    output_bits: int | None


Ending: TypeAlias = Softmax | IntegerSoftmax | TopK | Detection
"""What no layer reads."""

LayerOp: TypeAlias = Kernel | Sum | MaxPool | AveragePool | Concat | Reorg | Upsample | Ending


@dataclass(frozen=True)
class TopologyLayer:
    """``inputs``: 0 is the picture, i the i-th layer of the file, counted from 1. ``shape``: of its output."""

    name: str
    op: LayerOp
    inputs: tuple[int, ...]
    shape: Shape
    source: str


@dataclass(frozen=True)
class Topology:
    """order: of the picture's channels in training, "RGB" or "BGR". extra_bits: the l_shift of the exporters.

    epsilon: of the batch norms; ``epsilon_of`` "root" where they divide by sqrt(variance) + epsilon, "variance" where
    by sqrt(variance + epsilon). requantise: what turns sums into values, "multiply_shift" or "thresholds" from
    batch norms, "given_multiply_shift" or "given_thresholds", which are arrays of the file in a batch norm's stead.
    fit: how pictures were brought to size. mean: by channel in that order, what training took from pixels of 0…1; std:
    what it divided them by.
    """

    name: str
    input: Shape
    order: str
    extra_bits: int
    epsilon: float
    epsilon_of: str
    requantise: str
    fit: str
    labels: tuple[str, ...]
    layers: tuple[TopologyLayer, ...]
    mean: tuple[float, ...] = (0.0,)
    std: float = 1.0

    @property
    def plain_pixels(self) -> bool:
        """Whether training read pixels as they are, of 0…1."""
        return not any(self.mean) and self.std == 1

    @property
    def kernels(self) -> tuple[tuple[TopologyLayer, Kernel], ...]:
        """Its convolutions, in order."""
        return tuple((layer, layer.op) for layer in self.layers if isinstance(layer.op, Kernel))

    def requantise_of(self, kernel: Kernel) -> str:
        """What turns the sums of a convolution into values."""
        return kernel.requantise or self.requantise

    def extra_bits_of(self, kernel: Kernel) -> int:
        """How much finer inc and bias of a convolution are than its sums."""
        return self.extra_bits if kernel.extra_bits is None else kernel.extra_bits

    def shape_of(self, index: int) -> Shape:
        """Of the picture (0) or of the ``index``-th layer's output."""
        return self.layers[index - 1].shape if index else self.input

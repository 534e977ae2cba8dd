"""The layers of a network that was quantised by training, without its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cnn.maps import Padding, Shape
from cnn.ops import AveragePool, Concat, Detection, IntegerSoftmax, MaxPool, Reorg, Softmax, TopK, Upsample


@dataclass(frozen=True)
class Kernel:
    """A convolution or dense layer of a topology, without its weights.

    Attributes:
        number: The N in the names of its arrays, convN_w, bnN_gamma …
        channels: The number of input channels.
        size: The rows and the columns of the square window.
        output_bits: The bits of the activation; None if the output is the sums themselves.
        activation: "unit" gives 0…1 in 2^bits − 1 steps (UINT). "symmetric" gives −1 and +1 for one bit (BIPOLAR), and
            −1, 0 and +1 for two bits (TERNARY).
        integers: Whether convN_w holds the integer weights themselves.
        scale: A factor of the sums if there are no output_bits.
        requantise: As in the topology. Without a value of its own, the layer uses the topology's.
        extra_bits: As in the topology. Without a value of its own, the layer uses the topology's.
        bias: Whether convN_b is added before the batch norm. Kernels without output_bits always have a bias.
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
        """The shape of the weights: (filters, channels / groups, rows, columns)."""
        return self.filters, self.channels // self.groups, self.size, self.size


@dataclass(frozen=True)
class Sum:
    """An addition of maps of one shape and datatype, as an operation of a topology.

    Attributes:
        output_bits: The bits of the unit activation; None if the output is the sums themselves.
    """

    output_bits: int | None


Ending: TypeAlias = Softmax | IntegerSoftmax | TopK | Detection
"""Operations whose output no layer may read."""

LayerOp: TypeAlias = Kernel | Sum | MaxPool | AveragePool | Concat | Reorg | Upsample | Ending


@dataclass(frozen=True)
class TopologyLayer:
    """A layer of a topology: its operation, inputs and output shape, without weights.

    Attributes:
        inputs: The layers that it reads: 0 is the picture, and i is the i-th layer of the file, counted from 1.
        shape: The shape of its output.
        source: The file and the layer, for errors.
    """

    name: str
    op: LayerOp
    inputs: tuple[int, ...]
    shape: Shape
    source: str


@dataclass(frozen=True)
class Topology:
    """The layers of a network that was quantised by training, and how its numbers are to be read, without the arrays.

    Attributes:
        input: The shape of the picture.
        order: The order of the picture's channels in training, "RGB" or "BGR".
        extra_bits: The number of bits by which inc and bias are finer than the sums; l_shift in UltraNet's exporter.
        epsilon: The epsilon of the batch norms.
        epsilon_of: "root" if batch norms divide by sqrt(variance) + epsilon, "variance" if by sqrt(variance + epsilon).
        requantise: How sums become values. "multiply_shift" and "thresholds" are computed from batch norms.
            "given_multiply_shift" and "given_thresholds" are arrays of the file, which then has no batch norms.
        fit: The method by which pictures were resized in training.
        labels: The names of the classes.
        mean: The mean that training subtracted from pixels of 0…1, per channel in the order ``order``.
        std: The standard deviation that training divided by after that, one for all channels.
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
        """Return whether training read pixels of 0…1 without subtracting a mean or dividing by a deviation."""
        return not any(self.mean) and self.std == 1

    @property
    def kernels(self) -> tuple[tuple[TopologyLayer, Kernel], ...]:
        """The convolution and dense layers with their operations, in order."""
        return tuple((layer, layer.op) for layer in self.layers if isinstance(layer.op, Kernel))

    def requantise_of(self, kernel: Kernel) -> str:
        """Return the form of a convolution's requantiser, such as "multiply_shift" or "thresholds"."""
        return kernel.requantise or self.requantise

    def extra_bits_of(self, kernel: Kernel) -> int:
        """Return the number of bits by which a convolution's inc and bias are finer than its sums."""
        return self.extra_bits if kernel.extra_bits is None else kernel.extra_bits

    def shape_of(self, index: int) -> Shape:
        """Return the output shape of the ``index``-th layer, or the shape of the input image for 0."""
        return self.layers[index - 1].shape if index else self.input

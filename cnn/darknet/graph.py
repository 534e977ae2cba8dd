"""The network of a cfg while it is read: what every section's builder takes and returns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from boards.errors import MissingValueError, RangeError
from cnn.activations import ACTIVATIONS, FUNCTIONS
from cnn.darknet.cfg import Section
from cnn.limits import MAX_CHANNELS, MAX_MAP
from cnn.maps import Shape
from cnn.network import Node
from cnn.ops import Activate, Op

# Darknet's normalize_cpu (src/blas.c) adds 1e-6 to the root itself: (x − mean) / (sqrt(variance) + 0.000001). Its CUDA
# kernel takes sqrt(variance + 0.00001). This project takes sqrt(variance + 1e-6). Measured on a trained YOLO-LITE, its
# outputs differ from normalize_cpu's by 8e-6 of the greatest output, those with 1e-5 by 9e-5. The probabilities that
# darknet prints for a picture have four digits: the first two forms give all four, the third does not.
DARKNET_EPSILON = 1e-6

DARKNET_FUNCTIONS: dict[str, tuple[str, tuple[float, ...]]] = {
    "elu": ("elu", (1.0,)),
    "gelu": ("gelu_tanh", ()),
    "hard_mish": ("hard_mish", ()),
    "hardtan": ("clip", (-1.0, 1.0)),
    "lhtan": ("hard_tanh_leaking", ()),
    "loggy": ("logistic_about_0", ()),
    "logistic": ("logistic", ()),
    "mish": ("mish", ()),
    "plse": ("sigmoid_of_pieces", ()),
    "ramp": ("ramp", ()),
    "relie": ("leaky_relu", (0.01,)),
    "selu": ("selu", (1.6732, 1.0507)),
    "stair": ("stair", ()),
    "swish": ("silu", ()),
    "tanh": ("tanh", ()),
}
"""darknet's names of functions that are looked up in a table, and their parameters (its src/activations.h)."""

CHOICES = (*ACTIVATIONS, *DARKNET_FUNCTIONS)
"""Of the option ``activation``."""


@dataclass(frozen=True)
class DarknetLayers:
    """The layers read so far.

    nodes: in topological order. layers: for each darknet layer, which [net] is none of, the node of its output.
    """

    nodes: tuple[Node, ...]
    layers: tuple[int, ...] = ()

    @property
    def last(self) -> int:
        """The node that the next section reads where it names none."""
        return self.layers[-1] if self.layers else 0

    @property
    def shape(self) -> Shape:
        """Of ``last``."""
        return self.nodes[self.last].shape

    def name(self, stem: str) -> str:
        """The next free name: conv1, conv2 …"""
        return f"{stem}{1 + sum(node.name.rstrip('0123456789') == stem for node in self.nodes)}"

    def grown(self, section: Section, stem: str, op: Op, shape: Shape, *inputs: int) -> DarknetLayers:
        """One more node that is also a darknet layer."""
        node = Node(self.name(stem), op, inputs or (self.last,), bounded(shape, section), section.source)
        return DarknetLayers((*self.nodes, node), (*self.layers, len(self.nodes)))

    def activated(self, section: Section, activation: str) -> DarknetLayers:
        """Append an activation that no requantiser computes to the last darknet layer; return the layers unchanged if a
        requantiser does."""
        if activation in ACTIVATIONS:
            return self
        function, parameters = DARKNET_FUNCTIONS[activation]
        op = Activate(function, parameters or FUNCTIONS[function].defaults)
        larger = self.grown(section, function, op, self.shape)
        return replace(larger, layers=(*self.layers[:-1], larger.last))

    def alias(self, index: int) -> DarknetLayers:
        """One more darknet layer that computes nothing: its output is that of a node that exists."""
        return replace(self, layers=(*self.layers, index))


def bounded(shape: Shape, section: Section) -> Shape:
    """``shape``; RangeError if it has more channels or values than MAX_CHANNELS and MAX_MAP."""
    if shape.channels > MAX_CHANNELS:
        raise RangeError("the number of channels", shape.channels, high=MAX_CHANNELS, where=section.source)
    if shape.values > MAX_MAP:
        raise RangeError(f"the number of values of {shape}", shape.values, high=MAX_MAP, where=section.source)
    return shape


def require_layer(layers: DarknetLayers, section: Section) -> None:
    """Raise MissingValueError if no layer comes before the section."""
    if not layers.layers:
        raise MissingValueError(f"a layer before [{section.kind}]", where=section.source)


def fused(activation: str) -> str:
    """What a layer does to its own sums: the activation, or nothing where that is a node of its own."""
    return activation if activation in ACTIVATIONS else "linear"


def layer_index(layers: DarknetLayers, section: Section, key: str, value: int) -> int:
    """The node of darknet layer ``value``, counted back from this one if negative.

    MissingValueError if no layer comes before, RangeError if none has this number.
    """
    require_layer(layers, section)
    count = len(layers.layers)
    index = count + value if value < 0 else value
    if not 0 <= index < count:
        raise RangeError(section.name_of(key), value, -count, count - 1, where=section.source_of(key))
    return layers.layers[index]

"""The network of a cfg file while it is read. Every section's builder takes and returns a DarknetLayers value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from boards.errors import MissingValueError, RangeError
from cnn.activations import ACTIVATIONS, FUNCTIONS
from cnn.darknet.cfg import Section
from cnn.limits import MAX_CHANNELS, MAX_MAP
from cnn.maps import Shape
from cnn.network import Node
from cnn.ops import Activate, Op

# Darknet's normalize_cpu (src/blas.c) adds 1e-6 to the root: (x − mean) / (sqrt(variance) + 0.000001). Its CUDA kernel
# uses sqrt(variance + 0.00001). This project uses sqrt(variance + 1e-6). On a trained YOLO-LITE, its outputs differ
# from normalize_cpu's by 8e-6 of the greatest output; with 1e-5 they differ by 9e-5. The probabilities that darknet
# prints for an image have four digits: sqrt(variance + 1e-6) gives the same four as normalize_cpu, and 1e-5 does not.
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
"""The function and its parameters for each activation of darknet that is computed by a table (src/activations.h)."""

CHOICES = (*ACTIVATIONS, *DARKNET_FUNCTIONS)
"""The values of the option ``activation``."""


@dataclass(frozen=True)
class DarknetLayers:
    """The network built so far from a cfg file: its nodes, and for each darknet layer the node with its output.

    Attributes:
        nodes: The nodes in topological order.
        layers: The index of the node with the output of each darknet layer. [net] is not a layer.
    """

    nodes: tuple[Node, ...]
    layers: tuple[int, ...] = ()

    @property
    def last(self) -> int:
        """The index of the node that the next section reads by default."""
        return self.layers[-1] if self.layers else 0

    @property
    def shape(self) -> Shape:
        """The shape of the output that the next section reads by default."""
        return self.nodes[self.last].shape

    def name(self, stem: str) -> str:
        """Return the next unused node name with this stem: conv1, conv2 …"""
        return f"{stem}{1 + sum(node.name.rstrip('0123456789') == stem for node in self.nodes)}"

    def with_node(self, section: Section, stem: str, op: Op, shape: Shape, *inputs: int) -> DarknetLayers:
        """Return the network with one more node, which is the output of the next darknet layer.

        Args:
            section: The section of the cfg.
            stem: The start of the node's name, which a number follows.
            op: The operation.
            shape: The shape of the output; RangeError if it is too large.
            *inputs: The indices of the nodes that it reads; by default ``last``.
        """
        node = Node(self.name(stem), op, inputs or (self.last,), bounded(shape, section), section.source)
        return DarknetLayers((*self.nodes, node), (*self.layers, len(self.nodes)))

    def activated(self, section: Section, activation: str) -> DarknetLayers:
        """Return the network with a lookup-table node for an activation that the last layer's requantiser cannot do.

        Otherwise the layers are returned unchanged, because the layer itself has the activation (``fused``).
        """
        if activation in ACTIVATIONS:
            return self
        function, parameters = DARKNET_FUNCTIONS[activation]
        op = Activate(function, parameters or FUNCTIONS[function].defaults)
        larger = self.with_node(section, function, op, self.shape)
        return replace(larger, layers=(*self.layers[:-1], larger.last))

    def alias(self, index: int) -> DarknetLayers:
        """Return the network with one more darknet layer that computes nothing: its output is node ``index``."""
        return replace(self, layers=(*self.layers, index))


def bounded(shape: Shape, section: Section) -> Shape:
    """Return ``shape`` unchanged; RangeError if it has more than MAX_CHANNELS channels or MAX_MAP values."""
    if shape.channels > MAX_CHANNELS:
        raise RangeError("the number of channels", shape.channels, high=MAX_CHANNELS, where=section.source)
    if shape.values > MAX_MAP:
        raise RangeError(f"the number of values of {shape}", shape.values, high=MAX_MAP, where=section.source)
    return shape


def require_layer(layers: DarknetLayers, section: Section) -> None:
    """Raise MissingValueError if no layer precedes the cfg section."""
    if not layers.layers:
        raise MissingValueError(f"a layer before [{section.kind}]", where=section.source)


def fused(activation: str) -> str:
    """Return the activation of a layer's own node: ``activation``, or "linear" if that gets a lookup-table node."""
    return activation if activation in ACTIVATIONS else "linear"


def layer_index(layers: DarknetLayers, section: Section, key: str, value: int) -> int:
    """Return the index of the node of darknet layer ``value``; a negative value counts back from the section.

    Raises:
        MissingValueError: There is no layer before the section.
        RangeError: There is no layer with this number.
    """
    require_layer(layers, section)
    count = len(layers.layers)
    index = count + value if value < 0 else value
    if not 0 <= index < count:
        raise RangeError(section.name_of(key), value, -count, count - 1, where=section.source_of(key))
    return layers.layers[index]

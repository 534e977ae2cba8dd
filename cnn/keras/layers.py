"""Write Keras layers as ONNX operators with the channels first.

Each kind of layer has a function. It takes the graph, the layer and the names of the layer's inputs, adds operators to
the graph, and returns the name of the layer's output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, ConflictError, InvalidValueError, ShapeError, listed
from cnn.onnx.graph import require

Array = npt.NDArray[Any]
OPSET = 20


@dataclass
class GraphWriter:
    """An ONNX graph under construction, to which the layers of a Keras model are written.

    Attributes:
        onnx: The package onnx.
        nodes: The protocol buffers of the operators.
        arrays: The protocol buffers of the initialisers.
        flattened: The shape (channels, height, width) of each map that was flattened, by the flattened tensor's name.
            Keras flattens with the channels last, the file with the channels first; a Dense reorders its weights.
    """

    onnx: Any
    nodes: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    flattened: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def constant(self, values: Any, kind: Any = np.float32) -> str:
        """Add a constant array (initialiser) to the ONNX graph and return its name."""
        name = f"constant{len(self.arrays)}"
        self.arrays.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values, kind), name))
        return name

    def put(self, kind: str, inputs: Sequence[str], label: str, **attributes: Any) -> str:
        """Add an operator for the Keras layer ``label`` to the ONNX graph and return the name of its output."""
        name = f"{label}/{kind}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def model(self, shape: Sequence[int], outputs: Sequence[str]) -> Any:
        """Return the finished graph as an ONNX model, whose input "picture" has this shape after the batch."""
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
        entry = helper.make_tensor_value_info("picture", kind, [1, *shape])
        graph = helper.make_graph(self.nodes, "keras", [entry], ends, self.arrays)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


Writer: TypeAlias = Callable[[GraphWriter, Any, Sequence[str]], str]

AUTO_PAD = {"valid": "VALID", "same": "SAME_UPPER"}


def numbers(variable: Any) -> Array:
    """Return the values of a Keras variable as float32."""
    value = getattr(variable, "value", variable)
    value = value.detach().cpu() if hasattr(value, "detach") else value
    return np.asarray(value, np.float32)


def channels_last(layer: Any) -> bool:
    """Return whether a layer has its channels last; layers without a ``data_format`` always do."""
    return getattr(layer, "data_format", None) != "channels_first"


def rank_of(layer: Any) -> int:
    """Return the number of dimensions of a Keras layer's input, including the batch."""
    return len(shape_of(layer))


def shape_of(layer: Any) -> tuple[int | None, ...]:
    """Return the shape of a Keras layer's input, the batch first; ShapeError if its uses have different ones."""
    shapes = {tuple(node.input_tensors[0].shape) for node in layer._inbound_nodes}
    require(len(shapes) == 1, ShapeError("the inputs of its uses", listed(shapes), "one shape"))
    return shapes.pop()


def check_axis(layer: Any, axis: Any) -> None:
    """Raise InvalidValueError if ``axis`` of a Keras layer is not the axis of the channels."""
    last = rank_of(layer) - 1
    require(
        axis in (-1, last), InvalidValueError("its axis", axis, f"the last one, -1 or {last}, which is the channels")
    )


def _slide(layer: Any) -> dict[str, Any]:
    """Return strides, dilations and padding of a Keras layer as attributes of an ONNX operator."""
    padding = layer.padding
    if padding == "causal":  # for signals: all padding is before the signal
        front = (layer.kernel_size[0] - 1) * layer.dilation_rate[0]
        return {"strides": [*layer.strides], "dilations": [*layer.dilation_rate], "pads": [front, 0]}
    require(padding in AUTO_PAD, ChoiceError("padding", padding, tuple(AUTO_PAD)))
    slide = {"strides": [*layer.strides], "auto_pad": AUTO_PAD[padding]}
    if max(getattr(layer, "dilation_rate", (1,))) > 1:
        slide["dilations"] = [*layer.dilation_rate]
    return slide


def _bias(graph: GraphWriter, layer: Any) -> list[str]:
    return [graph.constant(numbers(layer.bias))] if layer.use_bias else []


def _filters(kernel: Array) -> Array:
    """Return a Keras kernel (…, inputs, filters) as an ONNX kernel (filters, inputs, …)."""
    return np.transpose(kernel, (-1, -2, *range(kernel.ndim - 2)))


def convolution(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Conv1D or Conv2D as ONNX operators and return the output's name."""
    arrays = [graph.constant(_filters(numbers(layer.kernel))), *_bias(graph, layer)]
    name = graph.put("Conv", [inputs[0], *arrays], layer.name, group=layer.groups, **_slide(layer))
    return activated(graph, layer.activation, name, layer.name)


def _by_channel(kernel: Array) -> Array:
    """Return a depthwise Keras kernel (…, inputs, filters per input) as an ONNX kernel (filters, 1, …)."""
    return _filters(kernel.reshape(*kernel.shape[:-2], 1, -1))


def depthwise(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras DepthwiseConv1D or DepthwiseConv2D as ONNX operators and return the output's name."""
    kernel = numbers(layer.kernel)
    arrays = [graph.constant(_by_channel(kernel)), *_bias(graph, layer)]
    name = graph.put("Conv", [inputs[0], *arrays], layer.name, group=kernel.shape[-2], **_slide(layer))
    return activated(graph, layer.activation, name, layer.name)


def separable(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras SeparableConv1D or SeparableConv2D as a depthwise and a 1×1 ONNX Conv."""
    kernel = numbers(layer.depthwise_kernel)
    weights = graph.constant(_by_channel(kernel))
    name = graph.put("Conv", [inputs[0], weights], layer.name, group=kernel.shape[-2], **_slide(layer))
    arrays = [graph.constant(_filters(numbers(layer.pointwise_kernel))), *_bias(graph, layer)]
    return activated(graph, layer.activation, graph.put("Conv", [name, *arrays], layer.name), layer.name)


def transposed(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Conv1DTranspose or Conv2DTranspose as ONNX operators and return the output's name."""
    kernel = numbers(layer.kernel)
    arrays = [graph.constant(_filters(kernel)), *_bias(graph, layer)]
    slide = _slide(layer)
    if layer.output_padding is not None:
        slide |= _spread(layer)
    elif layer.padding == "valid":  # with strides above the kernel's size, Keras appends rows and columns of the bias
        short = [max(0, stride - side) for stride, side in zip(layer.strides, kernel.shape, strict=False)]
        slide |= {"auto_pad": "NOTSET", "output_padding": short}
    return activated(
        graph, layer.activation, graph.put("ConvTranspose", [inputs[0], *arrays], layer.name, **slide), layer.name
    )


def _spread(layer: Any) -> dict[str, Any]:
    """Return the ONNX padding attributes of a Keras transposed convolution with an ``output_padding``.

    The formulas are from keras.src.backend.common.
    """
    extra = layer.output_padding
    each = [*extra] if isinstance(extra, (list, tuple)) else [extra] * len(layer.strides)
    sides = []
    for kernel, step, extent in zip(layer.kernel_size, layer.dilation_rate, each, strict=True):
        side = (kernel - 1) * step + 1
        length = side + side % 2 - 2 + extent if layer.padding == "same" else 2 * (side - 1) + extent
        front = min(length // 2 + length % 2, side - 1) if layer.padding == "same" else side - 1
        back = side - 1 - (length - front)
        sides.append((side - 1 - front, max(0, back), max(0, -back)))
    fronts, backs, output_padding = (list(values) for values in zip(*sides, strict=True))
    return {"auto_pad": "NOTSET", "pads": [*fronts, *backs], "output_padding": output_padding}


def dense(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Dense: as an ONNX Gemm for a row of values, as a 1×1 Conv for a map."""
    kernel, rank = numbers(layer.kernel), rank_of(layer)
    if rank == 2:
        sides = graph.flattened.get(inputs[0])
        if sides is not None:  # Keras flattens with the channels last, the file with the channels first
            kernel = kernel.reshape(*sides[1:], sides[0], -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
        name = graph.put("Gemm", [inputs[0], graph.constant(kernel), *_bias(graph, layer)], layer.name)
    else:
        weights = graph.constant(kernel.T.reshape(*kernel.T.shape, *(1,) * (rank - 2)))
        name = graph.put("Conv", [inputs[0], weights, *_bias(graph, layer)], layer.name)
    return activated(graph, layer.activation, name, layer.name)


def batch_norm(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras BatchNormalization over the channels as an ONNX operator and return the output's name."""
    axis = layer.axis[0] if isinstance(layer.axis, (list, tuple)) else layer.axis
    check_axis(layer, axis)
    mean = numbers(layer.moving_mean)
    scale = numbers(layer.gamma) if layer.scale else np.ones_like(mean)
    offset = numbers(layer.beta) if layer.center else np.zeros_like(mean)
    arrays = (graph.constant(array) for array in (scale, offset, mean, numbers(layer.moving_variance)))
    return graph.put("BatchNormalization", [inputs[0], *arrays], layer.name, epsilon=float(layer.epsilon))


def pool(kind: str) -> Writer:
    """Return the function that writes a Keras MaxPooling or AveragePooling as the ONNX operator ``kind``."""

    def write(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
        return graph.put(kind, inputs[:1], layer.name, kernel_shape=[*layer.pool_size], **_slide(layer))

    return write


def whole_pool(kind: str) -> Writer:
    """Return the function that writes a Keras GlobalMaxPooling or GlobalAveragePooling as ONNX operator ``kind``."""

    def write(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
        name = graph.put(kind, inputs[:1], layer.name)
        return name if layer.keepdims else graph.put("Flatten", [name], layer.name)

    return write


def elementwise(kind: str) -> Writer:
    """Return the function that writes a Keras Add, Subtract, Multiply, Maximum or Minimum as ONNX operators."""

    def write(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
        name = inputs[0]
        for other in inputs[1:]:
            name = graph.put(kind, [name, other], layer.name)
        return name

    return write


def concatenated(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Concatenate along the channels as an ONNX Concat."""
    check_axis(layer, layer.axis)
    return graph.put("Concat", inputs, layer.name, axis=1)


def flattened(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Flatten, and remember the shape of the map for a Dense that reads it."""
    name, shape = graph.put("Flatten", inputs[:1], layer.name), shape_of(layer)
    sides = [side or 1 for side in shape[1:]]
    if len(sides) > 1 and np.prod(sides[:-1]) > 1:
        graph.flattened[name] = (sides[-1], *sides[:-1], *(1,) * (3 - len(sides)))
    return name


def padded(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras ZeroPadding1D or ZeroPadding2D as an ONNX Pad."""
    sides = [tuple(side) if isinstance(side, (list, tuple)) else None for side in layer.padding]
    pairs = [side for side in sides if side] or [tuple(layer.padding)]
    pads = [0, 0, *(front for front, _ in pairs), 0, 0, *(back for _, back in pairs)]
    return graph.put("Pad", [inputs[0], graph.constant(pads, np.int64)], layer.name)


MODES = {
    "nearest": {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    "bilinear": {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
}
"""The attributes of a Resize, by Keras's interpolation."""


def enlarged(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras UpSampling2D as an ONNX Resize."""
    require(layer.interpolation in MODES, ChoiceError("interpolation", layer.interpolation, tuple(MODES)))
    scales, modes = graph.constant([1, 1, *layer.size]), MODES[layer.interpolation]
    return graph.put("Resize", [inputs[0], "", scales], layer.name, **modes)


def rescaled(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Rescaling (x · scale + offset) as ONNX operators."""
    name = graph.put("Mul", [inputs[0], graph.constant(layer.scale)], layer.name)
    return graph.put("Add", [name, graph.constant(layer.offset)], layer.name)


def passthrough(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Return the input of a Keras layer that computes nothing in a trained model, such as Dropout."""
    return inputs[0]


def relu(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras ReLU with at most one of its parameters as ONNX operators; ConflictError if several are set."""
    slope, most, threshold = (float(getattr(layer, key) or 0) for key in ("negative_slope", "max_value", "threshold"))
    bounded = layer.max_value is not None
    given = [
        key
        for key, is_given in (("negative_slope", slope > 0), ("max_value", bounded), ("threshold", threshold != 0))
        if is_given
    ]
    require(len(given) <= 1, ConflictError(given, "only a ReLU with at most one of them is an operator"))
    if bounded:
        ends = [graph.constant(number) for number in (0.0, most)]
        return graph.put("Clip", [inputs[0], *ends], layer.name)
    if threshold:
        return graph.put("ThresholdedRelu", inputs[:1], layer.name, alpha=threshold)
    return (
        graph.put("LeakyRelu", inputs[:1], layer.name, alpha=slope) if slope else graph.put("Relu", inputs, layer.name)
    )


def leaky(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras LeakyReLU as an ONNX operator and return the output's name."""
    return graph.put("LeakyRelu", inputs[:1], layer.name, alpha=float(layer.negative_slope))


def sloped(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras PReLU with one slope per channel; ShapeError if the slopes differ between positions."""
    slopes = numbers(layer.alpha)
    fits = slopes.size == slopes.shape[-1]
    remedy = "give height and width in shared_axes"
    require(fits, ShapeError("alpha", slopes.shape, "one slope for each channel", remedy=remedy))
    column = slopes.reshape(-1, *(1,) * (rank_of(layer) - 2))
    return graph.put("PRelu", [inputs[0], graph.constant(column)], layer.name)


def elu(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras ELU as an ONNX operator and return the output's name."""
    return graph.put("Elu", inputs[:1], layer.name, alpha=float(layer.alpha))


def softmax(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Softmax over the channels as an ONNX operator and return the output's name."""
    check_axis(layer, layer.axis)
    return graph.put("Softmax", inputs[:1], layer.name, axis=1)


def function(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Activation layer as ONNX operators and return the output's name."""
    return activated(graph, layer.activation, inputs[0], layer.name)


FUNCTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("Relu", {}),
    "leaky_relu": ("LeakyRelu", {"alpha": 0.2}),
    "elu": ("Elu", {}),
    "selu": ("Selu", {}),
    "sigmoid": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
    "softplus": ("Softplus", {}),
    "softsign": ("Softsign", {}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    "hard_silu": ("HardSwish", {}),
    "gelu": ("Gelu", {}),
    "mish": ("Mish", {}),
    "celu": ("Celu", {}),
    "exponential": ("Exp", {}),
    "softmax": ("Softmax", {"axis": 1}),
    "log_softmax": ("LogSoftmax", {"axis": 1}),
}
"""The operator and its attributes for each function, by Keras's name of it."""


def activated(graph: GraphWriter, activation: Any, source: str, label: str) -> str:
    """Write the activation function of a Keras layer, which follows its own operator, and return the output's name."""
    return applied(graph, getattr(activation, "__name__", type(activation).__name__), source, label)


_RANGES = {"relu6": (0.0, 6.0), "hard_tanh": (-1.0, 1.0)}


def applied(graph: GraphWriter, name: str, source: str, label: str) -> str:
    """Write the activation with Keras's name ``name`` as ONNX operators; ChoiceError if the name is unknown."""
    if name == "linear":
        return source
    if name in _RANGES:
        return graph.put("Clip", [source, *map(graph.constant, _RANGES[name])], label)
    if name in ("silu", "swish"):
        return graph.put("Mul", [source, graph.put("Sigmoid", [source], label)], label)
    require(name in FUNCTIONS, ChoiceError("its activation", name, ("linear", "silu", *_RANGES, *FUNCTIONS)))
    kind, attributes = FUNCTIONS[name]
    return graph.put(kind, [source], label, **attributes)


_SIDES = ("1D", "2D")
LAYERS: dict[str, Writer] = {
    **{f"Conv{sides}": convolution for sides in _SIDES},
    **{f"DepthwiseConv{sides}": depthwise for sides in _SIDES},
    **{f"SeparableConv{sides}": separable for sides in _SIDES},
    **{f"Conv{sides}Transpose": transposed for sides in _SIDES},
    **{f"MaxPooling{sides}": pool("MaxPool") for sides in _SIDES},
    **{f"AveragePooling{sides}": pool("AveragePool") for sides in _SIDES},
    **{f"GlobalMaxPooling{sides}": whole_pool("GlobalMaxPool") for sides in _SIDES},
    **{f"GlobalAveragePooling{sides}": whole_pool("GlobalAveragePool") for sides in _SIDES},
    **{f"ZeroPadding{sides}": padded for sides in _SIDES},
    **{f"SpatialDropout{sides}": passthrough for sides in _SIDES},
    **dict.fromkeys(
        ("Dropout", "GaussianNoise", "GaussianDropout", "AlphaDropout", "ActivityRegularization"), passthrough
    ),
    "Activation": function,
    "Add": elementwise("Add"),
    "BatchNormalization": batch_norm,
    "Concatenate": concatenated,
    "Dense": dense,
    "ELU": elu,
    "Flatten": flattened,
    "LeakyReLU": leaky,
    "Maximum": elementwise("Max"),
    "Minimum": elementwise("Min"),
    "Multiply": elementwise("Mul"),
    "PReLU": sloped,
    "ReLU": relu,
    "Rescaling": rescaled,
    "Softmax": softmax,
    "Subtract": elementwise("Sub"),
    "UpSampling2D": enlarged,
}
"""The function that writes each layer, by the name of the layer's class. cnn.keras.export adds further layers."""


def reshaped(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Reshape that flattens a map or its positions, or views a row of values as a map.

    Keras has the channels last on both sides, so a map made of a row needs a Transpose.
    """
    sides, target = [side or 1 for side in shape_of(layer)[1:]], [*layer.target_shape]
    size = int(np.prod(sides))
    if -1 in target:
        target[target.index(-1)] = size // -int(np.prod(target))
    if len(target) == 1:
        return flattened(graph, layer, inputs)
    ordered = inputs[0] not in graph.flattened
    keeps = target[-1] == sides[-1] and ordered
    fits = len(target) <= 3 and (keeps or (len(sides) == 1 and ordered))
    required = f"the channels of {tuple(sides)} as its last side, or a single side, or an input of one row"
    require(fits, ShapeError("its output", tuple(target), required))
    if keeps:
        return graph.put("Reshape", [inputs[0], graph.constant([1, target[-1], *target[:-1]], np.int64)], layer.name)
    last = graph.put("Reshape", [inputs[0], graph.constant([1, *target], np.int64)], layer.name)
    return graph.put("Transpose", [last], layer.name, perm=[0, len(target), *range(1, len(target))])


def cropped(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Cropping1D or Cropping2D as ONNX operators and return the output's name."""
    pairs = [side for side in layer.cropping if isinstance(side, (list, tuple))] or [layer.cropping]
    sides = shape_of(layer)[1:-1]
    ends = [(side or 0) - back for side, (_, back) in zip(sides, pairs, strict=True)]
    values = ([front for front, _ in pairs], ends, range(2, 2 + len(pairs)))
    return graph.put("Slice", [inputs[0], *(graph.constant([*each], np.int64) for each in values)], layer.name)


def repeated(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras UpSampling1D as ONNX operators and return the output's name."""
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return graph.put("Resize", [inputs[0], "", graph.constant([1, 1, layer.size])], layer.name, **modes)


def averaged(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Average as the sum of its maps, divided by their number."""
    total = graph.put("Sum", inputs, layer.name)
    return graph.put("Mul", [total, graph.constant(1 / len(inputs))], layer.name)


def normalised(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Normalization by a mean and a variance, each for all values or per channel."""
    require(not layer.invert, "it is inverted; only invert=False is supported")
    rank = rank_of(layer)
    mean, deviation = numbers(layer.mean), np.maximum(np.sqrt(numbers(layer.variance)), 1e-7)
    for what, values in (("its mean", mean), ("its variance", deviation)):
        fits = values.size in (1, values.shape[-1])
        require(fits, ShapeError(what, values.shape, "one number, or one for each channel, the last axis"))
    columns = [values.reshape(-1, *(1,) * (rank - 2)) for values in (mean, deviation)]
    less = graph.put("Sub", [inputs[0], graph.constant(columns[0])], layer.name)
    return graph.put("Div", [less, graph.constant(columns[1])], layer.name)


def resized(graph: GraphWriter, layer: Any, inputs: Sequence[str]) -> str:
    """Write a Keras Resizing to a height and width as an ONNX Resize."""
    require(layer.interpolation in MODES, ChoiceError("interpolation", layer.interpolation, tuple(MODES)))
    for option in ("crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"):
        require(not getattr(layer, option, False), f"its option {option} is set")
    sides = [1, shape_of(layer)[-1], layer.height, layer.width]
    modes = MODES[layer.interpolation] | {"coordinate_transformation_mode": "half_pixel"}
    if layer.interpolation == "nearest":
        modes["nearest_mode"] = "round_prefer_ceil"
    return graph.put("Resize", [inputs[0], "", "", graph.constant(sides, np.int64)], layer.name, **modes)

"""The operators of random graphs. Each reads a tensor, and possibly further tensors whose shapes fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzz.networks.dice import Dice
from tests.support.onnx.writer import Writer

OPSETS = (11, 13, 17, 18, 20)
SOFTMAXES = ("Softmax", "LogSoftmax")

Sides = tuple[int, ...]


class Graph:
    """A graph to which operators are added.

    Attributes:
        writer: The ONNX operators and constants so far.
        random: The generator of the constants.
        shape: The shape of the input image.
        tensors: The shape of each tensor by name, in the order in which they were added.
    """

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.writer = Writer(dice.pick(OPSETS))
        self.random = np.random.default_rng(dice.seed())
        self.shape = (1, dice.whole(1, 6), dice.whole(3, 9), dice.whole(3, 9))
        self.tensors: dict[str, Sides] = {"picture": self.shape}

    def source(self) -> str:
        """Return a random tensor. Late tensors are more likely than early ones."""
        names = list(self.tensors)
        return names[max(self.dice.whole(0, len(names) - 1), self.dice.whole(0, len(names) - 1))]

    def like(self, name: str) -> str:
        """Return a tensor of the same shape, which may be the same tensor."""
        return self.dice.pick([other for other, sides in self.tensors.items() if sides == self.tensors[name]])

    def normal(self, *sides: int) -> str:
        """Return a constant of normally distributed numbers around 0."""
        return self.writer.constant(self.random.normal(0, 0.6, sides))

    def whole(self, *values: int) -> str:
        """Return a constant of integers."""
        return self.writer.constant(values, np.int64)

    def channels(self, sides: Sides) -> tuple[int, ...]:
        """Return the shape of a constant that is a single number, or that has one number per channel."""
        by_channel = (sides[1], *(1,) * (len(sides) - 2))
        return self.dice.pick(((), (1,), by_channel, (1, *by_channel)))


Draw = Callable[[Graph, str, Sides], tuple[str, ...]]
"""Adds an operator that reads a tensor of this shape. Returns the names of its outputs, or () if the shape is unfit."""


def _one(kind: str, ranks: Sequence[int] = (2, 3, 4), **attributes: Any) -> Draw:
    return lambda graph, name, sides: (graph.writer.put(kind, [name], **attributes),) if len(sides) in ranks else ()


def _convolution(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    if len(sides) < 3:
        return ()
    dice, rank, count = graph.dice, len(sides) - 2, sides[1]
    groups = dice.pick([1, 1, *(n for n in range(2, count + 1) if count % n == 0)])
    window = [dice.whole(1, 3) for _ in range(rank)]
    weights = graph.normal(groups * dice.whole(1, 3), count // groups, *window)
    attributes: dict[str, Any] = {"group": groups, "strides": [dice.whole(1, 2)] * rank}
    if dice.chance(0.2):
        attributes["strides"] = [dice.whole(1, 3) for _ in range(rank)]
    if dice.chance(0.3):
        attributes["dilations"] = [dice.whole(1, 2) for _ in range(rank)]
    attributes |= _padding(dice, rank, 2)
    bias = [graph.normal(int(graph.writer.arrays[-1].dims[0]))] if dice.chance(0.6) else []
    return (graph.writer.put("Conv", [name, weights, *bias], **attributes),)


def _padding(dice: Dice, rank: int, most: int) -> dict[str, Any]:
    if dice.chance(0.2):
        return {"auto_pad": dice.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))}
    if dice.chance(0.5):
        return {"pads": [dice.whole(0, most)] * 2 * rank}
    return {"pads": [dice.whole(0, most) for _ in range(2 * rank)]} if dice.chance(0.5) else {}


def _pool(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    if len(sides) < 3:
        return ()
    dice, rank = graph.dice, len(sides) - 2
    kind = dice.pick(("MaxPool", "AveragePool"))
    attributes: dict[str, Any] = {"kernel_shape": [dice.whole(1, 3)] * rank, "strides": [dice.whole(1, 3)] * rank}
    if dice.chance(0.3):
        attributes["kernel_shape"] = [dice.whole(1, 4) for _ in range(rank)]
    if dice.chance(0.2):
        attributes["strides"] = [dice.whole(1, 3) for _ in range(rank)]
    attributes |= _padding(dice, rank, min(attributes["kernel_shape"]) - 1)
    if kind == "AveragePool":
        attributes["count_include_pad"] = dice.whole(0, 1)
    elif dice.chance(0.4):
        attributes["dilations"] = [dice.whole(1, 3)] * rank
        if dice.chance(0.3):
            attributes["dilations"] = [dice.whole(1, 3) for _ in range(rank)]
    if "auto_pad" not in attributes and dice.chance(0.2):
        attributes["ceil_mode"] = 1
    return (graph.writer.put(kind, [name], **attributes),)


def _batch_norm(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    constants = [graph.normal(sides[1]) for _ in range(3)]
    variance = graph.writer.constant(graph.random.uniform(0.3, 2, sides[1]))
    return (graph.writer.put("BatchNormalization", [name, *constants, variance], epsilon=1e-4),)


def _constant(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Add arithmetic with a constant, which is one number or one per channel, as the first or the second operand."""
    kind = graph.dice.pick(("Add", "Sub", "Mul", "Div", "Max", "Min"))
    number = np.abs(graph.random.normal(0, 0.6, graph.channels(sides))) + 0.4
    inputs = [name, graph.writer.constant(number)]
    return (graph.writer.put(kind, inputs[:: graph.dice.pick((1, 1, -1)) if kind != "Div" else 1]),)


def _squeezed(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Add arithmetic with a gate of the channels' averages, or with the first channel at each position."""
    if len(sides) != 4:
        return ()
    if graph.dice.chance(0.6):
        other = graph.writer.put("Sigmoid", [graph.writer.put("GlobalAveragePool", [name])])
    else:
        other = graph.writer.put("Gather", [name, graph.whole(0)], axis=1)
    inputs = [name, other]
    return (graph.writer.put(graph.dice.pick(("Mul", "Add", "Sub", "Max")), inputs[:: graph.dice.pick((1, -1))]),)


def _maps(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    kind = graph.dice.pick(("Add", "Add", "Sub", "Mul", "Max", "Min", "Sum"))
    others = [graph.like(name) for _ in range(graph.dice.whole(1, 2) if kind in ("Max", "Min", "Sum") else 1)]
    return (graph.writer.put(kind, [name, *others]),)


def _slope(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Add a PRelu, with slopes of 0…1 or of −1…2."""
    low, high = graph.dice.pick(((0.0, 1.0), (-1.0, 2.0)))
    slopes = graph.writer.constant(graph.random.uniform(low, high, graph.channels(sides)))
    return (graph.writer.put("PRelu", [name, slopes]),)


def _clip(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    ends = [graph.writer.constant(graph.dice.pick((-1.0, 0.0))), graph.writer.constant(graph.dice.pick((0.5, 6.0)))]
    return (graph.writer.put("Clip", [name, *graph.dice.pick((ends, ends[:1], ["", ends[1]]))]),)


def _concat(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    fits = [n for n, s in graph.tensors.items() if (s[0], s[2:], len(s)) == (sides[0], sides[2:], len(sides))]
    others = [graph.dice.pick(fits) for _ in range(graph.dice.whole(1, 2))]
    return (graph.writer.put("Concat", [name, *others], axis=graph.dice.pick((1, 1 - len(sides)))),)


def _split(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    if sides[1] < 2:
        return ()
    first = graph.dice.whole(1, sides[1] - 1)
    parts = [first, sides[1] - first]
    if graph.writer.opset < 13:
        given = graph.writer.put("Split", [name], outputs=2, axis=1, split=parts)
    else:
        given = graph.writer.put("Split", [name, graph.whole(*parts)], outputs=2, axis=1)
    return given, given + "_"


def _slice(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    if len(sides) == 4 and graph.dice.chance(0.3):
        return (_cropped(graph, _cropped(graph, name, sides, 2), sides, 3),)
    axis = 1 if graph.dice.chance(0.9) else len(sides) - 1
    start = graph.dice.whole(0, sides[axis] - 1)
    end = graph.dice.pick((start + 1, sides[axis], (1 << 31) - 1, -1))
    ends = (start - sides[axis] * graph.dice.chance(0.3), end, graph.dice.pick((axis, axis - len(sides))))
    return (graph.writer.put("Slice", [name, *map(graph.whole, ends), graph.whole(1 + graph.dice.chance(0.1))]),)


def _cropped(graph: Graph, name: str, sides: Sides, axis: int) -> str:
    """Add a slice of one axis: every second row or column, or all without the last few."""
    start, step = graph.dice.whole(0, min(2, sides[axis] - 1)), 2 - graph.dice.chance(0.3)
    end = graph.dice.pick((sides[axis], (1 << 31) - 1, max(start + 1, sides[axis] - 1)))
    return graph.writer.put("Slice", [name, *map(graph.whole, (start, end, axis, step))])


def _pad(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    pads = [0, 0, *(graph.dice.whole(0, 2) for _ in sides[2:])]
    value = [graph.writer.constant(graph.dice.pick((0.0, 0.5, -1.0)))] if graph.dice.chance(0.3) else []
    return (graph.writer.put("Pad", [name, graph.whole(*pads, *graph.dice.pick((pads, [0] * len(pads)))), *value]),)


def _view(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    dice, flat = graph.dice, int(np.prod(sides))
    shapes = [(1, flat), (1, -1), (0, 0, -1), (1, *sides[1:]), (1, sides[1], flat // sides[1]), (1, flat, 1, 1)]
    return (graph.writer.put("Reshape", [name, graph.whole(*dice.pick(shapes))]),)


def _axes(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    kind, axes = ("Squeeze", [i for i, side in enumerate(sides) if i > 1 and side == 1])
    if not axes or graph.dice.chance(0.3):
        kind, axes = ("Unsqueeze", [len(sides)])
        if len(sides) == 4:
            return ()
    if graph.writer.opset < 13:
        return (graph.writer.put(kind, [name], axes=axes),)
    return (graph.writer.put(kind, [name, graph.whole(*axes)]),)


def _transpose(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Add a Transpose.

    Most are to channels last and back, as exporters write them, with operators between. Some have any other order.
    """
    if len(sides) > 2 and graph.dice.chance(0.8):
        rank = len(sides)
        last = graph.writer.put("Transpose", [name], perm=(0, *range(2, rank), 1))
        for _ in range(graph.dice.whole(0, 3)):
            last = _between(graph, last, sides)
        if graph.dice.chance(0.1):
            return (graph.writer.put("Flatten", [last]),)
        if graph.dice.chance(0.1):
            axis = graph.dice.pick((-1, rank - 1))
            return (graph.writer.put("ArgMax", [last], axis=axis, keepdims=graph.dice.whole(0, 1)),)
        if graph.dice.chance(0.1):
            last = graph.writer.put(graph.dice.pick(SOFTMAXES), [last], axis=graph.dice.pick((-1, rank - 1)))
        return (graph.writer.put("Transpose", [last], perm=(0, rank - 1, *range(1, rank - 1))),)
    if len(sides) == 4 and graph.dice.chance(0.5):  # PyTorch's softmax over the channels, before opset 13
        swapped = graph.writer.put("Transpose", [name], perm=(0, 3, 2, 1))
        shares = graph.writer.put(graph.dice.pick(SOFTMAXES), [swapped], axis=3)
        return (graph.writer.put("Transpose", [shares], perm=(0, 3, 2, 1)),)
    order = graph.dice.pick(((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2))) if len(sides) == 4 else range(len(sides))
    return (graph.writer.put("Transpose", [name], perm=order),)


def _between(graph: Graph, name: str, sides: Sides) -> str:
    """Add an operator that reads channels last, and keeps the number of channels.

    Args:
        sides: The shape with channels first.
    """
    writer, count, rank = graph.writer, sides[1], len(sides)
    kind = graph.dice.pick(("Relu", "Sigmoid", "Add", "Mul", "MatMul", "Max", "Concat", "Pad", "ReduceMean"))
    if kind in ("Relu", "Sigmoid"):
        return writer.put(kind, [name])
    if kind == "MatMul":
        return writer.put(kind, [name, graph.normal(count, count)])
    if kind == "Max":
        return writer.put(kind, [name, writer.constant(0.25)])
    if kind == "Concat":
        axis, channels = graph.dice.pick((-1, rank - 1)), graph.whole(*range(0, 2 * count, 2))
        return writer.put("Gather", [writer.put(kind, [name, name], axis=axis), channels], axis=axis)
    if kind == "Pad":
        pads = [0, *(graph.dice.whole(0, 1) for _ in sides[2:]), 0]
        return writer.put(kind, [name, graph.whole(*pads, *pads)])
    if kind == "ReduceMean" and rank == 4 and writer.opset < 18:
        mean = writer.put("Sigmoid", [writer.put(kind, [name], axes=[1, 2], keepdims=1)])
        return writer.put("Mul", [name, mean])
    return writer.put("Add" if kind == "ReduceMean" else kind, [name, graph.normal(*graph.dice.pick(((count,), (1,))))])


def _resize(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    if len(sides) != 4:
        return ()
    dice, writer = graph.dice, graph.writer
    factor = float(dice.whole(2, 3)) if dice.chance(0.5) else 1 / dice.whole(2, 4)
    if dice.chance(0.3):
        factor = dice.whole(1, 5) / dice.whole(2, 4)
    factors = [1.0, 1.0, factor, dice.pick((1.0, 0.5, 1.5, 2.5)) if dice.chance(0.2) else factor]
    region = "" if writer.opset >= 13 else writer.constant([])
    modes: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if dice.chance(0.5):
        modes = {"mode": "linear", "coordinate_transformation_mode": dice.pick(("half_pixel", "asymmetric"))}
    elif dice.chance(0.5):
        places, rounded = ("half_pixel", "pytorch_half_pixel", "align_corners"), ("round_prefer_floor", "floor", "ceil")
        modes |= {"coordinate_transformation_mode": dice.pick(places), "nearest_mode": dice.pick(rounded)}
    if writer.opset >= 18 and dice.chance(0.3):
        return (writer.put("Resize", [name, region, writer.constant(factors[2:])], axes=[2, 3], **modes),)
    if dice.chance(0.3):
        sizes = [1, sides[1], *(max(1, int(side * factor)) for side in sides[2:])]
        return (writer.put("Resize", [name, region, "", graph.whole(*sizes)], **modes),)
    return (writer.put("Resize", [name, region, writer.constant(factors)], **modes),)


def _moved(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    if len(sides) != 4:
        return ()
    if graph.dice.chance(0.5):
        return (graph.writer.put("SpaceToDepth", [name], blocksize=2),) if not (sides[2] % 2 or sides[3] % 2) else ()
    return (graph.writer.put("DepthToSpace", [name], blocksize=2, mode=graph.dice.pick(("DCR", "CRD"))),)


def _transposed(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    if len(sides) != 4:
        return ()
    dice, stride = graph.dice, graph.dice.whole(1, 3)
    window = [dice.whole(1, 4)] * 2
    attributes: dict[str, Any] = {"strides": [stride] * 2, "kernel_shape": window}
    if dice.chance(0.5):
        attributes["pads"] = [dice.whole(0, window[0] - 1)] * 4
    if dice.chance(0.3):
        attributes["output_padding"] = [dice.whole(0, stride - 1)] * 2
    bias = [graph.normal(2)] if dice.chance(0.5) else []
    return (graph.writer.put("ConvTranspose", [name, graph.normal(sides[1], 2, *window), *bias], **attributes),)


def _shuffled(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Reorder groups of channels, or move channels into rows and columns or back, as ShuffleNet and PyTorch do."""
    if len(sides) != 4:
        return ()
    _, channels, height, width = sides
    first = graph.dice.pick([n for n in range(1, channels + 1) if channels % n == 0])
    rest = channels // first
    second = graph.dice.pick([n for n in range(1, rest + 1) if rest % n == 0])
    views = [
        ((1, first, rest, height, width), (0, 2, 1, 3, 4), sides),
        ((1, first, rest, height * width), (0, 2, 1, 3), sides),
        ((1, first, second, rest // second, height, width), (0, 1, 4, 2, 5, 3), (1, first, height * second, -1)),
        (
            (1, first, second, rest // second, height, width),
            (0, 3, 4, 1, 5, 2),
            (1, rest // second, height * first, -1),
        ),
    ]
    if height % 2 == width % 2 == 0:
        parts = (1, channels, height // 2, 2, width // 2, 2)
        orders = ((0, 1, 3, 5, 2, 4), (0, 3, 5, 1, 2, 4))
        views.append((parts, graph.dice.pick(orders), (1, 4 * channels, height // 2, width // 2)))
    view, order, back = graph.dice.pick(views)
    turned = graph.writer.put("Transpose", [graph.writer.put("Reshape", [name, graph.whole(*view)])], perm=order)
    return (graph.writer.put("Reshape", [turned, graph.whole(*back)]),)


def _curve(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Add an Exp or a Sqrt after a function whose values are between −1 and 1, so that the result is near 1."""
    kind, before = graph.dice.pick((("Exp", "Tanh"), ("Sqrt", "Sigmoid")))
    return (graph.writer.put(kind, [graph.writer.put(before, [name])]),)


def _shares(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Add a softmax over the channels, as at the end of a network."""
    return (graph.writer.put(graph.dice.pick(SOFTMAXES), [name], axis=1),)


def _gathered(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    picked = [graph.dice.whole(-sides[1], sides[1] - 1) for _ in range(graph.dice.whole(1, 4))]
    return (graph.writer.put("Gather", [name, graph.whole(*picked)], axis=1),)


def _mean(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    axes, keep = list(range(2, len(sides))), graph.dice.whole(0, 1)
    if graph.dice.chance(0.3):
        axes = [axis for axis in range(1, len(sides)) if graph.dice.chance(0.5)]
    if not axes:
        return ()
    if graph.writer.opset < 18:
        return (graph.writer.put("ReduceMean", [name], axes=axes, keepdims=keep),)
    return (graph.writer.put("ReduceMean", [name, graph.whole(*axes)], keepdims=keep),)


def _chosen(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Add the labels of the greatest channels, their values, or both. The reader takes these at the end of a graph."""
    dice, axis = graph.dice, graph.dice.pick((1, 1 - len(sides)))
    if dice.chance(0.4):
        return (graph.writer.put("ArgMax", [name], axis=axis, keepdims=dice.whole(0, 1)),)
    values = graph.writer.put("TopK", [name, graph.whole(dice.whole(1, sides[1]))], outputs=2, axis=axis)
    return dice.pick(((values,), (values + "_",), (values, values + "_")))


def _gelu(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    """Add a GELU of single operators, with its factors in a random order."""
    put, constant = graph.writer.put, graph.writer.constant
    inner = put("Div", [name, constant(2**0.5)]) if graph.dice.chance(0.5) else put("Mul", [constant(0.5**0.5), name])
    total = put("Add", [put("Erf", [inner]), constant(1.0)][:: graph.dice.pick((1, -1))])
    half = constant(0.5)
    order = graph.dice.pick(((name, total, half), (half, name, total), (total, half, name)))
    return (put("Mul", [put("Mul", list(order[:2])), order[2]]),)


def _dense(graph: Graph, name: str, sides: Sides) -> tuple[str, ...]:
    if len(sides) != 2:
        return ()
    rows = graph.dice.whole(1, 5)
    if graph.dice.chance(0.5):
        return (graph.writer.put("MatMul", [name, graph.normal(sides[1], rows)]),)
    turned = graph.dice.whole(0, 1)
    weights = graph.normal(*((rows, sides[1]) if turned else (sides[1], rows)))
    bias = [graph.normal(*graph.dice.pick(((rows,), (1, rows), (1,))))] if graph.dice.chance(0.7) else []
    return (graph.writer.put("Gemm", [name, weights, *bias], transB=turned),)


DRAWS: tuple[Draw, ...] = (  # an operator that is listed several times is drawn more often
    *(_convolution,) * 5,
    *(_pool,) * 2,
    *(_batch_norm, _constant, _maps, _maps, _squeezed, _concat, _split, _slice, _pad, _view, _axes, _transpose),
    *(
        _resize,
        _moved,
        _shuffled,
        _curve,
        _shares,
        _transposed,
        _gathered,
        _mean,
        _dense,
        _dense,
        _clip,
        _slope,
        _chosen,
        _gelu,
    ),
    *(_one("Relu"), _one("Relu"), _one("LeakyRelu", alpha=0.1), _one("Sigmoid"), _one("Tanh"), _one("HardSigmoid")),
    *(_one("Elu", alpha=0.7), _one("Selu"), _one("Softplus"), _one("Identity"), _one("Identity"), _one("Neg")),
    *(_one("GlobalAveragePool", (3, 4)), _one("GlobalMaxPool", (3, 4)), _one("Flatten")),
)

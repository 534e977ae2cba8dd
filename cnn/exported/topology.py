"""The layers of a network that was quantised by training, from its JSON file (docs/reference/exported.md).

Only what nobody can compute is written there: kernels, strides, bits, what reads what. Every shape is computed here.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from boards.errors import NetworkError
from cnn.darknet.cfg import read_text
from cnn.darknet.files import identifier
from cnn.network import AveragePool, Concat, Detection, MaxPool, Padding, Reorg, Shape, Upsample

FORMAT = "systolic exported network 1"
TEXT_LIMIT = 1 << 20
LAYER_LIMIT = 1000
SIDE_LIMIT = 1 << 16
MAP_LIMIT = 1 << 28  # values of one map
WEIGHT_LIMIT = 1 << 26  # values of one kernel
FITS = ("plain", "letterbox", "smooth")


@dataclass(frozen=True)
class Kernel:
    """A convolution before it has weights. ``number``: the N of its arrays convN_w, bnN_gamma …

    output_bits: of the activation; None where the sums themselves leave. activation: "unit", 0…1 in 2^bits − 1 steps
    (UINT), or "symmetric", −1 and +1 of one bit (BIPOLAR) or −1, 0 and +1 of two (TERNARY).
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

    @property
    def weights(self) -> tuple[int, int, int, int]:
        return self.filters, self.channels // self.groups, self.size, self.size


LayerOp: TypeAlias = Kernel | MaxPool | AveragePool | Concat | Reorg | Upsample | Detection


@dataclass(frozen=True)
class Layer:
    """``inputs``: 0 is the picture, i the i-th layer of the file, counted from 1."""

    name: str
    op: LayerOp
    inputs: tuple[int, ...]
    shape: Shape
    source: str


@dataclass(frozen=True)
class Topology:
    """order: of the picture's channels in training, "RGB" or "BGR". extra_bits: the l_shift of the exporters.

    epsilon: of the batch norms; ``epsilon_of`` "root" where they divide by sqrt(variance) + epsilon, "variance" where
    by sqrt(variance + epsilon). requantise: "multiply_shift" or "thresholds", what turns sums into values. fit: how
    pictures were brought to size.
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
    layers: tuple[Layer, ...]

    @property
    def kernels(self) -> tuple[tuple[Layer, Kernel], ...]:
        return tuple((layer, layer.op) for layer in self.layers if isinstance(layer.op, Kernel))

    def shape_of(self, index: int) -> Shape:
        return self.layers[index - 1].shape if index else self.input


def read_topology(path: Path) -> Topology:
    """The topology in a JSON file; NetworkError names file, layer and key."""
    return parse_topology(read_text(path, TEXT_LIMIT, "network file"), path.name)


def parse_topology(text: str, file: str) -> Topology:
    """As ``read_topology``, from the text itself; ``file`` is what errors call it."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"{file} must be JSON text: {error}") from error
    table = _Table(values, file)
    if table.text("format") != FORMAT:
        raise NetworkError(f"{file}: 'format' must be {FORMAT!r}, not {str(table.values['format'])[:80]!r}")
    shape, order = _input(table)
    norm = _Table(table.get("batch_norm", dict, {}), f"{file}: batch_norm")
    topology = Topology(
        name=identifier(table.text("name")),
        input=shape,
        order=order,
        extra_bits=table.whole("extra_bits", 0, 16, 8),
        epsilon=norm.number("epsilon", 0.0, 1.0, 1e-5),
        epsilon_of=norm.choice("added_to", ("root", "variance"), "variance"),
        requantise=table.choice("requantise", ("multiply_shift", "thresholds"), "multiply_shift"),
        fit=table.choice("fit", FITS, "plain"),
        labels=table.labels(),
        layers=_layers(table, shape),
    )
    norm.finish()
    table.finish()
    return topology


def _input(table: _Table) -> tuple[Shape, str]:
    inner = _Table(table.get("input", dict), f"{table.where}: input")
    sides = (inner.whole("channels", 1, 4, 3), *(inner.whole(key, 1, 8192) for key in ("height", "width")))
    order = inner.choice("order", ("RGB", "BGR"), "RGB")
    inner.finish()
    return Shape(*sides), order


def _layers(table: _Table, first: Shape) -> tuple[Layer, ...]:
    listed = table.get("layers", list)
    if not 1 <= len(listed) <= LAYER_LIMIT:
        raise NetworkError(f"{table.where} must have 1…{LAYER_LIMIT} layers, not {len(listed)}")
    layers: list[Layer] = []
    for number, values in enumerate(listed, 1):
        layers.append(_layer(_Table(values, f"{table.where}: layer {number}"), tuple(layers), first))
    return tuple(layers)


def _layer(table: _Table, before: tuple[Layer, ...], first: Shape) -> Layer:
    kind = table.choice("type", tuple(_KINDS), None)
    name = identifier(table.get("name", str, f"{kind}{len(before) + 1}"))
    if name in {layer.name for layer in before} | {"input"}:
        raise NetworkError(f"{table.where}: the name {name!r} is taken already; give each layer one of its own")
    inputs = _inputs(table, before)
    shapes = [before[i - 1].shape if i else first for i in inputs]
    if any(isinstance(before[i - 1].op, Detection) for i in inputs if i):
        raise NetworkError(f"{table.where}: no layer reads a detection head, it runs on the host")
    if len(shapes) != 1 and kind != "concat":
        raise NetworkError(f"{table.where}: a {kind} reads one layer, not {len(shapes)}")
    number = sum(isinstance(layer.op, Kernel) for layer in before)
    op, shape = _KINDS[kind](table, shapes, number)
    table.finish()
    if shape.values > MAP_LIMIT or max(shape.channels, shape.height, shape.width) > SIDE_LIMIT:
        raise NetworkError(f"{table.where}: its output {shape} has more than {MAP_LIMIT} values; is a number wrong?")
    return Layer(name, op, inputs, shape, table.where)


def _inputs(table: _Table, before: tuple[Layer, ...]) -> tuple[int, ...]:
    """``from``: one name or a list of them; without it, the layer just before."""
    given = table.get("from", (str, list), [before[-1].name if before else "input"])
    names = [given] if isinstance(given, str) else given
    numbers = {"input": 0, **{layer.name: i for i, layer in enumerate(before, 1)}}
    for name in names:
        if not isinstance(name, str) or name not in numbers:
            raise NetworkError(
                f"{table.where}: 'from' must name layers before it, not {str(name)[:80]!r}; there are "
                f"{', '.join(list(numbers)[-6:])}"
            )
    if not 1 <= len(names) <= 64:
        raise NetworkError(f"{table.where}: 'from' must name 1…64 layers, not {len(names)}")
    return tuple(numbers[name] for name in names)


# ---------------------------------------------------------------- one kind each: the table, input shapes → op, shape


def _convolution(table: _Table, shapes: list[Shape], number: int) -> tuple[LayerOp, Shape]:
    before = shapes[0]
    pad = table.whole("padding", 0, 255, 0)
    kernel = Kernel(
        number,
        before.channels,
        table.whole("filters", 1, SIDE_LIMIT),
        table.whole("kernel", 1, 255),
        table.whole("stride", 1, 255, 1),
        Padding(pad, pad, pad, pad),
        table.whole("groups", 1, SIDE_LIMIT, 1),
        table.whole("weight_bits", 1, 8),
        *_activation(table),
    )
    if before.channels % kernel.groups or kernel.filters % kernel.groups:
        raise NetworkError(
            f"{table.where}: {kernel.groups} groups must divide {before.channels} channels and {kernel.filters} filters"
        )
    if kernel.filters * kernel.weights[1] * kernel.size**2 > WEIGHT_LIMIT:
        raise NetworkError(f"{table.where}: a kernel has at most {WEIGHT_LIMIT} weights, not {kernel.weights}")
    return kernel, _slid(table, before, kernel.filters, kernel.size, kernel.stride, pad)


def _activation(table: _Table) -> tuple[int | None, str]:
    if not table.has("output_bits"):
        return None, "unit"
    name = table.choice("activation", ("unit", "symmetric"), "unit")
    return table.whole("output_bits", 1, 8 if name == "unit" else 2), name


def _max_pool(table: _Table, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    size = table.whole("size", 1, 255)
    pool = MaxPool(size, table.whole("stride", 1, 255, size), Padding())
    return pool, _slid(table, shapes[0], shapes[0].channels, size, pool.stride, 0)


def _average_pool(_: _Table, shapes: list[Shape], __: int) -> tuple[LayerOp, Shape]:
    return AveragePool(), Shape(shapes[0].channels, 1, 1)


def _slid(table: _Table, before: Shape, channels: int, size: int, stride: int, pad: int) -> Shape:
    high, wide = before.height + 2 * pad - size, before.width + 2 * pad - size
    if min(high, wide) < 0:
        raise NetworkError(f"{table.where}: a window of {size}×{size} is larger than its padded input {before}")
    return Shape(channels, high // stride + 1, wide // stride + 1)


def _reorg(table: _Table, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    before, s = shapes[0], table.whole("stride", 1, 255)
    order = table.choice("order", ("block", "darknet"), "block")
    deep = s * s if order == "darknet" else 1
    if before.height % s or before.width % s or before.channels % deep:
        raise NetworkError(
            f"{table.where}: a reorg by {s} needs height % {s}, width % {s} and channels % {deep} to be 0, not {before}"
        )
    return Reorg(s, order), Shape(before.channels * s * s, before.height // s, before.width // s)


def _upsample(table: _Table, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    before, s = shapes[0], table.whole("stride", 1, 255)
    return Upsample(s), Shape(before.channels, before.height * s, before.width * s)


def _concat(table: _Table, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    first = shapes[0]
    if any((one.height, one.width) != (first.height, first.width) for one in shapes):
        raise NetworkError(
            f"{table.where}: a concat needs inputs of one height and width, not {', '.join(map(str, shapes))}"
        )
    return Concat(), Shape(sum(one.channels for one in shapes), first.height, first.width)


def _one_object(table: _Table, shapes: list[Shape], _: int) -> tuple[LayerOp, Shape]:
    classes = table.whole("classes", 1, 10_000, 1)
    anchors = tuple(_anchor(table, pair) for pair in table.get("anchors", list))
    wanted = len(anchors) * (5 + classes)
    if not anchors or shapes[0].channels != wanted:
        raise NetworkError(
            f"{table.where}: {len(anchors)} anchors × (5 + {classes} classes) read {wanted} channels, "
            f"but {shapes[0].channels} come; check 'anchors' and the filters of the last convolution"
        )
    return Detection("one-object", anchors, classes, False), shapes[0]


def _anchor(table: _Table, pair: Any) -> tuple[float, float]:
    sides = pair if isinstance(pair, list) else []
    if len(sides) != 2 or not all(_is_number(v) and 0 < v < 1e6 for v in sides):
        raise NetworkError(f"{table.where}: an anchor is a width and a height in pixels, not {str(pair)[:80]!r}")
    return float(sides[0]), float(sides[1])


_KINDS: dict[str, Callable[[_Table, list[Shape], int], tuple[LayerOp, Shape]]] = {
    "convolution": _convolution,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "reorg": _reorg,
    "upsample": _upsample,
    "concat": _concat,
    "one_object": _one_object,
}


# ---------------------------------------------------------------- JSON


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18


class _Table:
    """A JSON object whose keys are taken one by one; what nobody took is unknown."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise NetworkError(f"{where} must be a JSON object, not {str(values)[:80]!r}")
        self.values: Mapping[str, Any] = values
        self.where = where
        self._taken: set[str] = set()

    def has(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str, kind: type[Any] | tuple[type[Any], ...], default: Any = None) -> Any:
        self._taken.add(key)
        value = self.values.get(key, default)
        if value is None and key not in self.values:
            raise NetworkError(f"{self.where}: {key!r} is missing")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            wanted = " or ".join(_JSON_NAMES[one] for one in kinds)
            raise NetworkError(f"{self.where}: {key!r} must be {wanted}, not {str(value)[:80]!r}")
        return value

    def whole(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value: int = self.get(key, int, default)
        if not low <= value <= high:
            raise NetworkError(f"{self.where}: {key!r} must be {low}…{high}, not {str(value)[:80]}")
        return value

    def number(self, key: str, low: float, high: float, default: float) -> float:
        value = self.get(key, (int, float), default)
        if not _is_number(value) or not low <= value <= high:
            raise NetworkError(f"{self.where}: {key!r} must be {low:g}…{high:g}, not {str(value)[:80]}")
        return float(value)

    def text(self, key: str) -> str:
        value: str = self.get(key, str)
        if not 1 <= len(value) <= 200 or not value.isprintable():
            raise NetworkError(f"{self.where}: {key!r} must be 1…200 printable characters, not {value[:80]!r}")
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str | None) -> str:
        value: str = self.get(key, str, default)
        if value not in choices:
            close = difflib.get_close_matches(value, choices, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise NetworkError(f"{self.where}: {key!r} must be {', '.join(choices)}, not {value[:80]!r}{hint}")
        return value

    def labels(self) -> tuple[str, ...]:
        listed = self.get("labels", list, [])
        if len(listed) > 10_000 or not all(isinstance(one, str) and one.isprintable() for one in listed):
            raise NetworkError(f"{self.where}: 'labels' must be printable texts, one a class")
        return tuple(one[:200] for one in listed)

    def finish(self) -> None:
        unknown = sorted(set(self.values) - self._taken)
        if unknown:
            close = difflib.get_close_matches(unknown[0], self._taken, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(self._taken))}"
            raise NetworkError(f"{self.where}: {unknown[0][:80]!r} is no key of it; {hint}")


_JSON_NAMES: dict[type[Any], str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}

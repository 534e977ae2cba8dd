"""A random network in the exported JSON form, with every key that the reader takes and the streaming style maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.networks.dice import Dice

HOSTILE = ("int", "class", "frames", "in", "out", "word", "streaming_top", "input_window", "main", "hls", "x1_window")
"""Names of layers that generated code may use for something else."""

BIPOLAR, SUMS, PICTURE = "bipolar", "sums", "picture"
"""Kinds of maps: values −1 and +1, sums that are not requantised, and the input image."""


@dataclass(frozen=True)
class Map:
    """The output of a layer.

    Attributes:
        name: The layer's name.
        kind: The datatype, as far as layers that read the map depend on it.
    """

    name: str
    channels: int
    height: int
    width: int
    kind: str

    @property
    def least(self) -> int:
        return min(self.height, self.width)


@dataclass
class Growing:
    """A network to which layers are added. A layer without "from" reads the last map.

    Attributes:
        maps: The input image, then the output of each layer.
        names: The kind of the layers' names, "plain" or "hostile".
        layers: The JSON objects of the layers.
    """

    dice: Dice
    maps: list[Map]
    names: str
    layers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def last(self) -> Map:
        return self.maps[-1]

    def add(self, kind: str, result: Map, source: Map, **keys: Any) -> None:
        """Append a layer that reads ``source``."""
        layer: dict[str, Any] = {"type": kind, "name": result.name, **keys}
        if source is not self.last and "from" not in layer:
            layer["from"] = source.name
        self.layers.append(layer)
        self.maps.append(result)

    def name(self) -> str:
        """Return the name of the next layer. Hostile names come from HOSTILE, as long as it lasts."""
        number = len(self.layers) + 1
        if self.names == "hostile" and number <= len(HOSTILE):
            return HOSTILE[number - 1]
        return f"x{number}"


def drawn_topology(dice: Dice, most_layers: int, wild: bool) -> dict[str, Any]:
    """Return the JSON object of a network file.

    Args:
        wild: Whether weights get extreme values. The finest scales cannot hold these, and are not drawn then.
    """
    channels = dice.pick((3, 3, 3, 3, 1, 2, 4, 9))
    picture = Map("input", channels, dice.whole(2, 20), dice.whole(2, 20), PICTURE)
    growing = Growing(dice, [picture], dice.pick(("plain",) * 9 + ("hostile",)))
    order = "BGR" if channels == 3 and dice.chance(0.2) else "RGB"
    few_bits = dice.chance(0.35)
    _convolution(growing, few_bits)
    count = dice.whole(1, most_layers - 1)
    for _ in range(4 * count):
        if len(growing.layers) < count:
            dice.pick(STEPS)(growing, few_bits)
    _end(growing, few_bits)
    if not _softmax(growing, Dice(dice.seed())):
        _choice(growing)
    _read_bipolar(growing)
    picture_keys = {"channels": channels, "height": picture.height, "width": picture.width, "order": order}
    if "output_bits" in growing.layers[0] and "requantise" not in growing.layers[0] and dice.chance(0.2):
        picture_keys |= {"mean": dice.whole(0, 100) / 100, "std": dice.pick((1, 0.5, 0.25))}
    return {
        "format": "systolic exported network 1",
        "name": dice.pick(("drawn", "drawn", "a b", "net-2", "int")),
        "input": picture_keys,
        "fit": dice.pick(("plain", "letterbox", "smooth")),
        "extra_bits": dice.pick((0, 1, 4, 8) if wild else (0, 1, 4, 8, 8, 10, 12)),
        "batch_norm": {
            "epsilon": dice.pick((1e-3, 0.1) if wild else (1e-5, 1e-3, 0.1, 0.0)),
            "added_to": dice.pick(("root", "variance")),
        },
        "requantise": dice.pick(("multiply_shift", "thresholds")),
        "labels": dice.pick(([], ["object"], ["a <b>", "ä \u4e2d 🙂", '"quoted\\"', "*/ #error"])),
        "layers": growing.layers,
    }


def multiplied(topology: dict[str, Any]) -> dict[str, Any]:
    """Return the topology for a systolic array, which supports neither thresholds nor outputs of −1…1.

    At most four extra bits of the requantisation's product are kept, because the array's multipliers have 17 bits.
    """
    layers = []
    for layer in topology["layers"]:
        dropped = {"requantise", "extra_bits"} | ({"activation"} if layer.get("activation") == "symmetric" else set())
        layers.append({key: value for key, value in layer.items() if key not in dropped})
        if "activation" in dropped:
            layers[-1]["output_bits"] = 2
        if layers[-1].get("output_bits") == 8:
            layers[-1]["output_bits"] = 7  # unsigned values need one bit more in a lane
    extra_bits = min(4, topology["extra_bits"])
    return {**topology, "requantise": "multiply_shift", "extra_bits": extra_bits, "layers": layers}


# --- steps -------------------------------------------------------------------------------------------------------


def _source(growing: Growing, *without: str) -> Map | None:
    """Return the last map or an earlier one, but none of the kinds ``without``; None if there is none."""
    fitting = [m for m in growing.maps[1:] or growing.maps if m.kind not in without]
    if growing.last in fitting and growing.dice.chance(0.85):
        return growing.last
    return growing.dice.pick(fitting) if fitting else None


def _convolution(growing: Growing, few_bits: bool, sums: bool = False, bipolar: bool = True) -> None:
    dice = growing.dice
    source = growing.maps[0] if len(growing.maps) == 1 else _source(growing, SUMS)
    if source is None:
        return
    kernel = dice.pick((1, 1, 2, 3, 3, 3, 4, 5))
    padding = 0 if source.kind == BIPOLAR else dice.whole(0, kernel - 1) if dice.chance(0.4) else kernel // 2
    kernel = min(kernel, source.least + 2 * padding)
    padding = min(padding, kernel - 1)
    stride = dice.pick((1, 1, 1, 2, 3))
    depthwise = source.channels > 1 and source.kind != PICTURE and dice.chance(0.25)
    filters = source.channels if depthwise else dice.pick((1, 2, 3, 4, 5, 6, 8, 8, 12, 16, 24))
    keys: dict[str, Any] = {"filters": filters, "kernel": kernel, "stride": stride, "padding": padding}
    if depthwise:
        keys["groups"] = source.channels
    keys["weight_bits"] = dice.pick((1, 2, 2, 3) if few_bits else (1, 2, 3, 4, 4, 5, 6, 7, 8))
    kind = SUMS
    if not sums and dice.chance(0.97):
        kind = _activation(growing, keys, few_bits, bipolar)
    height, width = ((side + 2 * padding - kernel) // stride + 1 for side in (source.height, source.width))
    growing.add("convolution", Map(growing.name(), filters, height, width, kind), source, **keys)


def _activation(growing: Growing, keys: dict[str, Any], few_bits: bool, bipolar: bool) -> str:
    """Draw a convolution's activation and requantisation into ``keys``, and return the kind of its output."""
    dice = growing.dice
    if dice.chance(0.2):
        keys["requantise"] = dice.pick(("multiply_shift", "thresholds", "given_thresholds", "given_thresholds"))
    if dice.chance(0.15):
        keys["extra_bits"] = dice.whole(0, 8)
    if dice.chance(0.6 if few_bits else 0.25):
        bits = dice.pick((1, 2, 2)) if bipolar else 2
        keys |= {"activation": "symmetric", "output_bits": bits}
        return BIPOLAR if bits == 1 else "ternary"
    bits = dice.pick((1, 2, 3) if few_bits else (1, 2, 3, 4, 4, 4, 5, 6, 8))
    keys["output_bits"] = bits
    if dice.chance(0.3):
        keys["activation"] = "unit"
    return f"unit{bits}"


def _max_pool(growing: Growing, _: bool) -> None:
    dice = growing.dice
    source = _source(growing)
    if source is None or source.least < 2:
        return
    size = min(dice.pick((1, 2, 2, 2, 3, 4)), source.least)
    if dice.chance(0.25):
        _rectangular_pool(growing, source)
        return
    stride = dice.pick((None, None, 1, 2, 3))
    step = size if stride is None else stride
    padding = dice.whole(0, size - 1) if dice.chance(0.3) else 0
    height, width = ((side + 2 * padding - size) // step + 1 for side in (source.height, source.width))
    keys = (
        {"size": size, "padding": padding} if stride is None else {"size": size, "stride": stride, "padding": padding}
    )
    growing.add("max_pool", Map(growing.name(), source.channels, height, width, source.kind), source, **keys)


def _rectangular_pool(growing: Growing, source: Map) -> None:
    """Add a max pool whose padding differs per side, and whose window may have different rows and columns."""
    dice = growing.dice
    sides = [min(dice.whole(1, 5), side) for side in (source.height, source.width)]
    stride = dice.whole(1, 3)
    pads = [dice.whole(0, side - 1) if dice.chance(0.4) else 0 for side in sides * 2]
    lengths = (source.height + pads[0] + pads[2] - sides[0], source.width + pads[1] + pads[3] - sides[1])
    height, width = (length // stride + 1 for length in lengths)
    keys = {"size": sides, "stride": stride, "padding": pads}
    growing.add("max_pool", Map(growing.name(), source.channels, height, width, source.kind), source, **keys)


def _average_pool(growing: Growing, _: bool) -> None:
    source = _source(growing, BIPOLAR, SUMS)
    if source is not None and growing.dice.chance(0.5):
        growing.add("average_pool", Map(growing.name(), source.channels, 1, 1, source.kind), source)


def _reorg(growing: Growing, _: bool) -> None:
    source = _source(growing)
    if source is None:
        return
    strides = [s for s in (1, 2, 3) if source.height % s == source.width % s == 0 and source.channels * s * s <= 64]
    if not strides:
        return
    stride = growing.dice.pick(strides)
    order = "darknet" if source.channels % stride**2 == 0 and growing.dice.chance(0.5) else "block"
    height, width = source.height // stride, source.width // stride
    keys = {"stride": stride, "order": order}
    growing.add("reorg", Map(growing.name(), source.channels * stride**2, height, width, source.kind), source, **keys)


def _upsample(growing: Growing, _: bool) -> None:
    source = _source(growing)
    stride = growing.dice.pick((1, 2, 2, 3))
    if source is None or max(source.height, source.width) * stride > 24:
        return
    height, width = source.height * stride, source.width * stride
    growing.add("upsample", Map(growing.name(), source.channels, height, width, source.kind), source, stride=stride)


def _concat(growing: Growing, _: bool) -> None:
    """Add a concat of maps with the same rows, columns and kind. A map may be joined twice."""
    dice, first = growing.dice, growing.last
    alike = [m for m in growing.maps[1:] if (m.height, m.width, m.kind) == (first.height, first.width, first.kind)]
    if not alike:
        return
    sources = [dice.pick(alike) for _ in range(dice.pick((1, 2, 2, 2, 3, 5)))]
    channels = sum(source.channels for source in sources)
    if channels <= 64:
        result = Map(growing.name(), channels, first.height, first.width, first.kind)
        growing.add("concat", result, first, **{"from": [source.name for source in sources]})


def _add(growing: Growing, _: bool) -> None:
    """Add an addition of maps with the same shape and datatype. A map may be added twice."""
    dice, first = growing.dice, growing.last
    form = (first.channels, first.height, first.width, first.kind)
    alike = [m for m in growing.maps[1:] if (m.channels, m.height, m.width, m.kind) == form]
    if not alike or not first.kind.startswith("unit"):
        return
    sources = [dice.pick(alike) for _ in range(dice.pick((2, 2, 2, 3, 4)))]
    keys: dict[str, Any] = {"from": [source.name for source in sources]}
    bits, count = int(first.kind.removeprefix("unit")), len(sources)
    kind = f"sum of {count} {first.kind}"
    if (count * ((1 << bits) - 1)).bit_length() > 8 or dice.chance(0.6):
        keys["output_bits"] = dice.whole(1, 8)
        kind = f"unit{keys['output_bits']}"
    growing.add("add", Map(growing.name(), first.channels, first.height, first.width, kind), first, **keys)


Step = Callable[[Growing, bool], None]
STEPS: tuple[Step, ...] = (_convolution,) * 6 + (
    _max_pool,
    _max_pool,
    _average_pool,
    _reorg,
    _upsample,
    _concat,
    _concat,
    _add,
    _add,
)


def _end(growing: Growing, few_bits: bool) -> None:
    """End the network with sums, with or without a head, or with values, because a BIPOLAR map cannot be an output."""
    dice = growing.dice
    if growing.last.kind == SUMS or (growing.last.kind != BIPOLAR and dice.chance(0.15)):
        return
    if dice.chance(0.3):
        return _convolution(growing, few_bits, bipolar=False)
    source, count, classes = growing.last, dice.whole(1, 3), dice.whole(1, 3)
    headed = dice.chance(0.4)
    filters = count * (5 + classes) if headed else dice.whole(1, 12)
    keys = {"filters": filters, "kernel": 1, "weight_bits": dice.pick((1, 2, 4, 8))}
    result = Map(growing.name(), filters, source.height, source.width, SUMS)
    growing.add("convolution", result, source, **keys)
    if headed:
        anchors = [[dice.whole(1, 30), dice.whole(1, 300) / 10] for _ in range(count)]
        kind = dice.pick(("one_object", "one_object", "region", "yolo"))
        growing.layers.append({"type": kind, "anchors": anchors, "classes": classes})


def _softmax(growing: Growing, dice: Dice) -> bool:
    """Add a softmax over the last map's channels to some networks, and return whether it was added.

    The softmax of sums is computed by the method argmax, or by the host (the method "none").
    """
    if growing.layers[-1]["type"] in ("one_object", "region", "yolo") or growing.last.kind == BIPOLAR:
        return False
    if not dice.chance(0.2):
        return False
    methods = ("argmax", "none") if growing.last.kind == SUMS else ("stable", "stable", "latency", "argmax", "none")
    growing.layers.append({"type": "softmax", "name": growing.name(), "method": dice.pick(methods)})
    return True


def _choice(growing: Growing) -> None:
    """Add a top-k of the last map to some networks: its labels, its values, or both, with the same or another k."""
    dice, source = growing.dice, growing.last
    if growing.layers[-1]["type"] in ("one_object", "region", "yolo") or not dice.chance(0.3):
        return
    many = {"k": dice.whole(1, min(source.channels, 8))}
    growing.layers.append({"type": "top_k", "name": growing.name(), **many})
    if source.kind == BIPOLAR or not dice.chance(0.5):
        return
    if dice.chance(0.2):
        growing.layers[-1]["labels"] = False
        return
    many = many if dice.chance(0.7) else {"k": dice.whole(1, min(source.channels, 8))}
    values = {"type": "top_k", "name": growing.name(), "from": source.name, "labels": False, **many}
    growing.layers.append(values)


def _read_bipolar(growing: Growing) -> None:
    """Add a convolution after each BIPOLAR map that no layer reads, because such a map cannot be an output."""
    named = (layer.get("from") for layer in growing.layers)
    read = {name for reads in named for name in (reads if isinstance(reads, list) else [reads])}
    pairs = zip(growing.maps, growing.layers, strict=False)
    read |= {before.name for before, layer in pairs if "from" not in layer}
    for source in [m for m in growing.maps if m.kind == BIPOLAR and m.name not in read]:
        result = Map(growing.name(), 2, source.height, source.width, SUMS)
        growing.add("convolution", result, source, filters=2, kernel=1, weight_bits=4)

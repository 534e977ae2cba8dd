"""A random darknet cfg, with every section that a style maps and every option that decides shapes or numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fuzz.networks.dice import Dice

Section = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Map:
    """The shape of a darknet layer's output."""

    channels: int
    height: int
    width: int

    @property
    def least(self) -> int:
        return min(self.height, self.width)


@dataclass
class Growing:
    """A network to which sections are added.

    Attributes:
        picture: The shape of the input image.
        activations: The activations that layers draw from.
        largest: The greatest number of filters of a convolution.
        maps: The output shape of each darknet layer, in the order of ``sections``.
    """

    dice: Dice
    picture: Map
    activations: tuple[str, ...]
    largest: int
    sections: list[Section] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)

    @property
    def last(self) -> Map:
        return self.maps[-1] if self.maps else self.picture

    def add(self, kind: str, result: Map, **options: Any) -> None:
        """Append a section, whose output has the shape ``result``."""
        self.sections.append((kind, options))
        self.maps.append(result)


def drawn_sections(dice: Dice, style: str, most_layers: int) -> list[Section]:
    """Return the sections of a cfg, [net] first."""
    picture = Map(dice.pick((3, 3, 3, 3, 1, 2, 4, 5, 11)), dice.whole(2, 24), dice.whole(2, 24))
    # A concat gives all its inputs one scale, and relu6 fixes its own scale. So all layers have relu6, or none has it.
    plain = ("leaky", "relu", "linear", "leaky")
    curved = (*plain, "mish", "swish", "logistic", "tanh", "hardtan")
    activations = dice.pick((("relu6",), plain, plain, curved, curved))
    growing = Growing(dice, picture, activations, 48 if style == "systolic" else 24)
    _convolution(growing)
    steps = STEPS[style]
    count = dice.whole(1, most_layers - 1)
    for _ in range(4 * count):
        if len(growing.sections) < count:
            dice.pick(steps)(growing)
    _end(growing, style)
    net = {"width": picture.width, "height": picture.height, "channels": picture.channels}
    return [("net", net), *growing.sections]


# --- steps -------------------------------------------------------------------------------------------------------


def _convolution(growing: Growing) -> None:
    dice, source = growing.dice, growing.last
    size = dice.pick((1, 1, 2, 3, 3, 3, 3, 4, 5, 7))
    options: dict[str, Any] = {"size": size}
    pad = 0
    if dice.chance(0.75):
        options["pad"], pad = 1, size // 2
    elif dice.chance(0.6):
        options["padding"] = pad = dice.whole(0, size - 1)
    if source.least + 2 * pad < size:
        options, size, pad = {"size": 1}, 1, 0
    options["stride"] = stride = dice.pick((1, 1, 1, 1, 2, 2, 3))
    filters = dice.pick((1, 2, 3, 4, 6, 8, 8, 12, 16, growing.largest))
    if growing.maps and source.channels > 1 and dice.chance(0.2):
        options["groups"] = filters = source.channels
    options |= {"filters": filters, "activation": dice.pick(growing.activations)}
    if dice.chance(0.6):
        options["batch_normalize"] = 1
    height, width = ((side + 2 * pad - size) // stride + 1 for side in (source.height, source.width))
    growing.add("convolutional", Map(filters, height, width), **options)


def _darknet_pool(growing: Growing) -> None:
    """Add a max pool of size 2 and stride 1 or 2."""
    stride = growing.dice.pick((1, 2))
    _pooled(growing, 2, stride, 1, {"size": 2, "stride": stride})


def _any_pool(growing: Growing) -> None:
    dice = growing.dice
    size, stride = dice.pick((1, 2, 2, 3, 3, 4)), dice.pick((1, 2, 2, 3))
    padding = dice.pick((size - 1, size - 1, 0, dice.whole(0, max(0, 2 * size - 2))))
    options = {"size": size, "stride": stride}
    if padding != size - 1:
        options["padding"] = padding
    _pooled(growing, size, stride, padding, options)


def _pooled(growing: Growing, size: int, stride: int, padding: int, options: Mapping[str, Any]) -> None:
    source = growing.last
    if source.least + padding < size or padding - padding // 2 >= size:
        return
    height, width = ((side + padding - size) // stride + 1 for side in (source.height, source.width))
    growing.add("maxpool", Map(source.channels, height, width), **options)


def _average(growing: Growing) -> None:
    if growing.dice.chance(0.4):
        growing.add("avgpool", Map(growing.last.channels, 1, 1))


def _connected(growing: Growing) -> None:
    dice, source = growing.dice, growing.last
    if source.channels * source.height * source.width <= 600 and dice.chance(0.5):
        outputs = dice.whole(1, 20)
        options = {"output": outputs, "activation": dice.pick(growing.activations)}
        growing.add("connected", Map(outputs, 1, 1), **options, **({"batch_normalize": 1} if dice.chance(0.3) else {}))


def _index(growing: Growing, number: int) -> int:
    """Return the index of a layer, counted from the front, or as a negative index from the back."""
    return number if growing.dice.chance(0.5) else number - len(growing.maps)


def _route(growing: Growing) -> None:
    """Add a route to one layer, which begins a branch. Systolic designs support such branches."""
    number = growing.dice.whole(0, len(growing.maps) - 1)
    growing.add("route", growing.maps[number], layers=str(_index(growing, number)))


def _join(growing: Growing) -> None:
    dice, first = growing.dice, growing.last
    alike = [i for i, m in enumerate(growing.maps) if (m.height, m.width) == (first.height, first.width)]
    numbers = [dice.pick(alike) for _ in range(dice.pick((1, 2, 2, 2, 3, 5)))]
    channels = sum(growing.maps[number].channels for number in numbers)
    if channels > 64:
        return
    options: dict[str, Any] = {"layers": ",".join(str(_index(growing, number)) for number in numbers)}
    groups = dice.pick([g for g in (1, 1, 1, 2, 3, 4) if channels % g == 0])
    if groups > 1:
        options |= {"groups": groups, "group_id": dice.whole(0, groups - 1)}
    growing.add("route", Map(channels // groups, first.height, first.width), **options)


def _reorg(growing: Growing) -> None:
    source = growing.last
    strides = [s for s in (1, 2) if source.height % s == source.width % s == source.channels % s**2 == 0]
    stride = growing.dice.pick(strides)
    result = Map(source.channels * stride**2, source.height // stride, source.width // stride)
    if result.channels <= 96:
        growing.add("reorg", result, stride=stride)


def _upsample(growing: Growing) -> None:
    source, stride = growing.last, growing.dice.pick((1, 2, 2, 3))
    if max(source.height, source.width) * stride <= 24:
        growing.add("upsample", Map(source.channels, source.height * stride, source.width * stride), stride=stride)


def _shortcut(growing: Growing) -> None:
    """Add a shortcut from a map of the same shape. If there is no other such map, the last map is added to itself."""
    alike = [i for i, m in enumerate(growing.maps) if m == growing.last]
    options: dict[str, Any] = {"from": _index(growing, growing.dice.pick(alike))}
    growing.add("shortcut", growing.last, **options, activation=growing.dice.pick(growing.activations))


def _gate(growing: Growing) -> None:
    """Add a product: of two maps of one shape, or of a map and one value per channel (squeeze and excitation)."""
    dice, source, number = growing.dice, growing.last, len(growing.maps) - 1
    options: dict[str, Any] = {"activation": dice.pick(growing.activations)}
    if dice.chance(0.5):
        number = dice.pick([i for i, m in enumerate(growing.maps) if m == source])
        growing.add("sam", source, **{"from": _index(growing, number)}, **options)
        return
    pixel = Map(source.channels, 1, 1)
    growing.add("avgpool", pixel)
    growing.add("convolutional", pixel, size=1, filters=pixel.channels, activation=dice.pick(growing.activations))
    growing.add("scale_channels", source, **{"from": _index(growing, number)}, **options)


def _side_by_side(growing: Growing) -> None:
    """Add a join that the systolic style may support: a concat, a channel group, an upsample, or a residual add."""
    dice, first = growing.dice, growing.last
    alike = [i for i, m in enumerate(growing.maps) if (m.height, m.width) == (first.height, first.width)]
    others = [i for i in alike[:-1] if growing.maps[i] == first]
    kind = dice.pick(("route", "route", "groups", "upsample", "shortcut", "shortcut"))
    if kind == "route" and len(alike) > 1:
        numbers = dict.fromkeys(dice.pick(alike) for _ in range(dice.pick((2, 2, 3))))
        channels = sum(growing.maps[number].channels for number in numbers)
        layers = ",".join(str(_index(growing, number)) for number in numbers)
        growing.add("route", Map(channels, first.height, first.width), layers=layers)
        _convolution(growing)
    elif kind == "groups" and first.channels > 1:
        groups = dice.pick([g for g in (2, 3, 4, first.channels) if first.channels % g == 0])
        part = Map(first.channels // groups, first.height, first.width)
        growing.add("route", part, layers="-1", groups=groups, group_id=dice.whole(0, groups - 1))
        _convolution(growing)
    elif kind == "upsample" and max(first.height, first.width) <= 12:
        stride = 3 if max(first.height, first.width) <= 6 and dice.chance(0.2) else 2
        growing.add("upsample", Map(first.channels, stride * first.height, stride * first.width), stride=stride)
    elif kind == "shortcut" and others:
        options = {"from": _index(growing, dice.pick(others)), "activation": dice.pick(growing.activations)}
        growing.add("shortcut", first, **options)


def _product(growing: Growing) -> None:
    """Add a product of two new maps. They are new, so no other join uses them in another position."""
    _same_again(growing)
    _same_again(growing)
    if len(growing.maps) > 2:
        growing.add("sam", growing.last, **{"from": _index(growing, len(growing.maps) - 2)})


def _same_again(growing: Growing) -> None:
    """Add a convolution whose output has the shape of its input, so that a residual add can join the two."""
    source = growing.last
    if growing.maps:
        options = {"size": growing.dice.pick((1, 3)), "pad": 1, "stride": 1, "filters": source.channels}
        growing.add("convolutional", source, **options, activation=growing.dice.pick(growing.activations))


def _block(growing: Growing) -> None:
    """Add a concat as known networks have it, whose maps can stay on chip.

    The kinds are the fire module of SqueezeNet, a cross-stage block, the upsampling path of a U-Net, and a route to an
    earlier layer. A map that is joined has other readers too.
    """
    dice = growing.dice
    first = _keeping(growing)
    kind = dice.pick(("fire", "cross stage", "cross stage", "up again", "route", "route"))
    if kind == "fire":
        left = _keeping(growing)
        _look_back(growing, first)
        _concat(growing, left, _keeping(growing))
    elif kind == "cross stage":
        if growing.last.channels % 2 == 0:
            part = replace(growing.last, channels=growing.last.channels // 2)
            growing.add("route", part, layers="-1", groups=2, group_id=dice.whole(0, 1))
        left = _keeping(growing)
        _concat(growing, _keeping(growing), left)
        _concat(growing, first, _keeping(growing))
    elif kind == "up again" and growing.last.height % 2 == growing.last.width % 2 == 0:
        growing.add("maxpool", _scaled(growing.last, 1, 2), size=2, stride=2)
        _keeping(growing)
        growing.add("upsample", _scaled(growing.last, 2, 1), stride=2)
        _concat(growing, len(growing.maps) - 1, first)
    else:
        for _ in range(dice.whole(1, 3)):
            _keeping(growing)
        _concat(growing, len(growing.maps) - 1, first)
    _convolution(growing)


def _keeping(growing: Growing) -> int:
    """Add a convolution whose output has the rows and columns of its input, and return its index."""
    dice, source = growing.dice, growing.last
    filters = dice.pick((2, 4, 8, 8, 12, 16))
    options = {"size": dice.pick((1, 1, 3, 3, 5)), "pad": 1, "stride": 1, "filters": filters}
    activation = dice.pick(growing.activations)
    growing.add("convolutional", replace(source, channels=filters), **options, activation=activation)
    return len(growing.maps) - 1


def _look_back(growing: Growing, number: int) -> None:
    growing.add("route", growing.maps[number], layers=str(_index(growing, number)))


def _concat(growing: Growing, *numbers: int) -> None:
    maps = [growing.maps[number] for number in numbers]
    layers = ",".join(str(_index(growing, number)) for number in numbers)
    growing.add("route", replace(maps[0], channels=sum(joined.channels for joined in maps)), layers=layers)


def _scaled(source: Map, times: int, parts: int) -> Map:
    return Map(source.channels, times * source.height // parts, times * source.width // parts)


def _nothing(growing: Growing) -> None:
    if growing.dice.chance(0.2):
        growing.add(growing.dice.pick(("dropout", "cost")), growing.last)


Step = Callable[[Growing], None]
_BOTH: tuple[Step, ...] = (_convolution,) * 6 + (_darknet_pool,) * 2 + (_average, _connected, _route, _nothing)
STEPS: dict[str, tuple[Step, ...]] = {
    "systolic": (*_BOTH, _any_pool, _side_by_side, _side_by_side, _same_again, _reorg, _product, *(_block,) * 6),
    "streaming": (*_BOTH, _any_pool, _any_pool, _join, _join, _reorg, _upsample, _shortcut, _shortcut, _gate),
}


# --- ends --------------------------------------------------------------------------------------------------------


def _end(growing: Growing, style: str) -> None:
    dice = growing.dice
    end = dice.pick(("as it is", "layer", "layer", "softmax", "region", "yolo", "yolo", "two heads"))
    if end == "as it is":
        return
    if end == "softmax":
        _convolution(growing)
        growing.add("softmax", growing.last)
    elif end == "region":
        _head(growing, "region", {"softmax": dice.whole(0, 1)})
    elif end == "yolo":
        _head(growing, "yolo", {})
    elif end == "two heads":
        number = dice.whole(0, len(growing.maps) - 1)
        _head(growing, "yolo", {})
        growing.add("route", growing.maps[number], layers=str(number))
        _head(growing, "yolo", {})
    else:
        _convolution(growing)


def _head(growing: Growing, kind: str, options: Mapping[str, Any]) -> None:
    dice, source = growing.dice, growing.last
    count, classes = dice.whole(1, 3), dice.whole(1, 4)
    filters = count * (5 + classes)
    growing.add(
        "convolutional", Map(filters, source.height, source.width), size=1, filters=filters, activation="linear"
    )
    anchors = ",".join(str(dice.whole(1, 300) / 10) for _ in range(2 * count))
    growing.add(kind, growing.last, anchors=anchors, num=count, classes=classes, **options)


def cfg_text(sections: list[Section]) -> str:
    """Return the text of the cfg file."""
    parts = ("\n".join([f"[{kind}]", *(f"{key}={value}" for key, value in keys.items())]) for kind, keys in sections)
    return "\n\n".join(parts) + "\n"

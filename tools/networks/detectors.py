"""Detectors: YOLOv3, YOLOv4 and YOLOv8n. The maps of their last convolutions are the outputs."""

from __future__ import annotations

from onnx import ModelProto

from tests.support.onnx.yolov8 import Detector, Form
from tools.networks.writer import Floats, Layers, Numbers

ANCHORS = 3
"""Boxes that each cell of YOLOv3 and YOLOv4 predicts."""


def yolov3_voc() -> ModelProto:
    """Return YOLOv3 with the 20 classes of VOC at 416×416: pjreddie/darknet, cfg/yolov3-voc.cfg."""
    layers = Layers(3, 416, 416)
    filters = ANCHORS * (5 + 20)
    fine, middle, coarse = _darknet_53(layers)
    heads, x = [], ""
    for skip, channels in ((coarse, 512), (middle, 256), (fine, 128)):
        if x:
            x = layers.joined(layers.enlarged(_leaky(layers, x, channels)), skip)
        x = _five(layers, x or skip, channels)
        heads.append(_head(layers, x, 2 * channels, filters))
    return layers.model(*heads)


def yolov4() -> ModelProto:
    """Return YOLOv4 with the 80 classes of COCO at 416×416: AlexeyAB/darknet, cfg/yolov4.cfg."""
    layers = Layers(3, 416, 416)
    fine, middle, coarse = _csp_darknet_53(layers)
    coarse = _pyramid_pooling(layers, coarse)
    middle = _five(layers, _merged(layers, middle, coarse, 256), 256)
    fine = _five(layers, _merged(layers, fine, middle, 128), 128)
    lower_middle = _five(layers, layers.joined(_leaky(layers, fine, 256, 3, 2), middle), 256)
    lower = _five(layers, layers.joined(_leaky(layers, lower_middle, 512, 3, 2), coarse), 512)
    sizes = ((fine, 256), (lower_middle, 512), (lower, 1024))
    return layers.model(*(_head(layers, x, channels, ANCHORS * (5 + 80)) for x, channels in sizes))


class _Yolov8n(Detector):
    """YOLOv8n with numbers that are the same on every machine."""

    def __init__(self) -> None:
        super().__init__(Form())
        self.numbers = Numbers()

    def weights(self, filters: int, channels: int, size: int) -> Floats:
        return self.numbers.weights(filters, channels, size, size)

    def biases(self, filters: int) -> Floats:
        return self.numbers.biases(filters)


def yolov8n() -> ModelProto:
    """Return YOLOv8n with the 80 classes of COCO at 640×640, and with the decoding of boxes that ultralytics exports:
    ultralytics/cfg/models/v8/yolov8.yaml."""
    model: ModelProto = _Yolov8n().model()
    return model


def _leaky(layers: Layers, source: str, filters: int, size: int = 1, stride: int = 1) -> str:
    return layers.conv(source, filters, size, stride, "leaky")


def _mish(layers: Layers, source: str, filters: int, size: int = 1, stride: int = 1) -> str:
    return layers.conv(source, filters, size, stride, "mish")


def _five(layers: Layers, source: str, filters: int) -> str:
    """Append five convolutions, 1×1 and 3×3 in turn."""
    x = source
    for _ in range(2):
        x = _leaky(layers, _leaky(layers, x, filters), 2 * filters, 3)
    return _leaky(layers, x, filters)


def _head(layers: Layers, source: str, channels: int, filters: int) -> str:
    return layers.conv(_leaky(layers, source, channels, 3), filters, activation="linear", norm=False)


def _darknet_53(layers: Layers) -> list[str]:
    """Append the layers of Darknet-53, and return its maps of 52, 26 and 13 rows."""
    ends, x = [], _leaky(layers, layers.picture, 32, 3)
    for channels, blocks in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        x = _leaky(layers, x, channels, 3, 2)
        for _ in range(blocks):
            x = layers.added(x, _leaky(layers, _leaky(layers, x, channels // 2), channels, 3))
        ends.append(x)
    return ends[-3:]


def _csp_darknet_53(layers: Layers) -> list[str]:
    """Append the layers of CSPDarknet-53, and return its maps of 52, 26 and 13 rows."""
    ends, x = [], _mish(layers, layers.picture, 32, 3)
    for channels, half, inner, blocks in (
        (64, 64, 32, 1),
        (128, 64, 64, 2),
        (256, 128, 128, 8),
        (512, 256, 256, 8),
        (1024, 512, 512, 4),
    ):
        x = _mish(layers, x, channels, 3, 2)
        other, y = _mish(layers, x, half), _mish(layers, x, half)
        for _ in range(blocks):
            y = layers.added(y, _mish(layers, _mish(layers, y, inner), half, 3))
        x = _mish(layers, layers.joined(_mish(layers, y, half), other), channels)
        ends.append(x)
    return ends[-3:]


def _pyramid_pooling(layers: Layers, source: str) -> str:
    """Append YOLOv4's pools of 5, 9 and 13 positions, with the convolutions before and after them."""
    x = _leaky(layers, _leaky(layers, _leaky(layers, source, 512), 1024, 3), 512)
    x = layers.joined(*(layers.max_pool(x, size, 1, size // 2) for size in (13, 9, 5)), x)
    return _leaky(layers, _leaky(layers, _leaky(layers, x, 512), 1024, 3), 512)


def _merged(layers: Layers, fine: str, coarse: str, filters: int) -> str:
    enlarged = layers.enlarged(_leaky(layers, coarse, filters))
    return layers.joined(_leaky(layers, fine, filters), enlarged)

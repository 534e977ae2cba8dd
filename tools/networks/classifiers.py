"""Classifiers: ResNets, VGG-16 and EfficientNet-B0."""

from __future__ import annotations

from onnx import ModelProto

from tools.networks.writer import Layers

Blocks = tuple[tuple[int, int], ...]
"""Channels and number of blocks of each stage."""


def resnet_18() -> ModelProto:
    """Return ResNet-18 for ImageNet: He et al., arXiv 1512.03385, table 1."""
    return _image_net(((64, 2), (128, 2), (256, 2), (512, 2)), bottleneck=False)


def resnet_50() -> ModelProto:
    """Return ResNet-50 v1 for ImageNet: He et al., arXiv 1512.03385, table 1. The first 1×1 convolution of a block has
    the stride."""
    return _image_net(((64, 3), (128, 4), (256, 6), (512, 3)), bottleneck=True)


def resnet_20() -> ModelProto:
    """Return ResNet-20 for CIFAR-10: He et al., arXiv 1512.03385, section 4.2, with 1×1 convolutions as projections."""
    layers = Layers(3, 32, 32)
    x = layers.conv(layers.picture, 16, 3)
    x = residual_stages(layers, x, ((16, 3), (32, 3), (64, 3)))[-1]
    return layers.model(layers.dense(layers.flattened(layers.average(x)), 10))


def vgg_16() -> ModelProto:
    """Return VGG-16: Simonyan and Zisserman, arXiv 1409.1556, table 1, column D."""
    layers = Layers(3, 224, 224)
    x = layers.picture
    for filters, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            x = layers.conv(x, filters, 3, norm=False)
        x = layers.max_pool(x, 2, 2)
    x = layers.flattened(x, 7 * 7)
    x = layers.dense(layers.dense(x, 4096, "relu"), 4096, "relu")
    return layers.model(layers.dense(x, 1000))


EFFICIENT_NET = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
"""Expansion, channels, blocks, stride of the first block and kernel of each stage: Tan and Le, table 1."""


def efficientnet_b0() -> ModelProto:
    """Return EfficientNet-B0, with SiLU and squeeze-excite: Tan and Le, arXiv 1905.11946, table 1."""
    layers = Layers(3, 224, 224)
    x = layers.conv(layers.picture, 32, 3, 2, "silu")
    for expansion, channels, blocks, stride, kernel in EFFICIENT_NET:
        for block in range(blocks):
            x = _inverted(layers, x, expansion, channels, stride if block == 0 else 1, kernel)
    x = layers.average(layers.conv(x, 1280, activation="silu"))
    return layers.model(layers.dense(layers.flattened(x), 1000))


def residual_stages(layers: Layers, source: str, stages: Blocks, bottleneck: bool = False) -> list[str]:
    """Append stages of residual blocks, and return the output of each. Every stage but the first has stride 2."""
    ends, x = [], source
    for stage, (channels, blocks) in enumerate(stages):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            x = _bottleneck(layers, x, channels, stride) if bottleneck else basic_block(layers, x, channels, stride)
        ends.append(x)
    return ends


def basic_block(layers: Layers, source: str, channels: int, stride: int = 1) -> str:
    """Append a residual block of two 3×3 convolutions."""
    x = layers.conv(layers.conv(source, channels, 3, stride), channels, 3, activation="linear")
    return _with_shortcut(layers, source, x, stride)


def stem(layers: Layers) -> str:
    """Append the first convolution and pool of a ResNet for ImageNet."""
    return layers.max_pool(layers.conv(layers.picture, 64, 7, 2), 3, 2, 1)


def _image_net(stages: Blocks, bottleneck: bool) -> ModelProto:
    layers = Layers(3, 224, 224)
    x = residual_stages(layers, stem(layers), stages, bottleneck)[-1]
    return layers.model(layers.dense(layers.flattened(layers.average(x)), 1000))


def _bottleneck(layers: Layers, source: str, channels: int, stride: int) -> str:
    x = layers.conv(layers.conv(source, channels, 1, stride), channels, 3)
    return _with_shortcut(layers, source, layers.conv(x, 4 * channels, activation="linear"), stride)


def _with_shortcut(layers: Layers, source: str, x: str, stride: int) -> str:
    same = stride == 1 and layers.channels[source] == layers.channels[x]
    other = source if same else layers.conv(source, layers.channels[x], 1, stride, "linear")
    return layers.activated(layers.added(x, other), "relu")


def _inverted(layers: Layers, source: str, expansion: int, channels: int, stride: int, kernel: int) -> str:
    """Append a block of EfficientNet: expansion, depthwise convolution, squeeze-excite, projection and shortcut."""
    before = layers.channels[source]
    inner = expansion * before
    x = source if expansion == 1 else layers.conv(source, inner, activation="silu")
    x = layers.conv(x, inner, kernel, stride, "silu", groups=inner)
    squeezed = layers.conv(layers.average(x), before // 4, activation="silu", norm=False)
    x = layers.multiplied(x, layers.conv(squeezed, inner, activation="sigmoid", norm=False))
    x = layers.conv(x, channels, activation="linear")
    return layers.added(x, source) if stride == 1 and before == channels else x

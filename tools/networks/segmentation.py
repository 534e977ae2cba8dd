"""Segmentation: a U-Net and a feature pyramid on ResNet-18, both as in AMD's model zoo."""

from __future__ import annotations

from onnx import ModelProto

from tools.networks.classifiers import basic_block, residual_stages, stem
from tools.networks.writer import Layers

U_NET = (16, 32, 64, 128, 256)
"""Channels of each level of the U-Net."""
CITYSCAPES = 19
"""Classes of Cityscapes, and the channels of the feature pyramid."""


def unet_512() -> ModelProto:
    """Return a U-Net with 16 channels at the first level, for 512×512: Ronneberger et al., arXiv 1505.04597, figure 1,
    with padding, and with batch norms before the last pool. Xilinx/Vitis-AI,
    pt_unet_chaos-CT_512_512_23.3G_1.3/code/networks/UNet.py, has the same layers."""
    layers = Layers(3, 512, 512)
    skips, x = [], layers.picture
    for level, channels in enumerate(U_NET):
        x = _twice(layers, layers.max_pool(x, 2, 2) if level else x, channels)
        skips.append(x)
    for channels, skip in zip(U_NET[-2::-1], skips[-2::-1], strict=True):
        x = _twice(layers, layers.joined(skip, layers.transposed(x, channels)), channels, norm=False)
    return layers.model(layers.conv(x, 2, activation="linear", norm=False))


def fpn_resnet_18() -> ModelProto:
    """Return a feature pyramid on ResNet-18 for the 19 classes of Cityscapes at 256×512: Xilinx/Vitis-AI,
    pt_SemanticFPN_cityscapes_256_512_10G_1.3/code/models/fpn.py."""
    layers = Layers(3, 256, 512)
    *finer, coarse = residual_stages(layers, stem(layers), ((64, 2), (128, 2), (256, 2), (512, 2)))
    x = layers.conv(coarse, CITYSCAPES, 3)
    for stage in reversed(finer):
        x = layers.added(layers.transposed(x, CITYSCAPES, bias=False), basic_block(layers, stage, CITYSCAPES))
        x = layers.activated(layers.added(layers.conv(x, CITYSCAPES, 3, activation="linear"), x), "relu")
    for _ in range(2):
        x = layers.transposed(x, CITYSCAPES, bias=False)
    return layers.model(x)


def _twice(layers: Layers, source: str, channels: int, norm: bool = True) -> str:
    return layers.conv(layers.conv(source, channels, 3, norm=norm), channels, 3, norm=norm)

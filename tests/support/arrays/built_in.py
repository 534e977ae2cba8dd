"""Built-in networks that are calibrated with noise, with small images if their layers allow it."""

from __future__ import annotations

import numpy as np

from cnn.quantized import QuantizedNetwork
from systolic.loading import load_model
from systolic.model import Calibration, quantise_model

SIZES = {
    "mobilenet-v1": (32, 32),
    "mobilenet-v2": (32, 32),
    "squeezenet": (48, 48),
    "unet-small": (32, 32),
    "yolo-fastest": (64, 64),
    "yolov3-tiny": (64, 64),
    "yolov4-tiny": (64, 64),
}


SYSTOLIC = (*SIZES, "ds-cnn", "resnet8")


def quantised(name: str, size: tuple[int, int] | None) -> QuantizedNetwork:
    model = load_model(name, seed=1, size=size)
    shape = model.network.input_shape
    noise = np.random.default_rng(2).integers(0, 256, (shape.height, shape.width, shape.channels), np.uint8)
    return quantise_model(model, Calibration((noise,), "max"))

"""The values that the generator computes for one small layer on an array."""

from __future__ import annotations

import numpy as np

from boards.board import Board, load
from cnn.datatype import INT8, UINT8, TensorType
from cnn.maps import Padding, Shape
from cnn.ops import QConvolution, QInput
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import Requantiser
from hls_templates.systolic.sources import (
    SystolicValues,
)
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.program.emit import emit
from systolic.styles.systolic.generation.generate import systolic_values
from systolic.styles.systolic.mapping import price
from tests.support.schedules import first_fit

SMALL = Array(5, 8, 8, row_depth=512, weight_depth=256, kept_depth=64, chunk=8, channel_tiles=16)


def values(array: Array = SMALL, board: Board | None = None) -> SystolicValues:
    """Return the values that the generator computes for one small layer on ``array``."""
    requantiser = Requantiser(*(np.full(3, value, np.int64) for value in (0, 1, 1, 1)))
    op = QConvolution(np.ones((3, 3, 3, 3), np.int8), INT8, requantiser, 1, Padding(1, 1, 1, 1), 1)
    shape, pixels = Shape(3, 9, 9), QNode("input", QInput(), (), Shape(3, 9, 9), TensorType(UINT8, 1.0), "net:1")
    network = QuantizedNetwork("net", (pixels, QNode("conv1", op, (0,), shape, TensorType(INT8, 1.0), "net:2")))
    board = board or load("pynq-z2" if array.dsp == "DSP48E1" else "zcu104")
    schedule = first_fit(network, array)
    return systolic_values(price(schedule, board, ddr_timing(board, board.clocks()[-1].mhz)), emit(schedule))

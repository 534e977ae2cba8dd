"""The operations of networks, a module for each family.

Each class says what its operation does: the shape of its output, its float reference, and of an operation on integers
the integers that it gives and the rules that it keeps. What depends on an engine is outside: lowering, export and the
second golden model match over ``Op`` or ``QOp``, and close the match by ``assert_never``.
"""

from __future__ import annotations

from typing import TypeAlias

from cnn.ops.activation import Activate, QActivate
from cnn.ops.convolution import Convolution, QConvolution
from cnn.ops.custom import Custom
from cnn.ops.dense import Dense, QDense
from cnn.ops.detection import (
    HEADS,
    MAX_BINS,
    MAX_SCALE,
    AnchorFree,
    Cells,
    Detection,
    GaussianYolo,
    OneObject,
    Region,
    ScaledYolo,
    Segmentation,
    Ssd,
    Yolo,
)
from cnn.ops.elementwise import ADD_LIMIT, Add, Multiply, QAdd, QMultiply
from cnn.ops.moving import PAD_MODES, Concat, DepthToSpace, Pad, Reorg, Slice, Upsample
from cnn.ops.operation import Accumulating, assert_never
from cnn.ops.pooling import AveragePool, MaxPool, QAveragePool
from cnn.ops.selection import Output, TopK, label_type
from cnn.ops.softmax import IntegerSoftmax, QSoftmax, Softmax
from cnn.ops.source import Input, QInput
from cnn.ops.weights import BatchNorm, Stored

Op: TypeAlias = (
    Input
    | Convolution
    | Dense
    | MaxPool
    | AveragePool
    | Concat
    | Slice
    | Reorg
    | DepthToSpace
    | Pad
    | Upsample
    | Add
    | Multiply
    | Activate
    | Custom
    | Softmax
    | IntegerSoftmax
    | TopK
    | Output
    | Detection
)
"""The operations of a float network."""

QOp: TypeAlias = (
    QInput
    | QConvolution
    | QDense
    | MaxPool
    | QAveragePool
    | Concat
    | Slice
    | Reorg
    | DepthToSpace
    | Pad
    | Upsample
    | QAdd
    | QMultiply
    | QActivate
    | QSoftmax
    | Custom
    | Softmax
    | TopK
    | Output
    | Detection
)
"""The operations of a quantised network."""

__all__ = [
    "ADD_LIMIT",
    "HEADS",
    "MAX_BINS",
    "MAX_SCALE",
    "PAD_MODES",
    "Accumulating",
    "Activate",
    "Add",
    "AnchorFree",
    "AveragePool",
    "BatchNorm",
    "Cells",
    "Concat",
    "Convolution",
    "Custom",
    "Dense",
    "DepthToSpace",
    "Detection",
    "GaussianYolo",
    "Input",
    "IntegerSoftmax",
    "MaxPool",
    "Multiply",
    "OneObject",
    "Op",
    "Output",
    "Pad",
    "QActivate",
    "QAdd",
    "QAveragePool",
    "QConvolution",
    "QDense",
    "QInput",
    "QMultiply",
    "QOp",
    "QSoftmax",
    "Region",
    "Reorg",
    "ScaledYolo",
    "Segmentation",
    "Slice",
    "Softmax",
    "Ssd",
    "Stored",
    "TopK",
    "Upsample",
    "Yolo",
    "assert_never",
    "label_type",
]

"""Network → jobs: everything that the array runs is one convolution with a fused pool.

before                                   after
conv 3×3, max pool 2/2                   one job, pool fused
connected on a C×H×W map                 a convolution with an H×W kernel and no padding
max pool of its own                      a 1×1 identity convolution on its own channels, pool fused
average pool                             an H×W convolution of ones on its own channels
depthwise convolution                    a convolution on its own channels
a layer that sees no neighbouring rows   one job on the maps of all frames of a batch, one under the other
connected, in a batch                    the same, each frame one row: a 1×W convolution of H times the channels
any other layer                          one job, executed frame by frame of a batch
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from boards.errors import ScheduleError
from cnn.network import Concat, MaxPool, Padding, Shape
from cnn.quantized import (
    IntArray,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QNode,
    QuantizedNetwork,
    Requantiser,
    identity,
    on_host,
)

MAX_STRIDE = 4
"""Of a convolution on the engine."""

MOST_JOINED = 1 << 16
"""Values of a map that is read as one row: a bank of the row buffer holds all of them."""

MAX_BATCH = 64
"""Frames that share the weights' passage at most: as many as an array has rows."""


@dataclass(frozen=True, eq=False)
class Job:
    """One convolution-like layer for the array.

    weights: int [filters, channels, kernel height, kernel width]; with ``diagonal`` [filters, 1, …]: every
    filter reads the channel of its own number. ``input`` and ``output`` are node indices: the map that is
    read, and the node whose map leaves (the pool, where one is fused).
    ``out`` is the shape before the pool (already cut to what the pool reads), ``saved`` the one after.
    stacked: frames of a batch whose maps are one map with so many times the rows, in ``out`` and ``saved`` too.
    joined: rows of the input, all of a frame, that are read as one: as they lie in DDR, its blocks are those of row
    after row. The kernel is as high as they are in ``weights``, and one row high on what is read.
    repeats: frames that are executed one after the other.
    """

    name: str
    input: int
    output: int
    weights: IntArray
    requantiser: Requantiser
    stride: int
    padding: Padding
    diagonal: bool
    pool_size: int
    pool_stride: int
    out: Shape
    saved: Shape
    node: int
    stacked: int = 1
    repeats: int = 1
    joined: int = 1

    @property
    def kernel(self) -> tuple[int, int]:
        """Of what is read."""
        return int(self.weights.shape[2]) // self.joined, int(self.weights.shape[3])

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the network asks for in all frames (the pool's identity counts as none)."""
        return int(self.weights.size) * self.out.height * self.out.width * self.repeats


def lower(network: QuantizedNetwork, batch: int = 1) -> tuple[Job, ...]:
    """Jobs in execution order; ScheduleError lists every layer that the array cannot map, with its line.

    batch: frames that go through each layer before the next layer starts.
    """
    check_batch(batch)
    unsupported = [
        f"{node.source}: {node.name}: {reason}" for node in network.nodes if (reason := _refusal(network, node))
    ]
    if unsupported:
        raise ScheduleError(
            f"the systolic back-end cannot map {len(unsupported)} layer(s) of {network.name} yet:\n  "
            + "\n  ".join(unsupported)
            + _elsewhere(network)
        )
    jobs: list[Job] = []
    for index, node in enumerate(network.nodes):
        if isinstance(node.op, (QInput, Concat)) or on_host(node.op):
            continue
        if isinstance(node.op, MaxPool) and _fuses(network, index, jobs):
            jobs[-1] = _fuse(jobs[-1], index, node, node.op)
        else:
            jobs.append(_job(network, index, node))
    return tuple(_batched(network, job, batch) for job in jobs)


def check_batch(batch: int) -> None:
    """ScheduleError where so many frames are no batch."""
    if not 1 <= batch <= MAX_BATCH:
        raise ScheduleError(f"a batch is 1…{MAX_BATCH} frames, not {batch}; choose a number in that range")


def _batched(network: QuantizedNetwork, job: Job, batch: int) -> Job:
    if batch == 1:
        return job
    before = network.nodes[job.input].shape
    out = replace(job.out, height=batch * job.out.height)
    if _joins(job, before):
        return replace(job, stride=1, out=out, saved=out, stacked=batch, joined=before.height)
    stride = _stacking_stride(job, before)
    if stride is None:
        return replace(job, repeats=batch)
    return replace(job, stride=stride, out=out, saved=out, stacked=batch)


def _joins(job: Job, before: Shape) -> bool:
    """Whether a frame can be one row: a kernel as large as the map takes rows as it takes channels. Pixels cannot,
    their rows end in the middle of a word; nor can a layer on its own channels, which lie apart then."""
    whole = job.kernel == (before.height, before.width) and job.padding == Padding()
    return whole and job.pool_size == 1 and job.input != 0 and not job.diagonal and before.values <= MOST_JOINED


def _stacking_stride(job: Job, before: Shape) -> int | None:
    """The stride with which the job does on maps under each other what it does on each; None where rows of two frames
    would meet in a window."""
    padding = job.padding
    if job.pool_size > 1 or padding.top or padding.bottom:
        return None
    if job.kernel[0] == 1 and job.stride == 1:
        return 1
    whole = job.kernel == (before.height, before.width) and padding == Padding()
    return before.height if whole and before.height <= MAX_STRIDE else None


def _elsewhere(network: QuantizedNetwork) -> str:
    """Where an activation is what the array cannot do, the other style can."""
    if any(_foreign(node.op) for node in network.nodes):
        return "\nthe streaming style has these activations: systolic fold NET, systolic generate NET --style streaming"
    return ""


def _foreign(op: object) -> bool:
    return isinstance(op, (QConvolution, QDense, QAveragePool)) and not isinstance(op.requantiser, Requantiser)


def resolve(network: QuantizedNetwork, index: int) -> int:
    """The node whose map ``index`` is: a route of one layer is that layer."""
    node = network.nodes[index]
    return resolve(network, node.inputs[0]) if isinstance(node.op, Concat) else index


def _refusal(network: QuantizedNetwork, node: QNode) -> str | None:
    op = node.op
    if isinstance(op, QInput):
        return None if node.shape.channels <= 4 else f"an input of {node.shape.channels} channels (at most 4)"
    if on_host(op):
        return None
    source = network.nodes[resolve(network, node.inputs[0])]
    if isinstance(op, (QConvolution, QDense, QAveragePool)) and _foreign(op):
        return f"its activation is {type(op.requantiser).__name__}, the Saver has a Requantiser"
    if isinstance(source.op, QInput) and not isinstance(op, (QConvolution, QDense)):
        return "the first layer has to be a convolution or connected"
    if isinstance(op, QConvolution):
        return _refuse_groups(op)
    if isinstance(op, MaxPool):
        return _refuse_pool(op, source.shape, node.shape)
    if isinstance(op, Concat) and len(node.inputs) == 1:
        return None
    if isinstance(op, (QDense, QAveragePool)):
        return None
    return f"{type(op).__name__.removeprefix('Q').lower()} has no mapping"


def _refuse_groups(op: QConvolution) -> str | None:
    depthwise = op.weights.shape[1] == 1 and op.weights.shape[0] == op.groups
    return None if op.groups == 1 or depthwise else f"groups={op.groups} (1, or as many as filters and channels)"


def _refuse_pool(op: MaxPool, before: Shape, after: Shape) -> str | None:
    if op.padding.top or op.padding.left or (op.size, op.stride) not in ((2, 2), (2, 1)):
        wanted = "size 2 with stride 2, or stride 1 padded right and bottom"
        return f"max pool of size {op.size} stride {op.stride} ({wanted})"
    if op.stride == 1 and (after.height, after.width) != (before.height, before.width):
        return "max pool of size 2 stride 1 that is not padded right and bottom"
    return None


def _fuses(network: QuantizedNetwork, index: int, jobs: list[Job]) -> bool:
    """A pool is fused when it is the only reader of the job just before it."""
    source = resolve(network, network.nodes[index].inputs[0])
    readers = sum(
        resolve(network, i) == source for node in network.nodes for i in node.inputs if not isinstance(node.op, Concat)
    )
    return bool(jobs) and jobs[-1].output == source and jobs[-1].pool_size == 1 and readers == 1


def _fuse(job: Job, index: int, node: QNode, pool: MaxPool) -> Job:
    out = Shape(job.out.channels, *_read_by(pool, job.out, node.shape))
    return replace(job, output=index, pool_size=pool.size, pool_stride=pool.stride, out=out, saved=node.shape)


def _read_by(pool: MaxPool, before: Shape, after: Shape) -> tuple[int, int]:
    """Rows and columns that the pool reads: an odd last one is left out unless it is padded."""
    return (min(before.height, after.height * pool.stride), min(before.width, after.width * pool.stride))


def _job(network: QuantizedNetwork, index: int, node: QNode) -> Job:
    source = resolve(network, node.inputs[0])
    before = network.nodes[source].shape
    base = Job(
        node.name,
        source,
        index,
        _NO_WEIGHTS,
        identity(before.channels),
        1,
        Padding(),
        False,
        1,
        1,
        node.shape,
        node.shape,
        index,
    )
    op = node.op
    if isinstance(op, QConvolution):
        return replace(
            base,
            weights=op.weights,
            requantiser=_requantiser(op),
            stride=op.stride,
            padding=op.padding,
            diagonal=op.groups > 1,
        )
    if isinstance(op, QDense):
        weights = op.weights.reshape(-1, before.channels, before.height, before.width)
        return replace(base, weights=weights, requantiser=_requantiser(op))
    if isinstance(op, QAveragePool):
        ones = np.ones((before.channels, 1, before.height, before.width), np.int8)
        return replace(base, weights=ones, requantiser=_requantiser(op), diagonal=True)
    assert isinstance(op, MaxPool)  # _refusal left nothing else
    through = replace(base, weights=np.ones((before.channels, 1, 1, 1), np.int8), diagonal=True, out=before)
    return _fuse(through, index, node, op)


def _requantiser(op: QConvolution | QDense | QAveragePool) -> Requantiser:
    assert isinstance(op.requantiser, Requantiser)  # _refusal left nothing else
    return op.requantiser


_NO_WEIGHTS: IntArray = np.zeros((1, 1, 1, 1), np.int8)

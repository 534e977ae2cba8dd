"""Pictures through the float network and the golden model to boxes or classes, one of them or many on all cores.

Each core has a process, in which BLAS uses one thread: for layers as small as these that is faster than BLAS's own
threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import FloatArray
from cnn.network import Network
from cnn.ops import Detection as DetectionHead
from cnn.ops import QSoftmax
from cnn.quantisation.fidelity import heads
from cnn.quantized import QuantizedNetwork
from host.contract.named_outputs import tells_classes
from host.vision.channels import load_frame, network_input, to_draw_on
from host.vision.detection import Detection, Score, classify, clipped, detect, most_probable
from host.vision.heads.head import SEGMENTATION, Head
from host.vision.placement import Placement
from systolic.evaluation.fidelity import Tried
from systolic.network_outputs import each_its_layer, head_of, tensors

LEAST_PROBABILITY = 0.005
"""Of the boxes that average precision ranks; darknet's own."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What is evaluated. quantised: of the same nodes as ``network``. fit: one of FITS.

    overlap: the greatest of two boxes of a class. tried: how its integers were made.
    """

    network: Network
    quantised: QuantizedNetwork
    fit: str
    overlap: float
    tried: Tried = field(default_factory=Tried)

    @cached_property
    def heads(self) -> tuple[tuple[tuple[int, ...], Head], ...]:
        """Each head that gives boxes, with the nodes that it reads."""
        nodes = self.network.nodes
        read = ((node.inputs, head_of(node.op)) for node in nodes if isinstance(node.op, DetectionHead))
        return tuple((sources, head) for sources, head in read if head.kind != SEGMENTATION)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """Nodes whose integers leave the accelerator."""
        return heads(self.quantised)

    @property
    def is_classifier(self) -> bool:
        """Whether it gives one value a class, and nothing else."""
        if self.heads or len(self.outputs) != 1:
            return False
        shape = self.network.nodes[self.outputs[0]].shape
        sides = [(1, shape.channels, shape.height, shape.width)]
        named = tensors(self.quantised, each_its_layer(self.quantised))
        told = all(tells_classes(tensor.steps, sides) for tensor in named)
        return told and shape.channels > 1 and shape.height == shape.width == 1

    @property
    def classes(self) -> int:
        """How many it tells apart."""
        if self.is_classifier:
            return self.network.nodes[self.outputs[0]].shape.channels
        return max((head.classes for _, head in self.heads), default=0)

    @property
    def sees_one_object(self) -> bool:
        """Whether its head gives one box a picture."""
        return any(head.kind == "one-object" for _, head in self.heads)


@dataclass(frozen=True)
class Seen:
    """detections: in pixels of the picture, clipped to its edges. scores: of a classifier."""

    detections: tuple[Detection, ...] = ()
    scores: tuple[Score, ...] = ()

    def above(self, threshold: float) -> tuple[Detection, ...]:
        """Those that a user is shown."""
        return tuple(detection for detection in self.detections if detection.probability > threshold)


@dataclass(frozen=True)
class Frame:
    """One picture. signal, noise: of each output, Σ float² and Σ (float − integer · scale)²."""

    width: int
    height: int
    floats: Seen
    integers: Seen
    signal: tuple[float, ...]
    noise: tuple[float, ...]


def compute(subject: Subject, path: Path) -> Frame:
    """Return the picture of a file; see ``load_frame``."""
    shape = subject.network.input_shape
    frame = load_frame(path)
    pixels, placement = network_input(frame, (shape.channels, shape.height, shape.width), subject.fit)
    exact = run_float(subject.network, pixels.astype(np.float32) / np.float32(255))
    approximate = golden_outputs(subject, pixels)
    ratios = [_energies(exact[node], approximate[node]) for node in subject.outputs]
    height, width = to_draw_on(frame).shape[:2]
    values = {node: exact[node] for node in approximate}
    return Frame(
        width,
        height,
        see(subject, values, placement),
        see(subject, approximate, placement),
        tuple(signal for signal, _ in ratios),
        tuple(noise for _, noise in ratios),
    )


def golden_outputs(subject: Subject, pixels: npt.NDArray[np.uint8]) -> dict[int, FloatArray]:
    """By node, what the host reads of the golden model, as floats."""
    integers = run_integer(subject.quantised, pixels)
    read = {*subject.outputs, *(node for sources, _ in subject.heads for node in sources)}
    return {
        node: dequantise(array, subject.quantised.nodes[node].type)
        for node in read
        if (array := integers[node]) is not None
    }


def see(subject: Subject, values: Mapping[int, FloatArray], placement: Placement) -> Seen:
    """values: by node."""
    labels = subject.network.labels
    if subject.is_classifier:
        (output,) = subject.outputs
        told = most_probable if isinstance(subject.quantised.nodes[output].op, QSoftmax) else classify
        return Seen(scores=told(values[output], labels))
    outputs = [np.concatenate([values[node] for node in sources]) for sources, _ in subject.heads]
    kinds = [head for _, head in subject.heads]
    boxes = detect(outputs, kinds, placement, labels, LEAST_PROBABILITY, subject.overlap)
    return Seen(clipped(boxes, placement.picture_width, placement.picture_height))


def _energies(exact: FloatArray, approximate: FloatArray) -> tuple[float, float]:
    doubles = exact.astype(np.float64)
    return float(np.sum(doubles**2)), float(np.sum((doubles - approximate) ** 2))


ALONE = 8
"""Pictures up to which starting processes takes longer than they save."""

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_subject: Subject | None = None


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compute_all(
    subject: Subject, paths: Sequence[Path], workers: int, progress: Callable[[int], None]
) -> tuple[Frame, ...]:
    """Compute all frames, in the order of the pictures. progress: is told how many are done. Raises the error of the
    first file that is not a picture."""
    frames: list[Frame] = []
    for frame in _computed(subject, paths, min(workers, len(paths))):
        frames.append(frame)
        progress(len(frames))
    return tuple(frames)


def _computed(subject: Subject, paths: Sequence[Path], workers: int) -> Iterator[Frame]:
    if workers < 2 or len(paths) <= ALONE:
        yield from (compute(subject, path) for path in paths)
        return
    with _one_thread():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (subject,))
        try:
            yield from pool.map(_compute, paths)
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(subject: Subject) -> None:
    global _subject
    _subject = subject


def _compute(path: Path) -> Frame:
    assert _subject is not None
    return compute(_subject, path)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Of BLAS, in processes that are started meanwhile."""
    values = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

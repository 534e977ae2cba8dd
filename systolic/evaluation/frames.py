"""Runs images through the float network and the golden model to boxes or classes, one or many in parallel.

Each core has one process, in which BLAS uses one thread. For layers of this size, this is faster than the threads of
BLAS.
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
from systolic.network_outputs import head_of, layer_per_node, tensors

MIN_PROBABILITY = 0.005
"""The least confidence of the boxes that average precision ranks. darknet uses the same value."""


@dataclass(frozen=True, eq=False)
class EvaluatedNetwork:
    """A float network, with the meaning of its outputs: boxes or classes. It decides how labels are read.

    Attributes:
        network: The float network.
    """

    network: Network

    @cached_property
    def heads(self) -> tuple[tuple[tuple[int, ...], Head], ...]:
        """Each detection head that outputs boxes: (indices of the nodes that it reads, its description)."""
        nodes = self.network.nodes
        read = ((node.inputs, head_of(node.op)) for node in nodes if isinstance(node.op, DetectionHead))
        return tuple((sources, head) for sources, head in read if head.kind != SEGMENTATION)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The indices of the nodes whose integers are the accelerator's outputs."""
        return heads(self.network)

    @property
    def is_classifier(self) -> bool:
        """Return whether the network's only output is one value per class."""
        if self.heads or len(self.outputs) != 1:
            return False
        shape = self.network.nodes[self.outputs[0]].shape
        sides = [(1, shape.channels, shape.height, shape.width)]
        named = tensors(self.network, layer_per_node(self.network))
        told = all(tells_classes(tensor.steps, sides) for tensor in named)
        return told and shape.channels > 1 and shape.height == shape.width == 1

    @property
    def classes(self) -> int:
        """The number of classes of the classifier or of the detection heads."""
        if self.is_classifier:
            return self.network.nodes[self.outputs[0]].shape.channels
        return max((head.classes for _, head in self.heads), default=0)

    @property
    def sees_one_object(self) -> bool:
        """Return whether the network has a head that outputs one box per image."""
        return any(head.kind == "one-object" for _, head in self.heads)


@dataclass(frozen=True, eq=False)
class Subject(EvaluatedNetwork):
    """The network that is evaluated, as a float and as a quantised network, with the resize method.

    Attributes:
        quantised: The quantised network. It has nodes of the same names as ``network``, and may have further ones.
        fit: The method that resizes images to the network's input, one of FITS.
        iou_threshold: The IoU threshold of non-maximum suppression.
        tried: The quantisation options that were used.
    """

    quantised: QuantizedNetwork
    fit: str
    iou_threshold: float
    tried: Tried = field(default_factory=Tried)

    @cached_property
    def quantised_nodes(self) -> dict[int, int]:
        """{index of a float node: index of the quantised node of the same name}."""
        index_of = {node.name: index for index, node in enumerate(self.quantised.nodes)}
        nodes = enumerate(self.network.nodes)
        return {index: index_of[node.name] for index, node in nodes if node.name in index_of}


@dataclass(frozen=True)
class ImageResult:
    """The boxes or the classes that a network finds in one image.

    Attributes:
        detections: The boxes, in pixels of the image and clipped to its edges.
        scores: The most probable classes of a classifier, in descending order.
    """

    detections: tuple[Detection, ...] = ()
    scores: tuple[Score, ...] = ()

    def above_threshold(self, threshold: float) -> tuple[Detection, ...]:
        """Return the detections with a confidence above the threshold."""
        return tuple(detection for detection in self.detections if detection.probability > threshold)


@dataclass(frozen=True)
class Frame:
    """The results of the float network and of the golden model for one image.

    Attributes:
        width: The width of the image in pixels.
        height: The height of the image in pixels.
        floats: The result of the float network.
        integers: The result of the golden model.
        signal: For each output, Σ float².
        noise: For each output, Σ (float − integer · scale)².
    """

    width: int
    height: int
    floats: ImageResult
    integers: ImageResult
    signal: tuple[float, ...]
    noise: tuple[float, ...]


def compute(subject: Subject, path: Path) -> Frame:
    """Run one image through the float network and the golden model, and return the boxes or classes of each.

    Raises:
        SystolicError: An error of ``load_frame`` for a file that is not an image.
    """
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
        decode_result(subject, values, placement),
        decode_result(subject, approximate, placement),
        tuple(signal for signal, _ in ratios),
        tuple(noise for _, noise in ratios),
    )


def golden_outputs(subject: Subject, pixels: npt.NDArray[np.uint8]) -> dict[int, FloatArray]:
    """Return {float node: floats} of the golden model's outputs that the host reads, dequantised."""
    integers = run_integer(subject.quantised, pixels)
    read = {*subject.outputs, *(node for sources, _ in subject.heads for node in sources)}
    places = {node: subject.quantised_nodes[node] for node in read}
    return {
        node: dequantise(array, subject.quantised.nodes[place].type)
        for node, place in places.items()
        if (array := integers[place]) is not None
    }


def decode_result(subject: Subject, values: Mapping[int, FloatArray], placement: Placement) -> ImageResult:
    """Decode the outputs of one image to boxes or classes, as the host does.

    Args:
        subject: The network.
        values: The float values of each output, by node.
        placement: The position of the image in the network's input.
    """
    labels = subject.network.labels
    if subject.is_classifier:
        (output,) = subject.outputs
        op = subject.quantised.nodes[subject.quantised_nodes[output]].op
        scores_of = most_probable if isinstance(op, QSoftmax) else classify
        return ImageResult(scores=scores_of(values[output], labels))
    outputs = [np.concatenate([values[node] for node in sources]) for sources, _ in subject.heads]
    kinds = [head for _, head in subject.heads]
    boxes = detect(outputs, kinds, placement, labels, MIN_PROBABILITY, subject.iou_threshold)
    return ImageResult(clipped(boxes, placement.picture_width, placement.picture_height))


def _energies(exact: FloatArray, approximate: FloatArray) -> tuple[float, float]:
    doubles = exact.astype(np.float64)
    return float(np.sum(doubles**2)), float(np.sum((doubles - approximate) ** 2))


ALONE = 8
"""The number of images up to which starting processes takes longer than it saves."""

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_subject: Subject | None = None


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compute_all(
    subject: Subject, paths: Sequence[Path], workers: int, progress: Callable[[int], None]
) -> tuple[Frame, ...]:
    """Run all images through the float network and the golden model, in the order of ``paths``.

    Args:
        subject: The network.
        paths: The image files.
        workers: The number of processes.
        progress: Receives the number of images that are done.

    Raises:
        SystolicError: The error of ``load_frame`` for the first file that is not an image.
    """
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
    """Inside this context, let processes that are started use one thread for BLAS."""
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

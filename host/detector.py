"""Detection on pictures with a design, independent of how the design is executed."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from boards.errors import InvalidValueError, StateError
from host.arguments import whole_number
from host.backend import Backend
from host.contract.parts import Manifest
from host.contract.tensors import Integers, Pixels, to_floats
from host.gate import Gate
from host.options import Options
from host.pipeline import ClosableQueue, Flow, Stage
from host.vision.channels import checked_frame, load_frame, network_input, to_draw_on
from host.vision.detection import classify, detect
from host.vision.frame import Measured, Result, StageSpan, StageTiming, measure
from host.vision.heads.head import CHOICES, CLASSES, PROBABILITIES, SEGMENTATION, VALUES, FloatArray, Head
from host.vision.heads.labels import chosen, chosen_of_pixels
from host.vision.heads.segmentation import segment
from host.vision.placement import Placement
from host.vision.tensors import Tensors

T = TypeVar("T")
Self = TypeVar("Self", bound="Detector")
Frame = Path | str | Pixels
MAX_WORKERS = 64


class Detector:
    """Runs a design on pictures: it resizes them, has ``backend`` execute them, and decodes the outputs to detections
    or classes."""

    def __init__(self, folder: Path, manifest: Manifest, backend: Backend, options: Options) -> None:
        self.folder, self.manifest, self.options = folder, manifest, options
        self._wait = options.wait
        self._backend = backend
        self._busy = threading.Lock()
        self._gate, self._closing = Gate(), threading.RLock()
        self._flow: Flow | None = None
        self._spans: list[tuple[StageSpan, ...]] = []
        self._workers: dict[str, int] = {}

    @property
    def label(self) -> str:
        """A sentence for reports that says how the times of this accelerator were obtained."""
        return self._backend.label

    @property
    def wait(self) -> str:
        """The way in which the host waits for the accelerator to finish: "poll" or "interrupt"."""
        return self._wait

    @wait.setter
    def wait(self, wait: str) -> None:
        self._wait = replace(self.options, wait=wait).wait

    # --- one picture

    def detect(self, picture: Frame) -> Result:
        """Return the result of one picture: its objects, its most probable classes, or the class of each pixel.

        For a design with a batch, the picture fills the whole batch.

        Args:
            picture: An image file, or an array uint8 ``(height, width, 3)``.
        """
        with self._in_use():
            return self._detect(picture, self.wait)

    def run(self, pixels: Pixels) -> tuple[Integers, ...]:
        """Execute the network on one input, and return the integers of each output feature map.

        Both are arrays ``(channels, height, width)``; the input is uint8.
        """
        with self._in_use():
            batch = self._backend.batches[0]
            self._backend.load(batch, (pixels,))
            self._backend.execute(batch, self.wait)
            return self._backend.collect(batch)[0]

    def _detect(self, picture: Frame, wait: str) -> Result:
        clock, backend = _Clock(), self._backend
        image, pixels, placement = clock("resize", lambda: self.prepare(picture))
        batch = backend.batches[0]
        clock("load", lambda: backend.load(batch, (pixels,)))
        clock("accelerate", lambda: backend.execute(batch, wait))
        result = clock("decode", lambda: self.decode(backend.collect(batch)[0], image, placement))
        return replace(result, timing=StageTiming(tuple(clock.spans)))

    # --- many pictures

    def stream(self, frames: Iterable[Frame], *, workers: int = 2, verify_every: int | None = None) -> Iterator[Result]:
        """Yield the result of each frame, in order, while resizing, loading, accelerating and decoding of different
        frames overlap.

        A design with a batch takes that number of frames per start. In the last batch, the last frame fills the rest.
        ``measured`` reports the bottleneck afterwards.

        A live source is ``host.vision.video.Camera``, or an iterable whose attribute ``live`` is true. The stream takes
        a frame from it only when the accelerator is about to be free, so no frame waits for more than the one before
        it.

        Args:
            frames: Image files or arrays uint8 ``(height, width, 3)``.
            workers: Number of frames that are resized at the same time.
            verify_every: Number of frames after which everything in DDR is read back and compared. None never checks.

        Raises:
            FrameError: A frame failed. It is raised after the results of all earlier frames.
        """
        whole_number("workers", workers, 1, MAX_WORKERS)
        if verify_every is not None:
            whole_number("verify_every", verify_every, 1, 1 << 62)
        if isinstance(frames, (str, bytes, Path)) or not isinstance(frames, Iterable):
            raise InvalidValueError("frames", frames, "an iterable of pictures", remedy="give one picture to detect()")
        with self._exclusive_use():
            flow = self._begin(frames, workers, verify_every)
            try:
                with contextlib.closing(flow.jobs()) as jobs:
                    for job in jobs:
                        self._spans.append(job.spans)
                        yield replace(job.value, timing=StageTiming(job.spans), index=job.index)
                self._gate.check()
            finally:
                self._backend.discard_loaded()

    def _begin(self, frames: Iterable[Frame], workers: int, verify_every: int | None) -> Flow:
        """Start the threads of the stages (resize, load, accelerate, decode) on the frames, and return their
        ``Flow``."""
        with self._gate.inside():
            self._spans = []
            self._workers = {"resize": workers, "accelerate": self._backend.at_once}
            batches = self._backend.batches
            free: ClosableQueue[Any] = ClosableQueue(len(batches))
            for batch in batches:
                free.put(batch)
            turns = self._backend.at_once + 1 if getattr(frames, "live", False) else None
            in_flight = turns and turns * self.manifest.batch
            self._flow = Flow(frames, self._stages(free, workers, verify_every), in_flight=in_flight, gate=self._gate)
            return self._flow

    @property
    def measured(self) -> Measured:
        """The measurements of the last stream: stage times, throughput, latency and the bottleneck stage."""
        return measure(self._spans, self._workers, self.label)

    def _stages(self, free: ClosableQueue[Any], workers: int, verify_every: int | None) -> tuple[Stage, ...]:
        def load(prepared: tuple[Any, Sequence[tuple[Pixels, Pixels, Placement]]]) -> list[tuple[Any, ...]]:
            batch, pictures = prepared
            self._backend.load(batch, [pixels for _, pixels, _ in pictures])
            # Frames are numbered here, where they pass in order: the accelerator may finish several in any order.
            numbers = [next(loaded_frames) for _ in pictures]
            verified = verify_every is not None and any(number % verify_every == 0 for number in numbers)
            return [(batch, verified, *picture) for picture in pictures]

        loaded_frames = itertools.count(1)

        def accelerate(loaded: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
            batch, verified = loaded[0][:2]
            self._backend.execute(batch, self.wait)
            if verified:
                self._backend.verify(batch, [pixels for *_, pixels, _ in loaded])
            outputs = cache(lambda: self._collect(batch, len(loaded), free))
            return [(outputs, frame, image, placement) for frame, (*_, image, _, placement) in enumerate(loaded)]

        def decode(executed: tuple[Any, ...]) -> Result:
            collected, frame, image, placement = executed
            return self.decode(collected()[frame], image, placement)

        frames_per_call = self.manifest.batch
        return (
            Stage("resize", self.prepare, workers),
            Stage("load", load, claim=free, frames_per_call=frames_per_call),
            Stage("accelerate", accelerate, self._backend.at_once, frames_per_call=frames_per_call),
            Stage("decode", decode),
        )

    def _collect(self, batch: Any, frames: int, free: ClosableQueue[Any]) -> tuple[tuple[Integers, ...], ...]:
        """Return the output feature maps of each frame of a batch, and release its buffers for the next batch."""
        outputs = self._backend.collect(batch, frames)
        free.put(batch)
        return outputs

    # --- before and after the accelerator

    def prepare(self, picture: Frame) -> tuple[Pixels, Pixels, Placement]:
        """Return a picture, the same picture resized to the network's input, and its position in that input.

        Returns:
            The picture as uint8 ``(height, width, 3)``, the network input as uint8 ``(channels, height, width)``, and
            the position of the picture in that input.
        """
        if not isinstance(picture, (np.ndarray, str, Path)):
            raise InvalidValueError(
                "the picture",
                picture,
                "the path of a file or an array uint8 [height, width, 3]",
                remedy="convert a Pillow image with np.asarray(picture)",
            )
        frame = checked_frame(picture) if isinstance(picture, np.ndarray) else load_frame(picture)
        pixels, placement = network_input(frame, self.manifest.input.shape, self.manifest.fit)
        return to_draw_on(frame), pixels, placement

    def decode(self, outputs: tuple[Integers, ...], image: Pixels, placement: Placement) -> Result:
        """Return the result that a frame's output feature maps encode: boxes in pixels of the picture, the class of
        each pixel, or classes.

        The result depends on the network's heads. It also holds the values of the network's outputs.
        """
        manifest = self.manifest
        answer = decode_outputs(manifest, outputs, image, placement, self.options)
        return replace(answer, outputs=outputs, labels=manifest.labels)

    # --- closing, and use by one caller at a time

    def close(self) -> None:
        """Wait until nothing uses the accelerator, then free all its resources.

        A call in another thread finishes first. A stream finishes its current batch, and the reader of its results gets
        StateError. Either takes at most ``timeout_s`` per start. A second call does nothing.

        Raises:
            StateError: ``close`` was called from within the work that it would wait for.
        """
        self._gate.close()
        with self._closing:  # a second caller returns only when everything is closed
            self._stop_flow()
            self._backend.close()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Return a context manager around one use of the accelerator. ``close`` waits until it is left."""
        with self._exclusive_use(), self._gate.inside():
            yield

    @contextlib.contextmanager
    def _exclusive_use(self) -> Iterator[None]:
        """Return a context manager that raises StateError if another call or an open iterator is using the
        accelerator."""
        self._gate.check()
        if not self._busy.acquire(blocking=False):
            raise StateError("the accelerator", "is already in use", remedy="finish or close that stream first")
        try:
            self._stop_flow()  # a stream may be left whose end was interrupted
            yield
        finally:
            self._busy.release()

    def _stop_flow(self) -> None:
        """Stop the threads of the last stream, if they still run.

        It is dropped only once it has ended, so that an interrupted caller's successor waits too.
        """
        flow = self._flow
        if flow is not None:
            flow.stop()
            self._flow = None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def decode_outputs(
    manifest: Manifest, outputs: Sequence[Integers], image: Pixels, placement: Placement, options: Options
) -> Result:
    """Return the result for a picture, decoded from the feature maps that the host reads.

    Args:
        manifest: The design's manifest.
        outputs: Integers of each output, in the order of the manifest's ``output_layers``.
        image: The picture, uint8 ``(height, width, 3)``. Boxes are clipped to its edges.
        placement: Position of the picture in the network's input.
        options: Confidence threshold and IoU threshold.
    """
    indices, labels = manifest.output_layers, manifest.labels
    layers = [manifest.layers[index] for index in indices]
    values = {
        index: to_floats(layer.output, output) for index, layer, output in zip(indices, layers, outputs, strict=True)
    }
    result = Result(image, placement, tuple(outputs), (), StageTiming(()), tensors=Tensors(manifest, values))
    if manifest.is_classifier:
        return replace(result, scores=classify(values[indices[0]], labels))
    read = [
        (np.concatenate([values[layer] for layer in head.layers]), head.head)
        for head in manifest.heads
        if head.head.kind != VALUES
    ]
    if not read:
        return replace(result, headless=True)
    return _with_heads(result, read, labels, options)


def _with_heads(
    result: Result, read: Sequence[tuple[FloatArray, Head]], labels: Sequence[str], options: Options
) -> Result:
    """Return the result with the detections or classes that each head decodes from its feature maps, added to it."""
    placement = result.placement
    classes = [pair for pair in read if pair[1].kind in (SEGMENTATION, *CHOICES)]
    boxed = [pair for pair in read if pair[1].kind not in (SEGMENTATION, *CHOICES)]
    arrays, heads = [array for array, _ in boxed], [head for _, head in boxed]
    detections = detect(arrays, heads, placement, labels, options.threshold, options.overlap)
    height, width = result.picture.shape[:2]
    clipped = tuple(detection.clipped(width, height) for detection in detections)
    answer = replace(result, detections=clipped)
    for array, head in reversed(classes):  # the first head decides, so it is applied last
        answer = _with_classes(answer, array, head, labels)
    return answer


def _with_classes(result: Result, array: FloatArray, head: Head, labels: Sequence[str]) -> Result:
    """Return the result with the classes of the picture, or of each pixel, that one head decodes."""
    if head.kind == SEGMENTATION:
        return replace(result, segmentation=segment(array, head, result.placement, labels))
    if head.kind in (CLASSES, PROBABILITIES) or array.shape[1:] == (1, 1):
        return replace(result, scores=chosen(array, head, labels))
    return replace(result, segmentation=chosen_of_pixels(array, head, result.placement, labels))


class _Clock:
    """Calls the stages of one frame and records when each began and ended."""

    def __init__(self) -> None:
        self.spans: list[StageSpan] = []

    def __call__(self, stage: str, work: Callable[[], T]) -> T:
        begin = time.perf_counter()
        value = work()
        self.spans.append(StageSpan(stage, begin, time.perf_counter()))
        return value

"""Pictures → detections on a design, whatever executes it."""

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
from host.arguments import whole
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
MOST_WORKERS = 64


class Detector:
    """Prepares pictures, has them executed by ``backend``, and decodes what comes back."""

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
        """What kind of numbers the times of this accelerator are."""
        return self._backend.label

    @property
    def wait(self) -> str:
        """How the end of a start is waited for, "poll" or "interrupt"."""
        return self._wait

    @wait.setter
    def wait(self, wait: str) -> None:
        self._wait = replace(self.options, wait=wait).wait

    # --- one picture

    def detect(self, picture: Frame) -> Result:
        """The objects on a picture, or its most probable classes: a file, or uint8 [height, width, 3].

        It fills the batch of a design of batches.
        """
        with self._at_work():
            return self._detect(picture, self.wait)

    def run(self, pixels: Pixels) -> tuple[Integers, ...]:
        """Network input uint8 [channels, height, width] → integers [channels, height, width] of each output."""
        with self._at_work():
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
        """Results in the order of the frames, while resize, load, accelerator and decode work at once.

        A design of batches takes as many frames a start as its manifest says; the last one fills up what is left of
        the last batch. workers: frames that are resized at once. verify_every: after so many frames everything in DDR
        is read back and compared. Of a live source (``host.vision.video.Camera``, or an iterable whose attribute
        ``live`` is true) a frame is taken when the accelerator's next turn is free, so that none waits for more than
        the one before it. A frame that fails raises ``FrameError`` after all results before it. ``measured``
        tells what bounded it.
        """
        whole("workers", workers, 1, MOST_WORKERS)
        if verify_every is not None:
            whole("verify_every", verify_every, 1, 1 << 62)
        if isinstance(frames, (str, bytes, Path)) or not isinstance(frames, Iterable):
            raise InvalidValueError("frames", frames, "an iterable of pictures", remedy="give one picture to detect()")
        with self._alone():
            flow = self._begin(frames, workers, verify_every)
            try:
                with contextlib.closing(flow.jobs()) as jobs:
                    for job in jobs:
                        self._spans.append(job.spans)
                        yield replace(job.value, timing=StageTiming(job.spans), index=job.index)
                self._gate.check()
            finally:
                self._backend.settle()

    def _begin(self, frames: Iterable[Frame], workers: int, verify_every: int | None) -> Flow:
        """The stages at work on the frames; ``close`` stops them."""
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
        """Of the last stream: stage times, throughput, latency, and which stage bounds."""
        return measure(self._spans, self._workers, self.label)

    def _stages(self, free: ClosableQueue[Any], workers: int, verify_every: int | None) -> tuple[Stage, ...]:
        def load(prepared: tuple[Any, Sequence[tuple[Pixels, Pixels, Placement]]]) -> list[tuple[Any, ...]]:
            batch, pictures = prepared
            self._backend.load(batch, [pixels for _, pixels, _ in pictures])
            # Counted here, where frames pass one by one: several may be in the accelerator, and end in any order.
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

        together = self.manifest.batch
        return (
            Stage("resize", self.prepare, workers),
            Stage("load", load, claim=free, together=together),
            Stage("accelerate", accelerate, self._backend.at_once, together=together),
            Stage("decode", decode),
        )

    def _collect(self, batch: Any, frames: int, free: ClosableQueue[Any]) -> tuple[tuple[Integers, ...], ...]:
        """What ``collect`` gives; from here on the memory is another batch's."""
        outputs = self._backend.collect(batch, frames)
        free.put(batch)
        return outputs

    # --- before and after the accelerator

    def prepare(self, picture: Frame) -> tuple[Pixels, Pixels, Placement]:
        """→ picture uint8 [h, w, 3], network input uint8 [channels, height, width], where it lies there."""
        if not isinstance(picture, (np.ndarray, str, Path)):
            raise InvalidValueError(
                "the picture",
                picture,
                "the path of a file or an array uint8 [height, width, 3]",
                remedy="convert an image of Pillow with np.asarray(picture)",
            )
        frame = checked_frame(picture) if isinstance(picture, np.ndarray) else load_frame(picture)
        pixels, placement = network_input(frame, self.manifest.input.shape, self.manifest.fit)
        return to_draw_on(frame), pixels, placement

    def decode(self, outputs: tuple[Integers, ...], image: Pixels, placement: Placement) -> Result:
        """Boxes in pixels of the picture, a class for each pixel or a classifier's classes, as the network ends, and
        the values of its outputs."""
        manifest = self.manifest
        answer = decode_outputs(manifest, outputs, image, placement, self.options)
        return replace(answer, outputs=outputs, labels=manifest.labels)

    # --- its life

    def close(self) -> None:
        """Gives back what it holds, when nothing is at work on it any more.

        A call in another thread is waited for, a stream ends after the batch that it is at, with StateError where its
        results are taken; each takes no longer than ``timeout_s`` allows it. It may be called twice. StateError within
        the work that it would wait for.
        """
        self._gate.close()
        with self._closing:  # who comes second is back when it is closed
            self._stop_flow()
            self._backend.close()

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """One call, which ``close`` waits for."""
        with self._alone(), self._gate.inside():
            yield

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One user at a time, a call or an iterator that is taken from."""
        self._gate.check()
        if not self._busy.acquire(blocking=False):
            raise StateError("the accelerator", "is at work already", remedy="finish or close that stream first")
        try:
            self._stop_flow()  # of a stream whose end was interrupted
            yield
        finally:
            self._busy.release()

    def _stop_flow(self) -> None:
        """Forgotten when it has ended and not before: until then whoever comes waits for its stages too."""
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
    """What the maps that the host reads say of the picture uint8 [h, w, 3]; boxes are clipped to its edges.

    outputs: in the order of the manifest's ``output_layers``.
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
    """The result with what each head sees in the values that it reads."""
    placement = result.placement
    classes = [pair for pair in read if pair[1].kind in (SEGMENTATION, *CHOICES)]
    boxed = [pair for pair in read if pair[1].kind not in (SEGMENTATION, *CHOICES)]
    arrays, heads = [array for array, _ in boxed], [head for _, head in boxed]
    detections = detect(arrays, heads, placement, labels, options.threshold, options.overlap)
    height, width = result.picture.shape[:2]
    clipped = tuple(detection.clipped(width, height) for detection in detections)
    answer = replace(result, detections=clipped)
    for array, head in reversed(classes):  # where there are several the first one tells
        answer = _with_classes(answer, array, head, labels)
    return answer


def _with_classes(result: Result, array: FloatArray, head: Head, labels: Sequence[str]) -> Result:
    """The result with the classes of the picture, or of each of its pixels."""
    if head.kind == SEGMENTATION:
        return replace(result, segmentation=segment(array, head, result.placement, labels))
    if head.kind in (CLASSES, PROBABILITIES) or array.shape[1:] == (1, 1):
        return replace(result, scores=chosen(array, head, labels))
    return replace(result, segmentation=chosen_of_pixels(array, head, result.placement, labels))


class _Clock:
    """Calls a stage and notes when."""

    def __init__(self) -> None:
        self.spans: list[StageSpan] = []

    def __call__(self, stage: str, work: Callable[[], T]) -> T:
        begin = time.perf_counter()
        value = work()
        self.spans.append(StageSpan(stage, begin, time.perf_counter()))
        return value

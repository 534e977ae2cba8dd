"""A generated design, ready for pictures: on the board, or on a simulated one where there is none."""

from __future__ import annotations

import asyncio
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
import numpy.typing as npt

from boards.errors import HostError
from host.board.overlay import LoadedOverlay, require_pynq
from host.check import Check, compare
from host.contract.layout import to_floats
from host.contract.manifest import read_manifest
from host.contract.parts import Layer, Manifest
from host.contract.streaming import StreamingManifest
from host.contract.systolic import SystolicManifest
from host.designs import design_folder
from host.pipeline import Channel, Measured, Stage, measure, stream
from host.streaming import StreamingStyle
from host.systolic import SystolicStyle
from host.vision.detection import OVERLAP, THRESHOLD, Detection, detect
from host.vision.frame import Result, Span, Timing
from host.vision.picture import FITS, Pixels, load_picture
from host.vision.placement import Placement

T = TypeVar("T")
Frame = Path | str | Pixels
Integers = npt.NDArray[np.signedinteger[Any]]


class Accelerator:
    """A design's folder → detections.

    folder: of the generated design, or its .bit, .hwh or manifest.json, or the name of an installed design.
    device: a pynq device; by default the board, or a simulated one where there is none. library: for a simulated
    board, the simulation library, if it is not in the folder's build/. wait: "poll" (2 register writes a start) or
    "interrupt" (4). timeout_s: for a start, which takes a batch of frames, one where the design says nothing else.
    sets: batches in flight of ``stream``. time_scale: a simulated board takes
    the design's own time times this, "fit" for as much as execution here needs; None for as fast as it executes.
    threshold, overlap: of ``host.detection.detect``.

    HostError says what is missing, and what to do. Use it as a context manager: ``close`` frees every buffer.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        device: Any = None,
        library: Path | str | None = None,
        wait: str = "poll",
        timeout_s: float | None = None,
        sets: int = 2,
        time_scale: float | str | None = None,
        threshold: float = THRESHOLD,
        overlap: float = OVERLAP,
    ) -> None:
        require_pynq()
        if wait not in ("poll", "interrupt"):
            raise HostError(f"wait is 'poll' or 'interrupt', not {wait!r}")
        if not 1 <= sets <= 16:
            raise HostError(f"sets is 1…16 batches in flight, not {sets}")
        self.folder = design_folder(folder)
        self.manifest = read_manifest(self.folder)
        self.wait, self.sets = wait, sets
        self.threshold, self.overlap = threshold, overlap
        self._busy = threading.Lock()
        scale = None if time_scale == "fit" else time_scale
        self._loaded = LoadedOverlay(self.folder, self.manifest, device, library, timeout_s, scale)
        self._style = _style(self._loaded, self.manifest)
        try:
            self._open()
            if time_scale == "fit" and self.simulated:
                pixels, _ = self._style.test_frame()
                self._loaded.fit_pace(lambda: self.run(pixels))
        except BaseException:
            self.close()
            raise

    # --- one picture

    def detect(self, picture: Frame) -> Result:
        """The objects on a picture: a file, or uint8 [height, width, 3]. It fills the batch of a design of batches."""
        with self._alone():
            return self._detect(picture, self.wait)

    async def detect_async(self, picture: Frame) -> Result:
        """As ``detect``, by the accelerator's interrupt; other coroutines run meanwhile."""
        with self._alone():
            return await asyncio.to_thread(self._detect, picture, "interrupt")

    def run(self, pixels: Pixels) -> tuple[Integers, ...]:
        """Network input uint8 [channels, height, width] → integers [channels, height, width] of each kept map."""
        with self._alone():
            one = self.buffers.sets[0]
            self.load(one, (pixels,))
            self.execute(one)
            return self.collect(one)[0]

    def _detect(self, picture: Frame, wait: str) -> Result:
        clock = _Clock()
        image, pixels, placement = clock("resize", lambda: self.prepare(picture))
        one = self.buffers.sets[0]
        clock("load", lambda: self.load(one, (pixels,)))
        clock("accelerate", lambda: self.execute(one, wait))
        outputs, found = clock("decode", lambda: self.decode(self.collect(one)[0], image, placement))
        return Result(image, placement, outputs, found, Timing(tuple(clock.spans)), self.manifest.labels)

    # --- many pictures

    def stream(self, frames: Iterable[Frame], *, workers: int = 2, verify_every: int | None = None) -> Iterator[Result]:
        """Results in the order of the frames, while resize, load, accelerator and decode work at once.

        A design of batches takes as many frames a start as its manifest says; the last one fills up what is left of
        the last batch. workers: frames that are resized at once. verify_every: after so many frames everything in DDR
        is read back and compared. A frame that fails raises ``FrameError`` after all results before it. ``measured``
        tells what bounded it.
        """
        if workers < 1 or (verify_every is not None and verify_every < 1):
            raise HostError(f"workers and verify_every are at least 1, not {workers} and {verify_every}")
        with self._alone():
            self._spans: list[tuple[Span, ...]] = []
            self._workers = {"resize": workers, "accelerate": self._style.at_once}
            free: Channel[Any] = Channel(len(self.buffers.sets))
            for one in self.buffers.sets:
                free.put(one)
            flow = stream(frames, self._stages(free, workers, verify_every))
            try:
                with contextlib.closing(flow):
                    for job in flow:
                        self._spans.append(job.spans)
                        yield replace(job.value, timing=Timing(job.spans), index=job.index)
            finally:
                self._style.settle()

    @property
    def measured(self) -> Measured:
        """Of the last stream: stage times, throughput, latency, and which stage bounds."""
        return measure(getattr(self, "_spans", []), getattr(self, "_workers", {}), self.label)

    def _stages(self, free: Channel[Any], workers: int, verify_every: int | None) -> tuple[Stage, ...]:
        def load(prepared: tuple[Any, Sequence[tuple[Pixels, Pixels, Placement]]]) -> list[tuple[Any, ...]]:
            one, pictures = prepared
            self.load(one, [pixels for _, pixels, _ in pictures])
            return [(one, *picture) for picture in pictures]

        done = itertools.count(1)

        def accelerate(loaded: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
            one = loaded[0][0]
            self.execute(one)
            if verify_every is not None and 0 in [next(done) % verify_every for _ in loaded]:
                self._verify(one, [pixels for _, _, pixels, _ in loaded])
            outputs = cache(lambda: self._take(one, len(loaded), free))
            return [(outputs, at, image, placement) for at, (_, image, _, placement) in enumerate(loaded)]

        def decode(executed: tuple[Any, ...]) -> Result:
            collected, at, image, placement = executed
            outputs, found = self.decode(collected()[at], image, placement)
            return Result(image, placement, outputs, found, Timing(()), self.manifest.labels)

        batch = self.manifest.batch
        return (
            Stage("resize", self.prepare, workers),
            Stage("load", load, claim=free, together=batch),
            Stage("accelerate", accelerate, self._style.at_once, together=batch),
            Stage("decode", decode),
        )

    def _take(self, one: Any, frames: int, free: Channel[Any]) -> tuple[tuple[Integers, ...], ...]:
        """What ``collect`` gives; from here on the set is another batch's."""
        outputs = self.collect(one, frames)
        free.put(one)
        return outputs

    def _verify(self, one: Any, pictures: Sequence[Pixels]) -> None:
        """What was uploaded and this batch's input, as DDR holds them."""
        self.buffers.verify()
        if not self._style.arrived(one, pictures):
            raise HostError(
                "the picture in DDR is not the one that was loaded: the cache was not flushed or something else "
                "writes there; this frame's result is not to be trusted"
            )

    # --- the stages of a frame

    def prepare(self, picture: Frame) -> tuple[Pixels, Pixels, Placement]:
        """→ picture uint8 [h, w, 3], network input uint8 [channels, height, width], where it lies there."""
        image = picture if isinstance(picture, np.ndarray) else load_picture(picture)
        to = self.manifest.input
        pixels, placement = FITS[self.manifest.fit](image, to.height, to.width)
        return image, pixels, placement

    def load(self, one: Any, pictures: Sequence[Pixels]) -> None:
        """Into the buffers of one batch, an element of ``buffers.sets``; the last picture fills it."""
        self._style.load(one, pictures)

    def execute(self, one: Any, wait: str | None = None) -> None:
        """One batch, in and out."""
        self._style.execute(one, wait or self.wait)

    def collect(self, one: Any, frames: int = 1) -> tuple[tuple[Integers, ...], ...]:
        """Of each of the first ``frames`` frames a copy of each map that the host reads."""
        return self._style.collect(one, frames)

    def decode(
        self, outputs: tuple[Integers, ...], image: Pixels, placement: Placement
    ) -> tuple[tuple[Integers, ...], tuple[Detection, ...]]:
        """Boxes in pixels of the picture; none where the network has no detection head."""
        if not self.manifest.heads:
            return outputs, ()
        kept = self.manifest.output_layers
        values = [
            to_floats(self.manifest.layers[one.layer].output, outputs[kept.index(one.layer)])
            for one in self.manifest.heads
        ]
        heads = [one.head for one in self.manifest.heads]
        found = detect(values, heads, placement, self.manifest.labels, self.threshold, self.overlap)
        height, width = image.shape[:2]
        return outputs, tuple(one.clipped(width, height) for one in found)

    # --- layer by layer

    def layers(self, pixels: Pixels) -> Iterator[tuple[Layer, Integers]]:
        """Each layer started on its own: the layer, and its integers [channels, height, width] as DDR holds them.

        pixels: network input uint8 [channels, height, width]. Layers take turns with the inner map arena, so a map
        can be seen only before the layers after it run: take what is wanted of one before the next. Of a streaming
        design only the layers whose maps leave are seen; of a design of batches the first frame's.
        """
        for layer, frames in self._layers(pixels, 1):
            yield layer, frames[0]

    def _layers(self, pixels: Pixels, frames: int) -> Iterator[tuple[Layer, Integers]]:
        """As ``layers``, of as many frames of the batch: [frames, channels, height, width]."""
        with self._alone():
            _ = self.buffers
            yield from self._style.layers(pixels, self.wait, frames)

    def check(self) -> Check:
        """Runs the design's test frame layer by layer and compares every integer with the golden model's.

        Prints the first layer that differs. It is the tool for a board that gives nonsense where the simulation
        was right: what one layer does wrong, with right inputs before it, is found in the block design. Of a
        streaming design it compares what leaves, of a batch every frame, which are all the test frame.
        """
        pixels, wanted = self._style.test_frame()
        report = compare(self.manifest.network, self._layers(pixels, self.manifest.batch), wanted)
        print(report)
        return report

    # --- the device

    @property
    def device(self) -> Any:
        """Of pynq: the board, or a simulated one."""
        return self._loaded.device

    @property
    def simulated(self) -> bool:
        return self._loaded.simulated

    @property
    def overlay(self) -> Any:
        """``pynq.Overlay`` of the design."""
        return self._loaded.overlay

    @property
    def ip(self) -> Any:
        """The accelerator's driver, ``host.driver.SystolicIP`` or ``StreamingIP``."""
        return self._loaded.ip

    @property
    def has_interrupt(self) -> bool:
        return self._loaded.has_interrupt

    @property
    def label(self) -> str:
        """What kind of numbers the times of this accelerator are."""
        return self._loaded.label

    @property
    def buffers(self) -> Any:
        """``host.buffers.Buffers``, or ``host.streaming.PacketBuffers`` of a streaming design."""
        if self._style.buffers is None:
            raise HostError("the accelerator is closed; make a new one")
        return self._style.buffers

    def reset(self) -> None:
        """Loads the bitstream and everything in DDR again, after a timeout for instance."""
        with self._alone():
            self._open()

    def verify(self) -> None:
        """Reads what was uploaded back from DDR; HostError where something has changed."""
        with self._alone():
            self.buffers.verify()

    def close(self) -> None:
        """Frees every buffer; a hung accelerator is stopped first, so that it writes into none of them."""
        try:
            if self._style.buffers is not None:
                self._loaded.stop()
        finally:
            self._style.free()
            self._loaded.close()

    def _open(self) -> None:
        """Bitstream first: from here on nothing writes into the buffers that are freed next."""
        self._loaded.load()
        self._style.free()
        self._style.open(self.sets)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._busy.acquire(blocking=False):
            raise HostError("the accelerator is at work already; finish or close that stream first")
        try:
            yield
        finally:
            self._busy.release()

    def __enter__(self) -> Accelerator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _style(loaded: LoadedOverlay, manifest: Manifest) -> SystolicStyle | StreamingStyle:
    if isinstance(manifest, StreamingManifest):
        return StreamingStyle(loaded, manifest)
    assert isinstance(manifest, SystolicManifest)
    return SystolicStyle(loaded, manifest)


class _Clock:
    """Calls a stage and notes when."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def __call__(self, stage: str, work: Callable[[], T]) -> T:
        begin = time.perf_counter()
        value = work()
        self.spans.append(Span(stage, begin, time.perf_counter()))
        return value

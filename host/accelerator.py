"""A generated design, ready for pictures: on the board, or on a simulated one where there is none."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from host.board.backend import BoardBackend
from host.board.devices import device_for, require_pynq
from host.board.overlay import LoadedOverlay
from host.check import Check, check_frame, compare
from host.contract.manifest import read_manifest
from host.contract.parts import ManifestLayer
from host.contract.tensors import Integers, Pixels
from host.designs import design_folder
from host.detector import Detector, Frame
from host.options import Options
from host.styles import STYLES
from host.vision.frame import Result


class Accelerator(Detector):
    """A design's folder → detections, under pynq.

    folder: of the generated design, or its .bit, .hwh or manifest.json, or the name of an installed design. options:
    how frames are executed and decoded. device: a pynq device; by default the board, or a simulated one where there
    is none.

    An error says what is missing, and what to do. Use it as a context manager: ``close`` frees every buffer.
    """

    def __init__(self, folder: Path | str, options: Options = Options(), *, device: Any = None) -> None:  # noqa: B008
        require_pynq()
        options = Options.checked(options)
        path = design_folder(folder)
        manifest = read_manifest(path)
        style = STYLES[manifest.style]
        importlib.import_module(style.ip)  # registers the IP's driver with pynq
        self._loaded = LoadedOverlay(path, manifest, options, device_for(path, manifest, options, device))
        self._board = BoardBackend(self._loaded, style.driver(self._loaded, manifest))
        super().__init__(path, manifest, self._board, options)
        try:
            self._board.open(options.sets)
            if options.time_scale == "fit" and self.simulated:
                pixels, _ = check_frame(manifest, path)
                self._loaded.fit_pace(lambda: self.run(pixels))
        except BaseException:
            self.close()
            raise

    async def detect_async(self, picture: Frame) -> Result:
        """As ``detect``, by the accelerator's interrupt; other coroutines run meanwhile."""
        return await asyncio.to_thread(self._detect_by_interrupt, picture)

    def _detect_by_interrupt(self, picture: Frame) -> Result:
        # The thread is at work to its end, whether or not somebody still waits for it.
        with self._at_work():
            return self._detect(picture, "interrupt")

    # --- layer by layer

    def layers(self, pixels: Pixels) -> Iterator[tuple[ManifestLayer, Integers]]:
        """Each layer started on its own: the layer, and its integers [channels, height, width] as DDR holds them.

        pixels: network input uint8 [channels, height, width]. Layers take turns with the inner map arena, so a map
        can be seen only before the layers after it run: take what is wanted of one before the next. Of a streaming
        design only the layers whose maps leave are seen; of a design of batches the first frame's.
        """
        for layer, frames in self._layers(pixels, 1):
            yield layer, frames[0]

    def _layers(self, pixels: Pixels, frames: int) -> Iterator[tuple[ManifestLayer, Integers]]:
        """As ``layers``, of as many frames of the batch: [frames, channels, height, width]."""
        with self._alone():
            layers = self._board.driver.layers(pixels, self.wait, frames)
            while True:
                with self._gate.inside():
                    self._board.check_memory()
                    step = next(layers, None)
                if step is None:
                    return
                yield step

    def check(self) -> Check:
        """Runs the design's test frame layer by layer and compares every integer with the golden model's.

        Prints the first layer that differs. It is the tool for a board that gives nonsense where the simulation
        was right: what one layer does wrong, with right inputs before it, is found in the block design. Of a
        streaming design it compares what leaves, of a batch every frame, which are all the test frame.
        """
        self._gate.check()
        pixels, expected = check_frame(self.manifest, self.folder)
        report = compare(self.manifest.network, self._layers(pixels, self.manifest.batch), expected)
        print(report)
        return report

    # --- the device

    @property
    def device(self) -> Any:
        """Of pynq: the board, or a simulated one."""
        return self._loaded.device

    @property
    def simulated(self) -> bool:
        """Whether the device is a simulated board."""
        return self._loaded.simulated

    @property
    def overlay(self) -> Any:
        """``pynq.Overlay`` of the design; StateError if the accelerator is closed, as for all of the device."""
        self._gate.check()
        return self._loaded.overlay

    @property
    def ip(self) -> Any:
        """The accelerator's driver, ``host.systolic.ip.SystolicIP`` or ``host.streaming.ip.StreamingIP``."""
        self._gate.check()
        return self._loaded.ip

    @property
    def has_interrupt(self) -> bool:
        """Whether the accelerator's interrupt reaches the processor."""
        self._gate.check()
        return self._loaded.has_interrupt

    @property
    def buffers(self) -> Any:
        """``SystolicBuffers`` or ``StreamingBuffers``, not to be used after ``close``."""
        self._gate.check()
        return self._board.buffers

    def reset(self) -> None:
        """Loads the bitstream and everything in DDR again, after a timeout for instance."""
        with self._at_work():
            self._board.open(self.options.sets)

    def verify(self) -> None:
        """Read what was uploaded back from DDR; MismatchError if something has changed."""
        with self._at_work():
            self.buffers.verify()

"""A generated design, loaded and ready for pictures: on the board, or on a simulated board if there is none."""

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
    """A generated design, loaded under pynq on a board or a simulated board, that turns pictures into detections.

    Use it as a context manager: ``close`` frees every buffer in DDR. An error says what is missing and what to do.

    Args:
        folder: Folder of the generated design, or its .bit, .hwh or manifest.json, or the name of an installed design.
        options: How frames are executed and decoded.
        device: pynq device to use. Default: the board, or a simulated board if there is none.
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
        """Return the result of one picture, as ``detect`` does, waiting for the accelerator's interrupt while other
        coroutines run."""
        return await asyncio.to_thread(self._detect_by_interrupt, picture)

    def _detect_by_interrupt(self, picture: Frame) -> Result:
        # The thread runs to its end even if the coroutine that waits for it was cancelled.
        with self._in_use():
            return self._detect(picture, "interrupt")

    # --- layer by layer

    def layers(self, pixels: Pixels) -> Iterator[tuple[ManifestLayer, Integers]]:
        """Execute the network layer by layer on one input, and yield each layer with its output feature map as DDR
        stores it.

        Layers share the arena of inner maps. A later layer overwrites an earlier map, so use a map before asking for
        the next layer. A streaming design yields only the layers whose maps are written to DDR. A design with a batch
        above 1 yields the maps of the first frame.

        Args:
            pixels: Network input, uint8 ``(channels, height, width)``.

        Yields:
            The layer, and its integers ``(channels, height, width)``.
        """
        for layer, frames in self._layers(pixels, 1):
            yield layer, frames[0]

    def _layers(self, pixels: Pixels, frames: int) -> Iterator[tuple[ManifestLayer, Integers]]:
        """Yield each layer with its output feature maps, as ``layers`` does, for the first ``frames`` frames of the
        batch.

        The maps are ``(frames, channels, height, width)``.
        """
        with self._exclusive_use():
            layers = self._board.driver.layers(pixels, self.wait, frames)
            while True:
                with self._gate.inside():
                    self._board.check_memory()
                    step = next(layers, None)
                if step is None:
                    return
                yield step

    def check(self) -> Check:
        """Execute the design's test frame layer by layer, and return the comparison of every integer with the golden
        model's.

        The report is also printed; it names the first layer that differs. Use this on a board that gives wrong results
        although the simulation was right: the first layer that turns right inputs into wrong outputs leads to the fault
        in the block design. For a streaming design the maps that it writes to DDR are compared. For a design with a
        batch, every frame is compared; all of them hold the test frame.
        """
        self._gate.check()
        pixels, expected = check_frame(self.manifest, self.folder)
        report = compare(self.manifest.network, self._layers(pixels, self.manifest.batch), expected)
        print(report)
        return report

    # --- the device

    @property
    def device(self) -> Any:
        """The pynq device: the board, or a simulated board."""
        return self._loaded.device

    @property
    def simulated(self) -> bool:
        """Return whether the device is a simulated board."""
        return self._loaded.simulated

    @property
    def overlay(self) -> Any:
        """The design's ``pynq.Overlay``. After ``close``, this and every property below raise StateError."""
        self._gate.check()
        return self._loaded.overlay

    @property
    def ip(self) -> Any:
        """The pynq driver of the accelerator's registers: ``host.systolic.ip.SystolicIP`` or
        ``host.streaming.ip.StreamingIP``."""
        self._gate.check()
        return self._loaded.ip

    @property
    def has_interrupt(self) -> bool:
        """Return whether the accelerator's interrupt line is connected to the processor."""
        self._gate.check()
        return self._loaded.has_interrupt

    @property
    def buffers(self) -> Any:
        """The design's buffers in DDR, ``SystolicBuffers`` or ``StreamingBuffers``. Do not use them after ``close``."""
        self._gate.check()
        return self._board.buffers

    def reset(self) -> None:
        """Load the bitstream again, and upload weights and all other data to DDR again, for instance after a
        timeout."""
        with self._in_use():
            self._board.open(self.options.sets)

    def verify(self) -> None:
        """Read the uploaded weights and other data back from DDR; raise MismatchError if any of it has changed."""
        with self._in_use():
            self.buffers.verify()

"""A design's bitstream on a device, which is the board or a simulated one, and its accelerator's driver."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import math
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from boards.errors import (
    MAX_FAULT_LENGTH,
    AcceleratorError,
    DamagedFileError,
    FileAccessError,
    MismatchError,
    StateError,
    UnsupportedError,
    cut,
    listed,
)
from host.contract.codec import read_bounded
from host.contract.parts import MANIFEST, Manifest
from host.options import Options
from host.simulated.pace import pace

LARGEST_DESCRIPTION = 1 << 26
"""Bytes; of a whole Vivado design it has some million."""

_ROLE = "hardware description"


def check_description(path: Path) -> None:
    """Raise FileAccessError, RangeError or DamagedFileError if the file is missing, too large or no description."""
    named, again = str(path), "copy the .hwh of the .bit's own folder again"
    try:
        root = ElementTree.fromstring(read_bounded(path, LARGEST_DESCRIPTION))
    except OSError as error:
        raise FileAccessError(named, f"cannot be read: {error.strerror}", _ROLE, remedy=again) from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        reason = f"is not a {_ROLE}: it is not XML ({cut(error, MAX_FAULT_LENGTH)})"
        raise DamagedFileError(named, reason, remedy=again) from error
    if root.tag != "EDKSYSTEM" or root.find("MODULES") is None:
        raise DamagedFileError(named, f"is not a {_ROLE}: it has no modules", remedy=again)


BOARD_TIMEOUT_S = 5.0  # a frame
SIMULATED_TIMEOUT_S = 300.0
"""A simulated frame of a large network takes seconds, its first one on a busy machine more."""

_STOP_S = 5.0
"""Seconds that ending the loop of the interrupts may take."""

_LOADED: weakref.WeakKeyDictionary[Any, weakref.ref[LoadedOverlay]] = weakref.WeakKeyDictionary()
"""What each device was loaded with last."""


class LoadedOverlay:
    """Nothing is loaded before ``load``; ``close`` may be called on every path, and twice.

    device: of pynq, given back by ``close`` (host/board/devices.py). options: of them timeout_s. An error says what is
    missing.
    """

    def __init__(
        self, folder: Path, manifest: Manifest, options: Options, device: contextlib.AbstractContextManager[Any]
    ) -> None:
        self.folder, self.manifest = folder, manifest
        self.broken = ""
        self.overlay: Any = None
        self.ip: Any = None
        self._stack = contextlib.ExitStack()
        try:
            self._loop = self._stack.enter_context(_loop())
            self.device = self._stack.enter_context(device)
            self.simulated = hasattr(self.device, "faults")
            frame_s = SIMULATED_TIMEOUT_S if self.simulated else BOARD_TIMEOUT_S
            self.timeout_s = options.timeout_s or frame_s * manifest.batch
            self._bit = self._bitstream()
        except BaseException:
            self.close()
            raise

    def load(self) -> None:
        """The bitstream, whether or not one is loaded: what ran before is stopped, and writes nowhere any more."""
        import pynq

        self._replace_other()
        self.broken = "its bitstream was not loaded"
        try:
            self.overlay = pynq.Overlay(str(self._bit), device=self.device)
        except TypeError as error:
            raise UnsupportedError(
                f"{self._bit.with_suffix('.hwh')} under pynq {pynq.__version__}",
                f"its clocks cannot be set ({cut(error)}), since pynq 4.0.0 finds no PL clock in the description of a "
                "Zynq-7000",
                remedy="use pynq 3.1.2 for such a board",
            ) from error
        self.ip = self.in_loop(self._driver())
        self.broken = ""

    def allocate(self, shape: tuple[int, ...], dtype: Any, **options: Any) -> Any:
        """``pynq.allocate`` on this device."""
        from pynq import allocate

        return allocate(shape, dtype, target=self.device, **options)

    @property
    def has_interrupt(self) -> bool:
        return self.ip.line is not None

    @property
    def trouble(self) -> str:
        """What a simulated board says of an accelerator that stopped; a board says nothing."""
        return str(getattr(self.device, "trouble", ""))

    def check_whole(self) -> None:
        """Raise StateError if an earlier frame did not end: nothing may be started before the next ``load``."""
        if self.broken:
            raise StateError("the accelerator", f"stopped earlier ({self.broken})", remedy="call reset() first")

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """A start and its end. Whatever ends it otherwise leaves an accelerator that may still write: it is broken."""
        self.check_whole()
        try:
            yield
        except BaseException as error:
            self.broken = self.broken or _cause(error)
            raise
        self.check_whole()  # of a bitstream that was loaded meanwhile

    @property
    def label(self) -> str:
        """What kind of numbers the times of this accelerator are."""
        if not self.simulated:
            remote = ", driven over the network" if self.device.has_capability("REMOTE") else ""
            return f"measured on {self.device.name}{remote}"
        pace = self.device.pace
        if pace is None:
            return "simulated board at the speed of its execution: not the design's speed"
        seconds = pace.seconds(0, self.manifest.passes) / pace.time_scale
        batch = self.manifest.batch
        start, starts = ("frame", "frames") if batch == 1 else (f"batch of {batch} frames", "batches")
        late = f", {self.device.overruns} {starts} took longer to execute" if self.device.overruns else ""
        return (
            f"simulated board {pace.time_scale:g} × slower than the design, whose {start} takes {1e3 * seconds:.3f} ms "
            f"({pace.source} cycles at {pace.clock_mhz:g} MHz, a target){late}"
        )

    def fit_pace(self, frame: Callable[[], object]) -> None:
        """Twice what the second start takes to execute, of a frame or of its batch: the first one warms up."""
        frame()
        begin = time.perf_counter()
        frame()
        took = time.perf_counter() - begin
        unscaled = pace(self.folder, self.manifest, 1.0)
        assert unscaled is not None
        self.device.pace = replace(unscaled, time_scale=math.ceil(2 * took / unscaled.seconds(0, self.manifest.passes)))

    def stop(self) -> None:
        """Stop an accelerator that may still write; AcceleratorError if that fails. Nothing is freed before it."""
        if not self._is_loaded or self.overlay is None or not (self.broken or self.ip.may_write):
            return
        try:
            self.overlay.download()
        except Exception as error:  # of pynq or the kernel
            raise AcceleratorError(
                f"the accelerator cannot be stopped, since its bitstream does not load again ({cut(error)}); it may "
                "still write into its buffers, which are therefore kept",
                remedy="call close() again, or restart the board",
            ) from error

    @property
    def _is_loaded(self) -> bool:
        """Whether nothing else was loaded since: that would have stopped it."""
        reference = _LOADED.get(self.device)
        return reference is not None and reference() is self

    def _replace_other(self) -> None:
        reference = _LOADED.get(self.device)
        other = reference() if reference is not None else None
        if other is not None and other is not self:
            other.broken = "another accelerator was loaded on its device since"
        _LOADED[self.device] = weakref.ref(self)

    def close(self) -> None:
        """Gives back the simulated board, its files and the loop. pynq's drivers may hold buffers: they go too."""
        self.overlay = self.ip = None
        self._stack.close()

    async def _driver(self) -> Any:
        """In the loop's own thread: there pynq attaches the interrupt."""
        names = [name for name, entry in self.overlay.ip_dict.items() if entry["type"] == self.manifest.vlnv]
        if len(names) != 1:
            types = listed(entry["type"] for entry in self.overlay.ip_dict.values())
            raise MismatchError(
                f"the number of IPs {self.manifest.vlnv}",
                len(names),
                1,
                where=str(self._bit.with_suffix(".hwh")),
                remedy=f"copy .bit, .hwh and {MANIFEST} of one design (this one has {types})",
            )
        return getattr(self.overlay, names[0])

    def _bitstream(self) -> Path:
        """The .bit with its .hwh beside it; for a simulated board an empty one."""
        hwh = _only(self.folder, "*.hwh", "the hardware description that the generator writes")
        check_description(hwh)
        if not self.simulated:
            return _only(self.folder, "*.bit", "what Vivado makes: run the design's Tcl on a machine that has it")
        work = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="systolic-board-")))
        shutil.copyfile(hwh, work / "design.hwh")
        (work / "design.bit").write_bytes(b"")
        return work / "design.bit"

    def in_loop(self, coroutine: Any) -> Any:
        """Its result; the loop is the one that the interrupt belongs to."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            # Where it was the keyboard that raised: once the loop has come by, the coroutine writes no register more.
            if future.cancel():
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result()
            raise


@contextlib.contextmanager
def _loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop of our own: pynq's interrupts stay bound to the loop that first waits for them.

    It ends with the program at the latest: afterwards its thread stands still, and a loop that runs cannot be closed.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="accelerator interrupts", daemon=True)
    thread.start()

    def end() -> None:
        asyncio.run_coroutine_threadsafe(_cancelled(), loop)
        thread.join(_STOP_S)
        if not thread.is_alive():
            loop.close()

    atexit.register(end)
    try:
        yield loop
    finally:
        atexit.unregister(end)
        if not loop.is_closed():
            end()


async def _cancelled() -> None:
    """Cancel whatever waits in the running loop, and stop the loop."""
    loop = asyncio.get_running_loop()
    waiting = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    loop.stop()


def _cause(error: BaseException) -> str:
    """Return why a start did not end, for the next call to report."""
    if isinstance(error, AcceleratorError):
        return error.reason
    return cut(error) or type(error).__name__ if isinstance(error, Exception) else "it was interrupted"


def _only(folder: Path, pattern: str, purpose: str) -> Path:
    """Return the one file of the folder that matches; FileAccessError if there is none, or more than one."""
    paths = sorted([*folder.glob(pattern), *folder.glob(f"*/{pattern}")])
    if len(paths) != 1:
        names = listed(path.relative_to(folder) for path in paths) or "none"
        raise FileAccessError(str(folder), f"must hold one {pattern} ({purpose}); it holds {names}", "folder")
    return paths[0]

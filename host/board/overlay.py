"""A design's bitstream loaded on a board or a simulated board, and the driver of its accelerator."""

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

MAX_DESCRIPTION_BYTES = 1 << 26
"""Maximum size of a .hwh file in bytes. A complete Vivado design has a few million."""

_ROLE = "hardware description"


def check_description(path: Path) -> None:
    """Raise FileAccessError, RangeError or DamagedFileError if the .hwh is missing, too large or not a description."""
    named, again = str(path), "copy the .hwh of the .bit's own folder again"
    try:
        root = ElementTree.fromstring(read_bounded(path, MAX_DESCRIPTION_BYTES))
    except OSError as error:
        raise FileAccessError(named, f"cannot be read: {error.strerror}", _ROLE, remedy=again) from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        reason = f"is not a {_ROLE}: it is not XML ({cut(error, MAX_FAULT_LENGTH)})"
        raise DamagedFileError(named, reason, remedy=again) from error
    if root.tag != "EDKSYSTEM" or root.find("MODULES") is None:
        raise DamagedFileError(named, f"is not a {_ROLE}: it has no modules", remedy=again)


BOARD_TIMEOUT_S = 5.0
"""Default timeout on a board, in seconds per frame."""
SIMULATED_TIMEOUT_S = 300.0
"""Default timeout on a simulated board, in seconds per frame. A large network takes seconds, its first frame more."""

_STOP_S = 5.0
"""Seconds to wait for the end of the event loop that serves interrupts."""

_LOADED: weakref.WeakKeyDictionary[Any, weakref.ref[LoadedOverlay]] = weakref.WeakKeyDictionary()
"""The overlay that each device was last loaded with."""


class LoadedOverlay:
    """A design's overlay (bitstream and hardware description) on a pynq device. Construction checks the files; ``load``
    loads the bitstream.

    ``close`` may be called at any time, and twice. An error says what is missing.

    Attributes:
        broken: Why nothing may be started before the next ``load``, or "".
        overlay: The ``pynq.Overlay``, or None before ``load``.
        ip: The accelerator's driver, or None before ``load``.
        device: The pynq device. ``close`` ends the context manager that gave it (host/board/devices.py).
        simulated: Whether the device is a simulated board.
        timeout_s: Seconds that one start may take.
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
        """Load the bitstream, even if one is loaded: an earlier design is stopped and writes no more to DDR."""
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
        """Allocate a contiguous buffer in this device's DDR with ``pynq.allocate``."""
        from pynq import allocate

        return allocate(shape, dtype, target=self.device, **options)

    @property
    def has_interrupt(self) -> bool:
        return self.ip.line is not None

    @property
    def stop_reason(self) -> str:
        """Why the accelerator stopped, as a simulated board reports it. A real board reports nothing."""
        return str(getattr(self.device, "stop_reason", ""))

    def check_whole(self) -> None:
        """Raise StateError if an earlier frame did not end: the accelerator may not be started before the next
        ``load``."""
        if self.broken:
            raise StateError("the accelerator", f"stopped earlier ({self.broken})", remedy="call reset() first")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Return a context manager around one run of the accelerator, from its start to its end.

        If an exception ends it, the accelerator may still write: it is broken.
        """
        self.check_whole()
        try:
            yield
        except BaseException as error:
            self.broken = self.broken or _cause(error)
            raise
        self.check_whole()  # another bitstream may have been loaded meanwhile

    @property
    def label(self) -> str:
        """A sentence for reports that says how the times of this accelerator were obtained."""
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
        """Set the simulated board's time per batch to twice the time that executing one takes here, measured on the
        second one.

        The first start warms up.

        Args:
            frame: Executes one start.
        """
        frame()
        begin = time.perf_counter()
        frame()
        took = time.perf_counter() - begin
        unscaled = pace(self.folder, self.manifest, 1.0)
        assert unscaled is not None
        self.device.pace = replace(unscaled, time_scale=math.ceil(2 * took / unscaled.seconds(0, self.manifest.passes)))

    def stop(self) -> None:
        """Stop an accelerator that may still write to DDR. AcceleratorError if that fails; no buffer may be freed
        then."""
        if not self._is_loaded or self.overlay is None or not (self.broken or self.ip.may_write):
            return
        try:
            self.overlay.download()
        except Exception as error:  # raised by pynq or the kernel
            raise AcceleratorError(
                f"the accelerator cannot be stopped, since its bitstream does not load again ({cut(error)}); it may "
                "still write into its buffers, which are therefore kept",
                remedy="call close() again, or restart the board",
            ) from error

    @property
    def _is_loaded(self) -> bool:
        """Return whether this overlay is still loaded on its device. Loading another one would have stopped its
        accelerator."""
        reference = _LOADED.get(self.device)
        return reference is not None and reference() is self

    def _replace_other(self) -> None:
        reference = _LOADED.get(self.device)
        other = reference() if reference is not None else None
        if other is not None and other is not self:
            other.broken = "another accelerator was loaded on its device since"
        _LOADED[self.device] = weakref.ref(self)

    def close(self) -> None:
        """Close the simulated board, its files and the event loop, and drop pynq's drivers, which may hold buffers."""
        self.overlay = self.ip = None
        self._stack.close()

    async def _driver(self) -> Any:
        """Return pynq's driver object of the accelerator's IP.

        Run in the event loop's thread, because pynq attaches the interrupt there.
        """
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
        """Return the path of the .bit, which has its .hwh next to it. For a simulated board an empty .bit is made."""
        hwh = _only(self.folder, "*.hwh", "the hardware description that the generator writes")
        check_description(hwh)
        if not self.simulated:
            return _only(self.folder, "*.bit", "what Vivado makes: run the design's Tcl on a machine that has it")
        work = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="systolic-board-")))
        shutil.copyfile(hwh, work / "design.hwh")
        (work / "design.bit").write_bytes(b"")
        return work / "design.bit"

    def in_loop(self, coroutine: Any) -> Any:
        """Run the coroutine in the event loop that the interrupt belongs to, and return its result."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            # After a keyboard interrupt: once the loop has run a step, the coroutine writes no more registers.
            if future.cancel():
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result()
            raise


@contextlib.contextmanager
def _loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Return a context manager that runs an event loop in a thread: pynq's interrupts stay bound to the loop that first
    waits for them.

    The loop ends at program exit at the latest. Later its thread would be frozen, and a running loop cannot be closed.
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
    """Cancel all waiting tasks of the running loop, and stop the loop."""
    loop = asyncio.get_running_loop()
    waiting = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    loop.stop()


def _cause(error: BaseException) -> str:
    """Return, for later error messages, why a run of the accelerator did not end."""
    if isinstance(error, AcceleratorError):
        return error.reason
    return cut(error) or type(error).__name__ if isinstance(error, Exception) else "it was interrupted"


def _only(folder: Path, pattern: str, purpose: str) -> Path:
    """Return the only file of the folder whose name matches the pattern. FileAccessError if there is none, or more than
    one."""
    paths = sorted([*folder.glob(pattern), *folder.glob(f"*/{pattern}")])
    if len(paths) != 1:
        names = listed(path.relative_to(folder) for path in paths) or "none"
        raise FileAccessError(str(folder), f"must hold one {pattern} ({purpose}); it holds {names}", "folder")
    return paths[0]

"""The recording of one layer's signals over time, while an engine in SystemVerilog executes a frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from boards.errors import ChoiceError, FileAccessError, InvalidValueError, UnsupportedError
from host.whole_file import check_whole, place_of, staging_folder

if TYPE_CHECKING:  # a library is found and compiled where numpy is not installed
    from host.contract.libraries import SystolicLibrary
    from host.contract.parts import ManifestLayer

LayerT = TypeVar("LayerT", bound="ManifestLayer")

ENDING = ".fst"


def without_signals(folder: Path) -> UnsupportedError:
    """Return the error for recording signals of a C++ design, which has none."""
    return UnsupportedError(
        f"recording waves of {folder}",
        "its engine is in C++ and has no signals",
        remedy="generate it with --engine rtl, or draw its processes with --cycles --timeline FILE.png --layer NAME",
    )


@dataclass(frozen=True)
class Recording:
    """The signals to record into an FST file: one layer's, in passes ``first_pass`` to ``last_pass`` of the program."""

    layer: str
    first_pass: int
    last_pass: int
    path: Path

    def shows(self, index: int) -> bool:
        """Return whether the signals are recorded during pass ``index`` of the engine's program."""
        return self.first_pass <= index <= self.last_pass


@dataclass(frozen=True)
class Waves:
    """A recorded FST file with the signals of one layer.

    Attributes:
        layer: The name of the layer.
        path: The file.
        size: The size of the file in bytes.
        first_cycle: The first cycle of the layer, counted from the start of the frame.
        end_cycle: The cycle after the layer's last cycle.
    """

    layer: str
    path: Path
    size: int
    first_cycle: int
    end_cycle: int

    def values(self) -> dict[str, Any]:
        """Return the JSON object {layer, path, bytes, first_cycle, end_cycle}."""
        return {
            "layer": self.layer,
            "path": str(self.path),
            "bytes": self.size,
            "first_cycle": self.first_cycle,
            "end_cycle": self.end_cycle,
        }

    def text(self) -> str:
        """Return a sentence about the recorded FST file, and the command that opens it."""
        cycles = self.end_cycle - self.first_cycle
        return (
            f"{self.path}: {_size(self.size)}, the signals of {self.layer} in cycles {self.first_cycle:,} to "
            f"{self.end_cycle:,} ({cycles:,} cycles, drawn as 1 ns each)\n"
            f"open it: gtkwave {self.path}, or surfer {self.path}"
        )

    __repr__ = text


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1_000_000 else f"{count / 1e3:,.1f} kB"


def layer_named(layers: Sequence[LayerT], name: str) -> LayerT:
    """Return the layer with this name, or with this position, counted from 1.

    Raises:
        ChoiceError: There is no such layer. The message lists the names.
    """
    for layer in layers:
        if layer.name == name:
            return layer
    if name.isdecimal() and 1 <= int(name) <= len(layers):
        return layers[int(name) - 1]
    raise ChoiceError(
        "the layer to record", name, [layer.name for layer in layers], remedy=f"give a name, or 1 to {len(layers)}"
    )


def recording_of(layer: str, passes: range, path: Path | None) -> Recording:
    """Return a ``Recording`` of a layer's passes, after checking that the .fst file can be written.

    Args:
        layer: The name of the layer.
        passes: The passes of the layer.
        path: The file to write. None means ``<layer>.fst`` in the current folder.

    Raises:
        InvalidValueError: The file's ending is not .fst, by which waveform viewers know the format.
        FileAccessError: The file cannot be written.
    """
    file = path or Path(f"{layer.replace('/', '_')}{ENDING}")
    if file.suffix != ENDING:
        raise InvalidValueError("the file of waves", str(file), f"an FST file, whose name ends in {ENDING}")
    try:
        check_whole(file)
    except OSError as error:
        raise FileAccessError(
            str(file), f"cannot be written: {error.strerror}", remedy=f"name another FILE{ENDING} by -o"
        ) from error
    return Recording(layer, passes.start, passes.stop - 1, file)


@contextmanager
def recorded(library: SystolicLibrary, recording: Recording | None) -> Iterator[None]:
    """Let the simulation library record signals inside this context. The file is complete or absent."""
    if recording is None:
        yield
        return
    place = place_of(recording.path.absolute())
    with staging_folder(place) as folder:
        partial = folder / place.name
        library.record(partial, recording.first_pass, recording.last_pass)
        try:
            yield
        finally:
            library.record(None, 0, 0)
        partial.replace(place)


def waves(recording: Recording, layers: Sequence[ManifestLayer], cycles: Sequence[int]) -> Waves:
    """Return the recorded file with its size and the first and last cycle of its layer.

    Args:
        recording: The recording.
        layers: All layers of the design.
        cycles: The counted cycles of each of these layers.
    """
    number = next(number for number, layer in enumerate(layers) if layer.name == recording.layer)
    first = sum(cycles[:number])
    return Waves(recording.layer, recording.path, recording.path.stat().st_size, first, first + cycles[number])

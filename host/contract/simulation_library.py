"""The location of a design's simulation libraries, and the check that a library was built from the design's sources."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from boards.errors import FileAccessError
from host.contract.codec import read_bounded

MAX_SOURCE_BYTES = 1 << 28
"""Maximum size of a source file in bytes. A pipeline's constants are part of its sources."""

_REMEDY = "name another folder in TMPDIR"


def sources(folder: Path) -> list[Path]:
    """Return the source files in a design's folder from which its simulation libraries are compiled."""
    paths = [*(folder / "src").glob("*"), *(folder / "simulation").glob("*")]
    return sorted(path for path in paths if path.is_file())


def sources_key(files: list[Path]) -> str:
    """Return a hash of the given source files and of the processor's features.

    The features count because libraries are compiled for the machine's processor.
    """
    total = hashlib.sha256(_processor().encode())
    for path in files:
        data = read_bounded(path, MAX_SOURCE_BYTES)
        total.update(f"{path.name}:{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()[:16]


def library_folder(folder: Path) -> Path:
    """Return the folder that keeps a design's simulation libraries: its ``build`` folder, or a temporary one if that
    cannot be written."""
    build_folder = folder / "build"
    try:
        build_folder.mkdir(exist_ok=True)
    except OSError:
        return _temporary_folder()
    return build_folder if os.access(build_folder, os.W_OK) else _temporary_folder()


def find_library(folder: Path, library: Path | str | None) -> Path:
    """Return the path of ``library`` if it is given, else of the library built from the sources in ``folder`` for a
    processor like this one.

    FileAccessError if there is none, or if the temporary folder belongs to another user.
    """
    if library is not None:
        if not Path(library).is_file():
            remedy = "make it with systolic.build.build(folder)"
            raise FileAccessError(str(library), "does not exist", "simulation library", remedy=remedy)
        return Path(library).absolute()
    places = {folder / "build", library_folder(folder)}
    every = [path for place in places for path in place.glob("native-*.so")]
    fitting = [path for path in every if path.name.startswith(f"native-{sources_key(sources(folder))}-")]
    if not fitting:
        stale = f", only {len(every)} of other sources or of another processor" if every else ""
        advice = (
            f"run systolic simulate {folder} once, which builds it"
            if sources(folder)
            else "open the folder that systolic generate wrote, since this one has no sources to build a library from, "
            "or install the wheel of systolic package --without-bitstream, which holds a library"
        )
        raise FileAccessError(
            f"{folder}/build",
            f"holds no simulation library of this design, which is needed without a board{stale}",
            "folder",
            remedy=advice,
        )
    return max(fitting, key=lambda path: path.stat().st_mtime).absolute()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _temporary_folder() -> Path:
    """Return the user's own temporary folder for simulation libraries.

    One that belongs to another user is refused: its libraries would be executed.
    """
    folder = Path(tempfile.gettempdir()) / f"systolic-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        reason = f"cannot be made: {error.strerror}"
        raise FileAccessError(str(folder), reason, "folder", remedy=_REMEDY) from error
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise FileAccessError(str(folder), "belongs to another user", "folder", remedy=_REMEDY)
    return folder

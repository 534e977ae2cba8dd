"""Files and folders that are whole or not there: made in a hidden folder beside their place, then renamed.

The hidden folder is locked as long as its owner lives. One whose lock is free was left by a killed run, and goes when
the next run writes to the same place.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

ASIDE = "old"
"""In the hidden folder: what stood at the place, for a moment, where two folders cannot change places in one step."""


def write_whole(path: Path, data: bytes) -> None:
    """Until the last byte is written ``path`` is what it was, whatever stops the writing. OSError where it cannot be.

    A pipe or a device is written as it is: nothing can be renamed over it.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = place_of(path)
    with beside(target) as folder:
        partial = folder / "new"
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            partial.chmod(target.stat().st_mode)
        partial.replace(target)


def check_whole(path: Path) -> None:
    """OSError where ``write_whole`` would refuse: worth asking before long work."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.exists() or path.is_file():
        with beside(place_of(path)):
            pass


def place_of(path: Path) -> Path:
    """Where the file or folder itself is: a link stays a link."""
    return Path(os.path.realpath(path))


@contextmanager
def beside(target: Path, alone: bool = False) -> Iterator[Path]:
    """A hidden folder beside ``target``, gone at the end, for what is to be renamed to it. OSError where it cannot be.

    alone: BlockingIOError where another process is at work on ``target``.
    """
    lock, folder = None, _named(target)
    try:
        while True:
            folder.mkdir(mode=0o700)
            with suppress(BlockingIOError, FileNotFoundError):  # another run took it for a killed one's
                lock = _locked(folder)
                break
            folder = _named(target)
        if _clear(target, folder) and alone:
            raise BlockingIOError(errno.EBUSY, "another run is writing it", str(target))
        yield folder
    finally:
        _remove(folder)
        if lock is not None:
            os.close(lock)


def sweep(target: Path) -> None:
    """Removes what killed runs left beside ``target``, where nothing is to be written any more."""
    _clear(target, None)


def partials(target: Path) -> list[Path]:
    """The hidden folders beside ``target``, of runs that live and of killed ones; none where nobody may look."""
    prefix = _prefix(target)
    with suppress(OSError):
        hidden = [path for path in target.parent.iterdir() if path.name.startswith(prefix)]
        return [path for path in hidden if path.suffix == ".partial"]
    return []


def _named(target: Path) -> Path:
    return target.parent / f"{_prefix(target)}{secrets.token_hex(4)}.partial"


def _prefix(target: Path) -> str:
    """As much of the name as leaves room in the 255 bytes that a file system takes."""
    return f".{os.fsdecode(os.fsencode(target.name)[:200])}."


def _clear(target: Path, own: Path | None) -> bool:
    """Removes what killed runs left beside ``target``; whether another run is at work there."""
    busy = False
    for folder in partials(target):
        if folder == own:
            continue
        try:
            lock = _locked(folder)
        except OSError as error:  # else it is gone meanwhile, or somebody else's
            busy |= isinstance(error, BlockingIOError)
            continue
        if lock is not None:
            if not target.exists():
                with suppress(OSError):
                    (folder / ASIDE).rename(target)
            # A compiler that the killed run started may live, and still write there by the folder's name.
            renamed = _named(target)
            with suppress(OSError):
                folder = folder.rename(renamed)
            _remove(folder)
            os.close(lock)
    return busy


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock, None where the file system has no locks.

    BlockingIOError where another process holds it, FileNotFoundError where the folder is gone.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
        folder.stat()
    except (BlockingIOError, FileNotFoundError):
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove(folder: Path) -> None:
    """Also where an interrupt from the keyboard arrives meanwhile, or the disk fails once."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

"""Atomic writing of files and folders: they are made in a hidden folder next to their place, then renamed.

The hidden folder is locked while its owner runs. A hidden folder without a lock remains from a killed run. The next run
that writes to the same place removes it.
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
"""In the hidden folder: the name of the replaced folder, if the system cannot exchange two folders in one step."""


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: until all bytes are written, ``path`` keeps its old content.

    A pipe or a device is written directly, because nothing can be renamed over it. OSError if writing fails.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = place_of(path)
    with staging_folder(target) as folder:
        partial = folder / "new"
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            partial.chmod(target.stat().st_mode)
        partial.replace(target)


def check_whole(path: Path) -> None:
    """Raise OSError if ``write_whole`` would fail for ``path``. Call it before long work."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.exists() or path.is_file():
        with staging_folder(place_of(path)):
            pass


def place_of(path: Path) -> Path:
    """Return the real path of a file or folder, with symbolic links resolved, so that writing to it keeps a link a
    link."""
    return Path(os.path.realpath(path))


@contextmanager
def staging_folder(target: Path, alone: bool = False) -> Iterator[Path]:
    """Return a context manager that gives a hidden folder next to ``target`` for files to be renamed to it, and removes
    it at the end.

    Args:
        target: The file or folder to write.
        alone: Raise BlockingIOError if another process is writing ``target``.

    Raises:
        OSError: The folder cannot be made.
    """
    lock, folder = None, _named(target)
    try:
        while True:
            folder.mkdir(mode=0o700)
            with suppress(BlockingIOError, FileNotFoundError):  # another run may have taken it for a killed run's
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
    """Remove the hidden folders that killed runs left next to ``target``, without writing anything."""
    _clear(target, None)


def partials(target: Path) -> list[Path]:
    """Return the hidden staging folders next to ``target``, of running and killed processes; an empty list if they
    cannot be listed."""
    prefix = _prefix(target)
    with suppress(OSError):
        hidden = [path for path in target.parent.iterdir() if path.name.startswith(prefix)]
        return [path for path in hidden if path.suffix == ".partial"]
    return []


def _named(target: Path) -> Path:
    return target.parent / f"{_prefix(target)}{secrets.token_hex(4)}.partial"


def _prefix(target: Path) -> str:
    """Return the start of the names of ``target``'s hidden staging folders, short enough for the 255 bytes of file
    systems."""
    return f".{os.fsdecode(os.fsencode(target.name)[:200])}."


def _clear(target: Path, own: Path | None) -> bool:
    """Remove the hidden folders that killed runs left next to ``target``. Return whether another run is writing it."""
    busy = False
    for folder in partials(target):
        if folder == own:
            continue
        try:
            lock = _locked(folder)
        except OSError as error:  # other errors: it is gone meanwhile, or belongs to another user
            busy |= isinstance(error, BlockingIOError)
            continue
        if lock is not None:
            if not target.exists():
                with suppress(OSError):
                    (folder / ASIDE).rename(target)
            # A compiler that the killed run started may still run and write into the folder by its name.
            renamed = _named(target)
            with suppress(OSError):
                folder = folder.rename(renamed)
            _remove(folder)
            os.close(lock)
    return busy


def _locked(folder: Path) -> int | None:
    """Lock a hidden staging folder and return a descriptor that holds the lock, or None if the file system has no
    locks.

    BlockingIOError if another process holds the lock, FileNotFoundError if the folder is gone.
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
    """Remove a folder, with a second attempt if a keyboard interrupt or a disk error ended the first."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

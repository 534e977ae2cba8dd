"""Two folders change places: in one step where the kernel and the file system can."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from host.whole_file import ASIDE

_CURRENT_FOLDER, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange(new: Path, target: Path) -> None:
    """Exchange what ``new`` and ``target`` name. OSError if that fails, and then nothing changes.

    Without one step for it, ``target`` is aside beside ``new`` for a moment; killed then, the next run puts it back.
    """
    try:
        _rename_exchange(new, target)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        _rename_thrice(new, target)


def _rename_exchange(new: Path, target: Path) -> None:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    paths = _CURRENT_FOLDER, os.fsencode(new), _CURRENT_FOLDER, os.fsencode(target)
    if rename(*paths, ctypes.c_uint(_EXCHANGE)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(target))


def _rename_thrice(new: Path, target: Path) -> None:
    aside = new.with_name(ASIDE)
    try:
        target.rename(aside)
        new.rename(target)
    except BaseException:
        if not target.exists():
            aside.rename(target)
        raise
    aside.rename(new)

"""A generated design: files in memory with a digest, written whole or not at all.

A folder takes the place of an older one in one step, if the kernel and the file system can exchange two folders.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from boards.board import Board
from boards.errors import FileAccessError, InvalidValueError
from host.contract.manifest import is_design
from host.whole_file import ASIDE, beside, place_of

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


@dataclass(frozen=True, eq=False)
class DesignFiles:
    """``files``: relative path → bytes, in sorted order."""

    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """SHA-256 over all names and contents: the same inputs give the same digest."""
        total = hashlib.sha256()
        for name, data in self.files.items():
            total.update(f"{len(name)}:{name}:{len(data)}:".encode())
            total.update(data)
        return total.hexdigest()


def design_files(files: Mapping[str, bytes]) -> DesignFiles:
    """Sort the files; InvalidValueError for a name that would leave the output folder."""
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
            raise InvalidValueError("the name of a generated file", name, "a path inside the output folder")
    return DesignFiles(dict(sorted(files.items())))


def board_file(board: Board) -> dict[str, bytes]:
    """Return the file that declares a board of the user's own, which the design carries: no file for another board."""
    return {f"{board.name}.toml": board.declaration.encode()} if board.declaration else {}


def write(made: DesignFiles, folder: Path, *, replace: bool = False) -> None:
    """``OutputFolder.write`` for files that are there already."""
    with output_folder(folder, replace) as output:
        output.write(made)


@dataclass(frozen=True)
class OutputFolder:
    """A folder that nobody but this run writes to.

    folder: as the user named it. target: where it is. hidden: a folder beside it, for what is not whole yet.
    replace: a design that is there already goes.
    """

    folder: Path
    target: Path
    hidden: Path
    replace: bool

    def write(self, made: DesignFiles) -> None:
        """Until the last file is written the folder is what it was, whatever stops the writing.

        FileAccessError if it cannot be written, or if something else appeared there meanwhile, which is left alone.
        """
        new = self.hidden / "new"
        try:
            new.mkdir()
            for name, data in made.files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            new.chmod(0o755)
            self._put(new)
        except OSError as error:
            reason = f"cannot be written: {error.strerror}; nothing was changed"
            raise FileAccessError(str(self.folder), reason, "output folder") from error

    def _put(self, new: Path) -> None:
        """``new`` to its place. What stood there is looked at once more, when it is out of the way, before it goes."""
        try:
            new.rename(self.target)  # takes the place of nothing, or of an empty folder
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            exchange(new, self.target)
            try:
                _check_content(new, self.folder, self.replace)
            except BaseException:
                exchange(new, self.target)
                raise


@contextmanager
def output_folder(folder: Path, replace: bool) -> Iterator[OutputFolder]:
    """The folder for this run alone: worth asking for before long work. Folders above it are made.

    FileAccessError if it cannot be written, if another run is writing it, if it holds something else than a design, or
    a design that is not to be replaced.
    """
    with ExitStack() as stack:
        try:
            check_target(folder, replace)
            target = place_of(folder)
            stack.callback(_remove_empty, [above for above in target.parents if not above.exists()])
            target.parent.mkdir(parents=True, exist_ok=True)
            hidden = stack.enter_context(beside(target, alone=True))
            check_target(folder, replace)  # a run that ended a moment ago may have written it
        except OSError as error:
            raise _refusal(folder, f"cannot be written: {error.strerror}", "choose another output folder") from error
        yield OutputFolder(folder, target, hidden, replace)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Of ``folders``, the innermost first, those into which nothing was written."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def check_target(folder: Path, replace: bool) -> None:
    """Raise FileAccessError if the folder holds something else than a design, or a design that is not to be
    replaced."""
    above = next((parent for parent in folder.parents if parent.exists()), folder.parent)
    if not above.is_dir():
        raise _refusal(folder, f"cannot be a folder, because {above} is a file", "choose another output folder")
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise _refusal(folder, "is a file", "choose another")
    _check_content(folder, folder, replace)


def _check_content(content: Path, folder: Path, replace: bool) -> None:
    """Raise FileAccessError if ``content``, which is or was in ``folder``, is not to be replaced."""
    if not any(content.iterdir()):
        return
    if not is_design(content):
        raise _refusal(folder, "exists and is not a generated design, so it is left alone", "choose another folder")
    if not replace:
        remedy = "add --force to replace it, or choose another folder"
        raise _refusal(folder, "holds a generated design already", remedy)


def _refusal(folder: Path, reason: str, remedy: str) -> FileAccessError:
    return FileAccessError(str(folder), reason, "output folder", remedy=remedy)

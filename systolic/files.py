"""The files of a generated design: in memory with a digest, and written to a folder completely or not at all.

If the kernel and the file system can exchange two folders, a new folder replaces an older one in one step.
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
from host.whole_file import ASIDE, place_of, staging_folder

_CURRENT_FOLDER, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange(new: Path, target: Path) -> None:
    """Exchange the names of two folders. Raises OSError if that fails, and then nothing has changed.

    If the system cannot do this in one step, ``target`` is renamed to ASIDE, next to ``new``, for a moment. If the
    process is killed in that moment, the next run renames it back.
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
    """The files of a design in memory, as bytes.

    Attributes:
        files: Relative path to content, sorted by path.
    """

    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """The SHA-256 over all names and contents, in hexadecimal digits. Equal files have the same digest."""
        total = hashlib.sha256()
        for name, data in self.files.items():
            total.update(f"{len(name)}:{name}:{len(data)}:".encode())
            total.update(data)
        return total.hexdigest()


def design_files(files: Mapping[str, bytes]) -> DesignFiles:
    """Return the files as ``DesignFiles``, sorted. Raises InvalidValueError for a name outside the output folder."""
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
            raise InvalidValueError("the name of a generated file", name, "a path inside the output folder")
    return DesignFiles(dict(sorted(files.items())))


def board_file(board: Board) -> dict[str, bytes]:
    """Return {NAME.toml: content} of a board that the user declared; {} for a built-in board."""
    return {f"{board.name}.toml": board.declaration.encode()} if board.declaration else {}


def write(made: DesignFiles, folder: Path, *, replace: bool = False) -> None:
    """Write the files of a design into ``folder``; see ``output_folder`` and ``OutputFolder.write``."""
    with output_folder(folder, replace) as output:
        output.write(made)


@dataclass(frozen=True)
class OutputFolder:
    """An output folder that no other run can write to until this run has finished.

    Attributes:
        folder: The folder as the user named it, for errors.
        target: The folder with symbolic links resolved.
        hidden: A folder next to it for files that are not complete yet.
        replace: Whether to replace a design that is there already.
    """

    folder: Path
    target: Path
    hidden: Path
    replace: bool

    def write(self, made: DesignFiles) -> None:
        """Write the files of a design. The folder does not change until all of them are written.

        Raises:
            FileAccessError: The folder cannot be written. Or another run has since written something to it, which is
                not replaced.
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
        """Move ``new``, which holds all files, to the output folder. Undo it if the former content must be kept.

        Another program may have changed the folder since ``output_folder`` checked it. If its content must not be
        replaced, the exchange is undone.
        """
        try:
            new.rename(self.target)  # works only if the target does not exist or is empty
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
    """Reserve an output folder for this run, so that no other run writes to it, and make the folders above it.

    Callers reserve it before long work, so that a folder that cannot be written is found early.

    Raises:
        FileAccessError: The folder cannot be written, another run is writing to it, it holds something else than a
            design, or it holds a design that must not be replaced.
    """
    with ExitStack() as stack:
        try:
            check_target(folder, replace)
            target = place_of(folder)
            stack.callback(_remove_empty, [above for above in target.parents if not above.exists()])
            target.parent.mkdir(parents=True, exist_ok=True)
            hidden = stack.enter_context(staging_folder(target, alone=True))
            check_target(folder, replace)  # a run that ended a moment ago may have written it
        except OSError as error:
            raise _refusal(folder, f"cannot be written: {error.strerror}", "choose another output folder") from error
        yield OutputFolder(folder, target, hidden, replace)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove each of ``folders`` if it is empty. The innermost folder must be the first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def check_target(folder: Path, replace: bool) -> None:
    """Raise FileAccessError if a design cannot be written to the folder, or must not replace its content.

    That is the case if the path or a folder above it is a file, or if the folder holds something else than a design. A
    design may be replaced only if ``replace`` is true.
    """
    above = next((parent for parent in folder.parents if parent.exists()), folder.parent)
    if not above.is_dir():
        raise _refusal(folder, f"cannot be made, because {above} is a file", "choose another output folder")
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise _refusal(folder, "is a file", "choose another output folder")
    _check_content(folder, folder, replace)


def _check_content(content: Path, folder: Path, replace: bool) -> None:
    """Raise FileAccessError if a folder has files that are not a design, or a design that must be kept.

    Args:
        content: The folder with the content.
        folder: The folder as the user named it, for the error.
        replace: Whether a design may be replaced.
    """
    if not any(content.iterdir()):
        return
    if not is_design(content):
        raise _refusal(folder, "exists and is not a generated design, so it is not replaced", "choose another folder")
    if not replace:
        remedy = "add --force to replace it, or choose another folder"
        raise _refusal(folder, "holds a generated design already", remedy)


def _refusal(folder: Path, reason: str, remedy: str) -> FileAccessError:
    return FileAccessError(str(folder), reason, "output folder", remedy=remedy)

"""A generated design: files in memory with a digest, written whole or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from boards.errors import GenerateError
from host.contract.manifest import is_design


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
    """Sorts the files; GenerateError for a name that would leave the output folder."""
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
            raise GenerateError(f"a generated file stays inside the output folder, {name!r} does not")
    return DesignFiles(dict(sorted(files.items())))


def write(made: DesignFiles, folder: Path, *, replace: bool = False) -> None:
    """Writes beside ``folder`` and renames, so that it is never half written.

    An existing folder is replaced only where ``replace`` is set and it holds a design; GenerateError else.
    """
    try:
        check_target(folder, replace)
        target = folder.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise GenerateError(f"{folder} cannot be written: {error.strerror}; choose another output folder") from error
    try:
        for name, data in made.files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        beside.chmod(0o755)
        _swap(beside, target)
    except OSError as error:
        raise GenerateError(f"{folder} cannot be written: {error.strerror}; nothing was changed") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_target(folder: Path, replace: bool) -> None:
    """GenerateError where ``write`` would refuse the folder: worth asking before long work."""
    above = next((parent for parent in folder.parents if parent.exists()), folder.parent)
    if not above.is_dir():
        raise GenerateError(f"{folder} cannot be a folder, because {above} is a file; choose another output folder")
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise GenerateError(f"the output folder {folder} is a file; choose another")
    if not any(folder.iterdir()):
        return
    if not is_design(folder):
        raise GenerateError(
            f"{folder} exists and is not a generated design, so it is left alone; choose another folder"
        )
    if not replace:
        raise GenerateError(
            f"{folder} holds a generated design already; add --force to replace it, or choose another folder"
        )


def _swap(made: Path, folder: Path) -> None:
    """Rename; a folder that stood there moves aside first and is removed last."""
    if not folder.exists():
        made.rename(folder)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    folder.rename(aside / "old")
    try:
        made.rename(folder)
    except OSError:
        (aside / "old").rename(folder)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)

"""Pictures that a user names: files, and folders of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from boards.errors import PictureError

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".tif", ".tiff", ".webp")


def pictures_in(folder: Path) -> tuple[Path, ...]:
    """The pictures of a folder in the order of their names; PictureError where there are none."""
    pictures = tuple(sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS))
    if not pictures:
        raise PictureError(
            f"{folder} holds no picture ({', '.join(ENDINGS)}); name a folder of pictures or of video frames"
        )
    return pictures


def picture_files(named: Iterable[Path | str]) -> tuple[Path, ...]:
    """Each folder's pictures in its place, files as they are. PictureError where a folder has none."""
    paths = map(Path, named)
    return tuple(picture for path in paths for picture in (pictures_in(path) if path.is_dir() else (path,)))

"""manifest.json of a generated folder: read and checked, written, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    FileAccessError,
    MismatchError,
    RangeError,
    SystolicError,
    cut,
)
from host.contract.codec import from_json, parse_json, read_json, to_json
from host.contract.parts import MANIFEST, Manifest
from host.contract.streaming import StreamingManifest
from host.contract.systolic import SystolicManifest
from host.contract.versions import VERSION, as_fields, as_version_3, check_version

FORMAT = "systolic-manifest"
LARGEST_MANIFEST = 16 << 20  # bytes

M = TypeVar("M", bound=Manifest)

MANIFESTS: dict[str, type[Manifest]] = {kind.style: kind for kind in (SystolicManifest, StreamingManifest)}
"""By the style that a manifest names."""


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a generated folder; an error says what is missing or wrong, and what to do."""
    path = folder / MANIFEST
    try:
        values = read_json(path, LARGEST_MANIFEST)
    except OSError as error:
        raise FileAccessError(
            str(folder),
            f"is not a generated design: its {MANIFEST} cannot be read ({error.strerror})",
            "folder",
            remedy="run systolic generate first, or copy the whole folder to the board",
        ) from error
    return parse_manifest(values, str(path))


def manifest_in(files: Mapping[str, bytes]) -> Manifest:
    """The manifest among a design's files, before they are written."""
    return parse_manifest(parse_json(files[MANIFEST], MANIFEST), MANIFEST)


def parse_manifest(values: object, source: str) -> Manifest:
    """``read_manifest`` for what the JSON holds."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        remedy = "run systolic generate first"
        raise DamagedFileError(source, "is not the manifest of a generated design", remedy=remedy)
    check_version(values, source)
    try:
        manifest = from_json(_kind(values.get("style")), as_fields(values))
        manifest.validate()
    except SystolicError as error:
        raise error.at(source, "generate the design again") from error
    return manifest


def _kind(style: object) -> type[Manifest]:
    if not isinstance(style, str) or style not in MANIFESTS:
        raise ChoiceError("the style", style, tuple(MANIFESTS))
    return MANIFESTS[style]


def of_style(kind: type[M], manifest: Manifest) -> M:
    """Return the manifest as one of the class ``kind``; MismatchError if it is of another style."""
    if not isinstance(manifest, kind):
        raise MismatchError(f"the style of {cut(manifest.network)}", manifest.style, kind.style)
    return manifest


def manifest_text(manifest: Manifest) -> str:
    """Return what ``read_manifest`` reads: JSON with a value per line."""
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "style": manifest.style}
    return json.dumps(head | as_version_3(to_json(manifest)), indent=1, ensure_ascii=False) + "\n"


def is_design(folder: Path) -> bool:
    """Whether a folder holds a generated design of any version, whole or not; it is asked before one is replaced."""
    try:
        values = read_json(folder / MANIFEST, LARGEST_MANIFEST)
    except (OSError, DamagedFileError, FileAccessError, RangeError):
        return False
    return isinstance(values, dict) and values.get("format") == FORMAT

"""Preprocesses all sources into one text, as synthesis does, and records the origin of each line."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from shutil import which

from boards.errors import InvalidValueError, MissingToolError, ToolError, cut
from hls_templates.headers import fixed_files, include_folders

_ENGINE = fixed_files(*include_folders("systolic"))
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)
_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"')
_ALLOW = re.compile(r"lint: allow\(([\w-]+)\)\s*\w")  # the reason must begin with a word
_ENGINE_FOLDER, _EXPANDED = ".engine", ".expanded"  # the folder of the engine's headers, and the preprocessor's output
_VENDOR = re.compile(r"(ap_|hls_)\w+\.h$")
_SECONDS, _MEMORY, _MAX_BYTES = 60, 1 << 30, 16 << 20
"""Limits of the preprocessor: seconds, bytes of memory, and bytes of expanded text."""

_GROWTH, _MIN_BYTES = 4, 1 << 20
"""The expanded text may have _GROWTH times the bytes of the sources, plus _MIN_BYTES for the engine's headers.

A macro can multiply names, and each name takes some hundred bytes of memory after parsing.
"""


@dataclass(frozen=True)
class Unit:
    """The sources to lint, preprocessed into one text, with the origin of each line.

    Attributes:
        text: The expanded text.
        origins: For each row of the text, its file and its line in this file, from 1.
        absent: Quoted headers that are neither among the sources nor headers of the engine.
    """

    text: bytes
    origins: tuple[tuple[str, int], ...]
    absent: frozenset[str] = frozenset()


def expand(sources: Mapping[str, str]) -> Unit:
    """Preprocess all C++ ``sources`` as one translation unit with ``__SYNTHESIS__`` defined, by g++; return it with the
    origin of each line.

    An include that names neither a source nor a header of the engine is taken for a vendor header and removed.

    Raises:
        InvalidValueError: The name of a source is a path outside the project.
        MissingToolError: g++ is not installed.
        ToolError: g++ rejects the sources, or exceeds the time limit.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in {**_engine(), **sources}.items():
            _write(root, name, _INCLUDE.sub(lambda m: m[0] if _ours(m[1], sources) else "", text))
        units = sorted(sources, key=lambda name: (name.endswith((".h", ".hpp", ".hh")), name))
        lines = "".join(f'#include "{root / name}"\n' for name in units)
        quoted = {m[1] for text in sources.values() for m in _INCLUDE.finditer(text) if '"' in m[0]}
        absent = frozenset(n for n in quoted if not _ours(n, sources) and not _VENDOR.match(n))
        return replace(_with_origins(_preprocess(root, lines, sources), root), absent=absent)


def _engine() -> dict[str, str]:
    """Return the text of each C++ header of the systolic engine, by the path that the preprocessor finds it at.

    Linted sources may include these headers although the caller did not give them to the linter.
    """
    return {f"{_ENGINE_FOLDER}/{name}": text for name, text in _ENGINE.items()}


def _write(root: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or set(name) & set('"\n\\'):
        raise InvalidValueError("the name of a source", name, "a path inside the project", remedy="rename the file")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def _ours(name: str, sources: Mapping[str, str]) -> bool:
    tail = tuple(part for part in PurePosixPath(name).parts if part not in (".", ".."))
    is_source = any(PurePosixPath(source).parts[-len(tail) :] == tail for source in sources)
    return is_source or name in _ENGINE


def _preprocess(root: Path, lines: str, sources: Mapping[str, str]) -> str:
    folders = sorted({str((root / name).parent) for name in sources})
    command = ["g++", "-E", "-x", "c++", "-std=c++17", "-nostdinc", "-D__SYNTHESIS__", "-D__VITIS_HLS__"]
    command += [f"-I{folder}" for folder in [*folders, str(root / _ENGINE_FOLDER)]]
    expanded = root / _EXPANDED
    if which("g++") is None:
        raise MissingToolError("g++", "expand macros for the linter", remedy="install g++")
    limited = _limited(sum(map(len, sources.values())))
    try:
        result = subprocess.run(
            [*limited, *command, "-o", expanded, "-"],
            input=lines,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError("the preprocessor", f"did not end within {_SECONDS} s", remedy="lint fewer files") from error
    if result.returncode:
        first = result.stderr.replace(f"{root}/", "").strip().splitlines()[:3]
        raise ToolError("the preprocessor", "does not accept the sources", cut(" | ".join(first), 1000))
    return expanded.read_text()


def _limited(source_bytes: int) -> list[str]:
    """Return the first words of a shell command that runs another command with limited memory, output and time.

    The limits are needed because a macro may expand without end, and because an include may name a device file.
    """
    text_bytes = min(_MAX_BYTES, _MIN_BYTES + _GROWTH * source_bytes)
    limits = f"ulimit -v {_MEMORY >> 10}; ulimit -f {text_bytes >> 9}; ulimit -t {_SECONDS}"
    return ["sh", "-c", f'{{ {limits}; }} 2>/dev/null; exec "$@"', "sh"]


def _with_origins(expanded: str, root: Path) -> Unit:
    file, line = "", 0
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    for text in expanded.splitlines():
        if marker := _MARKER.match(text):
            file, line = marker[2].removeprefix(f"{root}/"), int(marker[1])
            continue
        lines.append(text)
        origins.append((file, line))
        line += 1
    return Unit("\n".join([*lines, ""]).encode(), (*origins, (file, line)))


def is_suppressed(sources: Mapping[str, str], file: str, line: int, rule: str) -> bool:
    """Return whether a comment ``lint: allow(rule) why`` suppresses a finding, on its line or alone on the line
    above."""
    rows = sources[file].splitlines()
    notes = [rows[i] for i in (line - 1, line - 2) if 0 <= i < len(rows)]
    notes = notes[:1] + [row for row in notes[1:] if row.lstrip().startswith("//")]
    return any(match[1] == rule for row in notes for match in _ALLOW.finditer(row))

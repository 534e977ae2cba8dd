"""The fixed C++ files: the folders that hold them, and the files that a design needs.

The folders here only group the headers for readers. A design's ``src/`` has no folders, so headers include each other
by file name, and no two headers of an engine have the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from boards.errors import InvalidValueError

FOLDER = Path(__file__).parent
COMMON = FOLDER / "common"
SIMULATION = FOLDER / "simulation"

_HEADER = re.compile(r"[A-Za-z]\w*\.h")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)


def include_folders(engine: str) -> tuple[Path, ...]:
    """Return the folders with the C++ headers of an engine ("systolic" or "streaming"), as an include path."""
    return (COMMON, *sorted({path.parent for path in (FOLDER / engine).rglob("*.h")}))


def fixed_files(*folders: Path) -> dict[str, str]:
    """Return the texts of the .h and .cpp files directly in ``folders``, by file name, sorted by name."""
    paths = (path for folder in folders for path in folder.iterdir() if path.suffix in (".h", ".cpp"))
    return {path.name: path.read_text("utf-8") for path in sorted(paths, key=lambda path: path.name)}


def included(texts: Iterable[str], fixed: Mapping[str, str]) -> dict[str, str]:
    """Return the texts, by file name, of those ``fixed`` files that ``texts`` include, directly or indirectly.

    Every #include line counts, also in a block that an #if disables. Other names in #include lines are headers of the
    compiler or the vendor, or generated files.
    """
    names: set[str] = set()
    unread = list(texts)
    while unread:
        new = fixed.keys() & set(_INCLUDE.findall(unread.pop())) - names
        names |= new
        unread += [fixed[name] for name in new]
    return {name: text for name, text in fixed.items() if name in names}


def with_headers(generated: Mapping[str, str], engine: str, added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the files of a design's src/ folder, by name: the ``generated`` sources and the headers of ``engine`` that
    they include.

    Args:
        generated: The generated sources: name to text.
        engine: "systolic" or "streaming".
        added: The headers that other packages add: name to text.

    Raises:
        InvalidValueError: An added header has an invalid name, or the name of another file.
    """
    fixed = fixed_files(*include_folders(engine))
    for name in added or {}:
        if name in fixed or name in generated or not _HEADER.fullmatch(name):
            raise InvalidValueError(
                "the name of a package's header", name, "a plain name that ends with .h and that no other file has"
            )
    return {**included(generated.values(), {**fixed, **(added or {})}), **generated}


def simulation_files(sources: Mapping[str, str], simulate: str) -> dict[str, str]:
    """Return the texts of the files of a design's simulation/ folder, by file name.

    They are simulate.cpp, the cycle recorder, and the headers of simulation/ that these and the sources include.

    Args:
        sources: The files of the src/ folder.
        simulate: The text of simulate.cpp.
    """
    fixed = fixed_files(SIMULATION)
    recorder = {name: text for name, text in fixed.items() if name.endswith(".cpp")}
    needed = included([*sources.values(), simulate, *recorder.values()], fixed)
    return {**dict(sorted({**recorder, **needed}.items())), "simulate.cpp": simulate}

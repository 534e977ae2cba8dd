"""The fixed C++ files: which folders hold them, and which of them a design gets.

The folders are rooms for people. A design's ``src/`` is flat, so that headers include each other by their bare names,
and no two headers of one engine have the same name.
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
    """Every folder with headers of ``engine`` ("systolic" or "streaming"): the include path of what uses them."""
    return (COMMON, *sorted({path.parent for path in (FOLDER / engine).rglob("*.h")}))


def fixed_files(*folders: Path) -> dict[str, str]:
    """Name → text of the fixed C++ files that lie directly in ``folders``, sorted."""
    paths = (path for folder in folders for path in folder.iterdir() if path.suffix in (".h", ".cpp"))
    return {path.name: path.read_text("utf-8") for path in sorted(paths, key=lambda path: path.name)}


def included(texts: Iterable[str], fixed: Mapping[str, str]) -> dict[str, str]:
    """Those of ``fixed`` that ``texts`` include, directly or through one another, in the order of ``fixed``.

    Every #include line counts, whatever #if it stands under. Names that ``fixed`` lacks are the compiler's, the
    vendor's, or generated.
    """
    names: set[str] = set()
    unread = list(texts)
    while unread:
        new = fixed.keys() & set(_INCLUDE.findall(unread.pop())) - names
        names |= new
        unread += [fixed[name] for name in new]
    return {name: text for name, text in fixed.items() if name in names}


def with_headers(generated: Mapping[str, str], engine: str, added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the ``generated`` sources of a design's src/ folder and the headers of ``engine`` that they include.

    added: headers of packages. Raises InvalidValueError if one of these has the name of another file.
    """
    fixed = fixed_files(*include_folders(engine))
    for name in added or {}:
        if name in fixed or name in generated or not _HEADER.fullmatch(name):
            raise InvalidValueError(
                "the name of a package's header", name, "a plain name that ends with .h and that no other file has"
            )
    return {**included(generated.values(), {**fixed, **(added or {})}), **generated}


def simulation_files(sources: Mapping[str, str], simulate: str) -> dict[str, str]:
    """A design's simulation/ folder: ``simulate`` as simulate.cpp, the cycle recorder, and the headers that they and
    ``sources``, the src/ folder, include."""
    fixed = fixed_files(SIMULATION)
    recorder = {name: text for name, text in fixed.items() if name.endswith(".cpp")}
    needed = included([*sources.values(), simulate, *recorder.values()], fixed)
    return {**dict(sorted({**recorder, **needed}.items())), "simulate.cpp": simulate}

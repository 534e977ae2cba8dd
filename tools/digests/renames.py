"""Checks that a commit changed only names in the generated C++ and SystemVerilog.

``renames.tsv`` lists the names that one commit changed, and names the commit before it. Under this table, the digests
of the designs before are equal to the digests after: the names in the files of the earlier commit are replaced, and
the results are compared without comments and white space.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path, PurePosixPath

from tools.comments import Kind, language_of, pieces
from tools.digests.execution import digest

TABLE = Path(__file__).parent / "renames.tsv"
ROOT = Path(__file__).resolve().parents[2]

FILES = "file"
"""Scope of a row that renames a file."""

BASE = "# base: "
"""Beginning of the line that names the commit before the renames."""

_GENERATE = """
import pickle, sys
from tools.digests.design import generate
from tools.digests.table import DESIGNS
pickle.dump({row.name: dict(generate(row).sources) for row in DESIGNS}, sys.stdout.buffer)
"""

Designs = Mapping[str, Mapping[str, bytes]]
"""The generated files of every design, by path."""


@dataclass(frozen=True)
class Rename:
    """A name that was replaced.

    Attributes:
        scope: Names of files, which may contain ``*``. A template has the name of the file that it generates.
        old: The name before, or several tokens if the name alone is ambiguous.
        new: The name after.
    """

    scope: tuple[str, ...]
    old: str
    new: str

    def applies(self, path: str) -> bool:
        """Return whether the row holds in a file."""
        name = PurePosixPath(path).name.removesuffix(".j2")
        return any(fnmatchcase(name, scope) for scope in self.scope)


@dataclass(frozen=True)
class Renames:
    """The table. ``base`` is the commit before the renames."""

    base: str
    rows: tuple[Rename, ...]


def read(text: str) -> Renames:
    """Read a table. Its columns are the scope, the old name and the new name, separated by tabs."""
    base = next(line.removeprefix(BASE) for line in text.splitlines() if line.startswith(BASE))
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return Renames(base, tuple(Rename(tuple(scope.split(",")), old, new) for scope, old, new in rows))


def renamed_path(path: str, renames: Renames) -> str:
    """Return a file's path after the renames."""
    names = {row.old: row.new for row in renames.rows if row.scope == (FILES,)}
    before = PurePosixPath(path)
    return str(before.with_name(names.get(before.name, before.name)))


def renamed(text: str, path: str, renames: Renames) -> str:
    """Return the code of a file without comments, after the renames. Strings are unchanged."""
    rows = {row.old: row.new for row in renames.rows if row.applies(path)}
    parts = []
    for kind, group in groupby(pieces(text, path), key=lambda piece: piece[0]):
        part = "".join(piece for _, piece in group)
        if kind is not Kind.COMMENT:
            parts.append(part if kind is Kind.STRING else replaced(part, rows))
    return " ".join(parts)


def replaced(code: str, names: Mapping[str, str]) -> str:
    """Replace names in code, all at once. Of several that begin at the same place, the longest is replaced."""
    if not names:
        return code
    longest_first = sorted(names, key=len, reverse=True)
    pattern = "|".join(_whole(old) for old in longest_first)
    return re.sub(pattern, lambda match: names[match[0]], code)


def _whole(old: str) -> str:
    before = r"(?<!\w)" if re.match(r"\w", old) else ""
    after = r"(?!\w)" if re.search(r"\w$", old) else ""
    return f"{before}{re.escape(old)}{after}"


def token_digests(files: Mapping[str, bytes], renames: Renames) -> dict[str, str]:
    """Return the digest of each file's tokens after the renames. White space and comments do not count."""
    made = {}
    for path, data in files.items():
        if language_of(path) in ("c++", "systemverilog"):
            code = renamed(data.decode("utf-8"), path, renames)
            made[renamed_path(path, renames)] = digest("\n".join(re.findall(r"\w+|[^\w\s]", code)).encode())
    return made


def differences(before: Designs, after: Designs, renames: Renames) -> Iterator[str]:
    """Yield a sentence per file that differs by more than the renames."""
    nothing = Renames(renames.base, ())
    for design in sorted({*before, *after}):
        was = token_digests(before.get(design, {}), renames)
        now = token_digests(after.get(design, {}), nothing)
        for path in sorted({*was, *now}):
            if was.get(path) != now.get(path):
                yield f"{design}: {path} differs by more than the names of the table"


def commit_of_table() -> str | None:
    """Return the commit that last changed the table; None if it has changes that are not committed."""
    if _git("status", "--porcelain", "--", str(TABLE)):
        return None
    return _git("log", "-1", "--format=%H", "--", str(TABLE)).decode().strip() or None


def designs_of(commit: str | None) -> Designs:
    """Generate the designs with the code of a commit, or of the working tree."""
    if commit is None:
        return _generated(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
            archive.extractall(folder)
        return _generated(Path(folder))


def _generated(root: Path) -> Designs:
    command = [sys.executable, "-c", _GENERATE]
    done = subprocess.run(command, cwd=root, capture_output=True, check=True, env=_environment(root))
    designs: Designs = pickle.loads(done.stdout)
    return designs


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(root), "OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"}


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def check() -> int:
    """Compare the designs before and after the renames. Return 1 if they differ by more than names."""
    renames = read(TABLE.read_text("utf-8"))
    before, after = designs_of(renames.base), designs_of(commit_of_table())
    found = list(differences(before, after, renames))
    for difference in found:
        print(difference)
    files = sum(len(token_digests(sources, renames)) for sources in after.values())
    verdict = "every digest is the same" if not found else f"{len(found)} differences"
    print(f"{len(renames.rows)} renames, {len(after)} designs, {files} files of C++ and SystemVerilog: {verdict}")
    return 1 if found else 0

"""Compare derived schedules of public HLS C++ with the vendor's reports: python -m benchmarks.hls_schedule DIR

DIR holds a clone of each repository that hls_schedule.toml names, as ``DIR/NAME`` or ``DIR/OWNER+NAME/repo``, with or
without a work tree. Nothing of them is part of this project except the figures of their reports, in hls_schedule.toml.
The output is the tables of docs/reference/hls_schedule_loops.md, which ``--page`` writes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from boards.errors import FileAccessError
from hls_schedule.check import CheckedLoop, ToolOptions, read_sources
from systolic.cli.progress import StatusLine
from tools.parser import Parser

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

CASES = Path(__file__).with_suffix(".toml")
PAGE = Path(__file__).resolve().parents[1] / "docs/reference/hls_schedule_loops.md"
MARK = "<!-- The tables are written by python -m benchmarks.hls_schedule DIR --page -->"
DEPTH_STAGES, SHARE = 2, 0.15
"""Tolerances: a depth counts as equal within this number of stages or this share, a period within this share."""
_TEXTS = (".cpp", ".hpp", ".h")


@dataclass(frozen=True)
class Case:
    """A loop with its reported and its derived schedule.

    Attributes:
        project: The project's short name.
        loop: The loop's name in the report.
        interval: The reported initiation interval.
        depth: The reported depth.
        period_ns: The reported period in ns; None if no report states it for this loop alone.
        derived: The derived schedule; None if the loop is refused.
        reason: Why it is refused; "" if it is not.
    """

    project: str
    loop: str
    interval: int
    depth: int
    period_ns: float | None
    derived: CheckedLoop | None
    reason: str

    @property
    def interval_hits(self) -> bool:
        """Return whether the derived interval is equal."""
        return self.derived is not None and self.derived.derived_ii == self.interval

    @property
    def depth_hits(self) -> bool:
        """Return whether the derived depth is within two stages or 15 %."""
        return self.derived is not None and abs(self.derived.derived_depth - self.depth) <= max(
            DEPTH_STAGES, SHARE * self.depth
        )

    @property
    def period_hits(self) -> bool:
        """Return whether the derived period is within 15 %."""
        reported = self.period_ns or 0.0
        return self.derived is not None and abs(self.derived.period_ns - reported) <= SHARE * reported


def projects(path: Path = CASES) -> list[dict[str, Any]]:
    """Return the projects with the figures of their reports."""
    return list(tomllib.loads(path.read_text("utf-8"))["project"])


def cases(folder: Path, chosen: Iterable[Mapping[str, Any]], status: StatusLine) -> Iterator[Case]:
    """Derive the loops of projects whose repositories are in a folder.

    Raises:
        FileAccessError: A repository or a source is missing.
        SystolicError: An error of ``read_sources``.
    """
    for project in chosen:
        status.report(f"compiling {project['name']}")
        with tempfile.TemporaryDirectory() as work:
            source = copied(_repository(folder, project["repository"]), project, Path(work))
            sources = read_sources(source, options=options_of(project))
            status.report(f"scheduling {project['name']}")
            loops = {loop.source: loop for loop in sources.check(1000 / project["clock_ns"], partly=True)}
        refused = {error.loop.split("(")[-1].rstrip(")"): error.reason for error in sources.refused}
        for name, line, interval, depth, *period in project["loops"]:
            place = f"{source.name}:{line}"
            derived = loops.get(place)
            reason = "" if derived else refused.get(place, "it is not in the compiled sources")
            yield Case(project["name"], name, interval, depth, period[0] if period else None, derived, reason)


def options_of(project: Mapping[str, Any]) -> ToolOptions:
    """Return the options of the tool that a project's Tcl sets."""
    return ToolOptions(project["top"], project.get("widen_bits", 0), project.get("axi_latency", 0))


def copied(repository: Path, project: Mapping[str, Any], work: Path) -> Path:
    """Copy the sources of a project's folder, and mark the loops that the tool pipelines by itself.

    Raises:
        FileAccessError: The source is missing.
    """
    source = PurePosixPath(project["source"])
    listed = _git(repository, "ls-tree", "-r", "--name-only", "HEAD").decode().splitlines()
    for name in listed:
        if (source.parent in PurePosixPath(name).parents) and name.endswith(_TEXTS):
            target = work / PurePosixPath(name).relative_to(source.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_git(repository, "show", f"HEAD:{name}"))
    copy = work / source.name
    if not copy.is_file():
        raise FileAccessError(f"{repository}:{source}", "does not exist", "source of a project")
    lines = copy.read_text("utf-8").split("\n")
    for number in project.get("automatic", ()):
        lines[number - 1] += ' _Pragma("HLS PIPELINE")'
    copy.write_text("\n".join(lines), "utf-8")
    return copy


def _repository(folder: Path, name: str) -> Path:
    owner, _, short = name.partition("/")
    for path in (folder / short, folder / f"{owner}+{short}" / "repo"):
        if path.is_dir():
            return path
    raise FileAccessError(str(folder / short), "does not exist", f"clone of github.com/{name}")


def _git(repository: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, check=False).stdout


def summary(found: Sequence[Case]) -> str:
    """Return the table of agreement: the loops that are derived, and the number that is refused."""
    derived = [case for case in found if case.derived is not None]
    timed = [case for case in derived if case.period_ns is not None]
    return _markdown(
        ("loops", "interval equal", "depth within 2 or 15 %", "period within 15 %", "refused"),
        [
            (
                len(found),
                f"{sum(case.interval_hits for case in derived)} of {len(derived)}",
                f"{sum(case.depth_hits for case in derived)} of {len(derived)}",
                f"{sum(case.period_hits for case in timed)} of {len(timed)}",
                len(found) - len(derived),
            )
        ],
    )


def table(found: Sequence[Case]) -> str:
    """Return a row per loop, reported → derived; figures outside of the tolerance are bold."""
    rows = [
        (
            case.project,
            case.loop,
            _pair(case.interval, case.derived and case.derived.derived_ii, case.interval_hits),
            _pair(case.depth, case.derived and case.derived.derived_depth, case.depth_hits),
            "–" if case.period_ns is None
            else _pair(f"{case.period_ns:.2f}", case.derived and f"{case.derived.period_ns:.2f}", case.period_hits),
            f"refused: {case.reason}" if case.reason else "",
        )
        for case in found
    ]  # fmt: skip
    return _markdown(("project", "loop", "interval", "depth", "period, ns", ""), rows)


def _pair(reported: object, derived: object, hits: bool) -> str:
    if derived is None:
        return str(reported)
    return f"{reported} → {derived}" if hits else f"{reported} → **{derived}**"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = Parser(prog="python -m benchmarks.hls_schedule", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder with the clones")
    parser.add_argument("--project", metavar="NAME", help="take only this project")
    parser.add_argument("--page", action="store_true", help="write the tables into the documentation")
    options = parser.parse_args(arguments)
    chosen = [project for project in projects() if options.project in (None, project["name"])]
    with StatusLine() as status:
        found = list(cases(options.folder, chosen, status))
    tables = f"{summary(found)}\n\n{table(found)}\n"
    if options.page:
        text = PAGE.read_text("utf-8")
        PAGE.write_text(text[: text.index(MARK) + len(MARK)] + "\n\n" + tables, "utf-8")
    print(tables)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""A board as one frozen declaration, read from a TOML file of this folder or of the user."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from boards.clocks import clocks_up_to
from boards.errors import ChoiceError, ConflictError, InvalidValueError, RangeError, listed
from boards.facts import (
    REGION_DSPS,
    Clock,
    Control,
    Ddr,
    Dsp,
    DspColumns,
    Floorplan,
    Fmax,
    Pll,
    Port,
    Ps,
    Resources,
    Target,
)
from boards.reader import merged, parse
from boards.table import Table

_FOLDER = Path(__file__).parent
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_SAME = 2e-4  # relative: Vivado prints 99.999 for a clock everybody calls 100 MHz, the ZCU102 makes 99.990


@dataclass(frozen=True)
class Board:
    """The data of one FPGA board: its part, resources, DSPs, DDR, ports, clocks and their limits.

    Attributes:
        name: The stem of its file.
        title: The name that people use.
        part: Vivado's name of the part.
        board_part: Vivado's name of the board.
        family: "zynq-ultrascale+" or "zynq-7000".
        image: The name of the pynq image, which the environment variable BOARD holds on the board.
        target: The clock that a design aims at if its user names none.
        floorplan: The places of the DSPs, if they are known.
        declaration: The text of the user's own board file, which is copied into each design; "" for a board of this
            package.
    """

    name: str
    title: str
    part: str
    board_part: str
    family: str
    speed_grade: str
    image: str
    resources: Resources
    dsp: Dsp
    ddr: Ddr
    ports: tuple[Port, ...]
    control: Control
    ps: Ps
    plls: tuple[Pll, ...]
    fmax: Fmax
    target: Target
    floorplan: Floorplan | None = None
    declaration: str = field(default="", repr=False, compare=False)

    def clocks(self, maximum_mhz: float | None = None) -> tuple[Clock, ...]:
        """Return the PL clocks of the PS up to ``maximum_mhz`` (default: ``fmax.lowest``), in ascending order.

        If two PLLs make the same clock, the PLL that is declared first is taken: the board's preset uses that one.
        """
        return clocks_up_to(self.plls, self.fmax.lowest if maximum_mhz is None else maximum_mhz)

    def target_clocks(self, maximum_mhz: float | None = None) -> tuple[Clock, ...]:
        """Return the PL clocks up to the target and, if given, ``maximum_mhz``, in ascending order."""
        limit = min(self.fmax.lowest, self.target.clock_mhz)
        return self.clocks(limit if maximum_mhz is None else min(limit, maximum_mhz))

    def design_clock(self, mhz: float | None, maximum_mhz: float | None = None) -> Clock:
        """Return the clock of a design: ``nearest_clock`` of the user's, or else the highest of ``target_clocks``."""
        return self.target_clocks(maximum_mhz)[-1] if mhz is None else self.nearest_clock(mhz)

    def nearest_clock(self, mhz: float) -> Clock:
        """Return the PL clock that the PS makes within 0.02 % of ``mhz``; else raise an error with its neighbours.

        Raises:
            RangeError: The clock is not above 0, or above what the slowest block of this part allows.
            InvalidValueError: The PS does not produce such a clock; ``nearest`` has its neighbours.
        """
        if not (math.isfinite(mhz) and 0 < mhz <= self.fmax.lowest):
            where = f"{self.part} (limited by its {self.fmax.slowest})"
            raise RangeError("the clock in MHz", mhz, 0, self.fmax.lowest, exclusive=True, where=where)
        clocks = self.clocks()
        best = min(clocks, key=lambda clock: abs(clock.mhz - mhz))
        if abs(best.mhz - mhz) <= _SAME * mhz:
            return best
        below = [clock for clock in clocks if clock.mhz < mhz]
        above = [clock for clock in clocks if clock.mhz > mhz]
        sources = listed(f"{pll.name} {round(pll.mhz)} MHz" for pll in self.plls)
        raise InvalidValueError(
            "the clock in MHz",
            mhz,
            f"one that the PS of {self.title} produces ({sources} / integers)",
            [round(clock.mhz, 1) for clock in (*below[-1:], *above[:1])],
        )


def names() -> tuple[str, ...]:
    """Return the names of all boards, sorted: the stems of the TOML files in this package."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load(name: str) -> Board:
    """Return a board by its name, in any case, or by the path of a file that declares it, which ends in .toml.

    Raises:
        ChoiceError: No board has that name.
        SystolicError: The file is refused; ``read_board`` lists the errors.
    """
    if name.endswith(".toml"):
        board = read_board(Path(name))
        return replace(board, declaration=Path(name).read_text("utf-8"))
    if name.lower() not in names():
        raise ChoiceError("the board", name, names(), remedy="or give a file of your own that ends in .toml")
    return read_board(_FOLDER / f"{name.lower()}.toml")


def of_design(folder: Path, name: str) -> Board:
    """Return the board of a generated design: the board file NAME.toml in its folder, else the package's board.

    Args:
        folder: The design's folder.
        name: The board's name in the design's manifest.

    Raises:
        SystolicError: The errors of ``load``.
    """
    own = folder / f"{name}.toml"
    return load(str(own)) if re.fullmatch(_NAME, name) and own.is_file() else load(name)


def read_board(path: Path) -> Board:
    """Return the board that a TOML file declares. The file is untrusted.

    The file's stem becomes the board's name, which appears in designs, scripts and folder names. If the file has the
    key ``extends``, which names a board of this package, it gives only the facts that differ from that board.

    Raises:
        InvalidValueError: The name or a value has a wrong form. For this and the next four, ``where`` is the file and
            ``what`` the key.
        MissingValueError: A key is missing.
        RangeError: A number is out of range.
        ChoiceError: A value is not one of the allowed ones.
        UnknownKeyError: The file has a key that no board has.
        ConflictError: Two keys contradict each other.
        FileAccessError: The file cannot be read.
        DamagedFileError: The file is not valid TOML.
    """
    if not re.fullmatch(_NAME, path.stem):
        required = "1 to 64 letters, digits, '-', '_' and '.', the first a letter or a digit"
        raise InvalidValueError("the name of a board file", path.stem, required, where=str(path), remedy="rename it")
    root = Table(_values(path), str(path))
    fmax = root.table("fmax").facts(Fmax)
    board = Board(
        name=path.stem,
        title=root.text("title"),
        part=root.text("part"),
        board_part=root.text("board_part"),
        family=root.choice("family", ("zynq-ultrascale+", "zynq-7000")),
        speed_grade=root.text("speed_grade"),
        image=root.text("image"),
        resources=root.table("resources").facts(Resources),
        dsp=root.table("dsp").facts(Dsp),
        ddr=root.table("ddr").facts(Ddr),
        ports=tuple(table.facts(Port) for table in root.tables("port")),
        control=root.table("control").facts(Control),
        ps=root.table("ps").facts(Ps),
        plls=tuple(table.facts(Pll) for table in root.tables("pll")),
        fmax=fmax,
        target=root.table("target").facts(Target) if root.has("target") else Target(fmax.lowest),
        floorplan=_floorplan(root.table("floorplan")) if root.has("floorplan") else None,
    )
    root.finish()
    _check_together(path, board)
    return board


def _floorplan(table: Table) -> Floorplan:
    cascade = table.integer("cascade", REGION_DSPS // 2, REGION_DSPS)
    floorplan = Floorplan(cascade, tuple(columns.facts(DspColumns) for columns in table.tables("columns")))
    table.finish()
    return floorplan


def _values(path: Path) -> dict[str, Any]:
    """Return the values of a board file, completed by the values of the board that it extends."""
    values = parse(path)
    if "extends" not in values:
        return values
    base = values.pop("extends")
    if base not in names():
        raise ChoiceError("extends", base, names(), where=str(path))
    facts = parse(_FOLDER / f"{base}.toml")
    if values.get("part", facts["part"]) != facts["part"]:
        facts.pop("floorplan", None)  # another part may have other columns of DSPs
    return merged(facts, values)


def _check_together(path: Path, board: Board) -> None:
    """Raise an error if values of a board file under different keys contradict each other."""
    ddr, resources = board.ddr, board.resources
    _at_most(path, "ddr.preset_mts", ddr.preset_mts, "ddr.rated_mts", ddr.rated_mts)
    _at_most(path, "ddr.measured_share", ddr.measured_share, "ddr.optimistic_share", ddr.optimistic_share)
    _at_most(path, "resources.lutram", resources.lutram, "resources.lut", resources.lut)
    if bool(resources.uram) != bool(board.fmax.uram):
        facts = (f"resources.uram = {resources.uram}", f"fmax.uram = {board.fmax.uram:g}")
        raise ConflictError(facts, "both must be 0, or both above 0", where=str(path))
    if board.floorplan:
        sites = REGION_DSPS * len(set(board.floorplan.region_columns))
        if sites < resources.dsp:
            facts = (f"resources.dsp = {resources.dsp}", f"floorplan.columns have {sites} DSPs")
            raise ConflictError(facts, "the columns must have all DSPs", where=str(path))
    if not board.target_clocks():
        limit = min(board.target.clock_mhz, board.fmax.lowest)
        required = f"a multiplier and dividers that make a clock up to {limit:g} MHz (target.clock_mhz and fmax)"
        raise InvalidValueError("pll", [pll.name for pll in board.plls], required, where=str(path))
    _all_different(path, "port.name", [port.name for port in board.ports])
    _all_different(path, "pll.name", [pll.name for pll in board.plls])


def _at_most(path: Path, key: str, value: float, bound_key: str, bound: float) -> None:
    if value > bound:
        raise RangeError(f"{key}, which {bound_key} limits,", value, high=bound, where=str(path))


def _all_different(path: Path, key: str, values: list[str]) -> None:
    twice = sorted({name for name in values if values.count(name) > 1})
    if twice:
        raise InvalidValueError(key, twice[0], "different in each entry", where=str(path))

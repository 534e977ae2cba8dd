"""A board as one frozen declaration, read from the TOML file beside this module.

Every number is a fact of a data sheet or of the vendor's board files; the file says which, table by table.
What only a vendor tool can tell (the clock a design closes at) is no board fact and is not here.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from boards.errors import BoardError
from boards.reader import Table, parse

_FOLDER = Path(__file__).parent
_DIVISORS = 63  # both dividers behind a PLL have 6 bits (UG1087 PL0_REF_CTRL, UG585 FPGA0_CLK_CTRL)
_SAME = 2e-4  # relative: Vivado prints 99.999 for a clock everybody calls 100 MHz, the ZCU102 makes 99.990


@dataclass(frozen=True)
class Resources:
    """What the programmable logic holds. bram36 are 36 Kib blocks, uram 288 Kib ones (72 × 4096)."""

    lut: int
    lutram: int  # of the LUTs, those that can be memory
    ff: int
    bram36: int
    uram: int
    dsp: int


@dataclass(frozen=True)
class Dsp:
    """The multiplier of a DSP slice: operand widths in bits, both signed."""

    kind: str
    a_bits: int
    b_bits: int


@dataclass(frozen=True)
class Ddr:
    """The memory of the processing system.

    rated_mts: mega-transfers a second that the memory parts and the data sheet allow.
    preset_mts: what the vendor's board preset, and with it the boot image, programs.
    """

    kind: str
    bits: int
    rated_mts: int
    preset_mts: int
    mib: int

    @property
    def peak_gbps(self) -> float:
        """GB/s (10⁹ bytes) when every transfer at the rated speed carries data."""
        return self.bits / 8 * self.rated_mts / 1000

    @property
    def preset_gbps(self) -> float:
        """GB/s at the speed that the board preset programs; never above ``peak_gbps``."""
        return self.bits / 8 * self.preset_mts / 1000


@dataclass(frozen=True)
class Port:
    """A slave port of the PS through which the accelerator reaches DDR.

    name: interface of the Vivado IP; clock: its clock pin; enable and width: the IP's CONFIG keys;
    controller_port: port of the DDR controller behind it. Ports with the same number share its bandwidth.
    """

    name: str
    clock: str
    enable: str
    width: str
    bits: int
    coherent: bool
    controller_port: int


@dataclass(frozen=True)
class Control:
    """The master through which the PS reaches the accelerator's registers."""

    name: str
    clock: str
    enable: str
    base: int
    bytes: int


@dataclass(frozen=True)
class Ps:
    """Names on the processing system's Vivado IP (``ip`` is "zynq_ultra_ps_e" or "processing_system7")."""

    ip: str
    vlnv: str
    clock: str  # pin of the first PL clock
    clock_mhz_key: str  # CONFIG key that asks for its frequency
    clock_source_key: str  # CONFIG key that chooses its PLL
    reset: str  # its active-low reset pin
    interrupt: str
    interrupt_key: str


@dataclass(frozen=True)
class Pll:
    """A PLL that can feed a PL clock: reference · multiplier / post_divider."""

    name: str
    reference_mhz: float
    multiplier: int
    post_divider: int

    @property
    def mhz(self) -> float:
        return self.reference_mhz * self.multiplier / self.post_divider


@dataclass(frozen=True)
class Fmax:
    """Switching limits of the speed grade in MHz: no design on this part may be clocked above them."""

    dsp: float
    bram: float
    uram: float  # 0 where the part has none
    global_clock: float
    axi: float  # of the interfaces between PS and PL

    @property
    def slowest(self) -> str:
        """What limits the clock of a design that uses all of these, by name."""
        limits = self._limits
        return min(limits, key=lambda name: limits[name])

    @property
    def lowest(self) -> float:
        """The limit of ``slowest`` in MHz."""
        return self._limits[self.slowest]

    @property
    def _limits(self) -> dict[str, float]:
        limits = {"AXI": self.axi, "URAM": self.uram, "BRAM": self.bram, "DSP": self.dsp}
        limits["clock tree"] = self.global_clock
        return {name: mhz for name, mhz in limits.items() if mhz > 0}


@dataclass(frozen=True)
class Clock:
    """A PL clock that the PS really produces: PLL / (divisor0 · divisor1)."""

    mhz: float
    pll: str
    divisor0: int
    divisor1: int


@dataclass(frozen=True)
class Board:
    name: str
    title: str
    part: str
    board_part: str
    family: str
    speed_grade: str
    image: str  # name of the pynq image, what BOARD holds there
    resources: Resources
    dsp: Dsp
    ddr: Ddr
    ports: tuple[Port, ...]
    control: Control
    ps: Ps
    plls: tuple[Pll, ...]
    fmax: Fmax

    def clocks(self, maximum_mhz: float | None = None) -> tuple[Clock, ...]:
        """Every PL clock of the PS up to ``maximum_mhz`` (without it: up to ``fmax.lowest``), ascending.

        Where two PLLs give the same clock the first declared stays: that is the one the preset uses.
        """
        limit = self.fmax.lowest if maximum_mhz is None else maximum_mhz
        made: dict[Fraction, Clock] = {}
        for pll in self.plls:
            for divisor0, divisor1 in _divisor_pairs():
                ratio = _nominal(pll) / (divisor0 * divisor1)
                if ratio <= limit:
                    made.setdefault(ratio, _clock(pll, divisor0, divisor1))
        return tuple(made[ratio] for ratio in sorted(made))

    def nearest_clock(self, mhz: float) -> Clock:
        """The clock of ``mhz`` (to 0.02 %); BoardError with the neighbours where there is none."""
        if not (math.isfinite(mhz) and mhz > 0):
            raise BoardError(f"a clock is a positive number of MHz, not {mhz}")
        if mhz > self.fmax.lowest:
            raise BoardError(
                f"{mhz:g} MHz is above what {self.part} can be clocked at: its slowest block "
                f"({self.fmax.slowest}) is limited to {self.fmax.lowest:g} MHz"
            )
        made = self.clocks()
        best = min(made, key=lambda clock: abs(clock.mhz - mhz))
        if abs(best.mhz - mhz) <= _SAME * mhz:
            return best
        raise BoardError(_no_clock(self, mhz, made))


def names() -> tuple[str, ...]:
    """Names of all boards, sorted: the stems of the TOML files in this package."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load(name: str) -> Board:
    """The board called ``name`` (case does not matter); BoardError with close matches where there is none."""
    known = names()
    if name.lower() not in known:
        close = difflib.get_close_matches(name.lower(), known, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise BoardError(f"no board is called {name!r}: {hint}known boards are {', '.join(known)}")
    return read_board(_FOLDER / f"{name.lower()}.toml")


def read_board(path: Path) -> Board:
    """The board declared in a TOML file; BoardError names the file and the key that is not usable."""
    root = parse(path)
    board = Board(
        name=path.stem,
        title=root.text("title"),
        part=root.text("part"),
        board_part=root.text("board_part"),
        family=root.choice("family", ("zynq-ultrascale+", "zynq-7000")),
        speed_grade=root.text("speed_grade"),
        image=root.text("image"),
        resources=_resources(root.table("resources")),
        dsp=_dsp(root.table("dsp")),
        ddr=_ddr(root.table("ddr")),
        ports=tuple(_port(table) for table in root.tables("port")),
        control=_control(root.table("control")),
        ps=_ps(root.table("ps")),
        plls=tuple(_pll(table) for table in root.tables("pll")),
        fmax=_fmax(root.table("fmax")),
    )
    root.done()
    _check_together(path, board)
    return board


def _resources(table: Table) -> Resources:
    resources = Resources(
        lut=table.integer("lut", 1, 10_000_000),
        lutram=table.integer("lutram", 0, 10_000_000),
        ff=table.integer("ff", 1, 20_000_000),
        bram36=table.integer("bram36", 1, 10_000),
        uram=table.integer("uram", 0, 10_000),
        dsp=table.integer("dsp", 1, 50_000),
    )
    table.done()
    return resources


def _dsp(table: Table) -> Dsp:
    dsp = Dsp(
        kind=table.choice("kind", ("DSP48E1", "DSP48E2")),
        a_bits=table.integer("a_bits", 8, 64),
        b_bits=table.integer("b_bits", 8, 64),
    )
    table.done()
    return dsp


def _ddr(table: Table) -> Ddr:
    ddr = Ddr(
        kind=table.choice("kind", ("DDR3", "DDR4", "LPDDR4")),
        bits=table.integer("bits", 8, 128),
        rated_mts=table.integer("rated_mts", 100, 10_000),
        preset_mts=table.integer("preset_mts", 100, 10_000),
        mib=table.integer("mib", 64, 1_048_576),
    )
    table.done()
    return ddr


def _port(table: Table) -> Port:
    port = Port(
        name=table.text("name"),
        clock=table.text("clock"),
        enable=table.text("enable"),
        width=table.text("width"),
        bits=table.integer("bits", 32, 1024),
        coherent=table.boolean("coherent"),
        controller_port=table.integer("controller_port", 0, 15),
    )
    table.done()
    return port


def _control(table: Table) -> Control:
    control = Control(
        name=table.text("name"),
        clock=table.text("clock"),
        enable=table.text("enable"),
        base=table.integer("base", 0, 1 << 40),
        bytes=table.integer("bytes", 4096, 1 << 40),
    )
    table.done()
    return control


def _ps(table: Table) -> Ps:
    ps = Ps(
        ip=table.choice("ip", ("zynq_ultra_ps_e", "processing_system7")),
        vlnv=table.text("vlnv"),
        clock=table.text("clock"),
        clock_mhz_key=table.text("clock_mhz_key"),
        clock_source_key=table.text("clock_source_key"),
        reset=table.text("reset"),
        interrupt=table.text("interrupt"),
        interrupt_key=table.text("interrupt_key"),
    )
    table.done()
    return ps


def _pll(table: Table) -> Pll:
    pll = Pll(
        name=table.text("name"),
        reference_mhz=table.number("reference_mhz", 1, 200),
        multiplier=table.integer("multiplier", 1, 200),
        post_divider=table.integer("post_divider", 1, 63),
    )
    table.done()
    return pll


def _fmax(table: Table) -> Fmax:
    fmax = Fmax(
        dsp=table.number("dsp", 1, 2000),
        bram=table.number("bram", 1, 2000),
        uram=table.number("uram", 0, 2000),
        global_clock=table.number("global_clock", 1, 2000),
        axi=table.number("axi", 1, 2000),
    )
    table.done()
    return fmax


def _check_together(path: Path, board: Board) -> None:
    """What no single key can tell: facts that contradict each other."""
    ddr, resources = board.ddr, board.resources
    _at_most(path, "ddr.preset_mts", ddr.preset_mts, "ddr.rated_mts", ddr.rated_mts)
    _at_most(path, "resources.lutram", resources.lutram, "resources.lut", resources.lut)
    if bool(resources.uram) != bool(board.fmax.uram):
        raise BoardError(
            f"{path}: resources.uram ({resources.uram}) and fmax.uram ({board.fmax.uram:g}) "
            "must both be zero or both be positive"
        )
    _all_different(path, "port.name", [port.name for port in board.ports])
    _all_different(path, "pll.name", [pll.name for pll in board.plls])


def _at_most(path: Path, key: str, value: int, bound_key: str, bound: int) -> None:
    if value > bound:
        raise BoardError(f"{path}: {key} ({value}) must not exceed {bound_key} ({bound})")


def _all_different(path: Path, key: str, found: list[str]) -> None:
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise BoardError(f"{path}: {key} must differ from entry to entry, {twice[0]!r} comes twice")


def _divisor_pairs() -> list[tuple[int, int]]:
    """For every product of two 6-bit divisors the pair with the smallest second one."""
    pairs: dict[int, tuple[int, int]] = {}
    for divisor1 in range(1, _DIVISORS + 1):
        for divisor0 in range(1, _DIVISORS + 1):
            pairs.setdefault(divisor0 * divisor1, (divisor0, divisor1))
    return list(pairs.values())


def _nominal(pll: Pll) -> Fraction:
    """PLL frequency to 0.5 MHz, so that 1499.85 and 1500 from two PLLs are one clock."""
    return Fraction(round(pll.mhz * 2), 2)


def _clock(pll: Pll, divisor0: int, divisor1: int) -> Clock:
    return Clock(pll.mhz / (divisor0 * divisor1), pll.name, divisor0, divisor1)


def _no_clock(board: Board, mhz: float, made: tuple[Clock, ...]) -> str:
    below = [clock for clock in made if clock.mhz < mhz]
    above = [clock for clock in made if clock.mhz > mhz]
    sources = ", ".join(f"{pll.name} {round(pll.mhz)} MHz" for pll in board.plls)
    near = [f"{clock.mhz:.1f}" for clock in (*below[-1:], *above[:1])]
    verb = "nearest are" if len(near) == 2 else "nearest is"
    return f"{mhz:g} MHz is not produced by the PS of {board.title} ({sources} / integers); {verb} {' and '.join(near)}"

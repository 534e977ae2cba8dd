"""Compare Yosys' cell counts of an RTL engine with the scheduler's estimate: python -m benchmarks.counts DIR

Each module with its parameters is synthesised once and multiplied by its number of instances, because Yosys cannot
synthesise the whole hierarchy at once. For a small engine a test compares the sum of DSPs and memories with ``whole``.
Needs ``pip install 'systolic-cnn[proof]'``. ``--module NAME``, which may be repeated, synthesises only these modules.

A module is synthesised without its submodules, so constants do not cross module borders, and with carry chains of four
bits. LUT counts are therefore Yosys' and not Vivado's. DSPs and memories follow from their shapes in any tool.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from boards import board as board_room
from boards.errors import ChoiceError, FileAccessError, UnsupportedError
from boards.progress import Progress
from contract.geometry import as_stored
from rtl_templates.sources import STYLES, TOP
from rtl_timing import elaboration, synthesis
from rtl_timing.elaboration import Unit
from rtl_timing.yosys import run
from scheduler.hardware.primitives import ULTRASCALE
from scheduler.systolic.area.memories import BUFFERS, PORT_BUFFERS, TABLES, Buffer
from scheduler.systolic.area.resources import PRODUCTS, Usage, fabric, used_by
from scheduler.systolic.array import Array
from systolic.cli.progress import StatusLine
from systolic.execution.verilate import is_rtl, modules
from systolic.report.tables import Cell, table
from systolic.styles.systolic.simulate import SystolicDesign, open_design
from tools.parser import Parser

LUT_RAMS = {"RAM32M16": 8, "RAM64M8": 8, "RAM32M": 4, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4}
LUT_RAMS |= {"RAM32X16DR8": 8, "RAM64X8SW": 8, "RAM256X1D": 8, "SRL16E": 1, "SRLC32E": 1}
"""LUTs of each memory primitive (UG974). Shift registers use the same kind of LUTs."""

PLACES = {
    "rows": r"\.loader\.banks",
    "weights": r"\.feeder\.banks",
    "kept sums": r"\.pooler\.stored_rows",
    "requantisers": r"\.requantiser\.columns\[\d+\]\.constants",
    "map buffers": r"\.on_chip\.",
    "arranged": r"\.arranger\.banks",
    "tables": r"\.value_table\.values",
}
"""Place in the hierarchy of the memories of each of the scheduler's buffers."""


@dataclass(frozen=True)
class Counts:
    """Cells counted by Yosys.

    Attributes:
        dsp: DSPs.
        ram18: BRAMs, in halves of 18 Kbit.
        uram: UltraRAMs.
        lut: LUTs, including the LUTs used as memory.
        lutram: LUTs used as memory.
        ff: Flip-flops.
    """

    dsp: int = 0
    ram18: int = 0
    uram: int = 0
    lut: int = 0
    lutram: int = 0
    ff: int = 0

    def times(self, count: int) -> Counts:
        """Return the counts of ``count`` instances."""
        return Counts(*(count * getattr(self, field.name) for field in fields(self)))

    def __add__(self, addend: Counts) -> Counts:
        return Counts(*(getattr(self, field.name) + getattr(addend, field.name) for field in fields(self)))

    def cells(self) -> tuple[int | float, ...]:
        """Return the cells of a table row: DSP, BRAM36, URAM, LUT, LUTs used as memory, FF."""
        return self.dsp, self.ram18 / 2, self.uram, self.lut, self.lutram, self.ff


def elaborated(folder: Path) -> str:
    """Return the RTLIL of every instance of a design.

    Raises:
        MissingToolError: Yosys is not installed.
        FileAccessError: The folder has no engine in SystemVerilog.
    """
    if not is_rtl(folder):
        path = folder / "src" / f"{TOP}.sv"
        remedy = "generate the design with --engine rtl"
        raise FileAccessError(str(path), "does not exist", "engine in SystemVerilog", remedy=remedy)
    return elaboration.elaborated((folder / path for path in modules(folder)), TOP)


def units(text: str) -> tuple[Unit, ...]:
    """Return the distinct modules of an engine's RTLIL, instantiated modules before the modules that contain them."""
    return elaboration.units(text, TOP)


def synthesised(
    all_units: Sequence[Unit], asked_for: Sequence[Unit], family: str, progress: Progress
) -> dict[str, Counts]:
    """Return the cells of each unit without its submodules. ``family`` is the name that ``synth_xilinx`` uses."""
    mapped = synthesis.synthesised(all_units, family, progress, asked_for)
    return {name: counts_of(Counter(cell.kind for cell in module.cells)) for name, module in mapped.items()}


def whole(text: str, family: str) -> Counts:
    """Count DSPs and memories of the engine flattened, so that constants cross module borders.

    Logic LUTs are not mapped.
    """
    with tempfile.TemporaryDirectory() as work:
        Path(work, "all.il").write_text(text, "utf-8")
        run(
            [
                f"read_rtlil {work}/all.il",
                f"synth_xilinx -family {family} -flatten -top {TOP} -noiopad -noclkbuf -run begin:fine",
                f"tee -q -o {work}/stat.json stat -json",
            ]
        )
        statistics = json.loads(Path(work, "stat.json").read_text("utf-8"))["modules"]
    return counts_of(statistics[f"\\{TOP}"]["num_cells_by_type"])


def counts_of(cells: Mapping[str, Any]) -> Counts:
    """Return the cells of a module by their kind. Raises UnsupportedError for a memory of another kind."""
    kinds = Counter({name.lstrip("\\"): int(count) for name, count in cells.items()})
    unknown = [name for name in kinds if re.match(r"RAM|SRL|URAM", name) and not _memory_known(name)]
    if unknown:
        raise UnsupportedError(f"the memory {', '.join(unknown)}", "the LUTs or blocks that it takes are not known")

    def every(start: str) -> int:
        return sum(count for name, count in kinds.items() if re.match(start, name))

    lutram = sum(luts * kinds[name] for name, luts in LUT_RAMS.items())
    return Counts(
        every("DSP48E"), every("RAMB18") + 2 * every("RAMB36"), every("URAM288"),
        every(r"LUT\d$") + lutram, lutram, every("FD"),
    )  # fmt: skip


def _memory_known(name: str) -> bool:
    return name in LUT_RAMS or name.startswith(("RAMB18", "RAMB36", "URAM288"))


def estimated(design: SystolicDesign) -> dict[str, tuple[str, Usage]]:
    """Return, for each part of the array, its primitive and the scheduler's estimate."""
    array, board = Array(**vars(design.manifest.array)), board_room.load(design.manifest.board)
    text = (design.path / "src/systolic_geometry.sv").read_text("utf-8")
    impls = {style: impl for impl, style in STYLES.items()}
    parts = {"PEs": ("dsp", Usage(dsp=array.mac_dsps))}

    def placed(buffer: Buffer) -> str:
        if buffer is PRODUCTS:
            return "dsp" if re.search(r" REQUANTISE_DSPS = 1;", text) else "fabric"
        written = re.search(rf" {buffer.macro} = \"(\w+)\"", text)
        return impls[written[1]] if written else buffer.impls[0]

    for buffer in (*BUFFERS, TABLES, PRODUCTS):
        if buffer.depth(array) > 0:
            parts[buffer.name] = placed(buffer), used_by(buffer, array, placed(buffer), board)
    for buffer in PORT_BUFFERS:
        parts[f"ports of {buffer.name}"] = "bram", used_by(buffer, array, "bram", board)
    return parts


def compared(design: SystolicDesign, all_units: Sequence[Unit], counted: Mapping[str, Counts]) -> list[list[Cell]]:
    """Return a table row for each part: part, primitive, estimated, counted by Yosys, reason for the difference.

    BRAM halves are rounded up per memory, as in the estimate. LUT memories are compared by their LUTs.
    """
    of_path = {path: counted[unit.name] for unit in all_units if unit.name in counted for path in unit.paths}

    def total(pattern: str, count: Callable[[Counts], int]) -> int:
        return sum(count(counts) for path, counts in of_path.items() if re.search(pattern, path))

    counts: dict[str, Callable[[Counts], int]] = {
        "bram": lambda c: -(-c.ram18 // 2),
        "uram": lambda c: c.uram,
        "lutram": lambda c: c.lut,
        "dsp": lambda c: c.dsp,
    }
    places = {"PEs": r"\.array\.", PRODUCTS.name: r"\.requantiser\.columns\[\d+\]\.rows\[\d+\]\.requantiser$", **PLACES}
    lines: list[list[Cell]] = []
    for part, (impl, usage) in estimated(design).items():
        if part.startswith("ports of"):
            lines.append(
                [part, impl, usage.bram36, 0, "buffers of the adapters that Vitis HLS makes; not in this engine"]
            )
            continue
        if impl == "fabric":
            continue
        ours = {"bram": usage.bram36, "uram": usage.uram, "lutram": usage.lut, "dsp": usage.dsp}[impl]
        theirs = total(places[part], counts[impl])
        lines.append([part, impl, ours, theirs, _reason(impl, part, ours, theirs)])
    return lines


def _reason(impl: str, part: str, ours: int, theirs: int) -> str:
    if ours == theirs:
        return "equal"
    if impl == "lutram":
        return "Yosys takes other primitives and multiplexers for deep LUT memories"
    if impl == "uram" and theirs < ours:
        return "Yosys puts narrow words side by side into one of 72 bits"
    if part == PRODUCTS.name:
        return "Yosys cuts 32 × 17 bits otherwise than the estimate's 2 DSPs"
    return "NOT EXPLAINED"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per module, and the comparison. Return 1 if a DSP or memory count differs without a known reason."""
    parser = Parser(prog="python -m benchmarks.counts", description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="folder of a design that was generated with --engine rtl"
    )
    parser.add_argument(
        "--module", action="append", metavar="NAME", help="count only this module, without a comparison; repeatable"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the array and the counts of each module as JSON to FILE"
    )
    options = parser.parse_args(arguments)
    design = open_design(options.folder)
    with StatusLine() as status:
        status.report("Yosys reads the design")
        all_units = units(elaborated(options.folder))
        counted = synthesised(all_units, chosen(all_units, options.module), family(design), status.report)
    if options.json:
        options.json.write_text(json.dumps(recorded(design, all_units, counted), indent=1) + "\n", "utf-8")
    head = ("module", "×", "DSP", "BRAM36", "URAM", "LUT", "of them memory", "FF")
    rows: list[list[Cell]] = [
        [unit.name, len(unit.paths), *counted[unit.name].cells()] for unit in all_units if unit.name in counted
    ]
    engine_counts = sum((counted[u.name].times(len(u.paths)) for u in all_units if u.name in counted), Counts())
    array = Array(**vars(design.manifest.array))
    print("Counted by Yosys: a module, without what it instantiates\n")
    print(
        table(head, [*rows, ["all", sum(len(u.paths) for u in all_units if u.name in counted), *engine_counts.cells()]])
    )
    if options.module:
        return 0
    lines = compared(design, all_units, counted)
    print("\n" + table(("part", "primitive", "estimated", "Yosys", ""), lines))
    logic, luts = fabric(array), design.manifest.estimate.lut
    print(f"\nLUT: {luts:,} estimated, {engine_counts.lut:,} by Yosys; FF: {logic.ff:,} and {engine_counts.ff:,}")
    return int(any(line[-1] == "NOT EXPLAINED" for line in lines))


def recorded(design: SystolicDesign, all_units: Sequence[Unit], counted: Mapping[str, Counts]) -> dict[str, Any]:
    """Return the board, the array, and for each module the number of its instances and the sum of their cells."""
    instances: Counter[str] = Counter()
    cells: dict[str, Counts] = {}
    for unit in all_units:
        if unit.name in counted:
            instances[unit.module] += len(unit.paths)
            cells[unit.module] = cells.get(unit.module, Counts()) + counted[unit.name].times(len(unit.paths))
    return {
        "board": design.manifest.board,
        "array": as_stored(design.manifest.array),
        "modules": {name: {"instances": instances[name], **vars(cells[name])} for name in sorted(cells)},
    }


def chosen(all_units: Sequence[Unit], names: Collection[str] | None) -> list[Unit]:
    """Return the units of these modules, or all units. Raises ChoiceError for a name that no module has."""
    unknown = sorted(set(names or ()) - {unit.module for unit in all_units})
    if unknown:
        raise ChoiceError("--module", unknown[0], sorted({unit.module for unit in all_units}))
    return [unit for unit in all_units if not names or unit.module in names]


def family(design: SystolicDesign) -> str:
    """Return the name of the board's family in ``synth_xilinx``."""
    return "xcup" if board_room.load(design.manifest.board).family == ULTRASCALE else "xc7"


if __name__ == "__main__":
    raise SystemExit(main())

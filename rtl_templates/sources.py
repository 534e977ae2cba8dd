"""The sources of the engine in SystemVerilog for one geometry.

The package, the registers, the top module and its wrapper are generated. All other modules are fixed files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from boards.templates import comment, identifier
from contract.geometry import parameters
from contract.program import ADDED_FIELDS, PASS_FIELDS
from rtl_templates.ip import Master, Pin, wrapper_pins
from rtl_templates.render import FOLDER, render

TOP = "systolic_top"
WRAPPER = f"{TOP}_ip"
"""The module that Vivado packages: the top module's ports in plain Verilog."""

MODULES = ("common", "loader", "array", "saver", "control")
"""Folders of the fixed modules. The folder src/ of a design is flat."""

STYLES = {"bram": "block", "uram": "ultra", "lutram": "distributed"}
"""The ram_style of each primitive of a buffer."""

REQUANTISER_BITS, PROGRAM_BITS = 128, 32
BURST_WORDS = 64
"""Limit for the beats of a burst that ``engine`` requests."""


@dataclass(frozen=True)
class Constant:
    """One constant of the generated package: a number of the geometry, or the primitive of a buffer, with the comment
    at it."""

    name: str
    value: int | str
    reason: str


@dataclass(frozen=True)
class Argument:
    """One argument of the engine: its name, its kind, and the byte offset of its register."""

    name: str
    kind: Literal["pointer", "scalar", "output"]
    offset: int


@dataclass(frozen=True)
class Memory:
    """The timing of the DDR model in a simulation.

    Attributes:
        milli_bytes: Bandwidth in 1/1000 bytes per cycle.
        read_latency: Cycles from a request to its first beat.
        write_latency: Cycles from the last beat to the response.
    """

    milli_bytes: int
    read_latency: int
    write_latency: int


@dataclass(frozen=True)
class RtlValues:
    """The values of one design from which the templates render the engine in SystemVerilog.

    Attributes:
        title: The title of every generated file.
        reasons: Lines about the schedule for the top module's comment.
        numbers: The numbers of the geometry, with the names of the HLS engine's parameters.h.
        primitives: The primitives of the buffers.
        arguments: The register map.
        address_bits: Bits of a register's address.
        memory: The timing of the DDR in a simulation.
        instantiated: Whether DSPs are instantiated as primitives; otherwise synthesis infers them.
        dsp_clock: 2 if the top module has a clock of twice the rate.
    """

    title: str
    reasons: Sequence[str]
    numbers: tuple[Constant, ...]
    primitives: tuple[Constant, ...]
    arguments: tuple[Argument, ...]
    address_bits: int
    memory: Memory
    instantiated: bool
    dsp_clock: int = 1

    def number(self, name: str) -> int:
        """Return the number of the geometry with this name, as in parameters.h."""
        return next(int(constant.value) for constant in self.numbers if constant.name == name)

    @property
    def map_ports(self) -> int:
        """Number of AXI ports for feature maps, including the port for residual adds."""
        return self.number("MAP_PORTS") + self.number("ADDED_MAPS")

    @property
    def word_bits(self) -> int:
        """Bits of a word of a feature map."""
        return self.number("LANES") * self.number("VALUE_BITS")

    @property
    def pass_fields(self) -> tuple[str, ...]:
        """The names of the 32-bit words of a pass (engine instruction), in the program's order."""
        return PASS_FIELDS + ADDED_FIELDS if self.number("ADDED_MAPS") else PASS_FIELDS

    @property
    def compiled(self) -> tuple[int, ...]:
        """The numbers with which a simulation library reports its geometry, in the order of
        hls_templates/simulation/c_abi.h."""
        numbers = (self.number(parameter.macro) for parameter in parameters() if parameter.macro)
        word_bytes = self.word_bits // 8
        return (*numbers, word_bytes, word_bytes * self.number("WEIGHT_WORDS"), len(self.pass_fields))


@dataclass(frozen=True)
class _Port:
    """An AXI master port of the engine's top module.

    Attributes:
        name: Its name.
        index: The number of the port, which is also the number of the buffer that it accesses.
        bits: Bits of a beat.
        writes: Whether it writes.
        pointers: Offsets of the registers with the buffer's address.
    """

    name: str
    index: int
    bits: int
    writes: bool
    pointers: tuple[int, ...]

    @property
    def size(self) -> int:
        """The value of the port's AxSIZE signals: log2 of the bytes per beat."""
        return (self.bits // 8).bit_length() - 1


_READ_WIRES = (
    ("ar_valid", "ARVALID"),
    ("ar_ready", "ARREADY"),
    ("ar_address", "ARADDR"),
    ("ar_length", "ARLEN"),
    ("r_valid", "RVALID"),
    ("r_ready", "RREADY"),
    ("r_last", "RLAST"),
    ("r_data", "RDATA"),
)
_WRITE_WIRES = (
    ("aw_valid", "AWVALID"),
    ("aw_ready", "AWREADY"),
    ("aw_address", "AWADDR"),
    ("aw_length", "AWLEN"),
    ("w_valid", "WVALID"),
    ("w_ready", "WREADY"),
    ("w_last", "WLAST"),
    ("w_data", "WDATA"),
    ("w_strobe", "WSTRB"),
    ("b_valid", "BVALID"),
    ("b_ready", "BREADY"),
)


def geometry_package(values: RtlValues) -> str:
    """Return the text of systolic_geometry.sv: the package of constants and types that all modules share."""
    return render(
        "systolic_geometry.sv.j2",
        {
            "title": comment(values.title),
            "parameters": [_clean(constant) for constant in values.numbers],
            "memories": [_clean(constant) for constant in values.primitives],
            "fields": [identifier(field) for field in values.pass_fields],
        },
    )


def _clean(constant: Constant) -> Constant:
    value = constant.value if isinstance(constant.value, int) else STYLES[constant.value]
    return Constant(identifier(constant.name), value, comment(constant.reason))


def fixed_modules() -> dict[str, str]:
    """Return the texts of the SystemVerilog modules that are the same in every design, by file name."""
    paths = (path for folder in MODULES for path in sorted((FOLDER / folder).glob("*.sv")))
    return {path.name: path.read_text("utf-8") for path in paths}


def rtl_sources(values: RtlValues) -> dict[str, str]:
    """Return the files of a design's src/ folder, as texts by file name. The package is first, as compilers need it."""
    fields = _fields(values)
    return {
        "systolic_geometry.sv": geometry_package(values),
        **fixed_modules(),
        "control_slave.sv": render("control_slave.sv.j2", fields),
        f"{TOP}.sv": render("top.sv.j2", fields),
        f"{WRAPPER}.v": render("ip.v.j2", {**fields, "wrapper": WRAPPER, "pins": _pins(values)}),
    }


def _pins(values: RtlValues) -> tuple[Pin, ...]:
    masters = [Master(port.name, port.bits, port.writes) for port in _ports(values)]
    bursts = (BURST_WORDS, values.number("OUTSTANDING"))
    return wrapper_pins(values.address_bits, masters, bursts, values.dsp_clock)


def rtl_simulation(values: RtlValues) -> dict[str, str]:
    """Return the files of a design's simulation/ folder, as texts by file name: C interface, DDR model, and models of
    primitives."""
    folder = FOLDER / "simulation"
    fixed = {path.name: path.read_text("utf-8") for path in sorted(folder.iterdir()) if path.suffix in (".h", ".sv")}
    return {**fixed, "simulate.cpp": render("simulate.cpp.j2", _fields(values))}


def _fields(values: RtlValues) -> dict[str, object]:
    map_ports, weight_ports = range(values.map_ports), range(values.number("WEIGHT_PORTS"))
    weight_bits = values.word_bits * values.number("WEIGHT_WORDS")
    of_kind = {kind: [a for a in values.arguments if a.kind == kind] for kind in ("pointer", "scalar", "output")}
    return {
        "title": comment(values.title),
        "reasons": [comment(line) for line in values.reasons],
        "top": TOP,
        "instantiated": int(values.instantiated),
        "dsp_clock": values.number("DSP_CLOCK"),
        "address_bits": values.address_bits,
        "pointers": [Argument(signal(a.name), a.kind, a.offset) for a in of_kind["pointer"]],
        "scalars": of_kind["scalar"],
        "outputs": of_kind["output"],
        "registers": {argument.name: argument.offset for argument in values.arguments},
        "map_ports": list(map_ports),
        "weight_ports": list(weight_ports),
        "ports": _ports(values),
        "read_wires": _READ_WIRES,
        "map_wires": (*_READ_WIRES, *_WRITE_WIRES),
        "timing": values.memory,
        "word_bytes": values.word_bits // 8,
        "map_banks": values.number("ROWS") if values.number("MAP_DEPTH") else 0,
        "weight_word_bytes": weight_bits // 8,
        "geometry": values.compiled,
    }


def signal(name: str) -> str:
    """Return the name of the signal for an argument. ``program`` gets another name, because it is a keyword of
    SystemVerilog."""
    return "program_address" if name == "program" else identifier(name)


def _ports(values: RtlValues) -> list[_Port]:
    offsets = {argument.name: argument.offset for argument in values.arguments}
    word, weight_word = values.word_bits, values.word_bits * values.number("WEIGHT_WORDS")
    pointers = [
        *((f"maps_{p}", word, (f"maps_read_{p}", f"maps_write_{p}")) for p in range(values.map_ports)),
        *((f"weights_{p}", weight_word, (f"weights_{p}",)) for p in range(values.number("WEIGHT_PORTS"))),
        ("program", REQUANTISER_BITS, ("requantisers",)),
        ("layers", PROGRAM_BITS, ("program",)),
    ]
    return [
        _Port(name, index, bits, len(names) == 2, tuple(offsets[pointer] for pointer in names))
        for index, (name, bits, names) in enumerate(pointers)
    ]

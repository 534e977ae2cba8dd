"""A bench for modules of the engine: all of them in one Verilator library, driven cycle by cycle."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contract.program import ADDED_FIELDS, PASS_FIELDS
from rtl_templates.render import FOLDER
from rtl_templates.sources import Constant, Memory, RtlValues, fixed_modules, geometry_package

Builder = Callable[[Mapping[str, str]], Path]
"""The type of the fixture ``built`` of tests/rtl_templates, which compiles the files of a bench."""

CHAIN = 4
NUMBERS = {
    **{"ROWS": 3, "COLUMNS": 4, "LANES": 4, "PIXEL_BYTES": 4, "PIXEL_LANES": 4, "VALUE_BITS": 8, "PACK_COLUMNS": 2},
    **{"POSITIONS": 1, "PACK_SHIFT": 18, "PACK_CHAIN": CHAIN, "SAVE_ROWS": 2, "MAP_PORTS": 1, "WEIGHT_PORTS": 1},
    **{"WEIGHT_WORDS": 1, "ROW_DEPTH": 64, "WEIGHT_DEPTH": 64, "KEPT_DEPTH": 32, "MAP_DEPTH": 0, "UPSCALE": 1},
    **{"WINDOWS": 0, "LATE_OFFSETS": 0, "TABLE_DEPTH": 0, "TABLE_SLOPES": 0},
    **{"CHUNK": 4, "CHANNEL_TILES": 4, "OUTSTANDING": 4},
    "MAP_PRODUCTS": 0,
    "ADDED_MAPS": 0,
    "MAP_STRIDE": 1,
    "COUNT_BITS": 9,
    "REQUANTISE_DSPS": 0,
    "REQUEST_STAGES": 1,
    "DSP_CLOCK": 1,
    "SUM_BITS": 32,
}
ROWS, COLUMNS, LANES, SAVE_ROWS = (NUMBERS[name] for name in ("ROWS", "COLUMNS", "LANES", "SAVE_ROWS"))
PRIMITIVES = (
    "ROW_MEMORY",
    "WEIGHT_MEMORY",
    "KEPT_MEMORY",
    "REQUANTISER_MEMORY",
    "ARRANGED_MEMORY",
    "MAP_MEMORY",
    "TABLE_MEMORY",
)
SUMS = 32 * COLUMNS
PASS = 32 * len(PASS_FIELDS)
FACTORS = SAVE_ROWS * COLUMNS * 8
TILE, GROUP, RESULT = 6 * 32 + 1, SAVE_ROWS * SUMS + 33, SAVE_ROWS * COLUMNS * 16

Ports = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Instance:
    """A module of the bench.

    Attributes:
        module: The module's name.
        parameters: Its parameters in SystemVerilog.
        inputs: The names and bits of its inputs, without clk and reset.
        outputs: The names and bits of its outputs.
    """

    module: str
    parameters: str
    inputs: Ports
    outputs: Ports


_CHAIN: tuple[Ports, Ports] = ([("high", 27 * CHAIN), ("low", 27 * CHAIN), ("value", 18 * CHAIN)], [("sum", 48)])
_FIFO: tuple[Ports, Ports] = (
    [("in_valid", 1), ("in_data", 16), ("out_ready", 1)],
    [("in_ready", 1), ("out_valid", 1), ("out_data", 16)],
)


def array_instance(numbers: Mapping[str, int]) -> Instance:
    """Return the PE array of a geometry."""
    rows, columns, lanes, bits = (numbers[name] for name in ("ROWS", "COLUMNS", "LANES", "VALUE_BITS"))
    places = rows * numbers["POSITIONS"]
    return Instance(
        "pe_array",
        "",
        [
            *(("start", 1), ("steps", 32), ("nibbles", 1), ("activations_valid", 1)),
            *(("activations", places * lanes * bits), ("weights_valid", 1), ("weights", lanes * columns * bits)),
            ("sums_ready", 1),
        ],
        [("activations_ready", 1), ("weights_ready", 1), ("sums_valid", 1), ("sums", places * columns * 32)],
    )


INSTANCES = {
    "instantiated": Instance("mac_chain", f".LENGTH({CHAIN}), .INSTANTIATED(1)", *_CHAIN),
    "inferred": Instance("mac_chain", f".LENGTH({CHAIN}), .INSTANTIATED(0)", *_CHAIN),
    "short": Instance("fifo", ".WIDTH(16), .DEPTH(1)", *_FIFO),
    "odd": Instance("fifo", ".WIDTH(16), .DEPTH(5)", *_FIFO),
    "slack": Instance("fifo", ".WIDTH(16), .DEPTH(7), .SLACK(3)", *_FIFO),
    "bursts": Instance(
        "axi_bursts",
        ".BYTES(16), .LENGTH(64)",
        [("base", 64), ("command_valid", 1), ("command_address", 32), ("command_words", 32), ("burst_ready", 1)],
        [("command_ready", 1), ("burst_valid", 1), ("burst_address", 64), ("burst_length", 8)],
    ),
    "array": array_instance(NUMBERS),
    "tiles": Instance(
        "plan_tiles", "", [("start", 1), ("pass", PASS), ("tile_ready", 1)], [("tile_valid", 1), ("tile", TILE)]
    ),
    "pool": Instance(
        "pool",
        "",
        [
            *(("start", 1), ("pass", PASS), ("tile_valid", 1), ("tile", TILE), ("sums_valid", 1)),
            *(("sums", ROWS * SUMS), ("group_ready", 1)),
        ],
        [
            ("done", 1),
            ("tile_ready", 1),
            ("sums_ready", 1),
            ("group_valid", 1),
            ("group", GROUP),
            ("factors", SAVE_ROWS * COLUMNS * 8),
        ],
    ),
    "requantise": Instance(
        "requantise",
        "",
        [
            *(("start", 1), ("pass", PASS), ("command_ready", 1), ("constant_valid", 1), ("constant", 128)),
            *(("group_valid", 1), ("group", GROUP), ("result_ready", 1)),
        ],
        [
            *(("done", 1), ("command_valid", 1), ("command_address", 32), ("command_words", 32)),
            *(("constant_ready", 1), ("group_ready", 1), ("result_valid", 1), ("result", RESULT)),
        ],
    ),
    "feed": Instance(
        "feed_weights",
        "",
        [
            *(("start", 1), ("pass", PASS), ("plan", 97), ("beats_valid", 1), ("beats", LANES * 8)),
            ("weights_ready", 1),
        ],
        [("done", 1), ("beats_ready", 1), ("weights_valid", 1), ("weights", COLUMNS * LANES * 8)],
    ),
}
SEED = int(os.environ.get("SYSTOLIC_TEST_SEED", "1"))
"""The seed of the random initial bits of registers and memories."""

COMBINATIONAL = frozenset({"mac_chain", "six_products", "add_words", "shift_and_saturate"})
"""Modules without a reset."""


def fields_of(numbers: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names of a pass's fields for the geometry."""
    return (*PASS_FIELDS, *ADDED_FIELDS) if numbers["ADDED_MAPS"] else PASS_FIELDS


def values(numbers: Mapping[str, int] = NUMBERS) -> RtlValues:
    """Return the values of the bench's geometry."""
    return RtlValues(
        title="modules of the engine",
        reasons=(),
        numbers=tuple(Constant(name, number, "of the bench") for name, number in numbers.items()),
        primitives=tuple(Constant(name, "bram", "of the bench") for name in PRIMITIVES),
        arguments=(),
        address_bits=6,
        memory=Memory(1, 1, 1),
        instantiated=True,
    )


def wrapper(instances: Mapping[str, Instance], doubled: bool) -> str:
    """Return bench.sv, which instantiates every module with its own ports."""
    clocks = ("clk", "clk_2x") if doubled else ("clk",)
    ports, wired = [f"input logic {name}" for name in (*clocks, "reset")], []
    for name, instance in instances.items():
        for way, group in (("input", instance.inputs), ("output", instance.outputs)):
            ports += [f"{way} logic [{bits - 1}:0] {name}_{port}" for port, bits in group]
        pins = [".clk", *([f".dsp_clk({clocks[-1]})"] if instance.module == "pe_array" else [])]
        pins += [*([] if instance.module in COMBINATIONAL else [".reset"])]
        pins += [f".{port}({name}_{port})" for port, _ in (*instance.inputs, *instance.outputs)]
        wired.append(f"{instance.module} #({instance.parameters}) {name} ({', '.join(pins)});")
    return "module bench (\n{}\n);\n{}\nendmodule\n".format(",\n".join(ports), "\n".join(wired))


def harness(instances: Mapping[str, Instance], doubled: bool) -> str:
    """Return bench.cpp, which accesses ports by name and runs cycles. A cycle has two cycles of the doubled clock."""
    names = [
        (f"{name}_{port}", bits)
        for name, instance in instances.items()
        for port, bits in (*instance.inputs, *instance.outputs)
    ]
    middle = "top.clk_2x = 0; top.eval(); top.clk_2x = 1; top.eval(); top.clk_2x = 0; top.eval(); top.clk_2x = 1;"
    places = "\n".join(f'    {{"{name}", {{&top.{name}, {(bits + 7) // 8}}}}},' for name, bits in names)
    return f"""
#include <cstring>
#include <map>
#include <string>
#include "Vbench.h"
static VerilatedContext *random_context() {{
    auto *context = new VerilatedContext;
    context->randReset(2);  // registers without a reset, set before the module is created
    context->randSeed({SEED});
    return context;
}}
static VerilatedContext &context = *random_context();
static Vbench top(&context);
struct place {{ void *data; size_t bytes; }};
static const std::map<std::string, place> places = {{
{places}
}};
#define VISIBLE extern "C" __attribute__((visibility("default")))
VISIBLE void put(const char *name, const void *from) {{
    std::memcpy(places.at(name).data, from, places.at(name).bytes);
}}
VISIBLE void get(const char *name, void *to) {{
    std::memcpy(to, places.at(name).data, places.at(name).bytes);
}}
VISIBLE void settle() {{ top.clk = 0; top.eval(); }}
VISIBLE void edge() {{ {middle if doubled else ""} top.clk = 1; top.eval(); }}
VISIBLE void reset(int value) {{ top.reset = value; }}
"""


def files(numbers: Mapping[str, int] = NUMBERS, instances: Mapping[str, Instance] = INSTANCES) -> dict[str, str]:
    """Return all files of the bench, by path."""
    doubled = numbers["DSP_CLOCK"] == 2
    return {
        **{f"src/{name}": text for name, text in fixed_modules().items()},
        "src/systolic_geometry.sv": geometry_package(values(numbers)),
        "src/bench.sv": wrapper(instances, doubled),
        "simulation/DSP48E2.sv": (FOLDER / "simulation/DSP48E2.sv").read_text("utf-8"),
        "simulation/bench.cpp": harness(instances, doubled),
    }


class Bench:
    """The compiled library. Every port is an integer, with a struct's first field in its highest bits."""

    def __init__(self, library: Path, instances: Mapping[str, Instance] = INSTANCES) -> None:
        self._handle, self._instances = ctypes.CDLL(str(library)), instances
        self._bits = {
            f"{name}_{port}": bits
            for name, instance in instances.items()
            for port, bits in (*instance.inputs, *instance.outputs)
        }
        self.reset()

    def reset(self, cycles: int = 64) -> None:
        """Set all inputs to 0, and reset until the pipelines are empty, as the top module does."""
        for name, instance in self._instances.items():
            self.put(name, {port: 0 for port, _ in instance.inputs})
        self._handle.reset(1)
        for _ in range(cycles):
            self.settle()
            self.edge()
        self._handle.reset(0)

    def put(self, instance: str, ports: Mapping[str, int]) -> None:
        """Set inputs. They keep their values until the next call."""
        for port, number in ports.items():
            bits = self._bits[f"{instance}_{port}"]
            data = (number & ((1 << bits) - 1)).to_bytes((bits + 7) // 8, "little")
            self._handle.put(f"{instance}_{port}".encode(), data)

    def get(self, instance: str, port: str) -> int:
        """Return a port as an unsigned integer."""
        size = (self._bits[f"{instance}_{port}"] + 7) // 8
        data = ctypes.create_string_buffer(size)
        self._handle.get(f"{instance}_{port}".encode(), data)
        return int.from_bytes(data.raw, "little")

    def settle(self) -> None:
        """Evaluate the combinational logic before the clock's edge."""
        self._handle.settle()

    def edge(self) -> None:
        """Apply a rising edge of the clock."""
        self._handle.edge()


def packed(numbers: Sequence[int], bits: int) -> int:
    """Return numbers of ``bits`` each as one integer, with the first number in the lowest bits."""
    return sum((number & ((1 << bits) - 1)) << (bits * index) for index, number in enumerate(numbers))


def unpacked(number: int, bits: int, count: int) -> list[int]:
    """Return the signed numbers that ``packed`` joined."""
    fields = [(number >> (bits * index)) & ((1 << bits) - 1) for index in range(count)]
    return [field - (1 << bits) if field >> (bits - 1) else field for field in fields]


def pass_of(names: Sequence[str] = PASS_FIELDS, **fields: int) -> int:
    """Return a pass with these fields. The other fields of ``names`` are 0."""
    assert fields.keys() <= set(names)
    return packed([fields.get(name, 0) for name in reversed(names)], 32)

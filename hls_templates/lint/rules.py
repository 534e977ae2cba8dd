"""What the linter knows, as data: its rules, the documented HLS directives, and what does not synthesise.

Sections are those of UG1399, the Vitis HLS user guide, 2022.1 to 2024.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """One fault: ``line`` counts from 1 in ``file``, a key of the linted sources."""

    file: str
    line: int
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.sentence}"


@dataclass(frozen=True)
class Rule:
    """``sentence`` is a format string: what was required, what came, what to do."""

    sentence: str
    source: str


_PRAGMAS = "UG1399, HLS Pragmas"
_CANONICAL = "UG1399, Canonical Body"
_LIMITS = "UG1399, Limitations of Control-Driven Task-Level Parallelism"
_UNSUPPORTED = "UG1399, Unsupported C/C++ Constructs"

RULES: Mapping[str, Rule] = {
    "not-parsed": Rule(
        "this must be C++ that the linter can read, but «{came}» is not; write it more simply",
        "C++17 grammar",
    ),
    # 1. directives, options, values
    "unknown-directive": Rule(
        "a directive must be one that Vitis HLS 2022.1–2024.2 documents, not {came}; {hint}", _PRAGMAS
    ),
    "unknown-option": Rule("{directive} takes {allowed}, not «{came}»; remove it or correct its name", _PRAGMAS),
    "missing-option": Rule("{directive} needs {option}=…, which is absent; add it", _PRAGMAS),
    "repeated-option": Rule("{directive} takes {option} once, but it came twice; keep one", _PRAGMAS),
    "bad-value": Rule(
        "{directive} {option} must be {required}, not «{came}»; correct the value (a macro is replaced"
        " only inside _Pragma)",
        _PRAGMAS,
    ),
    "bad-storage": Rule(
        "BIND_STORAGE type={type} can be impl={allowed}, not {came}; choose another type or impl",
        "UG1399, pragma HLS bind_storage, supported combinations (an URAM of UltraScale+ has no initial content)",
    ),
    # 2. where directives may stand
    "directive-scope": Rule(
        "{directive} must stand in {required}, but it stands in {came}; move it",
        "UG1399, Syntax of the pragma",
    ),
    "directive-late": Rule(
        "{directive} must come before the first statement of its block, but a statement comes before it; move it up",
        "UG1399, Adding Pragmas and Directives",
    ),
    "interface-not-top": Rule(
        "{directive} belongs only to the top function {top}, but it stands in {came}; remove it",
        "UG1399, pragma HLS interface",
    ),
    "directive-conflict": Rule(
        "{first} and {second} exclude each other in one block, but both stand here; keep one",
        "UG1399, pragma HLS dataflow; pragma HLS pipeline",
    ),
    # 3. what directives name
    "undeclared-variable": Rule(
        "{directive} must name {required}, but «{came}» is none; declare it before, or correct the name",
        _PRAGMAS,
    ),
    "stream-top-argument": Rule(
        "STREAM must name a channel inside the design, but {came} is an argument of the top function; use INTERFACE",
        "UG1399, pragma HLS stream",
    ),
    # 4. dataflow
    "dataflow-statement": Rule(
        "a DATAFLOW region may hold only declarations and calls, but {came} stands in it; move it into a process",
        _CANONICAL,
    ),
    "dataflow-static": Rule(
        "a variable of a DATAFLOW region must not be static, but {came} is; make it local", _CANONICAL
    ),
    "dataflow-argument": Rule(
        "a process takes whole variables, but {process} takes «{came}»; compute it inside the process",
        _CANONICAL,
    ),
    "dataflow-return": Rule(
        "a process must return void, but {process} returns {came}; return through a reference", _CANONICAL
    ),
    "dataflow-unknown": Rule(
        "the channels of a process are checked in its definition, but {process} with {count} arguments"
        " has none here;"
        " lint its file too",
        _CANONICAL,
    ),
    "dataflow-loop": Rule("a DATAFLOW loop must {required}, but {came}; rewrite the loop", "UG1399, Canonical Body"),
    "channel-writers": Rule("channel {channel} must have exactly one writer, but {came} write it; {hint}", _CANONICAL),
    "channel-readers": Rule("channel {channel} must have exactly one reader, but {came} read it; {hint}", _CANONICAL),
    "channel-same-process": Rule(
        "a process may read or write channel {channel}, but {came} does both; keep the data inside it",
        _LIMITS,
    ),
    "channel-feedback": Rule(
        "channel {channel} must be written before it is read, but {reader} reads it before {writer}"
        " writes it;"
        " swap the calls",
        _CANONICAL,
    ),
    "argument-processes": Rule(
        "argument {channel} may be {required} process, but {came} do so; fuse them or pass a second argument",
        _LIMITS,
    ),
    "argument-order": Rule(
        "argument {channel} must be read before it is written, but {writer} writes it before {reader}"
        " reads it;"
        " pass two arguments",
        _CANONICAL,
    ),
    "shared-variable": Rule(
        "a variable may be written by one process, but {came} write {channel}; give each its own", _CANONICAL
    ),
    "shared-global": Rule(
        "a global variable may belong to one process, but {came} use {channel}; pass it through a stream",
        _LIMITS,
    ),
    # 5. what does not synthesise
    "dynamic-memory": Rule(
        "memory must have a fixed size, but {came} allocates or frees it at run time; use an array",
        "UG1399, Dynamic Memory Usage",
    ),
    "standard-library": Rule(
        "only synthesisable types may be used, but {came} is a host type; use an array or hls type",
        "UG1399, Standard Template Libraries",
    ),
    "system-call": Rule(
        "hardware has no operating system, but {came} calls one; guard it by #ifndef __SYNTHESIS__",
        "UG1399, System Calls",
    ),
    "exception": Rule("exceptions do not synthesise, but {came} came; return a status", _UNSUPPORTED),
    "virtual": Rule(
        "a call must be known at compile time, but {came} is virtual; use a template",
        "UG1399, Virtual Functions",
    ),
    "run-time-type": Rule(
        "types must be known at compile time, but {came} asks at run time; use a template", _UNSUPPORTED
    ),
    "recursion": Rule("a function must not call itself, but {came}; use a loop", "UG1399, Recursive Functions"),
    "function-pointer": Rule(
        "a call must be known at compile time, but {came} is a pointer to a function; use a template",
        "UG1399, Function Pointers",
    ),
    "pointer-to-pointer": Rule(
        "a pointer must point at data, but {came} is a pointer to a pointer; use an array", "UG1399, Pointers"
    ),
    "goto": Rule("control must be structured, but {came} came; use a loop or a condition", _UNSUPPORTED),
    "endless-loop": Rule(
        "a loop must end, but {came} has no end condition; bound it by a count",
        "UG1399, Variable Loop Bounds",
    ),
    "unbounded-loop": Rule(
        "a loop without constant bounds needs LOOP_TRIPCOUNT, but {came} has none; add min and max",
        "UG1399, pragma HLS loop_tripcount; Variable Loop Bounds",
    ),
    "static-local": Rule(
        "state between calls must be meant, but {came} is static without a note; make it local or add"
        " «lint: allow(static-local) why»",
        "UG1399, Static Variables",
    ),
    "floating-point": Rule(
        "the accelerator computes in integers, but {came} is floating point; use an integer or add"
        " «lint: allow(floating-point) why»",
        "the project's arithmetic contract; UG1399, Floats and Doubles",
    ),
    # 6. pipelines
    "pipeline-inner-loop": Rule(
        "a loop inside a pipeline is unrolled and needs constant bounds, but {came} has not (pipeline"
        " at {pipeline});"
        " bound it or move the PIPELINE inward",
        "UG1399, pragma HLS pipeline; Variable Loop Bounds",
    ),
    "pipeline-nested": Rule(
        "a loop inside a pipeline is unrolled, but {came} asks for a pipeline of its own; remove one PIPELINE",
        "UG1399, pragma HLS pipeline",
    ),
}


# ------------------------------------------------------------------------------------------- directives


@dataclass(frozen=True)
class Words:
    """One of these words, case ignored; a ``bare`` word may come without ``option=``."""

    words: frozenset[str]
    bare: bool = False

    def __str__(self) -> str:
        return "|".join(sorted(self.words))


@dataclass(frozen=True)
class Constant:
    """A constant expression; a literal lies in ``least … most``."""

    least: int
    most: int | None = None

    def __str__(self) -> str:
        return f"a constant of {self.least}…{'' if self.most is None else self.most}"


@dataclass(frozen=True)
class Name:
    """Names (commas between) of variables, of arguments only, or of functions."""

    of: str  # variable | argument | port | function | label

    def __str__(self) -> str:
        return f"the name of a {self.of}"


@dataclass(frozen=True)
class Text:
    """Free text of this pattern."""

    pattern: str
    meaning: str

    def __str__(self) -> str:
        return self.meaning


@dataclass(frozen=True)
class Flag:
    """A word without a value, or with ``=true`` or ``=false``."""

    def __str__(self) -> str:
        return "a bare word, true or false"


Value = Words | Constant | Name | Text | Flag


@dataclass(frozen=True)
class Directive:
    """``scopes`` ⊆ {function, loop, region, conditional}: what the enclosing block may belong to."""

    scopes: frozenset[str]
    options: Mapping[str, Value]
    needs: tuple[str, ...] = ()
    early: bool = False
    top_only: bool = False
    modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _words(text: str, bare: bool = False) -> Words:
    return Words(frozenset(text.split()), bare)


def _scopes(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ANY = _scopes("function loop region conditional")
_VARIABLE = Name("variable")
_COUNT = Constant(1)
_NUMBER = Constant(0)
_IDENTIFIER = Text(r"[A-Za-z_]\w*", "a C identifier")
_OFF = Flag()
_PORT_MODES = "ap_none ap_stable ap_vld ap_ack ap_hs ap_ovld ap_memory bram ap_fifo axis s_axilite m_axi"
_BLOCK_MODES = "ap_ctrl_none ap_ctrl_hs ap_ctrl_chain"
_STORAGE_TYPES = "fifo ram_1p ram_1wnr ram_2p ram_s2p ram_t2p rom_1p rom_2p rom_np"
_STORAGE_IMPLS = "auto bram bram_ecc lutram uram uram_ecc srl memory"
_PLAIN = ("mode", "port", "name", "register", "depth", "direct_io")
_RAM = ("mode", "port", "name", "depth", "storage_type", "storage_impl", "latency", "address_mode")

INTERFACE_MODES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_PORT_MODES.split(), _PLAIN),
    **dict.fromkeys(_BLOCK_MODES.split(), ("mode", "port", "name")),
    "ap_memory": _RAM,
    "bram": _RAM,
    "axis": ("mode", "port", "name", "register", "register_mode", "depth"),
    "s_axilite": (
        "mode",
        "port",
        "name",
        "bundle",
        "offset",
        "clock",
        "register",
        "storage_impl",
        "interrupt",
    ),
    "m_axi": (
        "mode",
        "port",
        "name",
        "bundle",
        "offset",
        "depth",
        "latency",
        "channel",
        "num_read_outstanding",
        "num_write_outstanding",
        "max_read_burst_length",
        "max_write_burst_length",
        "max_widen_bitwidth",
    ),
}

_INTERFACE: Mapping[str, Value] = {
    "mode": _words(f"{_PORT_MODES} {_BLOCK_MODES}", bare=True),
    "port": Name("port"),
    "bundle": _IDENTIFIER,
    "name": _IDENTIFIER,
    "clock": _IDENTIFIER,
    "offset": Text(r"(?i:off|direct|slave|0x[0-9a-f]+|[0-9]+)", "off|direct|slave or an address"),
    "depth": _NUMBER,
    "latency": _NUMBER,
    "channel": Text(r"\w+", "an identifier or a number"),
    "num_read_outstanding": _COUNT,
    "num_write_outstanding": _COUNT,
    "max_read_burst_length": Constant(1, 256),
    "max_write_burst_length": Constant(1, 256),
    "max_widen_bitwidth": Constant(0, 1024),
    "register": Flag(),
    "register_mode": _words("both forward reverse off"),
    "storage_type": _words(_STORAGE_TYPES),
    "storage_impl": _words(_STORAGE_IMPLS),
    "address_mode": _words("byte word"),
    "interrupt": _NUMBER,
    "direct_io": Flag(),
}

_PARTITION: Mapping[str, Value] = {
    "variable": _VARIABLE,
    "type": _words("complete block cyclic", bare=True),
    "factor": Constant(2),
    "dim": _NUMBER,
    "off": _OFF,
}

DIRECTIVES: Mapping[str, Directive] = {
    "AGGREGATE": Directive(_ANY, {"variable": _VARIABLE, "compact": _words("bit byte none auto")}, needs=("variable",)),
    "ALIAS": Directive(
        _scopes("function"),
        {
            "ports": Name("port"),
            "distance": _NUMBER,
            "offset": Text(r"[0-9a-fA-Fx]+(,[0-9a-fA-Fx]+)*", "numbers"),
        },
        needs=("ports",),
        top_only=True,
    ),
    "ALLOCATION": Directive(
        _ANY,
        {"type": _words("function operation", bare=True), "instances": Name("label"), "limit": _COUNT},
        needs=("instances", "limit"),
    ),
    "ARRAY_PARTITION": Directive(_ANY, _PARTITION, needs=("variable",)),
    "ARRAY_RESHAPE": Directive(_ANY, {**_PARTITION, "object": Flag()}, needs=("variable",)),
    "ARRAY_STENCIL": Directive(_scopes("loop"), {"variable": _VARIABLE, "off": _OFF}, needs=("variable",)),
    "BIND_OP": Directive(
        _ANY,
        {
            "variable": _VARIABLE,
            "op": _words(
                "mul add sub fadd fsub fdiv fexp flog fmul frsqrt frecip fsqrt dadd dsub ddiv dexp dlog dmul"
                " drsqrt drecip dsqrt hadd hsub hdiv hmul hsqrt facc fmacc fmadd"
            ),
            "impl": _words("dsp fabric meddsp fulldsp maxdsp primitivedsp auto none"),
            "latency": Constant(-1),
        },
        needs=("variable", "op"),
    ),
    "BIND_STORAGE": Directive(
        _ANY,
        {
            "variable": _VARIABLE,
            "type": _words(_STORAGE_TYPES),
            "impl": _words(_STORAGE_IMPLS),
            "latency": Constant(-1),
        },
        needs=("variable", "type"),
    ),
    "CACHE": Directive(
        _scopes("function"),
        {"port": Name("port"), "lines": _COUNT, "depth": _COUNT},
        needs=("port",),
        top_only=True,
    ),
    "DATAFLOW": Directive(_scopes("function loop"), {"disable_start_propagation": Flag()}, early=True),
    "DEPENDENCE": Directive(
        _scopes("function loop"),
        {
            "variable": _VARIABLE,
            "class": _words("array pointer", bare=True),
            "type": _words("inter intra", bare=True),
            "direction": _words("raw war waw", bare=True),
            "distance": _COUNT,
            "dependent": _words("true false", bare=True),
        },
    ),
    "DISAGGREGATE": Directive(_ANY, {"variable": _VARIABLE}, needs=("variable",)),
    "EXPRESSION_BALANCE": Directive(_ANY, {"off": _OFF}),
    "FUNCTION_INSTANTIATE": Directive(_scopes("function"), {"variable": Name("argument")}, needs=("variable",)),
    "INLINE": Directive(_scopes("function"), {"off": _OFF, "recursive": Flag()}, early=True),
    "INTERFACE": Directive(
        _scopes("function"), _INTERFACE, needs=("mode", "port"), top_only=True, modes=INTERFACE_MODES
    ),
    "LATENCY": Directive(_ANY, {"min": _NUMBER, "max": _NUMBER}),
    "LOOP_FLATTEN": Directive(_scopes("loop"), {"off": _OFF}, early=True),
    "LOOP_MERGE": Directive(_scopes("function loop region"), {"force": Flag()}),
    "LOOP_TRIPCOUNT": Directive(
        _scopes("loop"), {"min": _NUMBER, "max": _NUMBER, "avg": _NUMBER}, needs=("max",), early=True
    ),
    "OCCURRENCE": Directive(_scopes("conditional region"), {"cycle": _COUNT}, needs=("cycle",)),
    "PERFORMANCE": Directive(
        _scopes("function loop"),
        {
            "target_ti": Text(r"[\w.+\-*/()]+", "a number or constant"),
            "target_tl": Text(r"[\w.+\-*/()]+", "a number or constant"),
            "assume_ti": Text(r"[\w.+\-*/()]+", "a number or constant"),
            "assume_tl": Text(r"[\w.+\-*/()]+", "a number or constant"),
            "unit": _words("sec cycle"),
        },
    ),
    "PIPELINE": Directive(
        _scopes("function loop"),
        {"ii": _COUNT, "style": _words("stp frp flp"), "rewind": Flag(), "off": _OFF},
        early=True,
    ),
    "PROTOCOL": Directive(_ANY, {"mode": _words("floating fixed", bare=True)}),
    "RESET": Directive(_ANY, {"variable": _VARIABLE, "off": _OFF}, needs=("variable",)),
    "STABLE": Directive(_scopes("function loop"), {"variable": _VARIABLE}, needs=("variable",)),
    "STREAM": Directive(
        _ANY,
        {
            "variable": _VARIABLE,
            "type": _words("fifo pipo shared unsync"),
            "depth": _COUNT,
            "off": _OFF,
        },
        needs=("variable",),
    ),
    "TOP": Directive(_scopes("function"), {"name": _IDENTIFIER}, needs=("name",), early=True),
    "UNROLL": Directive(_scopes("loop"), {"factor": _COUNT, "skip_exit_check": Flag(), "off": _OFF}, early=True),
}

# Names of older tools, and what took their place.
REPLACED: Mapping[str, str] = {
    "RESOURCE": "use BIND_STORAGE or BIND_OP",
    "DATA_PACK": "use AGGREGATE",
    "ARRAY_MAP": "remove it",
    "CLOCK": "remove it",
    "IF": "conditional directives are newer than 2024.2: choose by the preprocessor",
}

STORAGE_IMPLS: Mapping[str, frozenset[str]] = {
    "fifo": frozenset(["auto", "bram", "lutram", "uram", "srl", "memory"]),
    "ram_1p": frozenset(["auto", "bram", "lutram", "uram"]),
    "ram_1wnr": frozenset(["auto", "bram", "lutram", "uram"]),
    "ram_2p": frozenset(["auto", "bram", "lutram", "uram"]),
    "ram_s2p": frozenset(["auto", "bram", "bram_ecc", "lutram", "uram", "uram_ecc"]),
    "ram_t2p": frozenset(["auto", "bram", "uram"]),
    "rom_1p": frozenset(["auto", "bram", "lutram"]),
    "rom_2p": frozenset(["auto", "bram", "lutram"]),
    "rom_np": frozenset(["auto", "bram", "lutram"]),
}

# ------------------------------------------------------------------------------------- what has no hardware

MEMORY_CALLS = frozenset(["malloc", "calloc", "realloc", "free", "alloca", "aligned_alloc", "posix_memalign"])
SYSTEM_CALLS = frozenset(
    [
        "printf",
        "fprintf",
        "sprintf",
        "snprintf",
        "puts",
        "putchar",
        "scanf",
        "fopen",
        "fclose",
        "fread",
        "fwrite",
        "fgets",
        "getc",
        "gets",
        "time",
        "clock",
        "sleep",
        "usleep",
        "rand",
        "srand",
        "exit",
        "abort",
        "system",
        "getenv",
        "perror",
    ]
)
HOST_TYPES = re.compile(
    r"\bstd\s*::\s*(vector|deque|list|forward_list|map|multimap|set|multiset|unordered_\w+|string|wstring"
    r"|basic_string|string_view|function|shared_ptr|unique_ptr|weak_ptr|optional|variant|any|thread|mutex|atomic"
    r"|queue|stack|priority_queue|initializer_list)\b"
)
HOST_STREAMS = re.compile(r"\bstd\s*::\s*(cout|cerr|clog|cin|endl|[io]?fstream|[io]?stringstream)\b")
FLOAT_TYPES = frozenset({"float", "double", "half", "long double"})
STREAM_TYPE = re.compile(r"\b(hls\s*::\s*)?stream(_of_blocks)?\s*<")
PORT_TYPE = re.compile(r"\bburst_maxi\s*<")
STREAM_READS = frozenset({"read", "read_nb", "empty", "peek", "read_request"})
STREAM_WRITES = frozenset({"write", "write_nb", "full", "write_request", "write_response"})
COPIES = frozenset(["memcpy", "memmove"])  # (destination, source, …)

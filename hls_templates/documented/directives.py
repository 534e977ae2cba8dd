"""The directives that UG1399 documents for Vitis HLS 2022.1 to 2024.2: their places and their options."""

from __future__ import annotations

from collections.abc import Mapping

from hls_templates.documented.options import Constant, Directive, Flag, Name, Text, Value, Words


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

# The options of INTERFACE in each mode.
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

# Directives that these releases do not have, and what to do instead.
REPLACED: Mapping[str, str] = {
    "RESOURCE": "use BIND_STORAGE or BIND_OP",
    "DATA_PACK": "use AGGREGATE",
    "ARRAY_MAP": "remove it",
    "CLOCK": "remove it",
    "IF": "conditional directives are newer than 2024.2: use the preprocessor",
}

# The values of impl that BIND_STORAGE allows with each type.
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

"""The register map that Vitis HLS generates for the top function's s_axilite slave, and the m_axi bundles.

Source: UG1399, "S_AXILITE Control Register Map" and "S_AXILITE Offset Option". The block control protocol ap_ctrl_hs is
at 0x00, interrupts are at 0x04-0x0c, and the arguments follow from 0x10 in the order of the C++ signature. The spacing
is taken from generated driver headers (x<top>_hw.h of 2022.2): a 32-bit scalar takes 8 bytes, a 64-bit pointer 12, an
output with its ap_vld control word 16.

On a board, the host looks up offsets by name in the .hwh that the vendor's tool wrote, and never uses this map. This
map is for the simulated board, whose .hwh no vendor tool has written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

SLAVE = "s_axi_control"
"""The slave interface of the IP. The m_axi offsets, scalars and block control share the default bundle, ``control``."""

Kind = Literal["pointer", "scalar", "output", "stream"]

_BYTES: dict[Kind, int] = {"pointer": 12, "scalar": 8, "output": 16, "stream": 0}
_ARGUMENTS_AT = 0x10


@dataclass(frozen=True)
class Argument:
    """One argument of the top function.

    Attributes:
        name: Its C++ name.
        kind: pointer (the 64-bit address of an m_axi port), scalar (32 bits), output (``T *`` with ap_vld), or stream
            (an axis port, which has no register).
        bundle: The m_axi bundle of a pointer; "" for other kinds.
    """

    name: str
    kind: Kind
    bundle: str = ""


@dataclass(frozen=True)
class Field:
    """A field of a 32-bit register: bits ``bit`` … ``bit + width − 1``."""

    name: str
    bit: int
    width: int
    access: str
    description: str


@dataclass(frozen=True)
class Register:
    """A 32-bit register of the IP's s_axilite slave.

    Attributes:
        name: Its name.
        offset: Its byte address in the slave.
        access: "read-write" or "read-only", as in IP-XACT.
        description: Its description in the .hwh.
        fields: Its fields.
    """

    name: str
    offset: int
    access: str
    description: str
    fields: tuple[Field, ...] = ()


CONTROL = (
    Register(
        "CTRL",
        0x00,
        "read-write",
        "Control signals",
        (
            Field("AP_START", 0, 1, "read-write", "starts; cleared on handshake"),
            Field("AP_DONE", 1, 1, "read-only", "has finished; clear on read"),
            Field("AP_IDLE", 2, 1, "read-only", "does not run"),
            Field("AP_READY", 3, 1, "read-only", "takes the next start; clear on read"),
            Field("AUTO_RESTART", 7, 1, "read-write", "starts again when ready"),
            Field("INTERRUPT", 9, 1, "read-only", "state of the interrupt line"),
        ),
    ),
    Register(
        "GIER",
        0x04,
        "read-write",
        "Global Interrupt Enable Register",
        (Field("Enable", 0, 1, "read-write", "enables the interrupt line"),),
    ),
    Register(
        "IP_IER",
        0x08,
        "read-write",
        "IP Interrupt Enable Register",
        (
            Field("CHAN0_INT_EN", 0, 1, "read-write", "interrupt on ap_done"),
            Field("CHAN1_INT_EN", 1, 1, "read-write", "interrupt on ap_ready"),
        ),
    ),
    Register(
        "IP_ISR",
        0x0C,
        "read-write",
        "IP Interrupt Status Register",
        (
            Field("CHAN0_INT_ST", 0, 1, "read-write", "ap_done was seen; toggle on write"),
            Field("CHAN1_INT_ST", 1, 1, "read-write", "ap_ready was seen; toggle on write"),
        ),
    ),
)
"""The registers of the block control protocol ap_ctrl_hs."""


def bundles(arguments: Iterable[Argument]) -> tuple[str, ...]:
    """Return the names of the arguments' m_axi bundles, each once. Its interface of the IP is ``m_axi_<bundle>``."""
    return tuple(dict.fromkeys(a.bundle for a in arguments if a.bundle))


def registers(arguments: Iterable[Argument]) -> tuple[Register, ...]:
    """Return the register map of the IP: block control (ap_ctrl_hs), and the arguments, in ascending order of
    offsets."""
    return (*CONTROL, *place(arguments))


def place(arguments: Iterable[Argument]) -> tuple[Register, ...]:
    """Return the registers of the top function's arguments: in the order of the arguments, at offsets from 0x10 on."""
    placed: list[Register] = []
    offset = _ARGUMENTS_AT
    for argument in arguments:
        placed += _registers_of(argument, offset)
        offset += _BYTES[argument.kind]
    return tuple(placed)


def address_bits(register_map: Iterable[Register]) -> int:
    """Return the bits of the slave's byte address: the fewest that address the last byte of its last register."""
    return max(register.offset + 3 for register in register_map).bit_length()


def _registers_of(argument: Argument, offset: int) -> list[Register]:
    name = argument.name
    if argument.kind == "stream":
        return []
    if argument.kind == "pointer":
        return [
            _word(f"{name}_1", offset, f"Data signal of {name}, bits 31 to 0", name),
            _word(f"{name}_2", offset + 4, f"Data signal of {name}, bits 63 to 32", name),
        ]
    if argument.kind == "scalar":
        return [_word(name, offset, f"Data signal of {name}", name)]
    valid = Field(f"{name}_ap_vld", 0, 1, "read-only", f"{name} was written since this was last read; clear on read")
    return [
        _word(name, offset, f"Data signal of {name}", name, "read-only"),
        Register(f"{name}_ctrl", offset + 4, "read-only", f"Control signal of {name}", (valid,)),
    ]


def _word(name: str, offset: int, description: str, field: str, access: str = "read-write") -> Register:
    return Register(name, offset, access, description, (Field(field, 0, 32, access, description),))

"""The languages that an engine is written in, and the options that each of them has for every array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from boards.errors import ChoiceError
from contract.geometry import HLS, RTL


@dataclass(frozen=True)
class Language:
    """A language that the engine is generated in (C++ for HLS, or SystemVerilog), with what it supports.

    Attributes:
        name: Its name in files and on the command line.
        is_traced: Whether a trace of the code, which a compiler schedules, gives the cycles. If not, they are counted
            while the modules are simulated.
        narrow_sums: Whether accumulators can have only the bits that the network's layers need.
        fast_dsps: Whether the DSPs can have a faster clock than the logic around them.
        weight_registers: Whether rows of DSPs that compute six products pass weights on in registers, not in FIFOs.
    """

    name: str
    is_traced: bool
    narrow_sums: bool
    fast_dsps: bool
    weight_registers: bool

    def dsp_registers(self, dsp_products: int) -> bool:
        """Return whether an array has ``dsp_registers`` (weights passed on in registers), for its products per DSP."""
        return self.weight_registers and dsp_products > 0


LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        language.name: language
        for language in (
            Language(HLS, is_traced=True, narrow_sums=False, fast_dsps=False, weight_registers=False),
            Language(RTL, is_traced=False, narrow_sums=True, fast_dsps=True, weight_registers=True),
        )
    }
)
"""The languages by name. The first one is the default."""


def language_named(name: str) -> Language:
    """Return the engine language of this name; raise ChoiceError if there is none."""
    if name not in LANGUAGES:
        raise ChoiceError("engine", name, tuple(LANGUAGES))
    return LANGUAGES[name]

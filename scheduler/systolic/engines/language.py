"""The languages that an engine is written in, and what can be built in each, whatever the array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from boards.errors import ChoiceError
from contract.geometry import HLS, RTL


@dataclass(frozen=True)
class Language:
    """A language that the engine is written in.

    Attributes:
        name: Its name in files and on the command line.
        is_traced: Whether cycles are traced in code that a compiler schedules, and not counted as modules execute.
        narrow_sums: Whether sums can have as few bits as the network's layers need.
        fast_dsps: Whether the DSPs can have a faster clock than the logic around them.
        weight_registers: Whether rows of DSPs that multiply six times hand weights on in registers.
    """

    name: str
    is_traced: bool
    narrow_sums: bool
    fast_dsps: bool
    weight_registers: bool

    def dsp_registers(self, dsp_products: int) -> bool:
        """Return the ``dsp_registers`` of an array whose DSPs have that number of products."""
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
"""By name. The first is the one that is generated if none is asked for."""


def language_named(name: str) -> Language:
    """Return the language; ChoiceError if no engine has this name."""
    if name not in LANGUAGES:
        raise ChoiceError("engine", name, tuple(LANGUAGES))
    return LANGUAGES[name]

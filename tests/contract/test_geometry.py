"""Tests that the header, the C interface and files list the array's parameters with equal names in an equal order."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from contract.geometry import Geometry, as_stored, parameters
from hls_templates.systolic.sources import HEADER, Parameter, header_parameters

TEMPLATES = Path(__file__).resolve().parents[2] / "hls_templates"
MACROS = [parameter.macro for parameter in parameters() if parameter.macro]


def test_parameters_are_the_fields_in_their_order() -> None:
    assert [parameter.name for parameter in parameters()] == [key.name for key in fields(Geometry)]
    required = {parameter.name for parameter in parameters() if parameter.default is None}
    assert required == {"rows", "columns", "lanes"}


def test_macros_are_all_constants_of_the_header() -> None:
    assert len(set(MACROS)) == len(MACROS)
    assert set(MACROS) <= set(HEADER)
    assert len(set(HEADER)) == len(HEADER)


def test_cpp_library_and_interface_list_the_macros_in_order() -> None:
    """Check the comment in the C interface and the generated library, which reports the macros' values."""
    interface = (TEMPLATES / "simulation/c_abi.h").read_text("utf-8")
    listed = interface.partition("//   Systolic  ")[2].partition("bytes of a word")[0]
    assert re.findall(r"[A-Z_]{4,}", listed) == MACROS
    library = (TEMPLATES / "templates/systolic/simulate.cpp.j2").read_text("utf-8")
    numbers = library.partition("numbers[] = {")[2].partition("sizeof(word_t)")[0]
    assert re.findall(r"[A-Z_]{4,}", numbers) == MACROS


def test_header_constants_take_their_values_from_the_geometry() -> None:
    geometry = Geometry(6, 8, 16, bits=4, windows=True, late_offsets=2)
    others = [constant for constant in HEADER if constant not in (*MACROS, "PIXEL_BYTES", "PIXEL_LANES")]
    made = header_parameters(geometry, [Parameter(name, 7, "") for name in others])
    values = {constant.name: constant.value for constant in made}
    assert [constant.name for constant in made] == list(HEADER)
    assert (values["ROWS"], values["VALUE_BITS"], values["WINDOWS"], values["PIXEL_LANES"]) == (6, 4, 1, 8)
    assert type(values["WINDOWS"]) is int
    (late,) = (constant.reason for constant in made if constant.name == "LATE_OFFSETS")
    assert late.startswith("2: ")


def test_flags_are_stored_as_numbers() -> None:
    stored = as_stored(Geometry(6, 8, 8, windows=True))
    assert list(stored) == [parameter.name for parameter in parameters()]
    assert (stored["windows"], stored["added_maps"]) == (1, 0)
    assert all(type(value) in (int, str) for value in stored.values())

"""The engine's sources: a vendor tool accepts them, and products that share a DSP are exact."""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from boards.board import load
from boards.errors import InvalidValueError
from hls_templates.headers import SIMULATION, fixed_files, include_folders
from hls_templates.lint import lint
from hls_templates.systolic.sources import (
    TOP,
    BufferPrimitive,
    Parameter,
    SystolicValues,
    systolic_simulation,
    systolic_sources,
)
from scheduler.systolic.area.memories import IMPLS, PRIMITIVES, PRODUCT_IMPLS, TABLES
from scheduler.systolic.area.placement import place
from scheduler.systolic.area.resources import PLACED, PRODUCTS
from scheduler.systolic.array import PACKINGS, Array, Packing
from tests.support.engine_values import SMALL, values
from tests.support.errors import raises
from tests.support.vendor_types import vendor_types

KERNEL = Path(__file__).parent / "kernels" / "packed.cpp"
NAMES = [f"{dsp}, {bits} bits" for dsp, bits in PACKINGS]
HOSTILE = "a\"b' ${evil} [exec x]; */ int trap;\n#error trap\n// ?\\"

E1 = replace(SMALL, dsp="DSP48E1")

Integers = npt.NDArray[np.int16]


GEOMETRIES = {
    "two ports": values(),
    "one port": values(Array(4, 16, 4, save_rows=1, map_ports=1, weight_ports=1)),
    "four ports": values(Array(13, 16, 16, save_rows=4, map_ports=4, weight_ports=4)),
    "DSP48E1": values(E1),
    "4 bits": values(replace(SMALL, bits=4)),
    "16 bits": values(replace(SMALL, bits=16)),
    "map buffers": values(replace(SMALL, map_depth=64)),
    "map buffers, one port": values(Array(4, 16, 4, save_rows=1, map_ports=1, weight_ports=1, map_depth=64)),
}


FIXED = fixed_files(*include_folders("systolic"))


# --------------------------------------------------------------------------------- what tools refuse


BY_DEFAULT = ("4 bits", "map buffers")


@pytest.mark.parametrize(
    "name", [name if name in BY_DEFAULT else pytest.param(name, marks=pytest.mark.engine) for name in GEOMETRIES]
)
def test_engine_sources_have_no_lint_finding(name: str) -> None:
    assert [str(finding) for finding in lint(systolic_sources(GEOMETRIES[name]), TOP)] == []


@pytest.mark.parametrize(
    ("file", "right", "wrong", "rule"),
    [
        ("top.cpp", "    load(pass, row_buffer, from, rows, activations);", "", "channel-readers"),
        ("load.h", "DEPENDENCE variable = rows", "DEPENDENCE variable = rowz", "undeclared-variable"),
        *(
            pytest.param(*planted, marks=pytest.mark.engine)
            for planted in (
                ("top.cpp", "bundle=weights_0 offset=slave", "bundle=weights_0 ofset=slave", "unknown-option"),
                (
                    "top.cpp",
                    "    pool(pass, tiles, sums, groups);",
                    "    if (index) pool(pass, tiles, sums, groups);",
                    "dataflow-statement",
                ),
                ("pool.h", "#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000", "", "unbounded-loop"),
            )
        ),
    ],
)
def test_engine_source_with_a_planted_error_has_a_lint_finding(file: str, right: str, wrong: str, rule: str) -> None:
    sources = systolic_sources(GEOMETRIES["two ports"])
    assert right in sources[file]
    found = lint({**sources, file: sources[file].replace(right, wrong)}, TOP)
    assert any(finding.rule == rule for finding in found), found


@pytest.mark.engine
@pytest.mark.parametrize("standard", ["c++14", "c++17"])
def test_sources_compile_unchanged_against_the_vendors_headers(standard: str, tmp_path: Path) -> None:
    """Compile with the vendor's ap_int and stream. burst_maxi is the project's own, because no package has it."""
    genuine, alone = vendor_types(), tmp_path / "burst"
    alone.mkdir()
    (alone / "hls_burst_maxi.h").write_text((SIMULATION / "hls_burst_maxi.h").read_text())
    write_sources(tmp_path, values())
    command = ["g++", f"-std={standard}", "-Wall", "-Wno-unknown-pragmas", "-DSYSTOLIC_AP_INT", "-fsyntax-only"]
    command += [f"-I{tmp_path}", f"-I{alone}", f"-isystem{genuine}", str(tmp_path / "top.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    dependencies = subprocess.run([*command, "-M"], capture_output=True, text=True, check=True).stdout
    assert f"{genuine}/hls_stream.h" in dependencies
    assert f"{genuine}/ap_int.h" in dependencies


def test_native_sources_compile_without_a_warning(tmp_path: Path) -> None:
    write_sources(tmp_path, values())
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fsyntax-only"]
    command += [f"-I{tmp_path}", f"-I{SIMULATION}", str(tmp_path / "simulate.cpp"), str(tmp_path / "top.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def write_sources(folder: Path, engine: SystolicValues) -> None:
    for name, text in {**systolic_sources(engine), **simulate_source(engine)}.items():
        (folder / name).write_text(text)


def simulate_source(engine: SystolicValues) -> dict[str, str]:
    return {"simulate.cpp": systolic_simulation(engine)["simulate.cpp"]}


# ----------------------------------------------------------------------------------------- rendering


def test_fixed_headers_are_copied_as_they_are() -> None:
    sources = systolic_sources(replace(values(), added_maps=True))
    assert set(sources) == {*FIXED, "parameters.h", "top.h", "top.cpp"}
    assert {name: sources[name] for name in FIXED} == FIXED
    assert set(sources) - set(systolic_sources(values())) == {"add.h"}, "an engine that adds no maps has nothing of it"


@pytest.mark.parametrize("ports", [(1, 1), (2, 4), (4, 2)])
def test_engine_ports_have_a_reader_and_an_interface_each(ports: tuple[int, int]) -> None:
    top = systolic_sources(values(replace(SMALL, map_ports=ports[0], weight_ports=ports[1])))["top.cpp"]
    for kind, count in zip(("maps", "weights"), ports, strict=True):
        assert set(re.findall(rf"bundle={kind}_(\d)", top)) == {str(port) for port in range(count)}
    assert re.findall(r"read_rows<(\d)>\(pass", top) == [str(port) for port in range(ports[0])]
    assert len(re.findall(r"^    read_weights\(pass", top, re.M)) == ports[1]


def test_parameters_carry_their_reasons() -> None:
    text = systolic_sources(values())["parameters.h"]
    assert "static const int ROWS = 5;  // M: output rows computed together\n" in text
    assert "#define WEIGHT_MEMORY lutram  // 8 × 256 words of 64 bits in 3,072 LUTRAM\n" in text


MACROS = {buffer.name: buffer.macro for buffer in (*PLACED, TABLES)}


@pytest.mark.parametrize("bram36", [312, 60], ids=["room", "short of BRAM"])
def test_engine_code_binds_the_placed_primitives(bram36: int) -> None:
    """Check the macros of each BIND_STORAGE, and the reasons above the top function."""
    board = load("zcu104")
    board = replace(board, resources=replace(board.resources, bram36=bram36))
    array = replace(SMALL, row_depth=8192, weight_depth=512, kept_depth=512, map_depth=96)
    chosen = place(array, board)[0]
    assert len(set(chosen.values())) > 1
    made = systolic_sources(values(array, board))
    assert dict(re.findall(r"^#define (\w+_(?:MEMORY|PRODUCT)) (\w+)", made["parameters.h"], re.M)) == {
        MACROS[name]: impl for name, impl in [*chosen.items(), (TABLES.name, "lutram")]
    }
    for name, impl in chosen.items():
        assert re.search(rf"^//   {name}: .* in [\d,]+ {PRIMITIVES[impl]}$", made["top.cpp"], re.M)


@pytest.mark.engine
@pytest.mark.parametrize(("impl", "product"), [(impl, PRODUCT_IMPLS[i % 2]) for i, impl in enumerate(IMPLS)])
def test_lint_accepts_every_placed_primitive(impl: str, product: str) -> None:
    impls = {name: product if name == PRODUCTS.name else impl for name in MACROS}
    memories = [BufferPrimitive(macro, impls[name], "") for name, macro in sorted(MACROS.items())]
    placed = replace(values(), memories=tuple(memories))
    assert lint(systolic_sources(placed), TOP) == ()
    wrong = replace(placed, memories=(*placed.memories[1:], BufferPrimitive("ARRANGED_MEMORY", "flash", "")))
    assert [f.rule for f in lint(systolic_sources(wrong), TOP)] == ["bad-value"]


def test_hostile_titles_and_reasons_stay_in_their_comments(tmp_path: Path) -> None:
    """Compare the code without comments, and the number of lines, with a harmless design."""
    plain = replace(values(), reasons=("why",))
    hostile = replace(plain, title=HOSTILE, reasons=(HOSTILE,))
    hostile = replace(hostile, parameters=tuple(replace(p, reason=HOSTILE) for p in hostile.parameters))
    for name, text in {**systolic_sources(hostile), **simulate_source(hostile)}.items():
        wanted = {**systolic_sources(plain), **simulate_source(plain)}[name]
        assert uncommented(text) == uncommented(wanted)
        assert text.count("\n") == wanted.count("\n")
        if name in FIXED:
            continue
        for part in ('a"b', "${evil}", "[exec", "*/ int", "\n#error"):
            assert part not in text, f"{name} holds {part!r}"


def uncommented(text: str) -> str:
    """Return C++ text without its comments; directives are kept."""
    command = ["g++", "-x", "c++", "-fpreprocessed", "-dD", "-E", "-P", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_parameter_that_is_not_an_identifier_is_refused() -> None:
    right = values()
    wrong = replace(right, parameters=(*right.parameters, Parameter("ROWS = 1; int x", 1, "")))
    with raises(InvalidValueError, what="an identifier", got="ROWS = 1; int x"):
        systolic_sources(wrong)


# ------------------------------------------------------------------------------ products that share a DSP


def packing_of(name: str) -> tuple[Array, Packing]:
    """Return the array of a name such as "DSP48E1, 4 bits", with the longest chains of its DSP, and its packing."""
    dsp, words = name.split(", ")
    bits = int(words.removesuffix(" bits"))
    lanes = 32 if bits == 4 else 16  # high nibbles have chains of their own
    array = replace(SMALL, columns=lanes, lanes=lanes, dsp=dsp, bits=bits)
    assert array.pack_chain == array.packing.chain
    return array, array.packing


@functools.cache
def packed_library(name: str, ap_int: bool, folder: Path) -> ctypes.CDLL:
    (folder / "parameters.h").write_text(systolic_sources(values(packing_of(name)[0]))["parameters.h"])
    library = folder / f"{name.replace(', ', '-').replace(' ', '-')}-{ap_int}.so"
    command = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", f"-I{folder}"]
    command += [f"-I{path}" for path in include_folders("systolic")]
    if ap_int:
        command += ["-DSYSTOLIC_AP_INT", f"-I{vendor_types()}"]
    done = subprocess.run([*command, str(KERNEL), "-o", str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module", params=["native", pytest.param("ap_int", marks=pytest.mark.engine)])
def ap_int(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "ap_int")


@pytest.fixture(
    scope="module",
    params=[name if name == NAMES[0] else pytest.param(name, marks=pytest.mark.engine) for name in NAMES],
)
def packing(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def library(packing: str, ap_int: bool, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return packed_library(packing, ap_int, tmp_path_factory.mktemp("packed"))


def check_packed(library: ctypes.CDLL, weights: Integers, values: Integers) -> None:
    """Compare packed sums with sums in which every product has its own DSP.

    Args:
        weights: Array of (count, columns, chain).
        values: Array of (count, rows, chain).
    """
    (count, columns, chain), rows = weights.shape, values.shape[1]
    sums = np.zeros((count, rows, columns), np.int32)
    arrays = [np.ascontiguousarray(array, np.int16) for array in (weights, values)]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    outcome = library.packed_chains(ctypes.c_long(count), *pointers, ctypes.c_void_p(sums.ctypes.data))
    assert outcome == chain
    wanted = np.einsum("ncl,nrl->nrc", weights.astype(np.int64), values.astype(np.int64))
    wrong = np.argwhere(sums != wanted)
    assert not len(wrong), [(weights[i], values[i]) for i in wrong[:1, 0]]


def ends(name: str) -> tuple[int, int]:
    """Return the largest weight and the largest activation.

    The least weight is the negative of the largest one, and the least activation is one below that negative.
    """
    top = (1 << (packing_of(name)[0].bits - 1)) - 1
    return (top, top) if top < 1 << 14 else (4000, top)  # at 16 bits sums of 32 bits leave no more to a chain


def alike(name: str, choices: list[tuple[int, ...]]) -> tuple[Integers, Integers]:
    """Return chains that have the same numbers at every place.

    Args:
        choices: Tuples of one weight per column and one value per row.
    """
    _, how = packing_of(name)
    grid = np.array(choices, np.int16)[:, :, None].repeat(how.chain, axis=2)
    return grid[:, : how.columns], grid[:, how.columns :]


def test_dsp_chain_weights_by_extreme_values_give_exact_sums(library: ctypes.CDLL, packing: str) -> None:
    """Multiply all weights by values at and next to both ends and around 0, with equal numbers along the chain."""
    (top, high), (_, how) = ends(packing), packing_of(packing)
    extremes = sorted({-high - 1, -high, 1 - high, -1, 0, 1, high - 1, high})
    step = 1 if top <= 127 else 97
    weights = range(-top, top + 1, step)
    choices = itertools.product(*how.columns * [weights], *how.positions * [extremes])
    check_packed(library, *alike(packing, list(choices)))


def test_dsp_chain_values_by_extreme_weights_give_exact_sums(library: ctypes.CDLL, packing: str) -> None:
    (top, high), (_, how) = ends(packing), packing_of(packing)
    values_ = range(-high - 1, high + 1, 1 if high <= 127 else 61)
    few = (-top, -1, 0, 1, top)
    check_packed(library, *alike(packing, list(itertools.product(*how.columns * [few], *how.positions * [values_]))))


def test_dsp_chain_extremes_of_either_sign_give_exact_sums(library: ctypes.CDLL, packing: str) -> None:
    """Use extremes of either sign at each place, so that partial sums reach both ends and return."""
    (top, high), (_, how) = ends(packing), packing_of(packing)
    length = min(how.chain, 10)
    signs = np.array(list(itertools.product((0, 1), repeat=length))).repeat(-(-how.chain // length), axis=1)
    signs = signs[:, : how.chain]
    weights, activations = np.array((-top, top))[signs], np.array((-high - 1, high))[signs]
    for one in (np.full_like(weights, -top), np.full_like(weights, top), weights[::-1]):
        for other in (activations[::-1], np.full_like(activations, -high - 1)):
            pair = np.stack([weights, one][: how.columns], axis=1)
            check_packed(library, pair, np.stack([activations, other][: how.positions], axis=1))
            check_packed(library, pair[:, ::-1], np.stack([other, activations][: how.positions], axis=1))


@settings(max_examples=100, derandomize=True, database=None)
@given(data=st.data())
def test_dsp_chain_any_operands_give_exact_sums(library: ctypes.CDLL, packing: str, data: st.DataObject) -> None:
    (top, high), (_, how) = ends(packing), packing_of(packing)
    weights = st.sampled_from((-top, top)) | st.integers(-top, top)
    check_packed(
        library,
        data.draw(arrays(np.int16, (1, how.columns, how.chain), elements=weights)),
        data.draw(arrays(np.int16, (1, how.positions, how.chain), elements=st.integers(-high - 1, high))),
    )

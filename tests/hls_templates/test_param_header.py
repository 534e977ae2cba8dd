"""param.h and config.h: every value is read back from their text and from a program that includes them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boards.errors import InvalidValueError, MissingValueError, RangeError, SystolicError
from hls_templates.param_header import LayerParameters, header_files, packed_weights
from systolic.execution.compiler import compiler
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.kinds import as_kind
from tests.support.vendor_types import vendor_types

HeaderValues = dict[tuple[str, int, int], str]
"""(name, row, column) → the value as text."""


def layer(
    name: str, seed: int, shape: tuple[int, int, int, int], bits: int, pe: int, simd: int, *, sums: bool = False
) -> LayerParameters:
    random = np.random.default_rng(seed)
    high = 1 if bits == 1 else (1 << (bits - 1)) - 1
    weights = random.choice([-1, 1], shape) if bits == 1 else random.integers(-high - (bits > 1), high + 1, shape)
    inc = None if sums else random.integers(-60_000, 60_000, shape[0])
    bias = None if sums else random.integers(-(1 << 45), 1 << 45, shape[0])
    _, channels, kernel, _ = shape
    sides, after = (channels, 10, 12), (shape[0], 10, 12)
    return LayerParameters(
        name, weights, bits, pe, simd, sides, after, 1, kernel // 2, 4, 4, inc, bias, 0 if sums else bits + 11
    )


LAYERS = [
    layer("conv_0", 0, (16, 3, 3, 3), 4, 16, 3),
    layer("wide", 1, (8, 32, 3, 3), 8, 2, 32),  # words of 256 bits
    layer("all", 2, (6, 5, 1, 1), 4, 1, 5),
    layer("bits", 3, (4, 8, 3, 3), 1, 2, 24),
    layer("few", 4, (4, 4, 3, 3), 2, 4, 1),
    layer("last", 5, (36, 16, 1, 1), 4, 4, 8, sums=True),
]

PROGRAM = """
#include <cstdio>
#include "param.h"
#include "config.h"
template <class T, int A, int B> void print(const char *name, const T (&values)[A][B]) {
    for (int a = 0; a < A; ++a)
        for (int b = 0; b < B; ++b)
            std::printf("%s %d %d %s\\n", name, a, b, values[a][b].to_string(16, true).c_str());
}
int main() {
"""


def read(files: dict[str, str]) -> HeaderValues:
    """Read the arrays of strings and the defines of both headers."""
    found: HeaderValues = {}
    for name, rows, columns, values in re.findall(
        r"const ap_u?int<\d+> (\w+)\[(\d+)\]\[(\d+)\] = \{\n(.*?)\n\};", files["param.h"], re.DOTALL
    ):
        table = [re.findall(r'"(\S+)"', row) for row in values.splitlines()]
        assert [len(row) for row in table] == int(rows) * [int(columns)], name
        found |= {(name, a, b): value for a, row in enumerate(table) for b, value in enumerate(row)}
    for name, number in re.findall(r"#define (\w+) (\d+)", files["config.h"]):
        found[name, 0, 0] = number
    return found


@pytest.fixture(scope="module", params=["text", pytest.param("compiled", marks=pytest.mark.engine)])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HeaderValues:
    """Return the values of both headers, from their text or from the output of a program that includes them."""
    if request.param == "text":
        return read(header_files(LAYERS))
    folder = tmp_path_factory.mktemp("param")
    for name, text in header_files(LAYERS).items():
        (folder / name).write_text(text)
    lines = []
    for one in LAYERS:
        arrays = ["w"] if one.inc is None else ["w", "inc", "bias"]
        lines += [f'print("{one.name}_{array}", {one.name}_{array});' for array in arrays]
        defines = [line.split()[1] for line in header_files([one])["config.h"].splitlines() if "#define " in line][1:]
        lines += [f'std::printf("{name} 0 0 %d\\n", {name});' for name in defines]
    (folder / "main.cpp").write_text(PROGRAM + "\n".join(lines) + "\n}\n")
    command = [compiler(), "-std=c++17", "-O0", f"-I{vendor_types()}", "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    printed = subprocess.run([folder / "main"], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    return {(name, int(a), int(b)): value for name, a, b, value in rows}


def number(text: str) -> int:
    return int(text, 16)


@pytest.mark.parametrize("one", LAYERS, ids=lambda one: one.name)
def test_param_header_weights_are_in_the_documented_lanes(one: LayerParameters, found: HeaderValues) -> None:
    """Read each lane of the compiled words as the sentence at the head of param.h describes it."""
    mask = (1 << one.weight_bits) - 1
    filters, channels, high, wide = one.weights.shape
    words = channels * high * wide // one.simd
    for f in range(filters):
        for y in range(high):
            for x in range(wide):
                for c in range(channels):
                    place = (y * wide + x) * channels + c
                    tile = f // one.pe * words + place // one.simd
                    word = number(found[f"{one.name}_w", f % one.pe, tile])
                    code = word >> (one.weight_bits * (place % one.simd)) & mask
                    expected = int(one.weights[f, c, y, x])
                    assert code == (expected > 0 if one.weight_bits == 1 else expected & mask)


@cases("one", LAYERS[:-1], ids=lambda one: one.name)
def test_param_header_inc_and_bias_equal_the_layer(one: LayerParameters, found: HeaderValues) -> None:
    for name, values in (("inc", one.inc), ("bias", one.bias)):
        for channel, value in enumerate(as_kind(np.ndarray, values).tolist()):
            assert number(found[f"{one.name}_{name}", channel % one.pe, channel // one.pe]) == value


def test_param_header_defines_equal_the_layers(found: HeaderValues) -> None:
    def defined(name: str) -> int:
        return int(found[name, 0, 0])

    for one in LAYERS:
        upper = one.name.upper()
        assert (defined(f"{upper}_PE"), defined(f"{upper}_SIMD")) == (one.pe, one.simd)
        assert (defined(f"{upper}_K"), defined(f"{upper}_P")) == (one.weights.shape[2], one.padding)
        assert [defined(f"{upper}_IFM_{side}") for side in ("CH", "ROW", "COL")] == list(one.input)
        assert [defined(f"{upper}_OFM_{side}") for side in ("CH", "ROW", "COL")] == list(one.output)
        assert defined(f"{upper}_W_TILES") == len(packed_weights(one)[0])
        assert (f"{upper}_INC_BIT", 0, 0) in found or one.inc is None
    assert defined("CONV_0_SHIFT") - 3 - 4 == defined("CONV_0_L_SHIFT")
    assert defined("CONV_0_INC_BIT") == int(np.abs(as_kind(np.ndarray, LAYERS[0].inc)).max()).bit_length() + 1


def test_header_files_are_deterministic_and_list_every_layer() -> None:
    files = header_files(LAYERS)
    assert files == header_files([replace(one) for one in LAYERS])
    assert [line for line in files["config.h"].splitlines() if line.startswith("// ")][1:] == [
        f"// {one.name}" for one in LAYERS
    ]


@cases(
    "changes, kind, fields",
    [
        ({"pe": 5}, InvalidValueError, {"what": "PE", "got": 5}),
        ({"pe": 0}, InvalidValueError, {"what": "PE", "got": 0}),
        ({"simd": 4}, InvalidValueError, {"what": "SIMD", "got": 4}),
        ({"simd": 0}, InvalidValueError, {"what": "SIMD", "got": 0}),
        ({"bias": None}, MissingValueError, {"what": "bias"}),
        ({"inc": None}, MissingValueError, {"what": "inc"}),
        ({"weight_bits": 3}, RangeError, {"what": "a weight of 3 bits", "got": -8, "low": -4, "high": 3}),
    ],
)
def test_header_files_of_an_unwritable_layer_are_refused(
    changes: dict[str, Any], kind: type[SystolicError], fields: dict[str, object]
) -> None:
    with raises(kind, where="conv_0", **fields):
        header_files([replace(LAYERS[0], **changes)])


def test_header_files_of_a_layer_with_an_invalid_name_are_refused() -> None:
    with raises(InvalidValueError, what="an identifier", got="a b"):
        header_files([replace(LAYERS[0], name="a b")])

"""Memories, ports, outputs and streams: kernels that keep the rules, beside others that break them."""

from __future__ import annotations

import pytest

pytest.importorskip("tree_sitter_cpp", reason="the linter needs tree-sitter and tree-sitter-cpp")

from hls_templates.lint import lint

LANES = "template <class T, int N>\nstruct lanes_t {\n    T lane[N];\n};\ntypedef lanes_t<int, 4> row_t;\n"


# --------------------------------------------------------------------------------------- wide-stream


@pytest.mark.parametrize(
    ("type_", "bits"),
    [
        ("ap_uint<4096>", None),
        ("ap_uint<4097>", 4097),
        ("lanes_t<ap_int<8>, 512>", None),
        ("lanes_t<ap_int<8>, 513>", 4104),
        ("lanes_t<lanes_t<int16_t, 16>, 17>", 4352),
        ("wide_t<9>", 4608),
        ("std::conditional<true, ap_uint<5000>, int>::type", 5000),
        ("unknown_t", None),
        ("self_t", None),
        ("ap_uint<WIDTH>", 8192),
        ("alias_t", 4097),
    ],
)
def test_the_width_of_a_stream_is_counted_through_structs_and_aliases(type_: str, bits: int | None) -> None:
    text = (
        f"{LANES}static const int PARTS = 4, WIDTH = PARTS * 2048;\nusing alias_t = lanes_t<ap_uint<4097>, 1>;\n"
        "template <int N>\nusing wide_t = lanes_t<int, N * 16>;\ntypedef typename other_t::self_t self_t;\n"
        "static void give(hls::stream<row_t> &out) {}\n"
        f"void top() {{\n    self_t same;\n    hls::stream<{type_} > middle;\n}}\n"
    )
    sentences = [finding.sentence for finding in lint({"kernel.cpp": text}, "")]
    assert sentences == (
        [] if bits is None else [f"a stream may be 4096 bits wide, but middle has {bits}; send the word in parts"]
    )

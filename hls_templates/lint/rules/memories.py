"""Group 8: memories, outputs and streams that the tool would build otherwise than they are meant."""

from __future__ import annotations

from hls_templates.lint.rules.rule import Rule

RULES = (
    Rule(
        "8.1",
        "wide-stream",
        "a stream whose words are wider than 4,096 bits",
        "a stream may be {limit} bits wide, but {actual} has {bits}; send the word in parts",
        "UG1399, Arbitrary Precision Integer Types: at most 4,096 bits; the project keeps its streams to that width",
        "struct weights_t {\n    ap_int<8> value[1024];\n};\n"
        "static void copy(hls::stream<weights_t> &in, hls::stream<weights_t> &out) { out.write(in.read()); }\n"
        "void top(hls::stream<weights_t> &source, hls::stream<weights_t> &sink) {\n#pragma HLS DATAFLOW\n"
        "    hls::stream<weights_t> middle;\n    copy(source, middle);\n    copy(middle, sink);\n}\n",
    ),
)

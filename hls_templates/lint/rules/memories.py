"""Group 8: memories, outputs and streams that the tool would build in another way than intended."""

from __future__ import annotations

from hls_templates.lint.rules.rule import Rule, kernel

RULES = (
    Rule(
        "8.1",
        "wide-stream",
        "a stream whose words are wider than 4,096 bits",
        "a stream may be {limit} bits wide, but {actual} has {bits}; send the word in parts",
        "UG1399, Arbitrary Precision Integer Types: at most 4,096 bits; the project keeps its streams to that width",
        "struct weights_t {\n    ap_int<8> value[1024];\n};\n\n"
        "static void copy(hls::stream<weights_t> &in, hls::stream<weights_t> &out) { out.write(in.read()); }\n\n"
        "void top(hls::stream<weights_t> &source, hls::stream<weights_t> &sink) {\n#pragma HLS DATAFLOW\n"
        "    hls::stream<weights_t> middle;\n    copy(source, middle);\n    copy(middle, sink);\n}\n",
    ),
    Rule(
        "8.2",
        "struct-array",
        "an array of structs that contain arrays, without AGGREGATE and not partitioned into registers",
        "an array of structs that contain arrays needs AGGREGATE, but {actual} of {type} has none. Each member would be"
        " a separate memory; add «AGGREGATE variable={actual} compact=bit» or use wide integers",
        "UG1399, Structs: internal structs are disaggregated by default; pragma HLS aggregate",
        "struct lanes_t {\n    int lane[4];\n};\n"
        + kernel("lanes_t row[8];", "row[count].lane[0] = count;", "data[0] = row[count].lane[0];"),
    ),
    Rule(
        "8.3",
        "volatile-output",
        "a pointer through which a loop writes one place repeatedly, without `volatile`",
        "an output that a loop writes repeatedly must be volatile, but {actual} is not, and only its last value would"
        " be written; add volatile or use a stream",
        "UG1399, Multi-Access Pointers on the Interface",
        "void top(int *current, int count) {\n    for (int i = 0; i < 8; ++i) *current = count + i;\n}\n",
    ),
    Rule(
        "8.4",
        "unbound-fifo",
        "a FIFO of more than 1,024 bits in total and more than two words, without BIND_STORAGE",
        "a FIFO of more than {limit} bits needs BIND_STORAGE, but {actual}, {depth} words of {bits} bits, has none. It"
        " would be a memory, which has one cycle more latency than a shift register; add «BIND_STORAGE"
        " variable={actual} type=fifo impl=srl», or the name of a memory",
        "UG1399, config_storage: -auto_srl_max_bits 1024, -auto_srl_max_depth 2",
        "static void copy(hls::stream<int> &in, hls::stream<int> &out) { out.write(in.read()); }\n\n"
        "void top(hls::stream<int> &source, hls::stream<int> &sink) {\n#pragma HLS DATAFLOW\n"
        "    hls::stream<int> middle;\n#pragma HLS STREAM variable=middle depth=33\n"
        "    copy(source, middle);\n    copy(middle, sink);\n}\n",
    ),
)

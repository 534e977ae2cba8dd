"""Memories, ports, outputs and streams: kernels that follow the rules, and kernels that break them."""

from __future__ import annotations

from hls_templates.lint import lint
from hls_templates.lint.rules import RULES
from tests.support.cases import cases

LANES = "template <class T, int N>\nstruct lanes_t {\n    T lane[N];\n};\ntypedef lanes_t<int, 4> row_t;\n"
PIPELINE = "#pragma HLS PIPELINE II=1\n"


def rules(text: str, top: str = "") -> list[str]:
    return [finding.rule for finding in lint({"kernel.cpp": text}, top)]


def loop(*statements: str) -> str:
    return "    for (int i = 0; i < 64; ++i) {\n" + PIPELINE + "".join(f"        {s}\n" for s in statements) + "    }\n"


def kernel(parameters: str, *lines: str) -> str:
    return f"{LANES}void top({parameters}) {{\n" + "\n".join(lines) + "\n}\n"


# --------------------------------------------------------------------------------------- wide-stream


@cases(
    "type_, bits",
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
def test_lint_stream_width_is_computed_through_structs_and_aliases(type_: str, bits: int | None) -> None:
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


# -------------------------------------------------------------------------------------- struct-array


@cases(
    "declaration, directive, found",
    [
        ("row_t kept[8];", "", True),
        ("row_t kept[8][2];", "#pragma HLS ARRAY_PARTITION variable=kept complete dim=2", True),
        ("map_t kept;", "", True),
        ("row_t kept[8];", "#pragma HLS AGGREGATE variable=kept compact=bit", False),
        ("row_t kept[8];", "#pragma HLS ARRAY_PARTITION variable=kept complete", False),
        ("row_t kept[8][2];", "#pragma HLS ARRAY_PARTITION variable=kept complete dim=0", False),
        ("row_t kept[8];", "#pragma HLS ARRAY_PARTITION variable=kept cyclic factor=2", True),
        ("row_t kept;", "", False),
        ("ap_uint<128> kept[8];", "", False),
        ("hls::stream<row_t> kept[2];", "", False),
    ],
)
def test_lint_array_of_structs_with_arrays_is_reported_unless_aggregated(
    declaration: str, directive: str, found: bool
) -> None:
    text = f"typedef row_t map_t[64];\nvoid top(int *data) {{\n    {declaration}\n{directive}\n}}\n"
    assert rules(LANES + text) == (["struct-array"] if found else [])


# -------------------------------------------------------------------------------------- bank-writers

BANKS = "    int row[64][4];\n#pragma HLS ARRAY_PARTITION variable=row complete dim=2\n"


@cases(
    "stores, found",
    [
        (["row[i][n & 3] = data[i];"], False),
        (["row[i][n & 3] = data[i];", "row[i][m & 3] = data[i];"], True),
        (["if (n > 9) row[i][n & 3] = data[i];", "else row[i][m & 3] = data[i];"], False),
        (["row[i][1] = data[i];", "row[i][2] = data[i];"], False),
        (["for (int w = 0; w < 2; ++w) row[i][(n + w) & 3] = data[i];"], True),
        (["for (int w = 0; w < 4; ++w) if (w == n) row[i][w] = data[i];"], False),
        (["put(row, n & 3, i);"], False),
        (["put(row, n & 3, i);", "put(row, m & 3, i);"], True),
        (["for (int w = 0; w < 4; ++w) put(row, w, i);"], False),
        (["for (int w = 0; w < 2; ++w) put(row, (n + w) & 3, i);"], True),
    ],
)
def test_lint_bank_with_several_writers_per_iteration_is_reported(stores: list[str], found: bool) -> None:
    put = "static void put(int row[64][4], int bank, int i) {\n    row[i][bank] = i;\n}\n"
    text = put + kernel("int *data, int n, int m", BANKS, loop(*stores), "    data[0] = row[n][m];")
    assert rules(text) == (["bank-writers"] if found else [])


def test_lint_constant_bank_of_a_second_partitioned_dimension_is_clean() -> None:
    both = BANKS.replace("[4];", "[4][2];") + "#pragma HLS ARRAY_PARTITION variable=row complete dim=3\n"
    store = "for (int w = 0; w < 2; ++w) row[i][n & 3][w] = data[i];"
    assert rules(kernel("int *data, int n", both, loop(store))) == []


def test_lint_registers_with_several_writers_are_clean() -> None:
    registers = BANKS.replace("dim=2", "dim=0")
    assert rules(kernel("int *data, int n, int m", registers, loop("row[n][m] = 1;", "row[m][n] = 2;"))) == []


# ------------------------------------------------------------------------------------- request-apart


def test_lint_read_request_and_read_in_one_loop_are_reported() -> None:
    ask, read = "port.read_request(i, 1);", "sink.write(port.read());"
    parameters = "hls::burst_maxi<int> port, hls::stream<int> &sink"
    assert rules(kernel(parameters, loop(ask, read))) == ["request-apart"]
    assert rules(kernel(parameters, loop(ask), loop(read))) == []
    assert rules(kernel(parameters, "    port.read_request(0, 64);", loop(read))) == []
    passed = "static int next(hls::burst_maxi<int> from) { return from.read(); }\n"
    assert rules(passed + kernel(parameters, loop(ask, "sink.write(next(port));"))) == ["request-apart"]


def test_lint_write_request_and_response_in_one_loop_are_reported() -> None:
    ask = ["port.write_request(i, 1);", "port.write(i);"]
    assert rules(kernel("hls::burst_maxi<int> port", loop(*ask, "port.write_response();"))) == ["request-apart"]
    assert rules(kernel("hls::burst_maxi<int> port", loop(*ask), loop("port.write_response();"))) == []


# ------------------------------------------------------------------------------- dataflow-call-sites


def test_lint_stateful_region_with_two_call_sites_is_reported() -> None:
    text = RULES["dataflow-call-sites"].example
    (found,) = lint({"kernel.cpp": text}, "top")
    assert "run, which keeps words, is also called at kernel.cpp:" in found.sentence
    assert rules(text.replace("static int words;", "int words = 0;"), "top") == []
    assert rules(text.replace("    else run(source, sink);\n", ""), "top") == []


def test_lint_instances_of_a_template_are_separate_functions() -> None:
    text = RULES["dataflow-call-sites"].example.replace("static void run(", "template <int N>\nstatic void run(")
    first, second = "if (count > 1) run(", "else run("
    assert rules(text.replace(first, "if (count > 1) run<1>(").replace(second, "else run<2>("), "top") == []
    same = text.replace(first, "if (count > 1) run<1>(").replace(second, "else run<1>(")
    assert rules(same, "top") == ["dataflow-call-sites"]


# --------------------------------------------------------------------------------------- FIFOs


@cases(
    "depth, bits, bind, found",
    [
        (2, 4096, "", False),
        (32, 32, "", False),
        (33, 32, "", True),
        (3, 512, "", True),
        (33, 32, "srl", False),
        (33, 32, "bram", False),
    ],
)
def test_lint_unbound_fifo_that_becomes_a_memory_is_reported(depth: int, bits: int, bind: str, found: bool) -> None:
    bound = f"#pragma HLS BIND_STORAGE variable=middle type=fifo impl={bind}\n" if bind else ""
    text = (
        f"typedef ap_uint<{bits}> word_t;\n"
        "static void copy(hls::stream<word_t> &in, hls::stream<word_t> &out) { out.write(in.read()); }\n"
        "void top(hls::stream<word_t> &source, hls::stream<word_t> &sink) {\n#pragma HLS DATAFLOW\n"
        f"    hls::stream<word_t> middle;\n#pragma HLS STREAM variable=middle depth={depth}\n{bound}"
        "    copy(source, middle);\n    copy(middle, sink);\n}\n"
    )
    assert rules(text, "top") == (["unbound-fifo"] if found else [])


# --------------------------------------------------------------------------------------- other rules


@cases(
    "parameter, store, found",
    [
        ("int *out", "*out = i;", True),
        ("int *out", "out[0] = i;", True),
        ("volatile int *out", "*out = i;", False),
        ("int *out", "out[i] = i;", False),
        ("int &out", "out = i;", False),
    ],
)
def test_lint_output_written_at_one_place_in_a_loop_must_be_volatile(parameter: str, store: str, found: bool) -> None:
    assert rules(kernel(parameter, loop(store))) == (["volatile-output"] if found else [])
    assert rules(kernel(parameter, f"    int i = 0;\n    {store}")) == []


def test_lint_partition_dimension_of_too_many_digits_selects_no_bank() -> None:
    """Check that the value of the directive is reported, and that stores to the array choose no bank."""
    body = [
        "    int row[4][4];",
        f"#pragma HLS ARRAY_PARTITION variable=row complete dim={'9' * 30}",
        loop("row[i & 3][0] = i;"),
    ]
    assert "bank-writers" not in rules(kernel("int n", *body))

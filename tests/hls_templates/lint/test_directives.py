"""The linter accepts all directives that the manual documents, and the data of the manual is consistent."""

from __future__ import annotations

import time

from hls_templates.documented.directives import DIRECTIVES
from hls_templates.lint.linter import lint
from tests.support.cases import cases
from tests.support.lint_designs import LAST, faults

REGION = """
struct pair {{ int a; int b; }};
static void fetch(const int *data, hls::stream<int> &out) {{ out.write(data[0]); }}
static void store(hls::stream<int> &in, int *data) {{ data[0] = in.read(); }}
void top(int *data, pair both) {{
{}
    hls::stream<int> between;
    fetch(&data[1], between);
    store(between, data);
}}
"""


@cases(
    "text",
    [
        "for (int i = 0; i < LANES * 2 - 1; i += 2) {\n    }",
        "for (int i = LANES - 1; i >= 0; --i) {\n    }",
        "do {\n    } while (0);",
        "const int most = DEPTH / 2;\n    for (int i = 0; i < most; ++i) {\n    }",
        "for (int i = 0; i < LANES; ++i) {\n#pragma HLS UNROLL\n"
        "        for (int j = 0; j < i; ++j) {\n        }\n    }",
        "for (int i = 0; i < 9; ++i) {\n#pragma HLS PIPELINE II=DEPTH\n"
        "        for (int j = 0; j < LANES; ++j)\n"
        "            for (int k = j; k < LANES; ++k) words += k;\n    }",
    ],
)
def test_loops_with_constant_bounds_are_clean(text: str) -> None:
    assert faults(LAST, f"{LAST}    {text}\n") == ()


@cases(
    "text",
    [
        "INTERFACE mode=ap_ctrl_chain port=return",
        "PIPELINE off",
        "ALLOCATION operation instances=mul limit=2",
        "ALLOCATION function instances=run limit=1",
        "LATENCY min=1 max=4",
        "STABLE variable=words",
        "EXPRESSION_BALANCE off",
        "CACHE port=source lines=8 depth=128",
        "ALIAS ports=source,sink distance=1024",
        "PERFORMANCE target_ti=3000 unit=cycle",
    ],
)
def test_documented_directives_are_clean_in_a_function(text: str) -> None:
    assert faults("port=return\n", f"port=return\n#pragma HLS {text}\n") == ()


@cases(
    "text",
    ["II=2 style=flp", "II=DEPTH", "II=sizeof(word_t)/4", "ii=2*LANES rewind", "rewind=true", "off=false"],
)
def test_documented_pipelines_are_clean_in_a_loop(text: str) -> None:
    assert faults("        SYSTOLIC_PIPELINE(1, 2);\n", f"#pragma HLS PIPELINE {text}\n") == ()


def test_directives_have_known_scopes_and_needs() -> None:
    for name, directive in DIRECTIVES.items():
        assert directive.scopes <= {"function", "loop", "region", "conditional"}, name
        assert set(directive.needs) <= set(directive.options), name
        assert all(set(options) <= set(directive.options) for options in directive.modes.values()), name


def test_lint_region_of_300_directives_takes_less_than_a_second() -> None:
    """Check the time: with quadratic work, 300 directives took 2 s of processor time, and 1,000 took 20 s."""
    line = "#pragma HLS DATAFLOW\n"
    begin = time.process_time()
    few = lint({"top.cpp": REGION.format(line * 300)}, "top")
    assert time.process_time() - begin < 1
    assert {finding.rule for finding in few} == {
        finding.rule for finding in lint({"top.cpp": REGION.format(line)}, "top")
    }

"""Groups 5 and 6: C++ that cannot be synthesised, and loops inside pipelines."""

from __future__ import annotations

from hls_templates.lint.rules.rule import Rule, kernel

_UNSUPPORTED = "UG1399, Unsupported C/C++ Constructs"

RULES = (
    # ------------------------------------------------------------------------------------- 5. constructs
    Rule(
        "5.1",
        "dynamic-memory",
        "`new`, `delete`, `malloc` …",
        "memory must have a fixed size, but {actual} allocates or frees it at run time; use an array",
        "UG1399, Dynamic Memory Usage",
        kernel("int *row = new int[4];", "data[0] = row[0];"),
    ),
    Rule(
        "5.2",
        "standard-library",
        "`std::vector`, `std::string`, `std::function` …",
        "only synthesisable types may be used, but {actual} is a host type; use an array or hls type",
        "UG1399, Standard Template Libraries",
        kernel("std::vector<int> row(4);", "data[0] = row[0];"),
    ),
    Rule(
        "5.3",
        "system-call",
        "`printf`, files, time, `std::cout` …",
        "hardware has no operating system, but {actual} calls one; guard it by #ifndef __SYNTHESIS__",
        "UG1399, System Calls",
        kernel('printf("%d", count);'),
    ),
    Rule(
        "5.4",
        "exception",
        "`throw`, `try`",
        "exceptions cannot be synthesised, but this is {actual}; return a status",
        _UNSUPPORTED,
        kernel("if (count > 9) throw count;"),
    ),
    Rule(
        "5.5",
        "virtual",
        "a virtual function",
        "a call must be known at compile time, but {actual} is virtual; use a template",
        "UG1399, Virtual Functions",
        "struct filter_t {\n    virtual int run(int value);\n};\n" + kernel("data[0] = count;"),
    ),
    Rule(
        "5.6",
        "run-time-type",
        "`dynamic_cast`, `typeid`",
        "types must be known at compile time, but {actual} asks at run time; use a template",
        _UNSUPPORTED,
        kernel("data[0] = typeid(count) == typeid(int);"),
    ),
    Rule(
        "5.7",
        "recursion",
        "a function that reaches itself (recursion over template arguments is compile-time and allowed)",
        "a function must not call itself, but {actual}; use a loop",
        "UG1399, Recursive Functions",
        "static int sum(int n) {\n    return n == 0 ? 0 : n + sum(n - 1);\n}\n" + kernel("data[0] = sum(count);"),
    ),
    Rule(
        "5.8",
        "function-pointer",
        "a pointer to a function",
        "a call must be known at compile time, but {actual} is a pointer to a function; use a template",
        "UG1399, Function Pointers",
        "static int twice(int value) { return 2 * value; }\n"
        + kernel("int (*chosen)(int) = twice;", "data[0] = chosen(count);"),
    ),
    Rule(
        "5.9",
        "pointer-to-pointer",
        "`T **`",
        "a pointer must point at data, but {actual} is a pointer to a pointer; use an array",
        "UG1399, Pointers",
        kernel("int **rows = &data;", "rows[0][0] = count;"),
    ),
    Rule(
        "5.10",
        "goto",
        "`goto`",
        "control flow must be structured, but this is {actual}; use a loop or a condition",
        _UNSUPPORTED,
        kernel("again:", "data[0] = count;", "if (data[1]) goto again;"),
    ),
    Rule(
        "5.11",
        "endless-loop",
        "`while (true)`, `for (;;)`",
        "a loop must end, but {actual} has no end condition; bound it by a count",
        "UG1399, Variable Loop Bounds",
        kernel("while (true) {", "    data[0] = count;", "}"),
    ),
    Rule(
        "5.12",
        "unbounded-loop",
        "a loop whose bound is not a compile-time constant, without LOOP_TRIPCOUNT",
        "a loop without constant bounds needs LOOP_TRIPCOUNT, but {actual} has none; add min and max",
        "UG1399, pragma HLS loop_tripcount; Variable Loop Bounds",
        kernel("for (int i = 0; i < count; ++i) data[i] = 0;"),
    ),
    Rule(
        "5.13",
        "static-local",
        "a static variable, which keeps state between calls, without a note",
        "state between calls must be intended, but {actual} is static without a note; make it local or add"
        " «lint: allow(static-local) why»",
        "UG1399, Static Variables",
        kernel("static int frames;", "data[0] = ++frames;"),
    ),
    Rule(
        "5.14",
        "floating-point",
        "float, double, half, a literal with a point",
        "the accelerator computes in integers, but {actual} is floating point; use an integer or add"
        " «lint: allow(floating-point) why»",
        "the project's arithmetic contract; UG1399, Floats and Doubles",
        kernel("data[0] = count * 1.5;"),
    ),
    # -------------------------------------------------------------------------------------- 6. pipelines
    Rule(
        "6.1",
        "pipeline-inner-loop",
        "a loop with a variable bound inside a pipelined loop or function, or in a function that is called there",
        "a loop inside a pipeline is unrolled and needs constant bounds, but {actual} has none (pipeline at"
        " {pipeline}); bound it or move the PIPELINE inward",
        "UG1399, pragma HLS pipeline; Variable Loop Bounds",
        kernel(
            "#pragma HLS PIPELINE",
            "for (int i = 0; i < count; ++i) {",
            "#pragma HLS LOOP_TRIPCOUNT max=4",
            "    data[i] = 0;",
            "}",
        ),
    ),
    Rule(
        "6.2",
        "pipeline-nested",
        "a PIPELINE inside a pipeline",
        "a loop inside a pipeline is unrolled, but {actual} asks for a pipeline of its own; remove one PIPELINE",
        "UG1399, pragma HLS pipeline",
        kernel(
            "#pragma HLS PIPELINE", "for (int i = 0; i < 4; ++i) {", "#pragma HLS PIPELINE", "    data[i] = 0;", "}"
        ),
    ),
    Rule(
        "6.3",
        "request-apart",
        "`read_request` and `read`, or `write_request` and `write_response`, of one port in one pipelined loop",
        "a request and its answer must be in different loops, but {first} and {second} of {actual} are in one"
        " pipeline. Send the request before the loop, or in a separate process",
        "UG1399, Using Manual Burst: its examples, and every public design that was found, send the request outside of"
        " the loop that reads. Inside it the tool may schedule the next read after the request",
        "void top(hls::burst_maxi<int> data, hls::stream<int> &sink) {\n    for (int i = 0; i < 64; ++i) {\n"
        "#pragma HLS PIPELINE II=1\n        if (i % 16 == 0) data.read_request(i, 16);\n"
        "        sink.write(data.read());\n    }\n}\n",
    ),
    Rule(
        "6.4",
        "bank-writers",
        "two stores of an iteration to a partitioned array, with banks that are selected at run time",
        "a bank must have one writer per iteration, but several stores select a bank of {actual} (dimension {dims}) at"
        " run time. Loop over the banks, with one guarded store per bank",
        "UG1399, pragma HLS array_partition; Array Partitioning: a simple dual port has one port that writes",
        kernel(
            "int row[4][64];",
            "#pragma HLS ARRAY_PARTITION variable=row complete dim=1",
            "for (int i = 0; i < 64; ++i) {",
            "#pragma HLS PIPELINE II=1",
            "    for (int w = 0; w < 2; ++w) row[(count + w) % 4][i] = data[w];",
            "}",
            "data[0] = row[count % 4][0];",
        ),
    ),
)

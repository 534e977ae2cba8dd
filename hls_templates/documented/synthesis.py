"""Names in C++ that the checks look for: constructs that cannot be synthesised, and the vendor's streams and ports."""

from __future__ import annotations

import re

MEMORY_CALLS = frozenset(["malloc", "calloc", "realloc", "free", "alloca", "aligned_alloc", "posix_memalign"])
SYSTEM_CALLS = frozenset(
    [
        "printf",
        "fprintf",
        "sprintf",
        "snprintf",
        "puts",
        "putchar",
        "scanf",
        "fopen",
        "fclose",
        "fread",
        "fwrite",
        "fgets",
        "getc",
        "gets",
        "time",
        "clock",
        "sleep",
        "usleep",
        "rand",
        "srand",
        "exit",
        "abort",
        "system",
        "getenv",
        "perror",
    ]
)
HOST_TYPES = re.compile(
    r"\bstd\s*::\s*(vector|deque|list|forward_list|map|multimap|set|multiset|unordered_\w+|string|wstring"
    r"|basic_string|string_view|function|shared_ptr|unique_ptr|weak_ptr|optional|variant|any|thread|mutex|atomic"
    r"|queue|stack|priority_queue|initializer_list)\b"
)
HOST_STREAMS = re.compile(r"\bstd\s*::\s*(cout|cerr|clog|cin|endl|[io]?fstream|[io]?stringstream)\b")
FLOAT_TYPES = frozenset({"float", "double", "half", "long double"})
STREAM_TYPE = re.compile(r"\b(hls\s*::\s*)?stream(_of_blocks)?\s*<")
PORT_TYPE = re.compile(r"\bburst_maxi\s*<")
# Methods of streams and ports that make a process their reader or their writer. A query or request counts too.
STREAM_READS = frozenset({"read", "read_nb", "empty", "peek", "read_request"})
STREAM_WRITES = frozenset({"write", "write_nb", "full", "write_request", "write_response"})
COPIES = frozenset(["memcpy", "memmove"])  # (destination, source, …)

"""What Vitis HLS would make of a pipelined loop, without Vitis HLS: interval, depth and clock, from its sources.

A vendor's tool reads C++, compiles it to LLVM IR and schedules every pipelined loop: it chains operators into stages of
a clock cycle, and finds the least interval at which iterations can start. This room does the same with a clang that pip
installs and with delays that the vendor's own reports state (``operators.toml``).

``check`` is where to begin: sources in, a ``CheckedLoop`` a loop out. ``reading`` compiles and finds loops, ``pragmas``
and ``ports`` build memories, ``dependences`` finds what waits for what, ``operators`` knows delays, ``schedule`` places
operators in stages, and ``predict`` puts them together. What it hits and misses is in docs/reference/hls_schedule.md.
"""

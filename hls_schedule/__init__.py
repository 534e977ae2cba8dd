"""A model of Vitis HLS's scheduler: initiation interval, depth and clock of pipelined loops, without Vitis HLS.

Vitis HLS compiles C++ to LLVM IR and schedules every pipelined loop. It chains operators into stages of one clock
cycle, and finds the lowest interval at which iterations can start. This room does the same with a clang that pip
installs and with delays from the vendor's own reports (``operators.toml``).

``check`` is the place to start: it reads sources and returns one ``CheckedLoop`` per loop. ``reading`` compiles sources
and finds the loops. ``pragmas`` and ``ports`` model the memories, ``dependences`` finds the dependences between
operations, and ``operators`` has the delays. ``schedule`` places operators in stages, and ``predict`` combines them.
docs/reference/hls_schedule.md states the accuracy.
"""

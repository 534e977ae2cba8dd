// Macros in place of the pragmas of a process. The build decides what they expand to:
//
//   __SYNTHESIS__                   the HLS pragma, and nothing else
//   g++, the vendor's hls_stream.h  nothing
//   g++, simulation/hls_stream.h    names for error messages, set once per process, region or stream, never in a loop
//   the same with SYSTOLIC_TRACE    events for the cycle solver; SYSTOLIC_PIPELINE is a cycle of the process's pipeline
//
// So the cycle trace runs on the code that is synthesised, and not on a second model of it. docs/explanation/cycles.md
// explains which cycles each macro counts:
//
//   SYSTOLIC_DATAFLOW(label)           begins a region whose processes run concurrently; label: its number in the trace
//   SYSTOLIC_PROCESS(name)             begins a process
//   SYSTOLIC_ENTER                     before a pipelined loop: the cycles of entering it
//   SYSTOLIC_PIPELINE(ii, depth)       first in a pipelined loop: its initiation interval and stages, in cycles
//   SYSTOLIC_STREAM(stream, depth)     the depth of a stream's FIFO, in words
//   SYSTOLIC_FIFO(…, bits, depth, impl)  also the width of a word and the primitive
//   SYSTOLIC_FORWARD(stream, value)    a write of a value that was read in the same iteration
//   SYSTOLIC_SEQUENTIAL(cycles)        cycles outside of pipelined loops
//   SYSTOLIC_BURST_…, LOAD, STORE      requests, responses and beats of a memory bundle
#ifndef SYSTOLIC_INSTRUMENT_H
#define SYSTOLIC_INSTRUMENT_H

#include "hls_stream.h"

// Two macros, so that an argument that is itself a macro is expanded before it becomes text.
#define SYSTOLIC_PRAGMA_TEXT(text) _Pragma(#text)
#define SYSTOLIC_PRAGMA(text) SYSTOLIC_PRAGMA_TEXT(text)

#if defined(__SYNTHESIS__)

#define SYSTOLIC_DATAFLOW(label) SYSTOLIC_PRAGMA(HLS DATAFLOW)
#define SYSTOLIC_PROCESS(name)
#define SYSTOLIC_ENTER
#define SYSTOLIC_PIPELINE(ii, depth) SYSTOLIC_PRAGMA(HLS PIPELINE II = ii)
#define SYSTOLIC_STREAM(stream_, depth_) SYSTOLIC_PRAGMA(HLS STREAM variable = stream_ depth = depth_)
#define SYSTOLIC_FIFO(stream_, bits_, depth_, impl_) \
    SYSTOLIC_STREAM(stream_, depth_) \
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = stream_ type = fifo impl = impl_)
#define SYSTOLIC_FORWARD(stream_, value) (stream_).write(value)
#define SYSTOLIC_SEQUENTIAL(cycles)
#define SYSTOLIC_BURST_READ(bundle, address, beats)
#define SYSTOLIC_BURST_WRITE(bundle, address, beats)
#define SYSTOLIC_BURST_RESPONSE(bundle)
#define SYSTOLIC_LOAD(bundle, pointer, index) ((pointer)[index])
#define SYSTOLIC_STORE(bundle, pointer, index, ...) ((pointer)[index] = __VA_ARGS__)

#elif defined(SYSTOLIC_TRACE)

#if !defined(SYSTOLIC_SIMULATION_STREAM)
#error "a traced build needs hls_templates/simulation/hls_stream.h first on the include path"
#endif
#define SYSTOLIC_DATAFLOW(label) ::systolic::Region systolic_region_(static_cast<long>(label))
#define SYSTOLIC_PROCESS(name) ::systolic::Process systolic_process_(name)
#define SYSTOLIC_ENTER ::systolic::trace::enter()
#define SYSTOLIC_PIPELINE(ii, depth) ::systolic::trace::Iteration systolic_iteration_((ii), (depth))
#define SYSTOLIC_STREAM(variable, depth) ::systolic::name_stream((variable), #variable, (depth))
#define SYSTOLIC_FIFO(variable, bits, depth, impl) \
    ::systolic::name_stream((variable), #variable, (depth), (bits), #impl)
#define SYSTOLIC_FORWARD(stream_, value) (stream_).forward(value)
#define SYSTOLIC_SEQUENTIAL(cycles) ::systolic::trace::sequential(cycles)
#define SYSTOLIC_BURST_READ(bundle, address, beats) ::systolic::trace::burst_read((bundle), (address), (beats))
#define SYSTOLIC_BURST_WRITE(bundle, address, beats) ::systolic::trace::burst_write((bundle), (address), (beats))
#define SYSTOLIC_BURST_RESPONSE(bundle) ::systolic::trace::burst_response(bundle)
#define SYSTOLIC_LOAD(bundle, pointer, index) \
    ((pointer)[::systolic::trace::load((bundle), (index), sizeof((pointer)[0]))])
#define SYSTOLIC_STORE(bundle, pointer, index, ...) \
    ((pointer)[::systolic::trace::store((bundle), (index), sizeof((pointer)[0]))] = __VA_ARGS__)

#else

// sizeof does not evaluate its operand but counts as a use, so that the compiler does not warn of arguments that only a
// traced build needs.
#define SYSTOLIC_UNUSED(value) static_cast<void>(sizeof(value))
#if defined(SYSTOLIC_SIMULATION_STREAM)
#define SYSTOLIC_DATAFLOW(label) ::systolic::Region systolic_region_(static_cast<long>(label))
#define SYSTOLIC_PROCESS(name) ::systolic::Process systolic_process_(name)
#define SYSTOLIC_STREAM(variable, depth) ::systolic::name_stream((variable), #variable, (depth))
#define SYSTOLIC_FIFO(variable, bits, depth, impl) \
    ::systolic::name_stream((variable), #variable, (depth), (bits), #impl)
#else
#define SYSTOLIC_DATAFLOW(label) SYSTOLIC_UNUSED(label)
#define SYSTOLIC_PROCESS(name) SYSTOLIC_UNUSED(name)
#define SYSTOLIC_STREAM(variable, depth) SYSTOLIC_UNUSED(depth)
#define SYSTOLIC_FIFO(variable, bits, depth, impl) (SYSTOLIC_UNUSED(bits), SYSTOLIC_UNUSED(depth))
#endif
#define SYSTOLIC_ENTER static_cast<void>(0)
#define SYSTOLIC_PIPELINE(ii, depth) (SYSTOLIC_UNUSED(ii), SYSTOLIC_UNUSED(depth))
#define SYSTOLIC_FORWARD(stream_, value) (stream_).write(value)
#define SYSTOLIC_SEQUENTIAL(cycles) SYSTOLIC_UNUSED(cycles)
#define SYSTOLIC_BURST_READ(bundle, address, beats) \
    (SYSTOLIC_UNUSED(bundle), SYSTOLIC_UNUSED(address), SYSTOLIC_UNUSED(beats))
#define SYSTOLIC_BURST_WRITE(bundle, address, beats) \
    (SYSTOLIC_UNUSED(bundle), SYSTOLIC_UNUSED(address), SYSTOLIC_UNUSED(beats))
#define SYSTOLIC_BURST_RESPONSE(bundle) SYSTOLIC_UNUSED(bundle)
#define SYSTOLIC_LOAD(bundle, pointer, index) (SYSTOLIC_UNUSED(bundle), (pointer)[index])
#define SYSTOLIC_STORE(bundle, pointer, index, ...) (SYSTOLIC_UNUSED(bundle), (pointer)[index] = __VA_ARGS__)

#endif
#endif  // SYSTOLIC_INSTRUMENT_H

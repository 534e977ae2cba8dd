// Macros that stand where the pragmas of a process stand. What a macro becomes depends on the build:
//
//   __SYNTHESIS__                   the HLS pragma, and nothing more
//   g++, the vendor's hls_stream.h  nothing
//   g++, simulation/hls_stream.h    names for error messages, set once for a process, region or stream, never in a loop
//   the same with SYSTOLIC_TRACE    events for the cycle solver: SYSTOLIC_PIPELINE is a tick of the process's clock
//
// So the cycle trace follows the code that is synthesised, and not a second model of it. docs/explanation/cycles.md
// tells what each macro costs.
#ifndef SYSTOLIC_INSTRUMENT_H
#define SYSTOLIC_INSTRUMENT_H

#include "hls_stream.h"

// Two macros, so that an argument that is a macro itself is replaced before it becomes text.
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

// sizeof does not evaluate, but it uses: the compiler does not warn of a bundle or depth that only a trace needs.
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

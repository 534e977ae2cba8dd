// The C interface of a simulation library, which Python binds by ctypes (host/contract/libraries.py, systolic/trace).
//
// A library is one generated design compiled by g++: src/top.cpp and simulation/simulate.cpp, which defines
// systolic_simulate (systolic style) or systolic_stream (streaming style). A traced library is compiled with
// SYSTOLIC_TRACE and has the recorder and the solver too, that is the systolic_trace_… functions.
//
// All memory belongs to the caller, but for texts that are returned: they stay valid until the next call of the same
// function. The design keeps state in static variables, so that at most one call may run in a process at a time. No
// exception leaves a function.
#ifndef SYSTOLIC_SIMULATION_C_ABI_H
#define SYSTOLIC_SIMULATION_C_ABI_H

#include <cstddef>
#include <cstdint>

namespace systolic {
namespace trace {
struct Options;  // solve.h; Python fills it field by field
}
}  // namespace systolic

extern "C" {

// --- execution ------------------------------------------------------------------------------------------------- Both
// give 0, or 1 with a sentence in ``message``, which has room for ``room`` bytes. A callback that gives anything but 0
// stops the execution: its function then gives 1.

// Passes ``first`` … ``first + count − 1`` of ``program``. Pointers are to what DDR holds, sizes count words of each
// port (types.h). ``current`` is the program counter, as a host can read it meanwhile. ``callback`` is called after
// every pass with its number; it may read and write the maps, and may be null.
int systolic_simulate(int8_t *maps, size_t maps_words, int8_t *const *weights, size_t weights_words,
                      uint32_t *requantisers, size_t requantisers_words, uint32_t *program, size_t program_words,
                      uint32_t first, uint32_t count, uint32_t *current, int (*callback)(uint32_t), char *message,
                      size_t room);

// The first ``words`` words of bank ``bank`` of map buffer 1 or 2, as they would lie in DDR. Only where the engine has
// map buffers.
void systolic_map_bank(int buffer, int bank, int8_t *to, size_t words);

// ``frames`` frames: ``in`` and ``out`` hold that many packets without padding. ``images``: what each port of external
// weights reads, ``image_words`` their sizes in words. ``take`` gets the number of a layer and its integers in the
// order of the stream, of all frames, as soon as its process is done; it may be null, and is not called in a traced
// library.
int systolic_stream(const uint8_t *in, uint8_t *out, void *const *images, const size_t *image_words, int frames,
                    int (*take)(int, const int32_t *, size_t), char *message, size_t room);

// What the design was compiled for, number by number: writes the first ``room`` of them and gives how many there are.
// Systolic: ROWS, COLUMNS, LANES, SAVE_ROWS, MAP_PORTS, WEIGHT_PORTS, ROW_DEPTH, WEIGHT_DEPTH, KEPT_DEPTH, CHUNK,
// CHANNEL_TILES, VALUE_BITS, WEIGHT_WORDS, MAP_DEPTH, UPSCALE, TABLE_DEPTH, TABLE_SLOPES, WINDOWS, LATE_OFFSETS,
// MAP_PRODUCTS, ADDED_MAPS, MAP_STRIDE, bytes of a word of maps and of a word of weights, PASS_WORDS.
// Streaming: IN_BYTES, OUT_BYTES, and of each port of external weights the bytes of a word.
int systolic_geometry(int64_t *values, int room);

// --- the trace -------------------------------------------------------------------------------------------------
// Texts are JSON; an error is {"error": "a sentence"}.

// Records from begin to end, around calls of the functions above. end gives null, or a sentence where the trace shows a
// fault.
void systolic_trace_begin();
const char *systolic_trace_end();
// Forgets what was recorded.
void systolic_trace_reset();
// How many DATAFLOW regions ran; code of the top function between regions counts as one.
int64_t systolic_trace_regions();
// All regions with their processes and streams.
const char *systolic_trace_describe();
// The cycles of one region, of its processes, streams and memory bundles. ``depths``: of the region's streams, or null
// for those that the code declares. ``in_memory``: not 0 for each of them that is a memory, or null where all are shift
// registers.
const char *systolic_trace_solve(int64_t region, const systolic::trace::Options *options, const int64_t *depths,
                                 const int64_t *in_memory);
// The region's cycles; -1: deadlock, -2: above options->limit, -3: error. ``interval``: those from frame to frame where
// options->frames says how many the region holds; it may be null.
int64_t systolic_trace_cycles(int64_t region, const systolic::trace::Options *options, const int64_t *depths,
                              const int64_t *in_memory, int64_t *interval);

}  // extern "C"

#endif  // SYSTOLIC_SIMULATION_C_ABI_H

// The C interface of a simulation library, which Python calls through ctypes (host/contract/libraries.py,
// systolic/trace).
//
// A library is one generated design compiled by g++: src/top.cpp and simulation/simulate.cpp, which defines
// systolic_simulate (systolic style) or systolic_stream (streaming style). A traced library is compiled with
// SYSTOLIC_TRACE, and also contains the recorder and the solver, which are the systolic_trace_… functions.
//
// All memory belongs to the caller, except for returned texts, which are valid until the next call of the same
// function. The design keeps state in static variables, so that at most one call may run in a process at a time. No
// function throws an exception.
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

// --- execution -------------------------------------------------------------------------------------------------
// Both functions return 0, or 1 with an error in ``message``, which has room for ``room`` bytes. If a callback returns
// a value other than 0, the execution stops and the function returns 1.

// Execute passes ``first`` … ``first + count − 1`` of ``program``. Pointers point to the contents of DDR, and sizes
// count words of each port (types.h). ``current`` is the program counter, which a host may read meanwhile. ``callback``
// is called after every pass with its number. It may read and write the maps, and may be null.
int systolic_simulate(int8_t *maps, size_t maps_words, int8_t *const *weights, size_t weights_words,
                      uint32_t *requantisers, size_t requantisers_words, uint32_t *program, size_t program_words,
                      uint32_t first, uint32_t count, uint32_t *current, int (*callback)(uint32_t), char *message,
                      size_t room);

// Copy the first ``words`` words of bank ``bank`` of map buffer 1 or 2, in the format of DDR. Only engines with map
// buffers define it.
void systolic_map_bank(int buffer, int bank, int8_t *to, size_t words);

// Execute ``frames`` frames. ``in`` and ``out`` are that many packets without padding. ``images``: the weights that
// each port of external weights reads, with their sizes in words in ``image_words``. ``take`` is called when the
// process of a layer has ended, with the number of the layer and its integers of all frames, in the order of the
// stream. It may be null, and a traced library does not call it.
int systolic_stream(const uint8_t *in, uint8_t *out, void *const *images, const size_t *image_words, int frames,
                    int (*take)(int, const int32_t *, size_t), char *message, size_t room);

// Write the first ``room`` parameters that the design was compiled for, and return their number.
//
//   Systolic     ROWS, COLUMNS, LANES, SAVE_ROWS, MAP_PORTS, WEIGHT_PORTS, ROW_DEPTH, WEIGHT_DEPTH, KEPT_DEPTH, CHUNK,
//                CHANNEL_TILES, VALUE_BITS, WEIGHT_WORDS, MAP_DEPTH, UPSCALE, TABLE_DEPTH, TABLE_SLOPES, WINDOWS,
//                LATE_OFFSETS, MAP_PRODUCTS, ADDED_MAPS, MAP_STRIDE, bytes of a word of maps, bytes of a word of
//                weights, PASS_WORDS
//   Streaming    IN_BYTES, OUT_BYTES, and the bytes of a word for each port of external weights
int systolic_geometry(int64_t *values, int room);

// --- the trace -------------------------------------------------------------------------------------------------
// Texts are JSON. An error is {"error": "a sentence"}.

// Start and stop recording, around calls of the functions above. end returns null, or an error that the trace shows.
void systolic_trace_begin();
const char *systolic_trace_end();
// Delete the record.
void systolic_trace_reset();
// Return the number of recorded DATAFLOW regions. Code of the top function between two regions counts as a region.
int64_t systolic_trace_regions();
// Return all regions with their processes and streams.
const char *systolic_trace_describe();
// Return the cycles of one region and of its processes, streams and memory bundles. ``depths``: capacities of the
// region's streams in words, or null for the declared ones. ``in_memory``: not 0 for each stream that is a memory, or
// null if all are shift registers.
const char *systolic_trace_solve(int64_t region, const systolic::trace::Options *options, const int64_t *depths,
                                 const int64_t *in_memory);
// Return the region's cycles; −1: deadlock, −2: above options->limit, −3: error. ``interval`` receives the cycles from
// frame to frame if options->frames is not 0. It may be null.
int64_t systolic_trace_cycles(int64_t region, const systolic::trace::Options *options, const int64_t *depths,
                              const int64_t *in_memory, int64_t *interval);

}  // extern "C"

#endif  // SYSTOLIC_SIMULATION_C_ABI_H

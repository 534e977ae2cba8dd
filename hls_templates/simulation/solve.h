// The solver: it computes the time of every access from a recorded trace, FIFO depths and a memory model.
//
// A process is a pipeline that stalls as a whole, which is the default style of HLS. With τ its own pipeline time and
// T(τ) the clock, T(τ) = max(T(τ − 1) + 1, ready times of all accesses at τ). A read is ready a FIFO latency after the
// write of its element. A write is ready one cycle after the read that frees its slot. A beat is ready when the memory
// has it (docs/explanation/cycles.md).
#ifndef SYSTOLIC_SIMULATION_SOLVE_H
#define SYSTOLIC_SIMULATION_SOLVE_H

#include <cstdint>
#include <string>
#include <vector>

#include "trace.h"

namespace systolic {
namespace trace {

// Options of a solution. This is plain data, which Python fills through ctypes in this order. Times are in cycles.
struct Options {
    // read_latency, write_latency: from a request to its first beat, and from the last beat to the response.
    // read_outstanding, write_outstanding: requests that a port may have open.
    double ddr_bytes_per_cycle;
    std::int64_t read_latency;
    std::int64_t write_latency;
    std::int64_t read_outstanding;
    std::int64_t write_outstanding;
    std::int64_t max_burst_beats;
    std::int64_t fifo_latency;  // of a FIFO in a shift register: from a write to the cycle in which it can be read
    std::int64_t memory_fifo_latency;  // the same for a FIFO in a memory
    std::int64_t loop_entry;           // cycles before a pipelined loop starts
    std::int64_t request_stages;       // from a request to its load in a loop with both
    std::int64_t timeline_bins;        // number of bins of a timeline; 0: no timeline
    std::int64_t limit;                // a solution that exceeds it is abandoned as too slow; 0: no limit
    std::int64_t frames;               // consecutive frames in a region; 0: no times per frame
};

// Why a process stalls: a FIFO is empty, a FIFO is full, or the memory has not answered.
enum Wait { kWaitInput = 0, kWaitSpace = 1, kWaitMemory = 2 };

// The stalled cycles of a process over time, per reason.
struct Lane {
    std::int64_t shift = 0;  // a bin has 2^shift cycles
    std::vector<std::int64_t> waits[3];
};

// The cycles of a process. end: when it ended. waits: stalled cycles, per reason. iterations: of its pipelined loops.
struct ProcessResult {
    std::int64_t end = 0;
    std::int64_t waits[3] = {0, 0, 0};
    std::uint64_t iterations = 0;
    Lane lane;
};

// Per stream: the capacity and the highest fill in words, and the cycles in which its reader and its writer stalled on
// it.
struct StreamResult {
    std::int64_t depth = 0;
    std::int64_t max_occupancy = 0;
    std::int64_t stall_input = 0;
    std::int64_t stall_space = 0;
};

// Per bundle and direction: bytes, cycles in which it transferred, and bursts.
struct BundleResult {
    std::uint32_t bundle = 0;
    bool write = false;
    std::int64_t bytes = 0;
    std::int64_t busy = 0;
    std::int64_t bursts = 0;
    std::int64_t shift = 0;           // a bin has 2^shift cycles
    std::vector<std::int64_t> moved;  // bytes per bin; empty without a timeline
};

// A process that is stalled forever: the access that it waits for, and the number of the stream's element.
struct Blocked {
    int process = -1;
    Code code = 0;
    std::int64_t element = 0;
};

// The solution of a region. limited: it exceeded options.limit.
struct RegionResult {
    bool limited = false;
    std::int64_t cycles = 0;
    std::vector<ProcessResult> processes;
    std::vector<StreamResult> streams;
    std::vector<BundleResult> bundles;
    std::vector<Blocked> ring;  // the processes of a deadlock; empty without one
    // Only if options.frames is not 0. frame_ends: when the last word of each frame was read, in any stream. interval:
    // the largest distance of the last two frame ends of any single stream. A stream after the slowest process shows
    // that process's rate in every frame. The output shows it only if no earlier frame hides it.
    std::vector<std::int64_t> frame_ends;
    std::int64_t interval = 0;
};

// Solve one region. depths: the capacity of each of the region's streams, or null for the declared ones. in_memory: not
// 0 for each stream that is a memory and not a shift register (scheduler/hardware/fifos.py), or null if none is.
RegionResult solve_region(const TraceRecord &trace, const RegionRecord &region, const Options &options,
                          const std::int64_t *depths, const std::int64_t *in_memory);

}  // namespace trace
}  // namespace systolic

#endif  // SYSTOLIC_SIMULATION_SOLVE_H

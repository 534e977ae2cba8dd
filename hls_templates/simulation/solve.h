// The solver: from a recorded trace, FIFO depths and a memory to the time of every access.
//
// A process is a pipeline that stalls as a whole (the default style of HLS): with τ its own pipeline time and T(τ) the
// clock, T(τ) = max(T(τ − 1) + 1, readiness of every access at τ). A read is ready the FIFO's latency after the write of
// its element; a write when the read that frees its slot is a cycle old; a beat when memory has it
// (docs/explanation/cycles.md).
#ifndef SYSTOLIC_SIMULATION_SOLVE_H
#define SYSTOLIC_SIMULATION_SOLVE_H

#include <cstdint>
#include <string>
#include <vector>

#include "trace.h"

namespace systolic {
namespace trace {

// Plain data: the Python wrapper fills it through ctypes, in this order.
struct Options {
    double ddr_bytes_per_cycle;
    std::int64_t read_latency;
    std::int64_t write_latency;
    std::int64_t read_outstanding;
    std::int64_t write_outstanding;
    std::int64_t max_burst_beats;
    std::int64_t fifo_latency;         // of a shift register: from a write to the cycle in which it can be read
    std::int64_t memory_fifo_latency;  // the same of a memory
    std::int64_t loop_entry;
    std::int64_t request_stages;  // from a request to its load in a loop that holds both
    std::int64_t timeline_bins;   // 0: none
    std::int64_t limit;           // cycles at which a solution is given up as too slow; 0: none
    std::int64_t frames;          // that follow each other in a region; 0: it is not told frame by frame
};

enum Wait { kWaitInput = 0, kWaitSpace = 1, kWaitMemory = 2 };

struct Lane {
    std::int64_t shift = 0;  // a bin is 2^shift cycles
    std::vector<std::int64_t> waits[3];
};

struct ProcessResult {
    std::int64_t end = 0;
    std::int64_t waits[3] = {0, 0, 0};
    std::uint64_t iterations = 0;
    Lane lane;
};

struct StreamResult {
    std::int64_t depth = 0;
    std::int64_t max_occupancy = 0;
    std::int64_t stall_input = 0;
    std::int64_t stall_space = 0;
};

struct BundleResult {
    std::uint32_t bundle = 0;
    bool write = false;
    std::int64_t bytes = 0;
    std::int64_t busy = 0;
    std::int64_t bursts = 0;
    std::int64_t shift = 0;           // a bin is 2^shift cycles
    std::vector<std::int64_t> moved;  // bytes by bin; empty where no timeline is wanted
};

// Where a process stands still for ever.
struct Blocked {
    int process = -1;
    Code code = 0;
    std::int64_t element = 0;
};

struct RegionResult {
    bool limited = false;
    std::int64_t cycles = 0;
    std::vector<ProcessResult> processes;
    std::vector<StreamResult> streams;
    std::vector<BundleResult> bundles;
    std::vector<Blocked> ring;  // not empty: deadlock
    // Where options.frames is not 0: the cycle at which the last word of each frame was read, whichever stream it was
    // in, and the most cycles that any stream took from its last frame but one to its last. A stream behind the slowest
    // process shows that process's pace in every frame; what leaves shows it only when no earlier frame hides it.
    std::vector<std::int64_t> frame_ends;
    std::int64_t interval = 0;
};

// depths: one for each stream of the region, or null for the declared ones. in_memory: not 0 for each that is a memory
// and no shift register (scheduler/hardware/fifos.py), or null for none.
RegionResult solve_region(const TraceRecord &trace, const RegionRecord &region, const Options &options,
                          const std::int64_t *depths, const std::int64_t *in_memory);

}  // namespace trace
}  // namespace systolic

#endif  // SYSTOLIC_SIMULATION_SOLVE_H

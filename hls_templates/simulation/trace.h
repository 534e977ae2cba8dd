// The recorder: it records the accesses of every process of every DATAFLOW region, in the process's own pipeline time.
//
// A process is a sequence of runs (pipelined loops and sequential stretches). A run is a sequence of iterations, and an
// iteration is a pattern of stream and memory accesses. Equal iterations share one pattern, and equal consecutive
// iterations share one entry. So a frame of 1e7 iterations needs at most 8 bytes per iteration, and usually a few
// entries per loop. No time is stored: solve.h computes it for any FIFO depths and any memory.
#ifndef SYSTOLIC_SIMULATION_TRACE_H
#define SYSTOLIC_SIMULATION_TRACE_H

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace systolic {
namespace trace {

// Kinds of accesses.
enum Kind : std::uint32_t {
    kRead = 0,
    kWrite = 1,
    kLoad = 2,
    kStore = 3,
    kBurstRead = 4,
    kBurstWrite = 5,
    kResponse = 6,
    kForward = 7  // a write of a value read in the same iteration, at stage 1, when it is available
};
constexpr std::uint32_t kKindBits = 3;

// One access: the number of the stream or bundle in the upper bits, the kind in the low bits.
using Code = std::uint32_t;
inline Code code_of(Kind kind, std::uint32_t index) { return (index << kKindBits) | kind; }
inline Kind kind_of(Code code) { return Kind(code & ((1u << kKindBits) - 1)); }
inline std::uint32_t index_of(Code code) { return code >> kKindBits; }

// The accesses of one iteration that happen in the same cycle: its stage, and its part of Pattern::codes.
struct Group {
    std::int64_t stage;
    std::uint32_t first;
    std::uint32_t count;
};

// The place of an access in the pipeline. Stream reads, their forwards and requests are at the front, writes at the
// back. Loads are at the front, or later in a loop with its own requests. Each list is sorted by time even if
// iterations overlap, so that a solver merges sorted lists.
enum Place { kFront = 0, kLoads = 1, kBack = 2, kPlaces = 3 };

// The accesses of an iteration. raw: in the order of execution. codes, groups: sorted by place and stage.
struct Pattern {
    std::vector<Code> raw;
    std::vector<Code> codes;
    std::vector<Group> groups[kPlaces];
    bool requests = false, loads = false;  // whether it contains a kBurstRead, a kLoad
};

// ``count`` consecutive iterations with the same pattern.
struct Entry {
    std::uint32_t pattern;
    std::uint32_t count;
};

// A pipelined loop or a sequential stretch. ii, depth: its initiation interval and stages, in cycles.
struct Run {
    std::int64_t ii = 1;
    std::int64_t depth = 1;
    std::int64_t gap = 0;      // sequential cycles before it
    std::uint32_t enters = 0;  // loop entries before it
    bool requests = false;     // it is a pipelined loop with requests
    bool loads = false;        // it is a pipelined loop with loads; if it has both, loads are later
    std::uint64_t first = 0;   // its first entry
    std::uint64_t iterations = 0;
};

struct Burst {
    std::uint64_t address;  // in beats
    std::uint64_t beats;
};

// All runs of a process, with their entries, patterns and bursts.
struct ProcessRecord {
    std::string name;
    std::vector<Pattern> patterns;
    std::vector<Entry> entries;
    std::vector<Run> runs;
    std::vector<Burst> bursts;
    std::uint64_t accesses = 0;
};

// A stream. depth: capacity in words. writer, reader: numbers of processes.
struct StreamRecord {
    std::string name;
    std::int64_t depth = 2;
    std::int64_t element_bytes = 0;
    std::int64_t bits = 0;  // bits of a word in hardware
    std::string impl;       // the bound primitive; "" if the tool chooses
    std::int64_t writes = 0;
    std::int64_t reads = 0;
    int writer = -1;
    int reader = -1;
};

// An execution of a DATAFLOW region. label: its number in the code, such as the number of the pass.
struct RegionRecord {
    long label = -1;
    bool top = false;  // it is the sequential code between regions
    std::vector<ProcessRecord> processes;
    std::vector<StreamRecord> streams;
};

// Everything that was recorded.
struct TraceRecord {
    std::vector<RegionRecord> regions;
    std::map<std::uint32_t, std::int64_t> beat_bytes;  // by bundle
};

TraceRecord &record();

// The trace's data in every hls::stream. Vitis HLS gives a stream without a pragma a depth of 2.
struct StreamTag {
    std::size_t element_bytes = 0;
    std::uint64_t region = 0;
    std::uint64_t reader = 0;
    std::uint64_t writer = 0;
    std::uint32_t id = 0;
    long depth = 2;
    long bits = 0;
    const char *impl = "";
};

constexpr std::int64_t kNoRun = INT64_MIN;

// The state of the recorder that every access uses. Session (trace.cpp) has the rest.
struct Recorder {
    bool on = false;
    bool in_iteration = false;
    std::int64_t ii = kNoRun;  // of the open pipelined run
    std::int64_t depth = kNoRun;
    std::uint64_t activation = 0;  // the running process; a stream that is bound to it is not bound again
    std::size_t count = 0;         // accesses of the open iteration
    std::vector<Code> buffer = std::vector<Code>(4096);
    const Code *last = nullptr;  // the pattern of the last entry
    std::size_t last_count = 0;
    std::uint32_t *last_repeat = nullptr;
};

extern Recorder recorder;

// begin, end: start and stop recording. reset: delete the record.
void begin();
void end();
void reset();
void declare_stream(StreamTag &tag, const std::string &name);
// Register a process as the writer or the reader of a stream.
void bind(StreamTag &tag, const std::string &name, bool write);
void grow_buffer();
void begin_region(long label);
void end_region();
void begin_process(const char *name);
void end_process();
void enter();
void sequential(std::int64_t cycles);
void open_run(std::int64_t ii, std::int64_t depth);
void close_iteration();
void sequential_step();
void burst_read(long bundle, std::int64_t address, std::int64_t beats);
void burst_write(long bundle, std::int64_t address, std::int64_t beats);
void burst_response(long bundle);
void record_load(long bundle, std::int64_t index, std::size_t beat_bytes);
void record_store(long bundle, std::int64_t index, std::size_t beat_bytes);

// Record an access. An access outside of a pipelined loop is a step of its own.
inline void push(Code code) {
    Recorder &r = recorder;
    if (__builtin_expect(r.count == r.buffer.size(), 0)) grow_buffer();
    r.buffer[r.count++] = code;
    if (__builtin_expect(!r.in_iteration, 0)) sequential_step();
}

inline void on_read(StreamTag &tag, const std::string &name) {
    if (!recorder.on) return;
    if (__builtin_expect(tag.reader != recorder.activation, 0)) bind(tag, name, false);
    push(code_of(kRead, tag.id));
}

inline void on_write(StreamTag &tag, const std::string &name) {
    if (!recorder.on) return;
    if (__builtin_expect(tag.writer != recorder.activation, 0)) bind(tag, name, true);
    push(code_of(kWrite, tag.id));
}

inline void on_forward(StreamTag &tag, const std::string &name) {
    if (!recorder.on) return;
    if (__builtin_expect(tag.writer != recorder.activation, 0)) bind(tag, name, true);
    push(code_of(kForward, tag.id));
}

template <typename I>
I load(long bundle, I index, std::size_t beat_bytes) {
    if (recorder.on) record_load(bundle, std::int64_t(index), beat_bytes);
    return index;
}

template <typename I>
I store(long bundle, I index, std::size_t beat_bytes) {
    if (recorder.on) record_store(bundle, std::int64_t(index), beat_bytes);
    return index;
}

// One iteration of a pipelined loop. It lives as long as the loop body, so that an access after the loop is not counted
// to it.
class Iteration {
public:
    Iteration(std::int64_t ii, std::int64_t depth) {
        Recorder &r = recorder;
        if (!r.on) return;
        if (__builtin_expect(ii != r.ii || depth != r.depth || r.in_iteration, 0)) open_run(ii, depth);
        r.in_iteration = true;
    }
    Iteration(const Iteration &) = delete;
    Iteration &operator=(const Iteration &) = delete;
    ~Iteration() noexcept(false) {
        Recorder &r = recorder;
        if (!r.in_iteration) return;
        // The common case, inlined: the iteration has the same pattern as the last one.
        if (__builtin_expect(r.last_repeat && r.count == r.last_count &&
                                 !std::memcmp(r.buffer.data(), r.last, r.count * sizeof(Code)) &&
                                 *r.last_repeat != UINT32_MAX,
                             1)) {
            ++*r.last_repeat;
            r.count = 0;
            r.in_iteration = false;
        } else {
            close_iteration();
        }
    }
};

}  // namespace trace
}  // namespace systolic

#endif  // SYSTOLIC_SIMULATION_TRACE_H

#include "hls_stream.h"

#include <algorithm>
#include <unordered_map>

#include "trace.h"

namespace systolic {
namespace trace {

Recorder recorder;

namespace {

// --- what is open while the kernel runs ----------------------------------------------------------------------

// The bursts of one bundle and direction: bursts without a response so far, their declared beats, and the beats that
// are not transferred yet.
struct OpenBeats {
    std::int64_t bursts = 0;
    std::int64_t declared = 0;
    std::int64_t left = 0;
};

struct PatternKey {
    std::int64_t ii;
    std::int64_t depth;
    std::vector<Code> raw;
    bool operator==(const PatternKey &other) const {
        return ii == other.ii && depth == other.depth && raw == other.raw;
    }
};

struct PatternHash {
    std::size_t operator()(const PatternKey &key) const {
        std::uint64_t hash = std::uint64_t(key.ii) * 1000003u + std::uint64_t(key.depth);
        for (Code code : key.raw) hash = (hash ^ code) * 0x9E3779B97F4A7C15ull;
        return std::size_t(hash ^ (hash >> 29));
    }
};

// The record so far, and the open region, process and run.
struct Session {
    TraceRecord record;
    std::uint64_t regions = 0;
    std::uint64_t activations = 0;
    bool in_region = false;
    int process_nesting = 0;
    bool process_open = false;
    bool run_open = false;
    std::int64_t gap = 0;
    std::uint32_t enters = 0;
    std::unordered_map<PatternKey, std::uint32_t, PatternHash> patterns;  // of the open process, by their accesses
    std::map<std::uint32_t, OpenBeats> beats;                             // by bundle * 2 + direction
    PatternKey key;

    RegionRecord &region() { return record.regions.back(); }
    ProcessRecord &process() { return region().processes.back(); }
};

Session session;

std::string quote(const std::string &name) { return "'" + name + "'"; }

void close_run() {
    if (!session.run_open) return;
    ProcessRecord &process = session.process();
    Run &run = process.runs.back();
    run.iterations = 0;
    for (std::uint64_t i = run.first; i < process.entries.size(); ++i) run.iterations += process.entries[i].count;
    session.run_open = false;
    recorder.ii = recorder.depth = kNoRun;
    recorder.last_repeat = nullptr;
}

void open_new_run(std::int64_t ii, std::int64_t depth) {
    close_run();
    Run run;
    run.ii = ii;
    run.depth = depth;
    run.gap = std::exchange(session.gap, 0);
    run.enters = std::exchange(session.enters, 0);
    run.first = session.process().entries.size();
    session.process().runs.push_back(run);
    session.run_open = true;
    recorder.ii = ii;
    recorder.depth = depth;
}

void open_process(const std::string &name) {
    session.region().processes.emplace_back();
    session.process().name = name;
    session.process_open = true;
    recorder.activation = ++session.activations;
    session.patterns.clear();
    session.beats.clear();
}

void close_process() {
    if (!session.process_open) return;
    if (session.gap || session.enters) open_new_run(1, 1);  // cycles after the last run: a run without iterations
    close_run();
    session.process_open = false;
    recorder.activation = 0;
    for (const auto &bundle : session.beats) {
        if (bundle.second.left == 0) continue;
        throw StreamError(
            "process " + quote(session.process().name) + " declares bursts of " +
            std::to_string(bundle.second.declared) + " beats on bundle " + std::to_string(bundle.first / 2) + " and " +
            (bundle.first % 2 ? "stores" : "loads") + " " + std::to_string(bundle.second.left) +
            " fewer; declare the number that is transferred, because the port would hang or waste the rest");
    }
}

void open_region(long label, bool top) {
    session.record.regions.emplace_back();
    session.region().label = label;
    session.region().top = top;
    ++session.regions;
}

// Code of the top function between two regions is a region with one process.
void ensure_process() {
    if (session.process_open) return;
    if (session.in_region) {
        throw StreamError("region " + std::to_string(session.region().label) +
                          " has an operation outside of a process; each function that it calls needs SYSTOLIC_PROCESS");
    }
    open_region(-1, true);
    open_process("top");
}

// --- patterns: the accesses of an iteration, and their stages -------------------------------------------------

// Return, for each access, the number of accesses before it to the same port of a FIFO or bundle. It happens that many
// cycles later, because a port serves one access per cycle.
std::vector<std::int64_t> ordinals(const std::vector<Code> &raw) {
    std::vector<std::int64_t> result(raw.size());
    if (raw.size() <= 16) {
        for (std::size_t i = 0; i < raw.size(); ++i) result[i] = std::count(raw.begin(), raw.begin() + long(i), raw[i]);
        return result;
    }
    std::unordered_map<Code, std::int64_t> seen;
    for (std::size_t i = 0; i < raw.size(); ++i) result[i] = seen[raw[i]]++;
    return result;
}

const char *verb_of(Kind kind) {
    static const char *const verbs[] = {"reads",       "writes",    "loads from", "stores to",
                                        "bursts from", "bursts to", "waits for"};
    return verbs[kind];
}

std::string port_name(Code code) {
    if (kind_of(code) <= kWrite || kind_of(code) == kForward)
        return "stream " + quote(session.region().streams[index_of(code)].name);
    return "bundle " + std::to_string(index_of(code));
}

[[noreturn]] void fail_port(Code code, std::int64_t times, const Run &run) {
    throw StreamError("process " + quote(session.process().name) + " " + verb_of(kind_of(code)) + " " +
                      port_name(code) + " " + std::to_string(times) + " times in an iteration of II " +
                      std::to_string(run.ii) + " and depth " + std::to_string(run.depth) +
                      "; a port serves one access per cycle: raise the II or widen the element");
}

Place place_of(Kind kind) {
    if (kind == kLoad) return kLoads;
    return kind == kRead || kind == kBurstRead || kind == kForward ? kFront : kBack;
}

bool is_port(Kind kind) { return kind <= kStore || kind == kForward; }

// Return (stage, code) of each access: the first read is at stage 0, the last write at stage depth − 1.
std::vector<std::pair<std::int64_t, Code>> assign_stages(const std::vector<Code> &raw, const Run &run, Place place) {
    const std::vector<std::int64_t> order = ordinals(raw);
    std::unordered_map<Code, std::int64_t> total;
    for (std::size_t i = 0; i < raw.size(); ++i) total[raw[i]] = order[i] + 1;
    std::vector<std::pair<std::int64_t, Code>> result;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        const Kind kind = kind_of(raw[i]);
        if (place_of(kind) != place) continue;
        const std::int64_t times = total[raw[i]];
        if (is_port(kind) && times > std::min(run.ii, run.depth)) fail_port(raw[i], times, run);
        std::int64_t stage = place == kBack ? run.depth - 1 : 0;
        if (is_port(kind)) stage += place == kBack ? order[i] - (times - 1) : order[i];
        if (kind == kForward) result.emplace_back(stage + 1, code_of(kWrite, index_of(raw[i])));
        else result.emplace_back(stage, raw[i]);
    }
    std::stable_sort(result.begin(), result.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    return result;
}

void append_groups(Pattern &pattern, std::vector<Group> &groups,
                   const std::vector<std::pair<std::int64_t, Code>> &list) {
    for (const auto &access : list) {
        if (groups.empty() || groups.back().stage != access.first) {
            groups.push_back({access.first, std::uint32_t(pattern.codes.size()), 0});
        }
        ++groups.back().count;
        pattern.codes.push_back(access.second);
    }
}

Pattern make_pattern(const std::vector<Code> &raw, const Run &run) {
    Pattern pattern;
    pattern.raw = raw;
    for (Code code : raw) {
        pattern.requests |= kind_of(code) == kBurstRead;
        pattern.loads |= kind_of(code) == kLoad;
    }
    for (int place = 0; place < kPlaces; ++place) {
        append_groups(pattern, pattern.groups[place], assign_stages(raw, run, Place(place)));
    }
    return pattern;
}

// Return the number of the pattern of the open iteration, which is added if it is new.
std::uint32_t intern() {
    ProcessRecord &process = session.process();
    const Run &run = process.runs.back();
    session.key.ii = run.ii;
    session.key.depth = run.depth;
    session.key.raw.assign(recorder.buffer.begin(), recorder.buffer.begin() + long(recorder.count));
    const auto known = session.patterns.find(session.key);
    if (known != session.patterns.end()) return known->second;
    const std::uint32_t number = std::uint32_t(process.patterns.size());
    process.patterns.push_back(make_pattern(session.key.raw, run));
    session.patterns.emplace(session.key, number);
    return number;
}

// Append the open iteration to the run.
void add_entry() {
    ProcessRecord &process = session.process();
    const std::uint32_t pattern = intern();
    recorder.count = 0;
    Run &run = process.runs.back();
    if (recorder.ii != kNoRun) {
        run.requests |= process.patterns[pattern].requests;
        run.loads |= process.patterns[pattern].loads;
    }
    const bool same = process.entries.size() > run.first && process.entries.back().pattern == pattern &&
                      process.entries.back().count != UINT32_MAX;
    if (same) {
        ++process.entries.back().count;
    } else {
        process.entries.push_back({pattern, 1});
    }
    recorder.last = process.patterns[pattern].raw.data();
    recorder.last_count = process.patterns[pattern].raw.size();
    recorder.last_repeat = &process.entries.back().count;
}

// Count the accesses of a process, and the reads and writes of its streams.
void count_accesses(RegionRecord &region, ProcessRecord &process) {
    for (const Entry &entry : process.entries) {
        for (Code code : process.patterns[entry.pattern].raw) {
            process.accesses += entry.count;
            if (kind_of(code) == kRead) region.streams[index_of(code)].reads += entry.count;
            if (kind_of(code) == kWrite || kind_of(code) == kForward)
                region.streams[index_of(code)].writes += entry.count;
        }
    }
}

void check_streams(const RegionRecord &region) {
    for (const StreamRecord &stream : region.streams) {
        if (stream.reads == stream.writes) continue;
        throw StreamError("region " + std::to_string(region.label) + " writes " + std::to_string(stream.writes) +
                          " elements to stream " + quote(stream.name) + " and reads " + std::to_string(stream.reads) +
                          "; a region must empty its streams");
    }
}

void finish_region() {
    RegionRecord &region = session.region();
    for (ProcessRecord &process : region.processes) count_accesses(region, process);
    check_streams(region);
}

void close_top() {
    if (session.in_region || !session.process_open) return;
    close_process();
    finish_region();
}

void burst(long bundle, std::int64_t address, std::int64_t beats, bool write) {
    if (bundle < 0 || bundle > 1023 || address < 0 || beats < 0) {
        throw StreamError("a burst needs a bundle of 0 to 1023 and an address and beats of at least 0; got bundle " +
                          std::to_string(bundle) + ", address " + std::to_string(address) + ", beats " +
                          std::to_string(beats));
    }
    if (beats == 0) return;
    ensure_process();
    OpenBeats &open = session.beats[std::uint32_t(bundle) * 2 + write];
    ++open.bursts;
    open.declared += beats;
    open.left += beats;
    session.process().bursts.push_back({std::uint64_t(address), std::uint64_t(beats)});
    push(code_of(write ? kBurstWrite : kBurstRead, std::uint32_t(bundle)));
}

void beat(long bundle, std::int64_t index, std::size_t beat_bytes, bool write) {
    ensure_process();
    const std::uint32_t number = std::uint32_t(bundle);
    std::int64_t &width = session.record.beat_bytes[number];
    if (width != 0 && width != std::int64_t(beat_bytes)) {
        throw StreamError("bundle " + std::to_string(bundle) + " moves elements of " + std::to_string(width) +
                          " and of " + std::to_string(beat_bytes) + " bytes; a port must have one width");
    }
    width = std::int64_t(beat_bytes);
    // An access without a request is a burst of one beat.
    if (session.beats[number * 2 + write].left == 0) burst(bundle, index, 1, write);
    --session.beats[number * 2 + write].left;
    push(code_of(write ? kStore : kLoad, number));
}

}  // namespace

TraceRecord &record() { return session.record; }

void reset() {
    session = Session();
    recorder = Recorder();
}

void begin() {
    reset();
    recorder.on = true;
}

void end() {
    if (!recorder.on) return;
    recorder.on = false;
    close_top();
}

void grow_buffer() { recorder.buffer.resize(recorder.buffer.size() * 2); }

void declare_stream(StreamTag &tag, const std::string &name) {
    if (!recorder.on) return;
    if (tag.depth < 1) {
        throw StreamError("stream " + quote(name) + " needs a depth of at least 1; got " + std::to_string(tag.depth));
    }
    if (session.in_region) {  // recorded here, so that an unused stream is also reported
        tag.region = session.regions;
        tag.id = std::uint32_t(session.region().streams.size());
        StreamRecord stream;
        stream.name = name;
        stream.depth = tag.depth;
        stream.element_bytes = std::int64_t(tag.element_bytes);
        stream.bits = tag.bits;
        stream.impl = tag.impl;
        session.region().streams.push_back(stream);
    }
}

void bind(StreamTag &tag, const std::string &name, bool write) {
    ensure_process();
    RegionRecord &region = session.region();
    if (tag.region != session.regions) {
        tag.region = session.regions;
        tag.id = std::uint32_t(region.streams.size());
        StreamRecord stream;
        stream.name = name.empty() ? "stream" + std::to_string(tag.id) : name;
        stream.depth = tag.depth;
        stream.element_bytes = std::int64_t(tag.element_bytes);
        stream.bits = tag.bits;
        stream.impl = tag.impl;
        region.streams.push_back(stream);
    }
    StreamRecord &stream = region.streams[tag.id];
    int &end = write ? stream.writer : stream.reader;
    const int process = int(region.processes.size()) - 1;
    if (end != -1 && end != process) {
        throw StreamError("stream " + quote(stream.name) + " is " + (write ? "written" : "read") + " by process " +
                          quote(region.processes[std::size_t(end)].name) + " and by process " +
                          quote(session.process().name) + "; a FIFO must have one writer and one reader");
    }
    end = process;
    (write ? tag.writer : tag.reader) = recorder.activation;
}

void begin_region(long label) {
    if (!recorder.on) return;
    if (session.in_region) {
        throw StreamError("region " + std::to_string(label) + " is inside region " +
                          std::to_string(session.region().label) +
                          "; a traced region must contain processes only, no regions");
    }
    close_top();
    open_region(label, false);
    session.in_region = true;
}

void end_region() {
    if (!recorder.on || !session.in_region) return;
    session.in_region = false;
    finish_region();
}

// A process function that is called by another process or by the top function is a part of its caller.
void begin_process(const char *name) {
    if (!recorder.on) return;
    if (session.in_region && session.process_nesting++ == 0) open_process(name);
}

void end_process() {
    if (!recorder.on || !session.in_region) return;
    if (--session.process_nesting == 0) close_process();
}

void enter() {
    if (!recorder.on) return;
    ensure_process();
    close_run();
    ++session.enters;
}

void sequential(std::int64_t cycles) {
    if (!recorder.on || cycles <= 0) return;
    ensure_process();
    close_run();
    session.gap += cycles;
}

void open_run(std::int64_t ii, std::int64_t depth) {
    ensure_process();
    if (recorder.in_iteration) {
        throw StreamError("process " + quote(session.process().name) +
                          " has a pipelined loop inside a pipelined loop; the inner loop must not be pipelined, "
                          "because HLS unrolls it");
    }
    if (ii < 1 || depth < 1) {
        throw StreamError("process " + quote(session.process().name) + " needs an II and a depth of at least 1; got " +
                          std::to_string(ii) + " and " + std::to_string(depth));
    }
    open_new_run(ii, depth);
}

void close_iteration() {
    recorder.in_iteration = false;
    if (std::uncaught_exceptions()) {
        recorder.count = 0;
        return;
    }
    add_entry();
}

// An access outside of a pipelined loop takes one cycle, after the loop before it has drained.
void sequential_step() {
    if (!session.run_open || recorder.ii != kNoRun) {
        open_new_run(1, 1);
        recorder.ii = recorder.depth = kNoRun;  // a pipelined loop must not extend this run
    }
    add_entry();
    recorder.last_repeat = nullptr;
}

void burst_read(long bundle, std::int64_t address, std::int64_t beats) {
    if (recorder.on) burst(bundle, address, beats, false);
}

void burst_write(long bundle, std::int64_t address, std::int64_t beats) {
    if (recorder.on) burst(bundle, address, beats, true);
}

// The process waits until the memory has answered the oldest burst that it has not waited for.
void burst_response(long bundle) {
    if (!recorder.on) return;
    ensure_process();
    if (session.beats[std::uint32_t(bundle) * 2 + 1].bursts-- < 1) {
        throw StreamError("process " + quote(session.process().name) + " waits for a write response on bundle " +
                          std::to_string(bundle) + ", but no burst of it is unanswered");
    }
    push(code_of(kResponse, std::uint32_t(bundle)));
}

void record_load(long bundle, std::int64_t index, std::size_t beat_bytes) { beat(bundle, index, beat_bytes, false); }
void record_store(long bundle, std::int64_t index, std::size_t beat_bytes) { beat(bundle, index, beat_bytes, true); }

}  // namespace trace
}  // namespace systolic

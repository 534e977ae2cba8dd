#include "solve.h"

#include <algorithm>
#include <map>
#include <memory>

#include "memory.h"

namespace systolic {
namespace trace {

namespace {

// --- FIFOs ---------------------------------------------------------------------------------------------------

// The times of the last writes and reads of a stream; its depth decides how many are kept.
struct Fifo {
    Fifo(std::int64_t depth_given, std::int64_t latency_given, std::int64_t elements, std::int64_t frames)
        : depth(depth_given), latency(latency_given), write_times(std::min(depth, elements) + 2),
          read_times(std::min(depth, elements) + 2) {
        if (frames > 0 && elements > 0 && elements % frames == 0) frame = frame_end = elements / frames;
    }

    void take(std::int64_t now) {
        read_times[read++] = now;
        if (read == frame_end) {
            frame_ends.push_back(now);
            frame_end += frame;
        }
        merge();
    }

    // Process writes and reads in order of time, as far as both are known, and record the highest fill.
    void merge() {
        while (merged_writes < written && merged_reads < read) {
            if (write_times[merged_writes] <= read_times[merged_reads]) {
                ++merged_writes;
                result.max_occupancy = std::max(result.max_occupancy, merged_writes - merged_reads);
            } else {
                ++merged_reads;
            }
        }
    }

    std::int64_t depth;
    std::int64_t latency;
    std::int64_t written = 0;
    std::int64_t read = 0;
    std::int64_t merged_writes = 0;
    std::int64_t merged_reads = 0;
    std::int64_t frame = 0;  // elements per frame; 0: no times per frame
    std::int64_t frame_end = -1;
    std::vector<std::int64_t> frame_ends;  // when each frame's last element was read
    TimeRing write_times;
    TimeRing read_times;
    StreamResult result;
};

// --- accesses of a run, in order of time ---------------------------------------------------------------------

// An iterator over the accesses of a run in one Place. ``tau``: pipeline time of the next group of accesses; kNever
// after the last group.
class Cursor {
public:
    void open(const ProcessRecord &process, const Run &run, std::size_t end, std::int64_t base, Place place) {
        process_ = &process;
        place_ = place;
        ii_ = run.ii;
        entry_ = process.entries.data() + run.first;
        end_ = process.entries.data() + end;
        start_ = base - ii_;
        left_ = 0;
        group_ = group_end_ = nullptr;
        if (entry_ != end_) take_entry();
        open_iteration();
    }

    void next() {
        if (++group_ == group_end_) {
            open_iteration();
        } else {
            tau = start_ + group_->stage;
        }
    }

    const Code *codes() const { return codes_ + group_->first; }
    std::uint32_t count() const { return group_->count; }

    std::int64_t tau = kNever;

private:
    void take_entry() {
        const Pattern &pattern = process_->patterns[entry_->pattern];
        const std::vector<Group> &groups = pattern.groups[place_];
        left_ = entry_->count;
        codes_ = pattern.codes.data();
        first_ = groups.data();
        last_ = groups.data() + groups.size();
    }

    // Advance to the next iteration with accesses.
    void open_iteration() {
        for (;;) {
            while (left_ == 0) {
                if (entry_ == end_ || ++entry_ == end_) {
                    tau = kNever;
                    return;
                }
                take_entry();
            }
            if (first_ != last_) break;
            start_ += ii_ * std::int64_t(left_);  // no iteration of this entry has accesses
            left_ = 0;
        }
        --left_;
        start_ += ii_;
        group_ = first_;
        group_end_ = last_;
        tau = start_ + group_->stage;
    }

    const ProcessRecord *process_ = nullptr;
    const Entry *entry_ = nullptr;
    const Entry *end_ = nullptr;
    const Group *group_ = nullptr;
    const Group *group_end_ = nullptr;
    const Group *first_ = nullptr;
    const Group *last_ = nullptr;
    const Code *codes_ = nullptr;
    std::int64_t start_ = 0;  // pipeline time at which the iteration starts
    std::int64_t ii_ = 1;
    std::uint32_t left_ = 0;  // remaining iterations of the entry
    Place place_ = kFront;
};

// --- waits over time -----------------------------------------------------------------------------------------

// Double the width of the bins until there is a bin for cycle ``end``.
void widen(Lane &lane, std::int64_t bins, std::int64_t end) {
    while (end >> lane.shift >= bins) {
        for (auto &waits : lane.waits) {
            for (std::int64_t i = 0; i < bins / 2; ++i) waits[i] = waits[2 * i] + waits[2 * i + 1];
            std::fill(waits.begin() + bins / 2, waits.end(), 0);
        }
        ++lane.shift;
    }
}

// Distribute ``length`` stalled cycles over the bins.
void add_wait(Lane &lane, std::int64_t bins, std::int64_t start, std::int64_t length, int kind) {
    widen(lane, bins, start + length);
    while (length > 0) {
        const std::int64_t bin = start >> lane.shift;
        const std::int64_t part = std::min(length, ((bin + 1) << lane.shift) - start);
        lane.waits[kind][std::size_t(bin)] += part;
        start += part;
        length -= part;
    }
}

// --- the region ----------------------------------------------------------------------------------------------

// The state of a process during the solution.
struct Process {
    const ProcessRecord *record = nullptr;
    std::size_t next_run = 0;
    bool open = false;
    bool finished = false;
    std::int64_t tau = 0;     // pipeline time at which the next run may begin
    std::int64_t offset = 0;  // stalled cycles so far: T(τ) = τ + offset
    std::int64_t shift = 0;   // stages of the open run from its requests to its loads
    Cursor cursors[kPlaces];
    std::size_t next_burst = 0;
    Code blocked = 0;
    Channel *blocked_on = nullptr;
    std::vector<Channel *> load_channels;  // by bundle
    std::vector<Channel *> store_channels;
    ProcessResult result;
};

// Solves a region by advancing every process as far as the others allow. If no process can advance, DDR serves chunks.
// If there are none, it is a deadlock.
class RegionSolver {
public:
    RegionSolver(const TraceRecord &trace, const RegionRecord &region, const Options &options,
                 const std::int64_t *depths, const std::int64_t *in_memory);
    RegionResult solve();

private:
    void open_channels(const TraceRecord &trace, std::size_t number);
    void open_channel(const TraceRecord &trace, std::size_t number, Code code);
    bool advance(Process &process);
    bool step(Process &process);
    bool find_latest(Process &process, std::int64_t tau, std::int64_t &latest, Code &cause);
    bool open_run(Process &process);
    void close_run(Process &process);
    bool finish(Process &process);
    std::int64_t ready(Process &process, Code code);
    void commit(Process &process, Code code, std::int64_t now);
    void stall(Process &process, std::int64_t now, std::int64_t ready, Code cause);
    bool block(Process &process, Code code, Channel *channel);
    void collect_frames(const Fifo &fifo, RegionResult &result) const;
    RegionResult collect();
    std::vector<Blocked> find_ring() const;
    int waits_for(const Process &process) const;

    const RegionRecord &region_;
    const Options &options_;
    std::vector<Fifo> fifos_;
    std::vector<Process> processes_;
    std::map<std::uint32_t, std::unique_ptr<Port>> ports_;
    std::deque<Channel> channels_;  // a deque, because other objects point to its elements
    Ddr ddr_;
    std::int64_t latest_ = 0;
};

RegionSolver::RegionSolver(const TraceRecord &trace, const RegionRecord &region, const Options &options,
                           const std::int64_t *depths, const std::int64_t *in_memory)
    : region_(region), options_(options), ddr_(options) {
    for (std::size_t i = 0; i < region.streams.size(); ++i) {
        const StreamRecord &stream = region.streams[i];
        const bool memory = in_memory && in_memory[i];
        fifos_.emplace_back(depths ? depths[i] : stream.depth,
                            memory ? options.memory_fifo_latency : options.fifo_latency, stream.writes, options.frames);
    }
    processes_.resize(region.processes.size());
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        Process &process = processes_[i];
        process.record = &region.processes[i];
        open_channels(trace, i);
        if (options.timeline_bins > 0) {
            for (auto &waits : process.result.lane.waits) waits.resize(std::size_t(options.timeline_bins));
        }
    }
}

void RegionSolver::open_channels(const TraceRecord &trace, std::size_t number) {
    for (const Pattern &pattern : region_.processes[number].patterns) {
        for (Code code : pattern.raw) {
            const Kind kind = kind_of(code);
            if (kind == kRead || kind == kWrite || kind == kForward) continue;
            open_channel(trace, number, code_of(kind == kLoad || kind == kBurstRead ? kLoad : kStore, index_of(code)));
        }
    }
}

void RegionSolver::open_channel(const TraceRecord &trace, std::size_t number, Code code) {
    Process &process = processes_[number];
    const std::uint32_t bundle = index_of(code);
    const bool write = kind_of(code) == kStore;
    std::vector<Channel *> &list = write ? process.store_channels : process.load_channels;
    if (list.size() <= bundle) list.resize(bundle + 1);
    if (list[bundle]) return;
    std::unique_ptr<Port> &port = ports_[bundle * 2 + write];
    if (!port) {
        port.reset(new Port);
        port->result.bundle = bundle;
        port->result.write = write;
        port->result.moved.resize(std::size_t(options_.timeline_bins));
    }
    const auto width = trace.beat_bytes.find(bundle);
    channels_.emplace_back(options_, int(number), port.get(), width == trace.beat_bytes.end() ? 16 : width->second);
    list[bundle] = &channels_.back();
}

RegionResult RegionSolver::solve() {
    std::size_t unfinished = processes_.size();
    while (unfinished > 0) {
        bool progress = false;
        for (Process &process : processes_) {
            if (process.finished) continue;
            progress |= advance(process);
            unfinished -= process.finished;
        }
        if (options_.limit > 0 && latest_ > options_.limit) {
            RegionResult result;
            result.limited = true;
            result.cycles = latest_;
            return result;
        }
        if (unfinished == 0 || progress) continue;
        const auto waiting = [this](const Channel &channel) {
            return processes_[std::size_t(channel.process)].blocked_on == &channel;
        };
        if (!ddr_.serve(channels_, waiting)) break;
    }
    return collect();
}

// Advance a process as far as possible. Return false if it could not take a single step.
bool RegionSolver::advance(Process &process) {
    bool moved = false;
    while (step(process)) moved = true;
    return moved;
}

// Find the time at which all accesses at pipeline time ``tau`` are ready, and the latest one. Return false if the time
// of one is not known yet.
bool RegionSolver::find_latest(Process &process, std::int64_t tau, std::int64_t &latest, Code &cause) {
    for (const Cursor &cursor : process.cursors) {
        if (cursor.tau != tau) continue;
        for (std::uint32_t i = 0; i < cursor.count(); ++i) {
            const std::int64_t time = ready(process, cursor.codes()[i]);
            if (time == kUnknown) return false;
            if (time > latest) {
                latest = time;
                cause = cursor.codes()[i];
            }
        }
    }
    return true;
}

// Perform all accesses of one cycle of the pipeline. Return false at the end, or if the time of one is not known yet.
bool RegionSolver::step(Process &process) {
    if (process.finished) return false;
    if (!process.open) return open_run(process);
    Cursor *const cursors = process.cursors;
    const std::int64_t tau = std::min(std::min(cursors[kFront].tau, cursors[kLoads].tau), cursors[kBack].tau);
    if (tau == kNever) {
        close_run(process);
        return true;
    }
    const std::int64_t now = tau + process.offset;
    std::int64_t latest = now;
    Code cause = 0;
    if (!find_latest(process, tau, latest, cause)) return false;
    if (latest > now) stall(process, now, latest, cause);
    for (int place = 0; place < kPlaces; ++place) {
        Cursor &cursor = cursors[place];
        if (cursor.tau != tau) continue;
        for (std::uint32_t i = 0; i < cursor.count(); ++i) commit(process, cursor.codes()[i], latest);
        cursor.next();
    }
    return true;
}

bool RegionSolver::open_run(Process &process) {
    const std::vector<Run> &runs = process.record->runs;
    if (process.next_run == runs.size()) return finish(process);
    const Run &run = runs[process.next_run];
    const std::size_t end =
        process.next_run + 1 < runs.size() ? runs[process.next_run + 1].first : process.record->entries.size();
    process.tau += run.gap + std::int64_t(run.enters) * options_.loop_entry;
    process.shift = run.requests && run.loads ? options_.request_stages : 0;
    for (int place = 0; place < kPlaces; ++place) {
        const std::int64_t base = process.tau + (place == kFront ? 0 : process.shift);
        process.cursors[place].open(*process.record, run, end, base, Place(place));
    }
    process.open = true;
    return true;
}

void RegionSolver::close_run(Process &process) {
    const Run &run = process.record->runs[process.next_run++];
    if (run.iterations > 0) process.tau += std::int64_t(run.iterations - 1) * run.ii + run.depth + process.shift;
    process.result.iterations += run.iterations;
    process.open = false;
    latest_ = std::max(latest_, process.tau + process.offset);
}

// A process ends when the memory has answered all its writes.
bool RegionSolver::finish(Process &process) {
    std::int64_t end = process.tau + process.offset;
    Code cause = 0;
    for (std::size_t bundle = 0; bundle < process.store_channels.size(); ++bundle) {
        Channel *channel = process.store_channels[bundle];
        if (!channel) continue;
        const std::int64_t answered = channel->all_responses();
        if (answered == kUnknown) return block(process, code_of(kResponse, std::uint32_t(bundle)), channel);
        if (answered > end) {
            end = answered;
            cause = code_of(kResponse, std::uint32_t(bundle));
        }
    }
    if (end > process.tau + process.offset) stall(process, process.tau + process.offset, end, cause);
    process.result.end = end;
    process.finished = true;
    latest_ = std::max(latest_, end);
    return true;
}

bool RegionSolver::block(Process &process, Code code, Channel *channel) {
    process.blocked = code;
    process.blocked_on = channel;
    return false;
}

// Return the earliest time of an access; kUnknown while it depends on accesses that are not solved yet.
std::int64_t RegionSolver::ready(Process &process, Code code) {
    const std::uint32_t index = index_of(code);
    std::int64_t time = 0;
    Channel *channel = nullptr;
    switch (kind_of(code)) {
        case kRead: {
            Fifo &fifo = fifos_[index];
            time = fifo.read < fifo.written ? fifo.write_times[fifo.read] + fifo.latency : kUnknown;
            break;
        }
        case kWrite: {
            Fifo &fifo = fifos_[index];
            const std::int64_t freed = fifo.written - fifo.depth;
            if (freed < 0) return 0;
            time = freed < fifo.read ? fifo.read_times[freed] + 1 : kUnknown;
            break;
        }
        case kLoad:
            channel = process.load_channels[index];
            time = channel->load_ready();
            break;
        case kStore:
            channel = process.store_channels[index];
            time = channel->store_ready();
            break;
        case kResponse:
            channel = process.store_channels[index];
            time = channel->response_ready();
            break;
        default:
            return 0;
    }
    if (time == kUnknown) block(process, code, channel);
    return time;
}

// Perform an access at ``now``.
void RegionSolver::commit(Process &process, Code code, std::int64_t now) {
    const std::uint32_t index = index_of(code);
    switch (kind_of(code)) {
        case kRead: {
            fifos_[index].take(now);
            break;
        }
        case kWrite: {
            Fifo &fifo = fifos_[index];
            fifo.write_times[fifo.written++] = now;
            break;
        }
        case kLoad:
            process.load_channels[index]->load(now);
            break;
        case kStore:
            process.store_channels[index]->store(now);
            break;
        case kResponse:
            process.store_channels[index]->respond();
            break;
        case kBurstRead:
            process.load_channels[index]->declare(process.record->bursts[process.next_burst++], now);
            break;
        case kBurstWrite:
            process.store_channels[index]->declare(process.record->bursts[process.next_burst++], now);
            break;
        case kForward:  // patterns contain it as a kWrite
            break;
    }
}

// Stall the whole pipeline from ``now`` until ``ready``, because of ``cause``.
void RegionSolver::stall(Process &process, std::int64_t now, std::int64_t ready, Code cause) {
    const std::int64_t length = ready - now;
    process.offset += length;
    int kind = kWaitMemory;
    if (kind_of(cause) == kRead) {
        kind = kWaitInput;
        fifos_[index_of(cause)].result.stall_input += length;
    } else if (kind_of(cause) == kWrite) {
        kind = kWaitSpace;
        fifos_[index_of(cause)].result.stall_space += length;
    }
    process.result.waits[kind] += length;
    if (options_.timeline_bins > 0) add_wait(process.result.lane, options_.timeline_bins, now, length, kind);
    latest_ = std::max(latest_, ready);
}

// Return the process at the other end of the FIFO that a process waits for; −1 if it does not wait for a FIFO.
int RegionSolver::waits_for(const Process &process) const {
    const Kind kind = kind_of(process.blocked);
    if (kind == kRead) return region_.streams[index_of(process.blocked)].writer;
    if (kind == kWrite) return region_.streams[index_of(process.blocked)].reader;
    return -1;
}

// Return the ring of a deadlock. Each stalled process waits for exactly one other process, so that following them from
// any process leads to the ring.
std::vector<Blocked> RegionSolver::find_ring() const {
    int number = 0;
    while (processes_[std::size_t(number)].finished) ++number;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        const int next = waits_for(processes_[std::size_t(number)]);
        if (next < 0) break;
        number = next;
    }
    std::vector<Blocked> ring;
    const int first = number;
    do {
        const Process &process = processes_[std::size_t(number)];
        Blocked blocked;
        blocked.process = number;
        blocked.code = process.blocked;
        const Kind kind = kind_of(process.blocked);
        if (kind == kRead) blocked.element = fifos_[index_of(process.blocked)].read;
        if (kind == kWrite) blocked.element = fifos_[index_of(process.blocked)].written;
        ring.push_back(blocked);
        number = waits_for(process);
    } while (number >= 0 && number != first);
    return ring;
}

// Add the frame ends of one stream to the result.
void RegionSolver::collect_frames(const Fifo &fifo, RegionResult &result) const {
    const std::size_t frames = fifo.frame_ends.size();
    result.frame_ends.resize(std::max(result.frame_ends.size(), frames));
    for (std::size_t i = 0; i < frames; ++i) result.frame_ends[i] = std::max(result.frame_ends[i], fifo.frame_ends[i]);
    if (frames > 1)
        result.interval = std::max(result.interval, fifo.frame_ends[frames - 1] - fifo.frame_ends[frames - 2]);
}

RegionResult RegionSolver::collect() {
    RegionResult result;
    bool stuck = false;
    for (Process &process : processes_) {
        stuck |= !process.finished;
        result.cycles = std::max(result.cycles, process.result.end);
    }
    for (Process &process : processes_) {
        if (options_.timeline_bins > 0) widen(process.result.lane, options_.timeline_bins, result.cycles);
        result.processes.push_back(process.result);
    }
    for (Fifo &fifo : fifos_) {
        fifo.merge();
        fifo.result.depth = fifo.depth;
        result.streams.push_back(fifo.result);
        collect_frames(fifo, result);
    }
    for (const auto &port : ports_) result.bundles.push_back(port.second->result);
    if (stuck) result.ring = find_ring();
    return result;
}

}  // namespace

RegionResult solve_region(const TraceRecord &trace, const RegionRecord &region, const Options &options,
                          const std::int64_t *depths, const std::int64_t *in_memory) {
    return RegionSolver(trace, region, options, depths, in_memory).solve();
}

}  // namespace trace
}  // namespace systolic

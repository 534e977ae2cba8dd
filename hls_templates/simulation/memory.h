// The solver's model of DDR and its ports. A burst is split into parts at the limits of AXI. Parts are served in chunks
// of 64 bytes (a DDR4 burst of 8 on 64 bits), in order of time. A port transfers one beat per cycle in each direction,
// and all ports share the bandwidth. All times are in cycles.
#ifndef SYSTOLIC_SIMULATION_MEMORY_H
#define SYSTOLIC_SIMULATION_MEMORY_H

#include <cstdint>
#include <deque>
#include <vector>

#include "solve.h"

namespace systolic {
namespace trace {

constexpr std::int64_t kUnknown = -1;
constexpr std::int64_t kNever = INT64_MAX;
constexpr std::int64_t kDdrChunkBytes = 64;
constexpr std::int64_t kPage = 4096;  // bytes; an AXI burst must not cross such a boundary

// The times of the last elements of a queue, by element number. Older times are overwritten. ``min_size``: the number
// of elements that it must hold.
class TimeRing {
public:
    explicit TimeRing(std::int64_t min_size = 1) {
        std::int64_t size = 1;
        while (size < min_size) size *= 2;
        times_.resize(std::size_t(size));
        mask_ = std::uint64_t(size - 1);
    }
    std::int64_t &operator[](std::int64_t number) { return times_[std::uint64_t(number) & mask_]; }

private:
    std::vector<std::int64_t> times_;
    std::uint64_t mask_;
};

// A part of a burst, as it is sent to DDR.
struct Part {
    std::int64_t requested;  // read: when requested; write: when its last beat is in the buffer, kUnknown before
    std::int64_t beats;
    bool last;  // the last part of its burst
};

// One direction of a memory bundle. next_free: the cycle from which it can transfer the next chunk.
struct Port {
    std::int64_t next_free = 0;
    BundleResult result;
};

// The transfers of one process through one bundle in one direction.
struct Channel {
    Channel(const Options &options, int process_number, Port *the_port, std::int64_t bytes_of_beat);

    // Add a burst that the process requests at ``now``.
    void declare(const Burst &burst, std::int64_t now);
    std::int64_t load_ready();  // when the next beat is valid; kUnknown until DDR has served it
    void load(std::int64_t now);
    std::int64_t store_ready();  // when there is room for the next beat
    void store(std::int64_t now);
    std::int64_t response_ready();  // when the oldest burst is answered that the process has not waited for
    void respond() { ++responses_taken_; }
    std::int64_t all_responses();  // when the last burst is answered
    std::int64_t earliest();       // when the next chunk can be served; kNever if there is none
    std::int64_t serve(std::int64_t start, double cycles_per_beat);  // returns when the process can continue
    std::int64_t chunk_beats() const;

    bool write;
    int process;
    Port *port;
    std::int64_t beat_bytes;

private:
    void finish_part(std::int64_t last_beat);

    const std::int64_t outstanding_;
    const std::int64_t latency_;
    const std::int64_t max_beats_;
    const std::int64_t capacity_;  // beats that the write buffer holds
    std::vector<Part> parts_;
    std::size_t serving_ = 0;        // the part that is served
    std::int64_t served_beats_ = 0;  // beats of that part
    std::int64_t issued_ = -1;       // when the last part was requested
    std::size_t transfer_part_ = 0;  // the part that the process loads from or stores to
    std::int64_t transferred_part_beats_ = 0;
    std::int64_t transferred_ = 0;         // beats that the process has transferred
    std::int64_t served_ = 0;              // beats that DDR has transferred
    TimeRing beat_times_;                  // read: arrival; write: departure
    TimeRing part_times_;                  // read: when its last beat was taken; write: when it was answered
    std::vector<std::int64_t> responses_;  // when each burst was answered
    std::int64_t responses_taken_ = 0;
};

// The memory. It serves the channels' chunks one after the other, at its bandwidth.
class Ddr {
public:
    explicit Ddr(const Options &options) : bytes_per_cycle_(options.ddr_bytes_per_cycle) {}

    // Serve chunks in order of time, up to the time at which a waiting process can continue. Return false if there was
    // no chunk to serve.
    template <typename IsWaiting>
    bool serve(std::deque<Channel> &channels, IsWaiting is_waiting) {
        std::int64_t window = kNever;
        bool served = false;
        for (;;) {
            std::int64_t first = kNever;
            std::size_t best = 0;
            for (std::size_t i = 0; i < channels.size(); ++i) {
                const std::size_t number = (i + turn_) % channels.size();
                const std::int64_t time = channels[number].earliest();
                if (time < first) {
                    first = time;
                    best = number;
                }
            }
            if (first == kNever || (served && first >= window)) return served;
            turn_ = best + 1;  // if times are equal, the channels take turns
            const std::int64_t resumed = serve_chunk(channels[best], first);
            if (is_waiting(channels[best]) && resumed < window) window = resumed;
            served = true;
        }
    }

private:
    std::int64_t serve_chunk(Channel &channel, std::int64_t first);

    double bytes_per_cycle_;
    double free_ = 0;
    std::size_t turn_ = 0;
};

}  // namespace trace
}  // namespace systolic

#endif  // SYSTOLIC_SIMULATION_MEMORY_H

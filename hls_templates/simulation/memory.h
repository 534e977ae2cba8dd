// DDR and the ports to it, as the solver models them. A burst is cut into parts where AXI cuts it; parts are served in
// chunks of 64 bytes (a DDR4 burst of 8 on 64 bits) in order of time. A port moves one beat a cycle in each direction,
// and all ports together share the bandwidth.
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
constexpr std::int64_t kChunkOfDdr = 64;
constexpr std::int64_t kPage = 4096;  // bytes; no AXI burst crosses such a boundary

// Times of the last elements of a queue, by element number; earlier ones are overwritten.
class TimeRing {
public:
    explicit TimeRing(std::int64_t least = 1) {
        std::int64_t size = 1;
        while (size < least) size *= 2;
        times_.resize(std::size_t(size));
        mask_ = std::uint64_t(size - 1);
    }
    std::int64_t &operator[](std::int64_t number) { return times_[std::uint64_t(number) & mask_]; }

private:
    std::vector<std::int64_t> times_;
    std::uint64_t mask_;
};

struct Part {
    std::int64_t asked;  // read: when requested; write: when its last beat is in the buffer, kUnknown before
    std::int64_t beats;
    bool last;  // of its burst
};

struct Port {
    std::int64_t next_free = 0;
    BundleResult result;
};

// What one process moves through one bundle in one direction.
struct Channel {
    Channel(const Options &options, int process_number, Port *the_port, std::int64_t bytes_of_beat);

    void declare(const Burst &burst, std::int64_t now);
    std::int64_t load_ready();  // of the next beat; kUnknown while DDR has not given it
    void load(std::int64_t now);
    std::int64_t store_ready();  // of room for the next beat
    void store(std::int64_t now);
    std::int64_t response_ready();  // of the oldest burst that nobody waited for
    void respond() { ++responses_taken_; }
    std::int64_t all_responses();                                    // the last of all bursts
    std::int64_t earliest();                                         // of the next chunk; kNever: nothing to serve
    std::int64_t serve(std::int64_t start, double cycles_per_beat);  // gives when the process can go on by it
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
    const std::int64_t capacity_;  // beats of the write buffer
    std::vector<Part> parts_;
    std::size_t serving_ = 0;        // part
    std::int64_t served_beats_ = 0;  // of it
    std::int64_t issued_ = -1;       // time of the last part's request
    std::size_t moving_ = 0;         // part that the process loads from or stores to
    std::int64_t moved_beats_ = 0;
    std::int64_t moved_ = 0;               // beats, by the process
    std::int64_t served_ = 0;              // beats, by DDR
    TimeRing beat_times_;                  // read: arrival; write: departure
    TimeRing part_times_;                  // read: last beat taken; write: response
    std::vector<std::int64_t> responses_;  // of bursts
    std::int64_t responses_taken_ = 0;
};

class Ddr {
public:
    explicit Ddr(const Options &options) : bytes_per_cycle_(options.ddr_bytes_per_cycle) {}

    // Serves chunks in order of time, up to the time at which a waiting process can go on; false: there was none to
    // serve.
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
            turn_ = best + 1;  // of equal times, the channels take turns
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

// DDR and the ports to it, as the solver sees them: a burst is cut where AXI cuts it, the parts are served in chunks of
// 64 bytes (a DDR4 burst of 8 on 64 bits) in order of time, one beat a cycle a port and direction, all ports within
// the shared bandwidth.
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
constexpr std::int64_t kPage = 4096;  // no AXI burst crosses it

// Times of the last elements of a queue, by their number.
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
    std::int64_t serve(std::int64_t start, double cycles_per_beat);  // gives the time at which the process feels it
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

    // Serves what comes before the first time at which a waiting process goes on; false: nothing is left to serve.
    template <typename IsWaiting>
    bool serve(std::deque<Channel> &channels, IsWaiting is_waiting) {
        std::int64_t window = kNever;
        bool any = false;
        for (;;) {
            std::int64_t first = kNever;
            std::size_t best = 0;
            for (std::size_t i = 0; i < channels.size(); ++i) {
                const std::size_t at = (i + turn_) % channels.size();
                const std::int64_t time = channels[at].earliest();
                if (time < first) {
                    first = time;
                    best = at;
                }
            }
            if (first == kNever || (any && first >= window)) return any;
            turn_ = best + 1;  // ties go round
            const std::int64_t felt = serve_chunk(channels[best], first);
            if (is_waiting(channels[best]) && felt < window) window = felt;
            any = true;
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

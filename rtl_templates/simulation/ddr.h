// A model of DDR at the ports of an accelerator, with a latency, one bandwidth for all ports, and the numbers of the
// cycle trace. A port serves its bursts in order, at most one beat per cycle. An access outside of a port's buffer is
// an error. So is a read of bytes whose write is not acknowledged yet, because DDR keeps no order between two ports.
#ifndef SYSTOLIC_RTL_DDR_H
#define SYSTOLIC_RTL_DDR_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddr {

struct timing {
    int64_t milli_bytes;  // 1/1000 bytes per cycle, for all ports together
    int read_latency;     // cycles from a request to its first beat
    int write_latency;    // cycles from the last beat to the response
};

// The wires of a port's read channels and of its write channels.
struct read_wires {
    uint8_t *ar_valid, *ar_ready;
    uint64_t *ar_address;
    uint8_t *ar_length, *r_valid, *r_ready, *r_last;
    void *r_data;
};
struct write_wires {
    uint8_t *aw_valid, *aw_ready;
    uint64_t *aw_address;
    uint8_t *aw_length, *w_valid, *w_ready, *w_last;
    void *w_data;
    const void *w_strobe;  // one bit per byte
    uint8_t *b_valid, *b_ready;
};

// The memory that a port accesses: ``bytes`` bytes, which the accelerator sees at ``address``.
struct buffer {
    std::string name;
    uint8_t *data;
    size_t bytes;
    uint64_t address;
    size_t beat;  // bytes per beat

    uint8_t *at(const char *kind, uint64_t first, size_t size) const {
        if (first < address || first - address > bytes || size > bytes - (first - address)) {
            throw std::runtime_error("port " + name + ": a " + kind + " of " + std::to_string(size) + " bytes at " +
                                     std::to_string(static_cast<long long>(first - address)) +
                                     " is outside the buffer of " + std::to_string(bytes) + " bytes");
        }
        return data + (first - address);
    }
};

struct burst {
    uint8_t *next;
    int beats;
    uint64_t ready;  // the first cycle in which it can be answered
};

// The bytes of a burst in the memory of this machine.
struct span {
    const uint8_t *first, *end;
};

// Checks a burst against the protocol: it has whole beats and does not cross a 4 KB page.
inline burst make_burst(const buffer &of, const char *kind, uint64_t address, int length, uint64_t ready) {
    const size_t size = (size_t(length) + 1) * of.beat;
    if (address % of.beat != 0 || address / 4096 != (address + size - 1) / 4096) {
        throw std::runtime_error("port " + of.name + ": a " + kind + " of " + std::to_string(size) + " bytes at " +
                                 std::to_string(address) + " crosses a page of 4 KB or is not aligned");
    }
    return {of.at(kind, address, size), length + 1, ready};
}

class memory {
public:
    // delays: the seed of random delays at every handshake, which the protocol allows; 0: none.
    memory(const timing &rate, uint32_t delays) : rate_(rate), random_(delays) {}

    void add(const buffer &of, const read_wires &wires) { reads_.push_back({of, wires, {}, false}); }
    void add(const buffer &of, const write_wires &wires) { writes_.push_back({of, wires, {}, {}, {}, false, false}); }

    // Drives this cycle's responses.
    void drive() {
        const int64_t token_limit = rate_.milli_bytes + 1000 * 64;  // bandwidth that is not used is lost
        tokens_ = tokens_ + rate_.milli_bytes < token_limit ? tokens_ + rate_.milli_bytes : token_limit;
        const size_t ports = reads_.size() + writes_.size(), first = first_;
        bool starved = false;
        for (size_t i = 0; i < ports; ++i) {
            const size_t turn = (first + i) % ports;
            const bool served =
                turn < reads_.size() ? drive_read(reads_[turn]) : drive_write(writes_[turn - reads_.size()]);
            if (!served && !starved)
                first_ = turn;  // the first port without bandwidth is the first that is served in the next cycle
            starved = starved || !served;
        }
    }

    // Samples the transfers of this cycle, before its clock edge. While the masters are in reset there are none.
    void sample(bool out_of_reset) {
        if (out_of_reset) {
            for (auto &port : reads_) sample_read(port);
            for (auto &port : writes_) sample_write(port);
        }
        ++cycle_;
    }

    // Withdraws the transferred beats after the clock edge.
    void withdraw_transferred() {
        for (auto &port : reads_) {
            if (port.transferred) *port.wires.r_valid = 0;
            port.transferred = false;
        }
        for (auto &port : writes_) {
            if (port.transferred) *port.wires.w_ready = 0;
            if (port.responded) *port.wires.b_valid = 0;
            port.transferred = port.responded = false;
        }
    }

    uint64_t cycle() const { return cycle_; }
    uint64_t last_transfer() const { return last_transfer_; }

private:
    static const size_t REQUESTS = 16;  // requests that the interconnect queues per port

    struct reader {
        buffer of;
        read_wires wires;
        std::deque<burst> open;
        bool transferred;  // in this cycle
    };
    struct writer {
        buffer of;
        write_wires wires;
        std::deque<burst> open;
        std::deque<uint64_t> response_cycles;  // the first cycle in which each response can be given
        std::deque<span> unacknowledged;
        bool transferred, responded;
    };

    // With random delays, a handshake is allowed in every second cycle on average; without, in every cycle.
    bool allows_handshake() {
        if (random_ == 0) return true;
        random_ ^= random_ << 13;
        random_ ^= random_ >> 17;
        random_ ^= random_ << 5;
        return random_ & 1;
    }

    bool spend_tokens(size_t bytes) {
        if (tokens_ < int64_t(bytes) * 1000) return false;
        tokens_ -= int64_t(bytes) * 1000;
        return true;
    }

    // Both functions return false if the port could move a beat and the bandwidth of this cycle is used up.
    bool drive_read(reader &port) {
        const read_wires &w = port.wires;
        *w.ar_ready = port.open.size() < REQUESTS && allows_handshake();
        if (*w.r_valid) return true;  // a beat stays valid until it is taken
        if (port.open.empty() || port.open.front().ready > cycle_ || !allows_handshake()) return true;
        if (!spend_tokens(port.of.beat)) return false;
        *w.r_valid = 1;
        *w.r_last = port.open.front().beats == 1;
        std::memcpy(w.r_data, port.open.front().next, port.of.beat);
        return true;
    }

    bool drive_write(writer &port) {
        const write_wires &w = port.wires;
        *w.aw_ready = port.open.size() < REQUESTS && allows_handshake();
        const bool requests_beat = !port.open.empty() && !*w.w_ready && allows_handshake();
        const bool granted = requests_beat && spend_tokens(port.of.beat);
        *w.w_ready = !port.open.empty() && (*w.w_ready || granted);
        if (!*w.b_valid)
            *w.b_valid = !port.response_cycles.empty() && port.response_cycles.front() <= cycle_ && allows_handshake();
        return !requests_beat || granted;
    }

    static span span_of(const buffer &of, const burst &whole) {
        return {whole.next, whole.next + whole.beats * of.beat};
    }

    void check_acknowledged(const buffer &of, const span &read) const {
        for (const auto &port : writes_) {
            for (const span &write : port.unacknowledged) {
                if (read.first >= write.end || write.first >= read.end) continue;
                throw std::runtime_error("port " + of.name + ": a read at " + std::to_string(read.first - of.data) +
                                         " overlaps a write of port " + port.of.name +
                                         " that is not acknowledged yet; DDR keeps no order between two ports");
            }
        }
    }

    void sample_read(reader &port) {
        const read_wires &w = port.wires;
        if (*w.ar_valid && *w.ar_ready) {
            port.open.push_back(make_burst(port.of, "read", *w.ar_address, *w.ar_length, cycle_ + rate_.read_latency));
            check_acknowledged(port.of, span_of(port.of, port.open.back()));
            last_transfer_ = cycle_;
        }
        if (!*w.r_valid || !*w.r_ready) return;
        last_transfer_ = cycle_;
        burst &front = port.open.front();
        front.next += port.of.beat;
        if (--front.beats == 0) port.open.pop_front();
        port.transferred = true;
    }

    void sample_write(writer &port) {
        const write_wires &w = port.wires;
        if (*w.aw_valid && *w.aw_ready) {
            port.open.push_back(make_burst(port.of, "write", *w.aw_address, *w.aw_length, cycle_));
            port.unacknowledged.push_back(span_of(port.of, port.open.back()));
            last_transfer_ = cycle_;
        }
        if (*w.b_valid && *w.b_ready) {
            port.response_cycles.pop_front();
            port.unacknowledged.pop_front();
            port.responded = true;
        }
        if (!*w.w_valid || !*w.w_ready) return;
        last_transfer_ = cycle_;
        burst &front = port.open.front();
        const auto *bytes = static_cast<const uint8_t *>(w.w_data), *strobe = static_cast<const uint8_t *>(w.w_strobe);
        for (size_t i = 0; i < port.of.beat; ++i)
            if (strobe[i / 8] >> i % 8 & 1) front.next[i] = bytes[i];
        front.next += port.of.beat;
        const bool last = --front.beats == 0;
        if (last != bool(*w.w_last)) {
            throw std::runtime_error("port " + port.of.name + ": WLAST must be set in the last beat of a burst only");
        }
        if (last) {
            port.open.pop_front();
            port.response_cycles.push_back(cycle_ + rate_.write_latency);
        }
        port.transferred = true;
    }

    timing rate_;
    uint32_t random_;
    int64_t tokens_ = 0;
    uint64_t cycle_ = 0, last_transfer_ = 0;
    size_t first_ = 0;  // the port that is served first in a cycle
    std::vector<reader> reads_;
    std::vector<writer> writes_;
};

}  // namespace ddr

#endif  // SYSTOLIC_RTL_DDR_H

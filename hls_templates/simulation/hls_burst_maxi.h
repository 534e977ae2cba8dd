// hls::burst_maxi for g++: the manual-burst memory port of Vitis HLS (UG1399, "Using Manual Burst"), on a plain
// pointer. Data is transferred immediately, and the trace records the access. Reads beyond a request, requests outside
// of the buffer and responses without a request are errors here; on a board, they would give wrong data.
#ifndef SYSTOLIC_SIMULATION_BURST_MAXI_H
#define SYSTOLIC_SIMULATION_BURST_MAXI_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

#include "instrument.h"

namespace hls {

template <typename T>
class burst_maxi {
public:
    burst_maxi(T *words) : burst_maxi(words, size_t(-1) / 2, "memory", 0) {}

    burst_maxi(T *words, size_t count, const char *name, int bundle)
        : state_(std::make_shared<state>(state{words, count, name, bundle, {}, {}, 0})) {}

    // Offsets and lengths count words.
    void read_request(size_t offset, size_t length) {
        state_->check("read", offset, length);
        SYSTOLIC_BURST_READ(state_->bundle, offset, length);
        state_->reads.push_back({offset, length});
    }

    T read() {
        const size_t index = state_->take(state_->reads, "read");
        return SYSTOLIC_LOAD(state_->bundle, state_->words, index);
    }

    void write_request(size_t offset, size_t length) {
        state_->check("write", offset, length);
        SYSTOLIC_BURST_WRITE(state_->bundle, offset, length);
        state_->writes.push_back({offset, length});
        ++state_->unanswered;
    }

    void write(const T &value) {
        const size_t index = state_->take(state_->writes, "write");
        SYSTOLIC_STORE(state_->bundle, state_->words, index, value);
    }

    // Write the bytes of the word whose bit in ``bytes`` is 1, the lowest byte first (WSTRB).
    template <typename BYTES>
    void write(const T &value, const BYTES &bytes) {
        const size_t index = state_->take(state_->writes, "write");
        T word = state_->words[index];
        for (size_t b = 0; b < sizeof(T); ++b) {
            if (uint64_t(bytes) >> b & 1) {
                reinterpret_cast<unsigned char *>(&word)[b] = reinterpret_cast<const unsigned char *>(&value)[b];
            }
        }
        SYSTOLIC_STORE(state_->bundle, state_->words, index, word);
    }

    void write_response() {
        if (state_->unanswered == 0) state_->fail("a write response is awaited, but no write request is unanswered");
        --state_->unanswered;
        SYSTOLIC_BURST_RESPONSE(state_->bundle);
    }

private:
    struct burst {
        size_t offset, length;
    };
    // The state is shared by the copies of a port, which are the same wires in hardware.
    struct state {
        T *words;
        size_t count;
        std::string name;
        int bundle;
        std::deque<burst> reads, writes;
        int unanswered;

        [[noreturn]] void fail(const std::string &what) const {
            throw std::runtime_error("port " + name + ": " + what);
        }

        void check(const char *kind, size_t offset, size_t length) const {
            if (length == 0 || offset > count || length > count - offset) {
                fail(std::string("a ") + kind + " of " + std::to_string(length) + " words at " +
                     std::to_string(static_cast<long long>(offset)) + " is outside the buffer of " +
                     std::to_string(count) + " words");
            }
        }

        // Return the index of the next word of the oldest open burst.
        size_t take(std::deque<burst> &bursts, const char *kind) const {
            if (bursts.empty()) {
                fail(std::string("a ") + kind + " needs a request first; all requested words are already transferred");
            }
            burst &front = bursts.front();
            const size_t index = front.offset++;
            if (--front.length == 0) bursts.pop_front();
            return index;
        }
    };
    std::shared_ptr<state> state_;
};

}  // namespace hls

#endif  // SYSTOLIC_SIMULATION_BURST_MAXI_H

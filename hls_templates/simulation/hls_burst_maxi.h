// hls::burst_maxi for g++: the manual-burst memory port of Vitis HLS (UG1399, "Using Manual Burst"), over
// a plain pointer. Data moves at once; what it costs is told to the trace. Reads past a request, requests
// outside the buffer and unanswered writes are errors here rather than garbage on a board.
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

    // Of the word only the bytes whose bit of ``bytes`` is 1, the lowest first (WSTRB).
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
        if (state_->unanswered == 0) state_->fail("a write response is awaited that no request asked for");
        --state_->unanswered;
        SYSTOLIC_BURST_RESPONSE(state_->bundle);
    }

private:
    struct burst {
        size_t offset, length;
    };
    // Shared by the copies of a port, as the wires of the real one are.
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
                     std::to_string(static_cast<long long>(offset)) + " lies outside the buffer of " +
                     std::to_string(count) + " words");
            }
        }

        size_t take(std::deque<burst> &bursts, const char *kind) const {
            if (bursts.empty()) fail(std::string("a ") + kind + " goes past what was requested");
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

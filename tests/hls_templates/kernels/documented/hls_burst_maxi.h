// hls::burst_maxi as UG1399 ("Using Manual Burst") documents it and no more, in C++14: made of a pointer alone.
#ifndef DOCUMENTED_HLS_BURST_MAXI_H
#define DOCUMENTED_HLS_BURST_MAXI_H

#include <ap_int.h>

#include <cstddef>
#include <cstdlib>
#include <deque>

namespace hls {

template <typename T>
class burst_maxi {
public:
    burst_maxi(T *words) : words_(words) {}
    void read_request(size_t offset, unsigned length) { ask(reads_, offset, length); }
    T read() { return words_[take(reads_)]; }
    void write_request(size_t offset, unsigned length) { ask(writes_, offset, length); }
    // The mask of the vendor's header: one bit per byte; without a mask all bytes are written.
    void write(const T &value, ap_int<sizeof(T)> bytes = -1) {
        const size_t at = take(writes_);
        for (size_t b = 0; b < sizeof(T); ++b) {
            if (bytes[int(b)]) reinterpret_cast<char *>(words_ + at)[b] = reinterpret_cast<const char *>(&value)[b];
        }
    }
    void write_response() {}

private:
    static void ask(std::deque<size_t> &queue, size_t offset, unsigned length) {
        for (unsigned i = 0; i < length; ++i) queue.push_back(offset + i);
    }
    static size_t take(std::deque<size_t> &queue) {
        if (queue.empty()) std::abort();
        const size_t at = queue.front();
        queue.pop_front();
        return at;
    }
    T *words_;
    std::deque<size_t> reads_, writes_;
};

}  // namespace hls

#endif  // DOCUMENTED_HLS_BURST_MAXI_H

// hls::stream as UG1399 documents it and no more, in C++14: an unbounded queue.
#ifndef DOCUMENTED_HLS_STREAM_H
#define DOCUMENTED_HLS_STREAM_H

#include <cstdlib>
#include <deque>

namespace hls {

template <typename T>
class stream {
public:
    stream() {}
    explicit stream(const char *) {}
    bool empty() const { return queue_.empty(); }
    void write(const T &value) { queue_.push_back(value); }
    T read() {
        if (queue_.empty()) std::abort();
        const T value = queue_.front();
        queue_.pop_front();
        return value;
    }

private:
    stream(const stream &);
    std::deque<T> queue_;
};

}  // namespace hls

#endif  // DOCUMENTED_HLS_STREAM_H

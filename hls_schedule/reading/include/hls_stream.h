// Streams, for checks. Every access is a call that the compiler cannot look into, so that accesses keep their order.
#ifndef HLS_SCHEDULE_HLS_STREAM_H
#define HLS_SCHEDULE_HLS_STREAM_H

namespace hls_schedule {
template <class T>
T fifo_read(const void *fifo) noexcept;
template <class T>
void fifo_write(const void *fifo, T value) noexcept;
bool fifo_empty(const void *fifo) noexcept;
bool fifo_full(const void *fifo) noexcept;
}  // namespace hls_schedule

namespace hls {
template <class T, int DEPTH = 0>
struct stream {
    stream() {}
    explicit stream(const char *) {}
    stream(const stream &) = delete;
    T read() { return hls_schedule::fifo_read<T>(this); }
    void read(T &value) { value = hls_schedule::fifo_read<T>(this); }
    void write(const T &value) { hls_schedule::fifo_write<T>(this, value); }
    bool read_nb(T &value) {
        if (hls_schedule::fifo_empty(this)) return false;
        value = hls_schedule::fifo_read<T>(this);
        return true;
    }
    bool write_nb(const T &value) {
        if (hls_schedule::fifo_full(this)) return false;
        hls_schedule::fifo_write<T>(this, value);
        return true;
    }
    bool empty() const { return hls_schedule::fifo_empty(this); }
    bool full() const { return hls_schedule::fifo_full(this); }
    stream &operator<<(const T &value) {
        write(value);
        return *this;
    }
    stream &operator>>(T &value) {
        read(value);
        return *this;
    }
};
}  // namespace hls

#endif  // HLS_SCHEDULE_HLS_STREAM_H

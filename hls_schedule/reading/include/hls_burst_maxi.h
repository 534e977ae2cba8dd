// Bursts at an AXI port, for checks. Every access is a call that the compiler cannot look into.
#ifndef HLS_SCHEDULE_HLS_BURST_MAXI_H
#define HLS_SCHEDULE_HLS_BURST_MAXI_H

#include <cstddef>

namespace hls_schedule {
void axi_read_request(const void *port, size_t offset, size_t length) noexcept;
void axi_write_request(const void *port, size_t offset, size_t length) noexcept;
void axi_write_response(const void *port) noexcept;
template <class T>
T axi_read(const void *port) noexcept;
template <class T>
void axi_write(const void *port, T value) noexcept;
template <class T, class BYTES>
void axi_write(const void *port, T value, BYTES bytes) noexcept;
}  // namespace hls_schedule

namespace hls {
template <class T>
struct burst_maxi {
    T *base;
    burst_maxi(T *pointer) : base(pointer) {}
    void read_request(size_t offset, size_t length) { hls_schedule::axi_read_request(base, offset, length); }
    void write_request(size_t offset, size_t length) { hls_schedule::axi_write_request(base, offset, length); }
    void write_response() { hls_schedule::axi_write_response(base); }
    T read() { return hls_schedule::axi_read<T>(base); }
    void write(const T &value) { hls_schedule::axi_write<T>(base, value); }
    template <class BYTES>
    void write(const T &value, const BYTES &bytes) {
        hls_schedule::axi_write<T, BYTES>(base, value, bytes);
    }
};
}  // namespace hls

#endif  // HLS_SCHEDULE_HLS_BURST_MAXI_H

// Vectors with the interface of UG1399, "Vector Data Types", for checks: one word of all elements, and operators that
// work on each element.
#ifndef HLS_SCHEDULE_HLS_VECTOR_H
#define HLS_SCHEDULE_HLS_VECTOR_H

#include <cstddef>
#include <initializer_list>

namespace hls_schedule {
constexpr size_t power_of_two(size_t bytes) {
    size_t power = 1;
    while (power < bytes) power *= 2;
    return power;
}
}  // namespace hls_schedule

namespace hls {
template <class T, size_t N>
struct alignas(hls_schedule::power_of_two(sizeof(T) * N)) vector {
    T data[N];

    vector() = default;
    vector(const T &value) {
        for (size_t n = 0; n < N; ++n) data[n] = value;
    }
    vector(std::initializer_list<T> values) {
        size_t n = 0;
        for (const T &value : values) data[n++] = value;
    }
    T &operator[](size_t index) { return data[index]; }
    const T &operator[](size_t index) const { return data[index]; }
    T *begin() { return data; }
    T *end() { return data + N; }
    const T *begin() const { return data; }
    const T *end() const { return data + N; }
    static constexpr size_t size() { return N; }
    T reduce_add() const {
        T sum = data[0];
        for (size_t n = 1; n < N; ++n) sum = sum + data[n];
        return sum;
    }
    T reduce_mult() const {
        T product = data[0];
        for (size_t n = 1; n < N; ++n) product = product * data[n];
        return product;
    }
};

#define HLS_SCHEDULE_VECTOR_OPERATOR(SYMBOL) \
    template <class T, size_t N> \
    inline vector<T, N> operator SYMBOL(const vector<T, N> &a, const vector<T, N> &b) { \
        vector<T, N> result; \
        for (size_t n = 0; n < N; ++n) result.data[n] = a.data[n] SYMBOL b.data[n]; \
        return result; \
    } \
    template <class T, size_t N> \
    inline vector<T, N> &operator SYMBOL## = (vector<T, N> & a, const vector<T, N> &b) { \
        return a = a SYMBOL b; \
    }
HLS_SCHEDULE_VECTOR_OPERATOR(+)
HLS_SCHEDULE_VECTOR_OPERATOR(-)
HLS_SCHEDULE_VECTOR_OPERATOR(*)
HLS_SCHEDULE_VECTOR_OPERATOR(/)
HLS_SCHEDULE_VECTOR_OPERATOR(&)
HLS_SCHEDULE_VECTOR_OPERATOR(|)
HLS_SCHEDULE_VECTOR_OPERATOR(^)
}  // namespace hls

#endif  // HLS_SCHEDULE_HLS_VECTOR_H

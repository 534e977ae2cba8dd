// Marks for the check in compiled code: one per pipelined loop, with the interval and depth that the loop declares.
// This header replaces the project's instrument.h, whose include guard it defines.
#ifndef SYSTOLIC_INSTRUMENT_H
#define SYSTOLIC_INSTRUMENT_H

// Marks the array that a pragma names, independent of the place of the pragma.
void hls_schedule_note(int pragma, const void *array __attribute__((noescape))) noexcept;
namespace hls_schedule {
template <class T>
inline void note(int pragma, T &array) {
    if constexpr (__is_array(T) || __is_pointer(T)) hls_schedule_note(pragma, array);
}

// Marks a value with the number of the pragma that binds the operator which computes it.
template <int PRAGMA, class T>
T bound(T value) noexcept __attribute__((const));
template <int PRAGMA, class T>
inline void bind(const T &result) {
    T &variable = const_cast<T &>(result);
    if constexpr (__is_class(T)) {
        variable.number = bound<PRAGMA>(variable.number);
    } else {
        variable = bound<PRAGMA>(variable);
    }
}
}  // namespace hls_schedule

#define SYSTOLIC_PRAGMA_TEXT(text) _Pragma(#text)
#define SYSTOLIC_PRAGMA(text) SYSTOLIC_PRAGMA_TEXT(text)
#define SYSTOLIC_DATAFLOW(label) SYSTOLIC_PRAGMA(HLS DATAFLOW)
#define SYSTOLIC_PROCESS(name)
#define SYSTOLIC_ENTER
#define SYSTOLIC_PIPELINE(ii, depth) __asm__ volatile("//pipeline" ::"i"(int(ii)), "i"(int(depth)))
#define SYSTOLIC_STREAM(stream_, depth_)
#define SYSTOLIC_FIFO(stream_, bits_, depth_, impl_)
#define SYSTOLIC_FORWARD(stream_, value) (stream_).write(value)
#define SYSTOLIC_SEQUENTIAL(cycles)
#define SYSTOLIC_BURST_READ(bundle, address, beats)
#define SYSTOLIC_BURST_WRITE(bundle, address, beats)
#define SYSTOLIC_BURST_RESPONSE(bundle)
#define SYSTOLIC_LOAD(bundle, pointer, index) ((pointer)[index])
#define SYSTOLIC_STORE(bundle, pointer, index, ...) ((pointer)[index] = __VA_ARGS__)

#endif  // SYSTOLIC_INSTRUMENT_H

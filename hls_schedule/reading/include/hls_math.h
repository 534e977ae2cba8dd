// Mathematical functions of UG1399, "HLS Math Library", for checks. Those that are a few operators are defined. The
// others are only declared, so that a check refuses the loops that call them: their latency is not known.
#ifndef HLS_SCHEDULE_HLS_MATH_H
#define HLS_SCHEDULE_HLS_MATH_H

#include <cmath>

#include "ap_fixed.h"

namespace hls {
template <class T>
inline T abs(const T &x) {
    return x < T(0) ? T(-x) : x;
}
template <class T>
inline T max(const T &a, const T &b) {
    return a > b ? a : b;
}
template <class T>
inline T min(const T &a, const T &b) {
    return a < b ? a : b;
}

#define HLS_SCHEDULE_FUNCTION(NAME) \
    template <class T> \
    T NAME(const T x) noexcept __attribute__((const));
#define HLS_SCHEDULE_FUNCTION_OF_TWO(NAME) \
    template <class T> \
    T NAME(const T x, const T y) noexcept __attribute__((const));
HLS_SCHEDULE_FUNCTION(sqrt)
HLS_SCHEDULE_FUNCTION(rsqrt)
HLS_SCHEDULE_FUNCTION(recip)
HLS_SCHEDULE_FUNCTION(exp)
HLS_SCHEDULE_FUNCTION(exp2)
HLS_SCHEDULE_FUNCTION(log)
HLS_SCHEDULE_FUNCTION(log2)
HLS_SCHEDULE_FUNCTION(log10)
HLS_SCHEDULE_FUNCTION(sin)
HLS_SCHEDULE_FUNCTION(cos)
HLS_SCHEDULE_FUNCTION(tan)
HLS_SCHEDULE_FUNCTION(atan)
HLS_SCHEDULE_FUNCTION(tanh)
HLS_SCHEDULE_FUNCTION(floor)
HLS_SCHEDULE_FUNCTION(ceil)
HLS_SCHEDULE_FUNCTION(round)
HLS_SCHEDULE_FUNCTION_OF_TWO(pow)
HLS_SCHEDULE_FUNCTION_OF_TWO(atan2)
HLS_SCHEDULE_FUNCTION_OF_TWO(fmod)
}  // namespace hls

#endif  // HLS_SCHEDULE_HLS_MATH_H

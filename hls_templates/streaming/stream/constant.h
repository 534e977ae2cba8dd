// Arithmetic on template parameters, which the compiler evaluates. ``smaller``, ``larger`` and ``inside`` are also used
// on run-time values.
#ifndef SYSTOLIC_CONSTANT_H
#define SYSTOLIC_CONSTANT_H

constexpr int larger(int a, int b) { return a > b ? a : b; }
constexpr int smaller(int a, int b) { return a < b ? a : b; }
// a / b rounded up, for a ≥ 0.
constexpr int ceiling(int a, int b) { return (a + b - 1) / b; }
// Return whether value is one of the ``count`` numbers from ``first`` on.
constexpr bool inside(int value, int first, int count) { return value >= first && value < first + count; }

// The number of positions that a window takes along one side of a map. ``size`` is the map's pixels on this side, and
// ``before`` and ``after`` are the pixels of padding at its ends.
constexpr int positions_of(int size, int before, int after, int kernel, int dilation, int stride) {
    return (size + before + after - (kernel - 1) * dilation - 1) / stride + 1;
}

// value modulo limit. The result is 0 … limit − 1, also for a negative value.
constexpr int cyclic(long value, int limit) {
    return value % limit < 0 ? int(value % limit) + limit : int(value % limit);
}

// The greatest common divisor of A and B.
template <int A, int B>
struct common_divisor {
    static constexpr int value = common_divisor<B, A % B>::value;
};
template <int A>
struct common_divisor<A, 0> {
    static constexpr int value = A;
};

#endif  // SYSTOLIC_CONSTANT_H

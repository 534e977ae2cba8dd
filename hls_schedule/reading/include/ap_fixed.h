// Fixed-point numbers with the interface of the vendor's ap_fixed.h, for checks only. Each is clang's _BitInt of the
// same width. Widths, rounding and overflow are as in UG1399, "Arbitrary Precision Fixed-Point Data Types".
#ifndef HLS_SCHEDULE_AP_FIXED_H
#define HLS_SCHEDULE_AP_FIXED_H

#include "ap_int.h"

enum ap_q_mode { AP_RND, AP_RND_ZERO, AP_RND_MIN_INF, AP_RND_INF, AP_RND_CONV, AP_TRN, AP_TRN_ZERO };
enum ap_o_mode { AP_SAT, AP_SAT_ZERO, AP_SAT_SYM, AP_WRAP, AP_WRAP_SM };

template <int BITS, int INTEGER, bool SIGNED, ap_q_mode ROUNDING, ap_o_mode OVERFLOW, int SATURATED>
struct ap_fixed_base;
template <int BITS, int INTEGER, ap_q_mode ROUNDING = AP_TRN, ap_o_mode OVERFLOW = AP_WRAP, int SATURATED = 0>
using ap_fixed = ap_fixed_base<BITS, INTEGER, true, ROUNDING, OVERFLOW, SATURATED>;
template <int BITS, int INTEGER, ap_q_mode ROUNDING = AP_TRN, ap_o_mode OVERFLOW = AP_WRAP, int SATURATED = 0>
using ap_ufixed = ap_fixed_base<BITS, INTEGER, false, ROUNDING, OVERFLOW, SATURATED>;

namespace hls_schedule {
// Returns its argument. The compiler cannot look into it, so that it does not move a truncation in front of a sum: the
// vendor's tool does not do that either, and does not balance such sums.
template <class T>
T cut(T value) noexcept __attribute__((const));

// A number as an operand: bits, integer bits and sign. Integers have no fraction.
template <class T>
struct fixed_operand {
    static constexpr bool known = operand<T>::known, fixed = false, is_signed = operand<T>::is_signed;
    static constexpr int bits = operand<T>::bits, integer = operand<T>::bits;
};
template <int BITS, int INTEGER, bool SIGNED, ap_q_mode ROUNDING, ap_o_mode OVERFLOW, int SATURATED>
struct fixed_operand<ap_fixed_base<BITS, INTEGER, SIGNED, ROUNDING, OVERFLOW, SATURATED>> {
    static constexpr bool known = true, fixed = true, is_signed = SIGNED;
    static constexpr int bits = BITS, integer = INTEGER;
};
template <class T>
using fixed_number =
    ap_fixed_base<fixed_operand<T>::bits, fixed_operand<T>::integer, fixed_operand<T>::is_signed, AP_TRN, AP_WRAP, 0>;

// The result of an operator on two numbers.
template <class A, class B>
struct fixed_pair {
    typedef fixed_operand<A> P;
    typedef fixed_operand<B> Q;
    static constexpr bool is_signed = P::is_signed || Q::is_signed;
    static constexpr int fraction = larger(P::bits - P::integer, Q::bits - Q::integer);
    static constexpr int integer = sum_bits(P::integer, P::is_signed, Q::integer, Q::is_signed);
    template <int MORE, bool SIGNED>
    using with = ap_fixed_base<integer + fraction + MORE, integer + MORE, SIGNED, AP_TRN, AP_WRAP, 0>;
    typedef with<1, is_signed> sum;
    typedef with<1, true> difference;
    typedef with<0, is_signed> both;
    typedef ap_fixed_base<P::bits + Q::bits, P::integer + Q::integer, is_signed, AP_TRN, AP_WRAP, 0> product;
    static constexpr int divisor_fraction = Q::bits - Q::integer;
    static constexpr int shift = divisor_fraction > 0 ? divisor_fraction : 0;
    typedef ap_fixed_base<P::bits + Q::is_signed + shift, P::integer + Q::is_signed + divisor_fraction, is_signed,
                          AP_TRN, AP_WRAP, 0>
        quotient;
};
}  // namespace hls_schedule

template <int BITS, int INTEGER, bool SIGNED, ap_q_mode ROUNDING, ap_o_mode OVERFLOW, int SATURATED>
struct ap_fixed_base {
    typedef typename hls_schedule::bits_of<BITS, SIGNED>::type type;
    typedef unsigned _BitInt(BITS) raw;
    static constexpr int width = BITS, iwidth = INTEGER, FRACTION = BITS - INTEGER;
    type number;

    ap_fixed_base() = default;
    template <int B, int I, bool S, ap_q_mode Q, ap_o_mode O, int N>
    ap_fixed_base(const ap_fixed_base<B, I, S, Q, O, N> &from) : number(taken<B, B - I, S>(from.number)) {}
    template <int B, bool S>
    ap_fixed_base(const ap_int_base<B, S> &from) : number(taken<B, 0, S>(from.number)) {}
    template <int B, bool S>
    ap_fixed_base(const hls_schedule::slice<B, S> &from) : number(taken<B, 0, false>(from.value().number)) {}
    template <class T, typename std::enable_if<hls_schedule::operand<T>::known, int>::type = 0>
    ap_fixed_base(T from)
        : number(taken<hls_schedule::operand<T>::bits, 0, hls_schedule::operand<T>::is_signed>(
              hls_schedule::number<T>(from).number)) {}
    template <class T, typename std::enable_if<std::is_floating_point<T>::value, long>::type = 0>
    ap_fixed_base(T from) : number(scaled(from)) {}
    static ap_fixed_base of(type number) {
        ap_fixed_base value;
        value.number = number;
        return value;
    }

    template <class T, typename std::enable_if<hls_schedule::operand<T>::known, int>::type = 0>
    operator T() const {
        if constexpr (std::is_same<T, bool>::value) return number != 0;
        else if constexpr (FRACTION > 0) return static_cast<T>((number + (number < 0 ? below_one() : 0)) >> FRACTION);
        else return static_cast<T>(ap_fixed_base<INTEGER, INTEGER, SIGNED, AP_TRN, AP_WRAP, 0>(*this).number);
    }
    template <class T, typename std::enable_if<std::is_floating_point<T>::value, long>::type = 0>
    operator T() const {
        return static_cast<T>(number) * power<T>(-FRACTION);
    }
    int to_int() const { return static_cast<int>(*this); }
    unsigned to_uint() const { return static_cast<unsigned>(*this); }
    float to_float() const { return static_cast<float>(*this); }
    double to_double() const { return static_cast<double>(*this); }
    static constexpr int length() { return BITS; }

    ap_int_base<BITS, false> range(int high, int low) const { return bits().cut(high, low); }
    ap_int_base<BITS, false> operator()(int high, int low) const { return bits().cut(high, low); }
    ap_int_base<BITS, false> range() const { return bits(); }
    hls_schedule::slice<BITS, SIGNED> range(int high, int low) { return {pattern(), high, low}; }
    hls_schedule::slice<BITS, SIGNED> operator()(int high, int low) { return {pattern(), high, low}; }
    hls_schedule::slice<BITS, SIGNED> range() { return {pattern(), BITS - 1, 0}; }
    hls_schedule::slice<BITS, SIGNED> operator[](int bit) { return {pattern(), bit, bit}; }
    bool operator[](int bit) const { return (raw(number) >> bit) & 1; }

    ap_fixed_base operator+() const { return *this; }
    ap_fixed_base<BITS + 1, INTEGER + 1, true, AP_TRN, AP_WRAP, 0> operator-() const {
        typedef ap_fixed_base<BITS + 1, INTEGER + 1, true, AP_TRN, AP_WRAP, 0> wide;
        return wide::of(-typename wide::type(number));
    }
    ap_fixed_base operator~() const { return of(~number); }
    bool operator!() const { return number == 0; }
    ap_fixed_base &operator++() { return *this = *this + ap_int<2>(1); }
    ap_fixed_base &operator--() { return *this = *this - ap_int<2>(1); }

private:
    ap_int_base<BITS, false> bits() const { return ap_int_base<BITS, false>::of(raw(number)); }
    ap_int_base<BITS, SIGNED> &pattern() { return reinterpret_cast<ap_int_base<BITS, SIGNED> &>(*this); }
    static constexpr type below_one() { return static_cast<type>((_BitInt(BITS + 2)(1) << FRACTION) - 1); }
    template <class T>
    static constexpr T power(int exponent) {
        T value = 1;
        for (int step = 0; step < (exponent < 0 ? -exponent : exponent); ++step)
            value = exponent < 0 ? value / 2 : value * 2;
        return value;
    }
    template <class T>
    static type scaled(T from) {
        const T value = from * power<T>(FRACTION);
        const long long whole = static_cast<long long>(value);
        return static_cast<type>(ROUNDING == AP_TRN && static_cast<T>(whole) > value ? whole - 1 : whole);
    }

    // The number of a value with FROM fraction bits after rounding and overflow.
    template <int B, int FROM, bool S>
    static type taken(typename hls_schedule::bits_of<B, S>::type from) {
        constexpr int LOST = FROM - FRACTION;
        if constexpr (LOST <= 0) {
            typedef typename hls_schedule::bits_of<B - LOST + 1, true>::type wide;
            return fitted<wide>(wide(from) << -LOST);
        } else if constexpr (LOST >= B + 1) {
            return from < 0 && ROUNDING != AP_TRN_ZERO ? type(-1) : type(0);
        } else {
            typedef typename hls_schedule::bits_of<B + 2, true>::type wide;
            return fitted<wide>(rounded<wide, LOST>(wide(from)));
        }
    }
    template <class W>
    static W whole(W value) {
#ifdef __SYNTHESIS__
        if constexpr (sizeof(W) <= 16) return hls_schedule::cut(value);
#endif
        return value;
    }
    template <class W, int LOST>
    static W rounded(W from) {
        const W below = whole(from) >> LOST, rest = from & ((W(1) << LOST) - 1), half = W(1) << (LOST - 1);
        if constexpr (ROUNDING == AP_TRN) return below;
        else if constexpr (ROUNDING == AP_TRN_ZERO) return below + (from < 0 && rest != 0);
        else if constexpr (ROUNDING == AP_RND) return below + (rest >= half);
        else if constexpr (ROUNDING == AP_RND_ZERO) return below + (rest > half || (rest == half && from < 0));
        else if constexpr (ROUNDING == AP_RND_MIN_INF) return below + (rest > half);
        else if constexpr (ROUNDING == AP_RND_INF) return below + (rest > half || (rest == half && from >= 0));
        else return below + (rest > half || (rest == half && (below & 1)));
    }
    template <class W>
    static type fitted(W value) {
        if constexpr (OVERFLOW == AP_WRAP || OVERFLOW == AP_WRAP_SM) {
            return static_cast<type>(value);
        } else {
            typedef _BitInt(BITS + 2) limit;
            const limit high = SIGNED ? (limit(1) << (BITS - 1)) - 1 : (limit(1) << BITS) - 1;
            const limit low = !SIGNED ? limit(0) : OVERFLOW == AP_SAT_SYM ? -high : -high - 1;
            if (value > high) return OVERFLOW == AP_SAT_ZERO ? type(0) : static_cast<type>(high);
            if (value < low) return OVERFLOW == AP_SAT_ZERO ? type(0) : static_cast<type>(low);
            return static_cast<type>(value);
        }
    }
};

#define HLS_SCHEDULE_EITHER_FIXED(A, B) \
    typename std::enable_if<hls_schedule::fixed_operand<A>::known && hls_schedule::fixed_operand<B>::known && \
                                (hls_schedule::fixed_operand<A>::fixed || hls_schedule::fixed_operand<B>::fixed), \
                            int>::type = 0
#define HLS_SCHEDULE_FIXED_SUM(SYMBOL, RESULT) \
    template <class A, class B, HLS_SCHEDULE_EITHER_FIXED(A, B)> \
    inline auto operator SYMBOL(const A &a, const B &b) { \
        typedef typename hls_schedule::fixed_pair<A, B>::RESULT result; \
        const result left = hls_schedule::fixed_number<A>(a), right = hls_schedule::fixed_number<B>(b); \
        return result::of(left.number SYMBOL right.number); \
    }
HLS_SCHEDULE_FIXED_SUM(+, sum)
HLS_SCHEDULE_FIXED_SUM(-, difference)
HLS_SCHEDULE_FIXED_SUM(&, both)
HLS_SCHEDULE_FIXED_SUM(|, both)
HLS_SCHEDULE_FIXED_SUM(^, both)

template <class A, class B, HLS_SCHEDULE_EITHER_FIXED(A, B)>
inline auto operator*(const A &a, const B &b) {
    typedef typename hls_schedule::fixed_pair<A, B>::product result;
    typedef typename result::type wide;
    return result::of(wide(hls_schedule::fixed_number<A>(a).number) * wide(hls_schedule::fixed_number<B>(b).number));
}
template <class A, class B, HLS_SCHEDULE_EITHER_FIXED(A, B)>
inline auto operator/(const A &a, const B &b) {
    typedef hls_schedule::fixed_pair<A, B> pair;
    typedef typename pair::quotient result;
    typedef typename hls_schedule::bits_of<result::width + 1, true>::type wide;
    const wide dividend = wide(hls_schedule::fixed_number<A>(a).number) << pair::shift;
    return result::of(static_cast<typename result::type>(dividend / wide(hls_schedule::fixed_number<B>(b).number)));
}

#define HLS_SCHEDULE_FIXED_COMPARISON(SYMBOL) \
    template <class A, class B, HLS_SCHEDULE_EITHER_FIXED(A, B)> \
    inline bool operator SYMBOL(const A &a, const B &b) { \
        typedef typename hls_schedule::fixed_pair<A, B>::both both; \
        const both left = hls_schedule::fixed_number<A>(a), right = hls_schedule::fixed_number<B>(b); \
        return left.number SYMBOL right.number; \
    } \
    template <int W, int I, bool S, ap_q_mode Q, ap_o_mode O, int N, class T, \
              typename std::enable_if<std::is_floating_point<T>::value, long>::type = 0> \
    inline bool operator SYMBOL(const ap_fixed_base<W, I, S, Q, O, N> &a, T b) { \
        return static_cast<T>(a) SYMBOL b; \
    }
HLS_SCHEDULE_FIXED_COMPARISON(==)
HLS_SCHEDULE_FIXED_COMPARISON(!=)
HLS_SCHEDULE_FIXED_COMPARISON(<)
HLS_SCHEDULE_FIXED_COMPARISON(>)
HLS_SCHEDULE_FIXED_COMPARISON(<=)
HLS_SCHEDULE_FIXED_COMPARISON(>=)

#define HLS_SCHEDULE_FIXED_SHIFT(SYMBOL) \
    template <int W, int I, bool S, ap_q_mode Q, ap_o_mode O, int N> \
    inline ap_fixed_base<W, I, S, Q, O, N> operator SYMBOL(const ap_fixed_base<W, I, S, Q, O, N> &a, int by) { \
        return ap_fixed_base<W, I, S, Q, O, N>::of(a.number SYMBOL by); \
    }
HLS_SCHEDULE_FIXED_SHIFT(<<)
HLS_SCHEDULE_FIXED_SHIFT(>>)

// An operator between a fixed-point and a floating-point number computes in floating point.
#define HLS_SCHEDULE_FIXED_FLOAT(SYMBOL) \
    template <int W, int I, bool S, ap_q_mode Q, ap_o_mode O, int N, class T, \
              typename std::enable_if<std::is_floating_point<T>::value, long>::type = 0> \
    inline T operator SYMBOL(const ap_fixed_base<W, I, S, Q, O, N> &a, T b) { \
        return static_cast<T>(a) SYMBOL b; \
    } \
    template <int W, int I, bool S, ap_q_mode Q, ap_o_mode O, int N, class T, \
              typename std::enable_if<std::is_floating_point<T>::value, long>::type = 0> \
    inline T operator SYMBOL(T a, const ap_fixed_base<W, I, S, Q, O, N> &b) { \
        return a SYMBOL static_cast<T>(b); \
    }
HLS_SCHEDULE_FIXED_FLOAT(+)
HLS_SCHEDULE_FIXED_FLOAT(-)
HLS_SCHEDULE_FIXED_FLOAT(*)
HLS_SCHEDULE_FIXED_FLOAT(/)

#define HLS_SCHEDULE_FIXED_ASSIGNMENT(SYMBOL) \
    template <int W, int I, bool S, ap_q_mode Q, ap_o_mode O, int N, class B> \
    inline ap_fixed_base<W, I, S, Q, O, N> &operator SYMBOL## = (ap_fixed_base<W, I, S, Q, O, N> & a, const B &b) { \
        return a = ap_fixed_base<W, I, S, Q, O, N>(a SYMBOL b); \
    }
// A native number that is assigned the result of an operator with a fixed-point number.
#define HLS_SCHEDULE_NATIVE_ASSIGNMENT(SYMBOL) \
    template <class T, int W, int I, bool S, ap_q_mode Q, ap_o_mode O, int N, \
              typename std::enable_if<std::is_arithmetic<T>::value, long>::type = 0> \
    inline T &operator SYMBOL## = (T & a, const ap_fixed_base<W, I, S, Q, O, N> &b) { \
        return a = static_cast<T>(a SYMBOL b); \
    }
HLS_SCHEDULE_NATIVE_ASSIGNMENT(+)
HLS_SCHEDULE_NATIVE_ASSIGNMENT(-)
HLS_SCHEDULE_NATIVE_ASSIGNMENT(*)
HLS_SCHEDULE_NATIVE_ASSIGNMENT(/)
HLS_SCHEDULE_FIXED_ASSIGNMENT(+)
HLS_SCHEDULE_FIXED_ASSIGNMENT(-)
HLS_SCHEDULE_FIXED_ASSIGNMENT(*)
HLS_SCHEDULE_FIXED_ASSIGNMENT(/)
HLS_SCHEDULE_FIXED_ASSIGNMENT(&)
HLS_SCHEDULE_FIXED_ASSIGNMENT(|)
HLS_SCHEDULE_FIXED_ASSIGNMENT(^)
HLS_SCHEDULE_FIXED_ASSIGNMENT(<<)
HLS_SCHEDULE_FIXED_ASSIGNMENT(>>)

#endif  // HLS_SCHEDULE_AP_FIXED_H

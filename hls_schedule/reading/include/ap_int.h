// Integers of any width with the interface of the vendor's ap_int.h, for checks only. Each is clang's _BitInt of the
// same width, so that the compiled code shows the width of every operator. Results have the width of UG1399, "Arbitrary
// Precision Integer Reference Guide": a sum has one bit more than the wider operand, a product the bits of both.
#ifndef HLS_SCHEDULE_AP_INT_H
#define HLS_SCHEDULE_AP_INT_H

#include <type_traits>

namespace hls_schedule {
template <int BITS, bool SIGNED>
struct bits_of {
    typedef _BitInt(BITS) type;
};
template <int BITS>
struct bits_of<BITS, false> {
    typedef unsigned _BitInt(BITS) type;
};
template <>
struct bits_of<1, true> {
    typedef _BitInt(2) type;
};
constexpr int larger(int a, int b) { return a > b ? a : b; }
constexpr int sum_bits(int a, bool a_signed, int b, bool b_signed) {
    return larger(a + (b_signed && !a_signed), b + (a_signed && !b_signed));
}
}  // namespace hls_schedule

template <int BITS, bool SIGNED>
struct ap_int_base;
template <int BITS>
using ap_int = ap_int_base<BITS, true>;
template <int BITS>
using ap_uint = ap_int_base<BITS, false>;

namespace hls_schedule {
// A native integer as an operand: its width and sign in the vendor's rules.
template <class T>
struct operand {
    static constexpr bool known = std::is_integral<T>::value || std::is_enum<T>::value;
    static constexpr int bits = std::is_same<T, bool>::value ? 1 : 8 * int(sizeof(T));
    static constexpr bool is_signed = !std::is_same<T, bool>::value && std::is_signed<T>::value;
};
template <int BITS, bool SIGNED>
struct operand<ap_int_base<BITS, SIGNED>> {
    static constexpr bool known = true;
    static constexpr int bits = BITS;
    static constexpr bool is_signed = SIGNED;
};
template <class T>
using number = ap_int_base<operand<T>::bits, operand<T>::is_signed>;

// Bits high … low of a number, which can be read and written.
template <int BITS, bool SIGNED>
struct slice {
    ap_int_base<BITS, SIGNED> &whole;
    int high, low;
    operator ap_int_base<BITS, false>() const { return whole.cut(high, low); }
    ap_int_base<BITS, false> value() const { return whole.cut(high, low); }
    operator unsigned long long() const { return static_cast<unsigned long long>(whole.cut(high, low).number); }
    unsigned to_uint() const { return static_cast<unsigned>(whole.cut(high, low).number); }
    int to_int() const { return static_cast<int>(whole.cut(high, low).number); }
    template <class T>
    slice &operator=(const T &from) {
        whole.put(high, low, ap_int_base<BITS, false>(from));
        return *this;
    }
    slice &operator=(const slice &from) {
        whole.put(high, low, from.value());
        return *this;
    }
};
}  // namespace hls_schedule

template <int BITS, bool SIGNED>
struct ap_int_base {
    typedef typename hls_schedule::bits_of<BITS, SIGNED>::type type;
    static constexpr int width = BITS;
    type number;

    ap_int_base() = default;
    template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value || std::is_enum<T>::value>::type>
    ap_int_base(T from) : number(static_cast<type>(from)) {}
    template <int B, bool S>
    ap_int_base(const ap_int_base<B, S> &from) : number(static_cast<type>(from.number)) {}
    template <int B, bool S>
    ap_int_base(const hls_schedule::slice<B, S> &from) : number(static_cast<type>(from.value().number)) {}
    static ap_int_base of(type number) {
        ap_int_base value;
        value.number = number;
        return value;
    }

    typedef typename std::conditional<
        (BITS <= 8), typename std::conditional<SIGNED, signed char, unsigned char>::type,
        typename std::conditional<
            (BITS <= 16), typename std::conditional<SIGNED, short, unsigned short>::type,
            typename std::conditional<(BITS <= 32), typename std::conditional<SIGNED, int, unsigned>::type,
                                      typename std::conditional<SIGNED, long long, unsigned long long>::type>::type>::
            type>::type native;
    operator native() const { return static_cast<native>(number); }
    int to_int() const { return static_cast<int>(number); }
    unsigned to_uint() const { return static_cast<unsigned>(number); }
    long long to_int64() const { return static_cast<long long>(number); }
    unsigned long long to_uint64() const { return static_cast<unsigned long long>(number); }
    bool to_bool() const { return number != 0; }
    static constexpr int length() { return BITS; }

    typedef unsigned _BitInt(BITS) raw;
    ap_int_base<BITS, false> cut(int high, int low) const {
        const raw mask = high - low + 1 >= BITS ? raw(-1) : raw((raw(1) << (high - low + 1)) - 1);
        return ap_int_base<BITS, false>::of((raw(number) >> low) & mask);
    }
    void put(int high, int low, ap_int_base<BITS, false> from) {
        const raw mask = high - low + 1 >= BITS ? raw(-1) : raw((raw(1) << (high - low + 1)) - 1);
        number = type((raw(number) & raw(~(mask << low))) | ((from.number & mask) << low));
    }
    hls_schedule::slice<BITS, SIGNED> range(int high, int low) { return {*this, high, low}; }
    hls_schedule::slice<BITS, SIGNED> operator()(int high, int low) { return {*this, high, low}; }
    ap_int_base<BITS, false> range(int high, int low) const { return cut(high, low); }
    ap_int_base<BITS, false> operator()(int high, int low) const { return cut(high, low); }
    hls_schedule::slice<BITS, SIGNED> operator[](int bit) { return {*this, bit, bit}; }
    bool operator[](int bit) const { return (raw(number) >> bit) & 1; }
    bool get_bit(int bit) const { return (raw(number) >> bit) & 1; }
    bool test(int bit) const { return get_bit(bit); }
    void set_bit(int bit, bool value) { put(bit, bit, ap_int_base<BITS, false>(value)); }
    bool or_reduce() const { return number != 0; }
    bool and_reduce() const { return raw(number) == raw(-1); }

    ap_int_base &operator++() { return *this = of(number + 1); }
    ap_int_base &operator--() { return *this = of(number - 1); }
    ap_int_base operator++(int) {
        const ap_int_base before = *this;
        ++*this;
        return before;
    }
    ap_int_base operator--(int) {
        const ap_int_base before = *this;
        --*this;
        return before;
    }
    ap_int_base operator+() const { return *this; }
    ap_int_base<BITS + 1, true> operator-() const {
        typedef typename ap_int_base<BITS + 1, true>::type wide;
        return ap_int_base<BITS + 1, true>::of(-wide(number));
    }
    ap_int_base operator~() const { return of(~number); }
    bool operator!() const { return number == 0; }
};

#define HLS_SCHEDULE_EITHER(A, B) \
    class = typename std::enable_if < hls_schedule::operand<A>::known && hls_schedule::operand<B>::known && \
            !(std::is_integral<A>::value && std::is_integral<B>::value) && \
            !(std::is_enum<A>::value || std::is_enum<B>::value) > ::type
#define HLS_SCHEDULE_OPERATOR(SYMBOL, WIDTH, SIGN) \
    template <class A, class B, HLS_SCHEDULE_EITHER(A, B)> \
    inline auto operator SYMBOL(const A &a, const B &b) { \
        typedef hls_schedule::operand<A> P; \
        typedef hls_schedule::operand<B> Q; \
        typedef ap_int_base<(WIDTH), (SIGN)> result; \
        typedef typename result::type wide; \
        return result::of(wide(hls_schedule::number<A>(a).number) SYMBOL wide(hls_schedule::number<B>(b).number)); \
    }
HLS_SCHEDULE_OPERATOR(+, (hls_schedule::sum_bits(P::bits, P::is_signed, Q::bits, Q::is_signed) + 1),
                      (P::is_signed || Q::is_signed))
HLS_SCHEDULE_OPERATOR(-, (hls_schedule::sum_bits(P::bits, P::is_signed, Q::bits, Q::is_signed) + 1), (true))
HLS_SCHEDULE_OPERATOR(*, (P::bits + Q::bits), (P::is_signed || Q::is_signed))
HLS_SCHEDULE_OPERATOR(/, (P::bits + (Q::is_signed ? 1 : 0)), (P::is_signed || Q::is_signed))
HLS_SCHEDULE_OPERATOR(%, (P::bits), (P::is_signed))
HLS_SCHEDULE_OPERATOR(&, (hls_schedule::sum_bits(P::bits, P::is_signed, Q::bits, Q::is_signed)),
                      (P::is_signed || Q::is_signed))
HLS_SCHEDULE_OPERATOR(|, (hls_schedule::sum_bits(P::bits, P::is_signed, Q::bits, Q::is_signed)),
                      (P::is_signed || Q::is_signed))
HLS_SCHEDULE_OPERATOR(^, (hls_schedule::sum_bits(P::bits, P::is_signed, Q::bits, Q::is_signed)),
                      (P::is_signed || Q::is_signed))

// The concatenation of both, the first above the second.
template <int A, bool SIGNED_A, int B, bool SIGNED_B>
inline ap_int_base<A + B, false> operator,(const ap_int_base<A, SIGNED_A> &upper,
                                           const ap_int_base<B, SIGNED_B> &lower) {
    typedef typename ap_int_base<A + B, false>::type wide;
    const ap_int_base<A, false> above(upper);
    const ap_int_base<B, false> below(lower);
    return ap_int_base<A + B, false>::of(wide(wide(above.number) << B) | wide(below.number));
}

#define HLS_SCHEDULE_COMPARISON(SYMBOL) \
    template <class A, class B, HLS_SCHEDULE_EITHER(A, B)> \
    inline bool operator SYMBOL(const A &a, const B &b) { \
        typedef hls_schedule::operand<A> P; \
        typedef hls_schedule::operand<B> Q; \
        typedef ap_int_base<hls_schedule::sum_bits(P::bits, P::is_signed, Q::bits, Q::is_signed), \
                            (P::is_signed || Q::is_signed)> \
            both; \
        return both(hls_schedule::number<A>(a)).number SYMBOL both(hls_schedule::number<B>(b)).number; \
    }
HLS_SCHEDULE_COMPARISON(==)
HLS_SCHEDULE_COMPARISON(!=)
HLS_SCHEDULE_COMPARISON(<)
HLS_SCHEDULE_COMPARISON(>)
HLS_SCHEDULE_COMPARISON(<=)
HLS_SCHEDULE_COMPARISON(>=)

#define HLS_SCHEDULE_SHIFT(SYMBOL) \
    template <int BITS, bool SIGNED, class B, class = typename std::enable_if<hls_schedule::operand<B>::known>::type> \
    inline ap_int_base<BITS, SIGNED> operator SYMBOL(const ap_int_base<BITS, SIGNED> &a, const B &by) { \
        return ap_int_base<BITS, SIGNED>::of(a.number SYMBOL static_cast<int>(hls_schedule::number<B>(by).number)); \
    }
HLS_SCHEDULE_SHIFT(<<)
HLS_SCHEDULE_SHIFT(>>)

#define HLS_SCHEDULE_ASSIGNMENT(SYMBOL) \
    template <int BITS, bool SIGNED, class B> \
    inline ap_int_base<BITS, SIGNED> &operator SYMBOL## = (ap_int_base<BITS, SIGNED> & a, const B &b) { \
        return a = ap_int_base<BITS, SIGNED>(a SYMBOL b); \
    }
HLS_SCHEDULE_ASSIGNMENT(+)
HLS_SCHEDULE_ASSIGNMENT(-)
HLS_SCHEDULE_ASSIGNMENT(*)
HLS_SCHEDULE_ASSIGNMENT(/)
HLS_SCHEDULE_ASSIGNMENT(%)
HLS_SCHEDULE_ASSIGNMENT(&)
HLS_SCHEDULE_ASSIGNMENT(|)
HLS_SCHEDULE_ASSIGNMENT(^)
HLS_SCHEDULE_ASSIGNMENT(<<)
HLS_SCHEDULE_ASSIGNMENT(>>)

#endif  // HLS_SCHEDULE_AP_INT_H

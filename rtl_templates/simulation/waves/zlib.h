// The part of zlib that Verilator's FST writer needs: a stream (RFC 1950) of stored blocks (RFC 1951, 3.2.4). The
// result is never smaller than the input, so that the writer stores the bytes uncompressed. These are the tables of
// times and of initial values, a small part of a file.
#ifndef SYSTOLIC_WAVES_ZLIB_H
#define SYSTOLIC_WAVES_ZLIB_H

#include <cstring>

typedef unsigned char Bytef;
typedef unsigned long uLong, uLongf;
enum { Z_OK = 0 };

inline uLong compressBound(uLong size) { return size + 5 * (size / 65535 + 1) + 6; }

inline int compress2(Bytef *to, uLongf *written, const Bytef *from, uLong size, int) {
    Bytef *const begin = to;
    *to++ = 0x78;
    *to++ = 0x01;
    uLong low = 1, high = 0;  // Adler-32
    for (uLong i = 0; i < size; ++i) {
        low = (low + from[i]) % 65521;
        high = (high + low) % 65521;
    }
    do {
        const uLong block = size < 65535 ? size : 65535;
        *to++ = block == size;
        for (uLong length : {block, ~block}) {
            *to++ = Bytef(length);
            *to++ = Bytef(length >> 8);
        }
        std::memcpy(to, from, block);
        to += block;
        from += block;
        size -= block;
    } while (size);
    for (uLong half : {high, low}) {
        *to++ = Bytef(half >> 8);
        *to++ = Bytef(half);
    }
    *written = uLong(to - begin);
    return Z_OK;
}

#endif  // SYSTOLIC_WAVES_ZLIB_H

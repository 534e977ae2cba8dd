// The part of LZ4 that Verilator's FST writer needs: one block, in the format of https://github.com/lz4/lz4
// (lz4_Block_format.md). Matches are found greedily with one hash table. Any reader of LZ4 can unpack the result.
#ifndef SYSTOLIC_WAVES_LZ4_H
#define SYSTOLIC_WAVES_LZ4_H

#include <cstdint>
#include <cstring>
#include <vector>

namespace lz4 {

const int LEAST_MATCH = 4, FARTHEST = 65535;
const int LAST_LITERALS = 5, LAST_MATCH = 12;  // bytes at the end that are literals, and where no match may begin

inline uint32_t word(const uint8_t *at) {
    uint32_t read;
    std::memcpy(&read, at, 4);
    return read;
}

// Writes the part of a length that exceeds the four bits of a token.
inline uint8_t *longer(uint8_t *to, int left) {
    for (; left >= 255; left -= 255) *to++ = 255;
    *to++ = uint8_t(left);
    return to;
}

inline uint8_t *literals(uint8_t *to, const uint8_t *from, int count, int match) {
    *to++ = uint8_t((count < 15 ? count : 15) << 4 | (match < 15 ? match : 15));
    if (count >= 15) to = longer(to, count - 15);
    std::memcpy(to, from, size_t(count));
    return to + count;
}

inline int compress(const uint8_t *from, uint8_t *to, int size) {
    const uint8_t *const begin = to;
    std::vector<int> places(1 << 14, -1);
    int written = 0, at = 0;
    while (at + LAST_MATCH < size) {
        int &place = places[word(from + at) * 2654435761u >> 18];
        const int before = place;
        place = at;
        if (before < 0 || at - before > FARTHEST || word(from + before) != word(from + at)) {
            ++at;
            continue;
        }
        int length = LEAST_MATCH;
        while (at + length < size - LAST_LITERALS && from[before + length] == from[at + length]) ++length;
        to = literals(to, from + written, at - written, length - LEAST_MATCH);
        *to++ = uint8_t(at - before);
        *to++ = uint8_t((at - before) >> 8);
        if (length - LEAST_MATCH >= 15) to = longer(to, length - LEAST_MATCH - 15);
        written = at += length;
    }
    return int(literals(to, from + written, size - written, 0) - begin);
}

}  // namespace lz4

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

inline int LZ4_compress_default(const char *from, char *to, int size, int) {
    return lz4::compress(reinterpret_cast<const uint8_t *>(from), reinterpret_cast<uint8_t *>(to), size);
}

#endif  // SYSTOLIC_WAVES_LZ4_H

// Checks of the properties of simulation/hls_stream.h; each fault is one line on standard output.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "instrument.h"

struct wide_t {
    int64_t lane[64];  // 512 bytes: 127 to a chunk of 64 KiB
};

static int faults = 0;

static void expect(bool holds, const char *what) {
    if (holds) return;
    ++faults;
    std::printf("%s\n", what);
}

static wide_t wide(int64_t number) {
    wide_t value;
    for (int i = 0; i < 64; ++i) value.lane[i] = number + i;
    return value;
}

static bool same(const wide_t &value, int64_t number) {
    bool all = true;
    for (int i = 0; i < 64; ++i) all = all && value.lane[i] == number + i;
    return all;
}

// The order of values over many chunks, for all numbers of values between writer and reader.
static void order() {
    hls::stream<wide_t> queue;
    int64_t written = 0, read = 0;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < round % 7 * 40; ++i) queue.write(wide(written++));
        expect(queue.size() == size_t(written - read), "size");
        const int64_t take = (written - read) * (round % 3) / 2;
        for (int64_t i = 0; i < take; ++i) expect(same(queue.read(), read++), "order");
    }
    wide_t value;
    while (!queue.empty()) {
        queue >> value;
        expect(same(value, read++), "order at the end");
    }
    expect(read == written && written > 20000, "count");
}

// Elements that own memory are copied and destroyed as often as they are made.
static void owners() {
    auto shared = std::make_shared<int>(7);
    {
        hls::stream<std::shared_ptr<int>> queue;
        for (int i = 0; i < 10000; ++i) queue.write(shared);
        for (int i = 0; i < 10000; ++i) expect(*queue.read() == 7, "owner");
        expect(shared.use_count() == 1, "owners left");
    }
    try {
        hls::stream<std::shared_ptr<int>> queue;
        queue.write(shared);
    } catch (const systolic::StreamError &) {
        ++*shared;
    }
    expect(*shared == 8, "leftover outside of a region");
    expect(shared.use_count() == 1, "owners left behind");
}

static void arrays() {
    SYSTOLIC_DATAFLOW(1);
    hls::stream<int> grid[2][3];
    SYSTOLIC_STREAM(grid, 4);
    grid[1][2].write(5);
    expect(grid[1][2].read() == 5, "array");
    expect(grid[1][2].name() == "grid[1][2]", "name");
}

int main() {
    order();
    owners();
    arrays();
    return faults != 0;
}

// small as a streaming pipeline
// Send one frame through the top function and compare the output packet byte by byte. Generated.
//
// The same file is used by three tools: csim and cosim of Vitis HLS, and g++ with the headers in simulation/.
//
//  test_bench [data]    data/in.bin and data/expected.bin are packets in the DMA's format
//
// It prints PASS and exits with 0, prints the first byte that differs and exits with 1, or prints an error about its
// files and exits with 2.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "top.h"

// On a computer, the top function also calls the two ends of the DMA and passes on the integers of its streams. Here
// the test bench is the DMA, and only checks the output packet.
void dma_read(int, hls::stream<beat_t<IN_BEAT> > &) {}
void dma_write(int, hls::stream<beat_t<OUT_BEAT> > &) {}
void record_tap(int, const int32_t *, size_t) {}

// Print an error about a file and exit.
static void refuse(const std::string &path, const char *what) {
    std::printf("%s %s\n", path.c_str(), what);
    std::exit(2);
}

// Read a file of exactly ``count`` little-endian elements.
template <typename T>
static std::vector<T> load(const std::string &path, size_t count) {
    std::ifstream file(path.c_str(), std::ios::binary | std::ios::ate);
    if (!file) refuse(path, "cannot be opened");
    const std::streamoff bytes = file.tellg();
    if (bytes != static_cast<std::streamoff>(count * sizeof(T))) {
        refuse(path, "does not have the size that this design needs; is it from another design?");
    }
    std::vector<T> data(count);
    file.seekg(0);
    file.read(reinterpret_cast<char *>(data.data()), static_cast<std::streamsize>(bytes));
    if (!file) refuse(path, "cannot be read");
    return data;
}

// Send a packet as beats. The last beat is padded with zeros and has TLAST.
static void send(const std::vector<uint8_t> &packet, hls::stream<beat_t<IN_BEAT> > &in) {
    for (int beat = 0; beat < IN_BEATS; ++beat) {
        uint8_t bytes[IN_BEAT] = {0};
        for (int i = 0; i < IN_BEAT && beat * IN_BEAT + i < IN_BYTES; ++i) bytes[i] = packet[beat * IN_BEAT + i];
        beat_t<IN_BEAT> sent;
        set_beat<IN_BEAT>(sent, bytes, beat == IN_BEATS - 1);
        in.write(sent);
    }
}

// Compare one beat, and print the first byte of the packet that differs. Return the number of bytes that differ.
static int compare(int beat, const beat_t<OUT_BEAT> &found, const std::vector<uint8_t> &expected, int before) {
    int wrong = 0;
    for (int i = 0; i < OUT_BEAT && beat * OUT_BEAT + i < OUT_BYTES; ++i) {
        const int is = byte_of<OUT_BEAT>(found, i), must = expected[beat * OUT_BEAT + i];
        if (is == must || before + wrong++ != 0) continue;
        std::printf("FAIL beat %d, byte %d is %d and must be %d\n", beat, i, is, must);
    }
    return wrong;
}

// Check the output packet: its bytes, TLAST at its last beat only, and no beat after it. Return the number of faults.
static int receive(const std::vector<uint8_t> &expected, hls::stream<beat_t<OUT_BEAT> > &out) {
    int wrong = 0, misplaced = 0, beat = 0;
    for (; beat < OUT_BEATS && !out.empty(); ++beat) {
        const beat_t<OUT_BEAT> found = out.read();
        wrong += compare(beat, found, expected, wrong);
        if (bool(found.last) == (beat == OUT_BEATS - 1)) continue;
        if (misplaced++ == 0) std::printf("FAIL beat %d %s TLAST\n", beat, found.last ? "has" : "lacks");
    }
    if (wrong != 0) std::printf("FAIL %d of %d bytes differ\n", wrong, OUT_BYTES);
    if (beat < OUT_BEATS) std::printf("FAIL the packet ends after %d of %d beats\n", beat, OUT_BEATS);
    int more = 0;
    for (; !out.empty(); ++more) out.read();
    if (more != 0) std::printf("FAIL %d beats come after the packet\n", more);
    return wrong + misplaced + (OUT_BEATS - beat) + more;
}

int main(int argc, char **argv) {
    const std::string folder = argc > 1 ? argv[1] : "data";
    const std::vector<uint8_t> packet = load<uint8_t>(folder + "/in.bin", IN_BYTES);
    const std::vector<uint8_t> expected = load<uint8_t>(folder + "/expected.bin", OUT_BYTES);
    hls::stream<beat_t<IN_BEAT> > in;
    hls::stream<beat_t<OUT_BEAT> > out;
    send(packet, in);
    streaming_top(in, out, 1);

    int wrong = 0;
    if (!in.empty()) {
        std::printf("FAIL the frame was not taken whole\n");
        ++wrong;
        while (!in.empty()) in.read();
    }
    wrong += receive(expected, out);
    if (wrong != 0) return 1;
    std::printf("PASS: %d bytes in, %d bytes out\n", IN_BYTES, OUT_BYTES);
    return 0;
}

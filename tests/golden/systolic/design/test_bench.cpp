// tiny on a 6×8×8 systolic array
// Run one frame through the top function and compare its outputs word by word. Generated.
//
// The same file is used by three tools: csim and cosim of Vitis HLS, and g++ with the headers in simulation/.
//
//  test_bench [data]          one start for all passes, as on the board
//  test_bench data apart      one start per pass, with a copy of the memory for every port. This is for cosim, whose
//                             memory model gives each pointer its own memory: a port would not read what another wrote.
//
// It prints PASS and exits with 0, prints the first word that differs and exits with 1, or prints an error about its
// files and exits with 2.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "top.h"

// The engine calls this after each pass. The test bench only checks the outputs.
void after_pass(uint32_t) {}

static const size_t MAPS_WORDS = 512;

// A part of the map memory. base, words: its first word and its size, in words.
struct region {
    const char *name;
    size_t base, words;
};

// The outputs in the map memory, in the order of expected.bin.
static const region OUTPUTS[] = {
    {"conv2", 256, 256},
};

// Print an error about a file and exit.
static void refuse(const std::string &path, const char *what) {
    std::printf("%s %s\n", path.c_str(), what);
    std::exit(2);
}

// Read a file of whole little-endian words. words: the size that it must have; 0 accepts any size above 0.
template <typename T>
static std::vector<T> load(const std::string &path, size_t words) {
    std::ifstream file(path.c_str(), std::ios::binary | std::ios::ate);
    if (!file) refuse(path, "cannot be opened");
    const size_t bytes = static_cast<size_t>(file.tellg());
    if (bytes == 0 || bytes % sizeof(T) != 0) refuse(path, "does not hold whole words");
    if (words != 0 && bytes != words * sizeof(T)) refuse(path, "does not have the size that this design needs; is it from another design?");
    std::vector<T> data(bytes / sizeof(T));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(data.data()), static_cast<std::streamsize>(bytes));
    if (!file) refuse(path, "cannot be read");
    return data;
}

// Print the first word that differs, and return the number of words that differ.
static size_t compare(const region &out, const word_t *found, const word_t *expected) {
    size_t wrong = 0;
    for (size_t word = 0; word < out.words; ++word) {
        if (std::memcmp(&found[word], &expected[word], sizeof(word_t)) == 0) continue;
        if (wrong++ != 0) continue;
        for (int lane = 0; lane < LANES; ++lane) {
            const int is = int(lanes_of(found[word]).lane[lane]), must = int(lanes_of(expected[word]).lane[lane]);
            if (is == must) continue;
            std::printf("FAIL %s: word %zu, lane %d is %d and must be %d\n", out.name, word, lane, is, must);
            break;
        }
    }
    if (wrong != 0) std::printf("FAIL %s: %zu of %zu words differ\n", out.name, wrong, out.words);
    return wrong;
}

// The contents of DDR except for the maps.
struct images {
    std::vector<weight_word_t> weights_0;
    std::vector<requantiser_t> requantisers;
    std::vector<uint32_t> program;

    explicit images(const std::string &folder) {
        weights_0 = load<weight_word_t>(folder + "/weights_0.bin", 0);
        requantisers = load<requantiser_t>(folder + "/requantisers.bin", 0);
        program = load<uint32_t>(folder + "/program.bin", 0);
        if (program.size() % PASS_WORDS != 0) refuse(folder + "/program.bin", "does not hold whole passes");
    }

    uint32_t passes() const { return static_cast<uint32_t>(program.size() / PASS_WORDS); }
};

// Run all passes with one start. The read and write ports of the maps share one memory, as on the board.
static uint32_t run_at_once(images &ddr, std::vector<word_t> &maps) {
    uint32_t current = 0;
    systolic_top(
        maps.data(), maps.data(),
        maps.data(), maps.data(),
        ddr.weights_0.data(),
        ddr.requantisers.data(), ddr.program.data(), 0, ddr.passes(), &current);
    return current;
}

// Copy the words that a port has changed.
static void merge(std::vector<word_t> &maps, const std::vector<word_t> &before, const std::vector<word_t> &written) {
    for (size_t word = 0; word < maps.size(); ++word) {
        if (std::memcmp(&before[word], &written[word], sizeof(word_t)) != 0) maps[word] = written[word];
    }
}

// Run the passes with one start each, and every port on its own copy of the memory.
static uint32_t run_apart(images &ddr, std::vector<word_t> &maps) {
    uint32_t current = 0;
    for (uint32_t pass = 0; pass < ddr.passes(); ++pass) {
        const std::vector<word_t> before = maps;
        std::vector<word_t> read_0 = before, write_0 = before;
        std::vector<word_t> read_1 = before, write_1 = before;
        systolic_top(
            read_0.data(), write_0.data(),
            read_1.data(), write_1.data(),
            ddr.weights_0.data(),
            ddr.requantisers.data(), ddr.program.data(), pass, 1, &current);
        merge(maps, before, write_0);
        merge(maps, before, write_1);
    }
    return current;
}

int main(int argc, char **argv) {
    static_assert(sizeof(word_t) == WORD_BYTES, "a word must be LANES values without padding bytes");
    static_assert(sizeof(requantiser_t) == 16, "a requantiser must be 16 bytes");
    const std::string folder = argc > 1 ? argv[1] : "data";
    const bool apart = argc > 2 && std::string(argv[2]) == "apart";
    size_t expected_words = 0;
    for (const region &out : OUTPUTS) expected_words += out.words;

    // maps.bin already contains the input image.
    std::vector<word_t> maps = load<word_t>(folder + "/maps.bin", MAPS_WORDS);
    const std::vector<word_t> expected = load<word_t>(folder + "/expected.bin", expected_words);
    images ddr(folder);
    const uint32_t passes = ddr.passes();
    const uint32_t current = apart ? run_apart(ddr, maps) : run_at_once(ddr, maps);

    size_t wrong = 0;
    const word_t *next = expected.data();
    for (const region &out : OUTPUTS) {
        wrong += compare(out, &maps[out.base], next);
        next += out.words;
    }
    if (current != passes - 1) {
        std::printf("FAIL: it stopped in pass %u of %u\n", static_cast<unsigned>(current), static_cast<unsigned>(passes));
        ++wrong;
    }
    if (wrong != 0) return 1;
    std::printf("PASS: %zu words, %u passes\n", expected_words, static_cast<unsigned>(passes));
    return 0;
}

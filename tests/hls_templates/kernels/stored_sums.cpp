// Runs the process ``pool`` with a recorder in place of the memory ``stored_sums``. For each pass it prints the fewest
// iterations between two iterations that use the same address.
#include <cstdio>
#include <map>

#include "instrument.h"

static long iteration = 0;
#undef SYSTOLIC_PIPELINE
#define SYSTOLIC_PIPELINE(ii, depth) ++iteration

#include "types.h"

struct recorder_t {
    std::map<int, long> used;  // address → the last iteration that used it
    std::map<int, sums_t> words;
    long nearest = -1;

    sums_t &operator[](int address) {
        const auto found = used.find(address);
        if (found != used.end() && found->second != iteration) {
            const long distance = iteration - found->second;
            if (nearest < 0 || distance < nearest) nearest = distance;
        }
        used[address] = iteration;
        return words[address];
    }
};
static recorder_t recorder;

#include "pool.h"

static const int OUT_HEIGHT = 4 * ROWS - 1, ROW_TILES = 4;

static void walk(int stride, int width, int channel_tiles, int inputs_resident) {
    pass_t pass = pass_t();
    pass.pool_size = 2;
    pass.pool_stride = stride;
    pass.out_height = OUT_HEIGHT;
    pass.out_width = width;
    pass.save_width = (width + stride - 1) / stride;
    pass.row_tiles = ROW_TILES;
    pass.channel_tiles = channel_tiles;
    pass.inputs_resident = inputs_resident;
    pass.kernel_groups = pass.kernel_height = pass.positions = pass.upscale = 1;
    hls::stream<pool_tile_t> tiles;
    hls::stream<positions_t> sums[ROWS];
    hls::stream<group_t> groups;
    plan_tiles(pass, tiles);
    for (int i = 0; i < ROW_TILES * channel_tiles * width; ++i)
        for (int m = 0; m < ROWS; ++m) sums[m].write(positions_t());
    recorder = recorder_t();
    iteration = 0;
    pool(pass, tiles, sums, groups);
    while (!groups.empty()) groups.read();
    std::printf("%d %d %d %d %ld\n", stride, width, channel_tiles, inputs_resident, recorder.nearest);
}

int main() {
    for (int stride = 1; stride <= 2; ++stride)
        for (int width = 1; width <= 7; ++width)
            for (int channel_tiles = 1; channel_tiles <= 3; ++channel_tiles)
                for (int inputs_resident = 0; inputs_resident <= 1; ++inputs_resident)
                    walk(stride, width, channel_tiles, inputs_resident);
}

// tiny: the golden model of every integer of every layer. Generated; it needs only golden.bin.
// Build:  g++ -std=c++17 -O3 golden.cpp -o golden
// Use:    ./golden golden.bin PICTURE [--dump DIR]    PICTURE: raw uint8 [3][16][16], 768 bytes
//
// It prints one line per layer: name, number of integers, checksum. --dump writes every layer's integers to
// DIR/name.int8 (.uint8, .int16, …), little-endian, [channels][height][width].
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// All operations are included, also those that this network does not use.
namespace golden {

// All sums and products below are far smaller than 64 bits, so that none can overflow.
using integer = std::int64_t;
static_assert((integer{-1} >> 1) == -1, "requantisation needs an arithmetic right shift of negative integers");

// A type of the integers. carrier: the suffix of a dump's name. bytes: of one integer in a dump. low, high: its limits.
// step: the difference between two values.
struct type_t {
    const char *carrier;
    int bytes;
    integer low, high, step;
};

constexpr type_t INT16{"int16", 2, -32768, 32767, 1};
constexpr type_t INT8{"int8", 1, -128, 127, 1};
constexpr type_t UINT8{"uint8", 1, 0, 255, 1};

// The integers of one layer, [channels][height][width].
struct map_t {
    integer channels = 0, height = 0, width = 0;
    std::vector<integer> values;

    map_t() = default;
    map_t(integer c, integer h, integer w) : channels(c), height(h), width(w), values(static_cast<std::size_t>(c * h * w)) {}
    integer &at(integer c, integer y, integer x) { return values[(c * height + y) * width + x]; }
    const integer &at(integer c, integer y, integer x) const { return values[(c * height + y) * width + x]; }
};

// The form of a layer's requantisation, which turns an exact sum into a value.
enum class form_t { requantiser, multiply_shift, thresholds };

// The constants of one layer in golden.bin: the weights, and the values that the form needs, by output channel.
struct numbers_t {
    std::string layer;
    form_t form;
    integer channels, levels;
    std::vector<integer> weights, bias, multiplier, negative_multiplier, shift, thresholds, flip;
};

// A sliding window over a padded map.
struct window_t {
    integer height, width, stride;  // height, width: places
    integer down = 1, across = 1;  // rows and columns from one place to the next (dilation)
};

struct padding_t {
    integer top, left, bottom, right;
};

[[noreturn]] void fail(const std::string &sentence) { throw std::runtime_error(sentence); }

void require(bool condition, const std::string &sentence) {
    if (!condition) fail(sentence);
}

// ------------------------------------------------------------------------------------------------------ files

std::vector<unsigned char> read_file(const std::string &path, std::size_t bytes) {
    std::FILE *file = std::fopen(path.c_str(), "rb");
    require(file != nullptr, path + " cannot be opened");
    std::vector<unsigned char> data(bytes + 1);  // one more byte shows that a file is too long
    const std::size_t bytes_read = std::fread(data.data(), 1, data.size(), file);
    std::fclose(file);
    const std::string needed = path + " must have " + std::to_string(bytes) + " bytes, but has ";
    require(bytes_read <= bytes, needed + "more; is it of another network?");
    require(bytes_read == bytes, needed + std::to_string(bytes_read) + "; is it truncated, or of another network?");
    data.pop_back();
    return data;
}

// Reader of golden.bin. The file has a magic text, the number of blocks (4 bytes), and one block per layer that
// computes, in order: channels (4 bytes), number of weights (8), bytes of a weight (4), the weights [channels][…]. Then
// follow, by form:
//  requantiser     bias, multiplier, negative, shift as int32 [channels] each
//  multiply_shift  multiplier int32, bias int64, shift int32, [channels] each
//  thresholds      flip int32 [channels], thresholds int64 [channels][levels]
// The block of an activation has the number of table entries (4 bytes), and the entries as int32, in the order of the
// inputs from the lowest on. In a piecewise-linear table, the entries are the segments' values at their starts, and the
// slopes follow as int32. All numbers are little-endian, in two's complement.
class parameters_t {
  public:
    explicit parameters_t(const std::string &path) : path_(path), data_(read_file(path, 1180)) {
        const std::string magic = "GOLDEN01";
        require(std::equal(magic.begin(), magic.end(), data_.begin()), path + " must begin with " + magic);
        position_ = magic.size();
        expect("its count of layers", 2, 4);
    }

    // Return the next layer's constants.
    numbers_t next(const std::string &layer, integer channels, integer weights, int weight_bytes, form_t form,
                   integer levels) {
        expect(layer + ": the channels", channels, 4);
        expect(layer + ": the count of weights", weights, 8);
        expect(layer + ": the bytes of a weight", weight_bytes, 4);
        numbers_t numbers{layer, form, channels, levels, read_many(weights, weight_bytes), {}, {}, {}, {}, {}, {}};
        if (form == form_t::thresholds) {
            numbers.flip = read_within(layer + ": a flip", channels, 4, 0, 1);
            const integer most = integer{1} << 31;
            numbers.thresholds = read_within(layer + ": a threshold", channels * levels, 8, -most, most);
            check_ascending(numbers);
        } else if (form == form_t::multiply_shift) {
            const integer most = (integer{1} << 47) - 1;
            numbers.multiplier = read_within(layer + ": a multiplier", channels, 4, -65535, 65535);
            numbers.bias = read_within(layer + ": a bias", channels, 8, -most, most);
            numbers.shift = read_within(layer + ": a shift", channels, 4, 1, 47);
        } else {
            numbers.bias = read_many(channels, 4);
            numbers.multiplier = read_within(layer + ": a multiplier", channels, 4, 0, 65535);
            numbers.negative_multiplier = read_within(layer + ": a negative multiplier", channels, 4, 0, 65535);
            numbers.shift = read_within(layer + ": a shift", channels, 4, 1, 47);
        }
        return numbers;
    }

    // Return the table of the next activation.
    std::vector<integer> next_table(const std::string &layer, integer levels) {
        expect(layer + ": the values of its table", levels, 4);
        return read_many(levels, 4);
    }

    // Return the starts and slopes of the next piecewise-linear table.
    std::pair<std::vector<integer>, std::vector<integer>> next_pieces(const std::string &layer, integer pieces) {
        std::vector<integer> values = next_table(layer, pieces);
        return {std::move(values), read_many(pieces, 4)};
    }

  private:
    void check_ascending(const numbers_t &numbers) const {
        for (integer c = 0; c < numbers.channels; ++c) {
            const integer *first = &numbers.thresholds[c * numbers.levels];
            require(std::is_sorted(first, first + numbers.levels), path_ + ": " + numbers.layer + ": thresholds must ascend");
        }
    }

    integer read(int bytes) {
        std::uint64_t value = 0;
        for (int i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(data_.at(position_++)) << (8 * i);
        const int unused = 64 - 8 * bytes;
        return static_cast<integer>(value << unused) >> unused;  // extends the sign
    }

    std::vector<integer> read_many(integer count, int bytes) {
        std::vector<integer> values(static_cast<std::size_t>(count));
        for (integer &value : values) value = read(bytes);
        return values;
    }

    std::vector<integer> read_within(const std::string &what, integer count, int bytes, integer low, integer high) {
        std::vector<integer> values = read_many(count, bytes);
        for (const integer value : values) {
            require(low <= value && value <= high,
                    path_ + ": " + what + " must be " + std::to_string(low) + " to " + std::to_string(high) + ", not " +
                        std::to_string(value));
        }
        return values;
    }

    void expect(const std::string &what, integer expected, int bytes) {
        const integer found = read(bytes);
        require(found == expected,
                path_ + ": " + what + " must be " + std::to_string(expected) + ", not " + std::to_string(found));
    }

    std::string path_;
    std::vector<unsigned char> data_;
    std::size_t position_ = 0;
};

map_t read_picture(const std::string &path, integer channels, integer height, integer width) {
    map_t picture(channels, height, width);
    const std::vector<unsigned char> pixels = read_file(path, picture.values.size());
    std::copy(pixels.begin(), pixels.end(), picture.values.begin());
    return picture;
}

// ----------------------------------------------------------------------------------------------- requantisation

// Return the level of the sum: the number of thresholds that it reaches. If the channel is flipped, its negative
// counts.
integer threshold(integer sum, const numbers_t &numbers, integer channel, const type_t &type) {
    const integer value = numbers.flip[channel] != 0 ? -sum : sum;
    integer level = 0;
    for (integer i = 0; i < numbers.levels; ++i) level += value >= numbers.thresholds[channel * numbers.levels + i];
    return type.low + type.step * level;
}

integer requantise(integer sum, const numbers_t &numbers, integer channel, const type_t &type) {
    const bool biased = numbers.form == form_t::requantiser;  // the bias is added to the sum, not to the product
    const integer total = biased ? sum + numbers.bias[channel] : sum;
    require(total == static_cast<std::int32_t>(total), numbers.layer + ": an accumulator does not fit 32 bits");
    if (numbers.form == form_t::thresholds) return threshold(sum, numbers, channel, type);
    const integer multiplier = biased && total < 0 ? numbers.negative_multiplier[channel] : numbers.multiplier[channel];
    const integer product = total * multiplier + (biased ? 0 : numbers.bias[channel]);
    const integer shift = numbers.shift[channel];
    return std::clamp((product + (integer{1} << (shift - 1))) >> shift, type.low, type.high);
}

// -------------------------------------------------------------------------------------------- layers that compute

// Return the map with a border of padding, whose value is ``around``.
map_t pad(integer around, const map_t &in, padding_t padding) {
    map_t out(in.channels, padding.top + in.height + padding.bottom, padding.left + in.width + padding.right);
    std::fill(out.values.begin(), out.values.end(), around);
    for (integer c = 0; c < in.channels; ++c)
        for (integer y = 0; y < in.height; ++y)
            for (integer x = 0; x < in.width; ++x) out.at(c, y + padding.top, x + padding.left) = in.at(c, y, x);
    return out;
}

// Return an empty map of the size that a window produces.
map_t window_output(const map_t &in, integer channels, window_t window, padding_t padding) {
    const integer height = padding.top + in.height + padding.bottom, width = padding.left + in.width + padding.right;
    const integer rows = (window.height - 1) * window.down + 1, columns = (window.width - 1) * window.across + 1;
    return map_t(channels, (height - rows) / window.stride + 1, (width - columns) / window.stride + 1);
}

// Weights [filters][channels / groups][kernel height][kernel width]. Each row of outputs is computed as a whole: the
// innermost loop adds one weight's products to all of them.
map_t convolution(const map_t &in, const numbers_t &numbers, window_t window, padding_t padding, integer around,
                  integer groups, const type_t &type) {
    const map_t padded = pad(around, in, padding);
    const integer filters = numbers.channels, channels = in.channels / groups;
    map_t out = window_output(in, filters, window, padding);
    std::vector<integer> sums(static_cast<std::size_t>(out.width));
    for (integer f = 0; f < filters; ++f) {
        const integer first = f / (filters / groups) * channels;  // the first input channel of this filter's group
        for (integer y = 0; y < out.height; ++y) {
            const integer *weight = &numbers.weights[f * channels * window.height * window.width];
            std::fill(sums.begin(), sums.end(), 0);
            for (integer c = 0; c < channels; ++c)
                for (integer ky = 0; ky < window.height; ++ky)
                    for (integer kx = 0; kx < window.width; ++kx, ++weight) {
                        const integer *row = &padded.at(first + c, y * window.stride + ky * window.down, kx * window.across);
                        for (integer x = 0; x < out.width; ++x) sums[x] += *weight * row[x * window.stride];
                    }
            for (integer x = 0; x < out.width; ++x) out.at(f, y, x) = requantise(sums[x], numbers, f, type);
        }
    }
    return out;
}

// Weights [outputs][inputs], with the inputs in the order of the map.
map_t dense(const map_t &in, const numbers_t &numbers, const type_t &type) {
    const integer outputs = numbers.channels, inputs = static_cast<integer>(in.values.size());
    map_t out(outputs, 1, 1);
    for (integer o = 0; o < outputs; ++o) {
        integer sum = 0;
        for (integer i = 0; i < inputs; ++i) sum += numbers.weights[o * inputs + i] * in.values[i];
        out.at(o, 0, 0) = requantise(sum, numbers, o, type);
    }
    return out;
}

// The requantiser divides the sum over the whole map by the number of values.
map_t average_pool(const map_t &in, const numbers_t &numbers, const type_t &type) {
    map_t out(in.channels, 1, 1);
    for (integer c = 0; c < in.channels; ++c) {
        integer sum = 0;
        for (integer y = 0; y < in.height; ++y)
            for (integer x = 0; x < in.width; ++x) sum += in.at(c, y, x);
        out.at(c, 0, 0) = requantise(sum, numbers, c, type);
    }
    return out;
}

// Sum the inputs, each times its own multiplier, which brings all inputs to one scale.
map_t add(const std::vector<std::pair<const map_t *, integer>> &inputs, const numbers_t &numbers, const type_t &type) {
    const map_t &like = *inputs.front().first;
    map_t out(like.channels, like.height, like.width);
    for (integer c = 0; c < out.channels; ++c)
        for (integer y = 0; y < out.height; ++y)
            for (integer x = 0; x < out.width; ++x) {
                integer sum = 0;
                for (const auto &[in, multiplier] : inputs) sum += in->at(c, y, x) * multiplier;
                out.at(c, y, x) = requantise(sum, numbers, c, type);
            }
    return out;
}

// Look up each value in a table. low: the lowest value of the input.
map_t activate(const map_t &in, const std::vector<integer> &table, integer low) {
    map_t out = in;
    for (integer &value : out.values) value = table.at(value - low);
    return out;
}

// The same for values of more bits, by a piecewise-linear table with segments of 2^fraction values. pieces: the value
// at the start of each segment, and its slope.
map_t interpolate(const map_t &in, const std::pair<std::vector<integer>, std::vector<integer>> &pieces, integer low,
                  integer fraction) {
    const auto &[values, slopes] = pieces;
    map_t out = in;
    for (integer &value : out.values) {
        const integer piece = (value - low) >> fraction, inside = (value - low) & ((integer{1} << fraction) - 1);
        value = values.at(piece) + ((slopes.at(piece) * inside + (integer{1} << (fraction - 1))) >> fraction);
    }
    return out;
}

// ----------------------------------------------------------------------------------------------- layers that move

// Positions outside of the map are ignored, so that padding is never the maximum.
map_t max_pool(const map_t &in, window_t window, padding_t padding) {
    map_t out = window_output(in, in.channels, window, padding);
    for (integer c = 0; c < out.channels; ++c)
        for (integer y = 0; y < out.height; ++y)
            for (integer x = 0; x < out.width; ++x) {
                const integer top = y * window.stride - padding.top, left = x * window.stride - padding.left;
                const integer bottom = std::min(top + window.height, in.height);
                const integer right = std::min(left + window.width, in.width);
                integer most = in.at(c, std::max<integer>(top, 0), std::max<integer>(left, 0));
                for (integer i = std::max<integer>(top, 0); i < bottom; ++i)
                    for (integer j = std::max<integer>(left, 0); j < right; ++j) most = std::max(most, in.at(c, i, j));
                out.at(c, y, x) = most;
            }
    return out;
}

// The channels of the first input, then the channels of the next one.
map_t concat(const std::vector<const map_t *> &inputs) {
    map_t out(0, inputs.front()->height, inputs.front()->width);
    for (const map_t *in : inputs) {
        out.channels += in->channels;
        out.values.insert(out.values.end(), in->values.begin(), in->values.end());
    }
    return out;
}

// Return ``channels`` channels, from channel ``first`` on.
map_t slice(const map_t &in, integer first, integer channels) {
    map_t out(channels, in.height, in.width);
    for (integer c = 0; c < channels; ++c)
        for (integer y = 0; y < in.height; ++y)
            for (integer x = 0; x < in.width; ++x) out.at(c, y, x) = in.at(first + c, y, x);
    return out;
}

// darknet's reorg_cpu, as its layer calls it. It interprets the input's memory as [C / s²][H · s][W · s] and gathers it
// into [C][H][W]. The layer then interprets the result as [C · s²][H / s][W / s].
map_t reorg(const map_t &in, integer stride) {
    map_t out(in.channels * stride * stride, in.height / stride, in.width / stride);
    const integer deep = in.channels / (stride * stride), wide = in.width * stride;
    for (integer k = 0; k < in.channels; ++k)
        for (integer j = 0; j < in.height; ++j)
            for (integer i = 0; i < in.width; ++i) {
                const integer offset = k / deep;
                const integer row = j * stride + offset / stride, column = i * stride + offset % stride;
                const integer from = column + wide * (row + in.height * stride * (k % deep));
                out.values[i + in.width * (j + in.height * k)] = in.values[from];
            }
    return out;
}

// [C][H][W] → [(row · s + column) · C + c][H / s][W / s]: the pixels of each s × s block one after the other.
map_t space_to_depth(const map_t &in, integer stride) {
    map_t out(in.channels * stride * stride, in.height / stride, in.width / stride);
    for (integer c = 0; c < out.channels; ++c)
        for (integer y = 0; y < out.height; ++y)
            for (integer x = 0; x < out.width; ++x) {
                const integer place = c / in.channels;
                out.at(c, y, x) = in.at(c % in.channels, y * stride + place / stride, x * stride + place % stride);
            }
    return out;
}

// Repeat each pixel in ``rows`` rows and ``columns`` columns.
map_t upsample(const map_t &in, integer rows, integer columns) {
    map_t out(in.channels, in.height * rows, in.width * columns);
    for (integer c = 0; c < out.channels; ++c)
        for (integer y = 0; y < out.height; ++y)
            for (integer x = 0; x < out.width; ++x) out.at(c, y, x) = in.at(c, y / rows, x / columns);
    return out;
}

// ---------------------------------------------------------------------------------------------------- the report

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Σ mix(value + (position + 1) · golden ratio) modulo 2^64. It depends on each value and its position, but not on the
// order of the additions.
std::uint64_t checksum(const map_t &map) {
    std::uint64_t sum = 0, place = 0;
    for (const integer value : map.values) sum += mix(static_cast<std::uint64_t>(value) + (place += 0x9e3779b97f4a7c15u));
    return sum;
}

void dump(const std::string &path, const map_t &map, const type_t &type) {
    std::vector<unsigned char> bytes;
    for (const integer value : map.values)
        for (int i = 0; i < type.bytes; ++i) bytes.push_back(static_cast<unsigned char>(value >> (8 * i)));
    std::FILE *file = std::fopen(path.c_str(), "wb");
    require(file != nullptr, path + " cannot be opened for writing; DIR must exist");
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    require(std::fclose(file) == 0 && written, path + " cannot be written; is the disk full?");
}

// Print a layer's line, and write its integers if there is a folder.
void report(const char *name, const map_t &map, const type_t &type, const std::string &folder) {
    std::printf("%s %zu %016llx\n", name, map.values.size(), static_cast<unsigned long long>(checksum(map)));
    if (!folder.empty()) dump(folder + "/" + name + "." + type.carrier, map, type);
}

// --------------------------------------------------------------------------------------------------- the network

void run(const std::string &parameter_file, const std::string &picture, const std::string &folder) {
    parameters_t parameters(parameter_file);
    std::vector<map_t> m(4);
    m[0] = read_picture(picture, 3, 16, 16);
    report("input", m[0], UINT8, folder);
    m[1] = convolution(m[0], parameters.next("conv1", 16, 432, 1, form_t::requantiser, 0), window_t{3, 3, 1}, padding_t{1, 1, 1, 1}, 0, 1, INT8);
    report("conv1", m[1], INT8, folder);
    m[2] = max_pool(m[1], window_t{2, 2, 2}, padding_t{0, 0, 0, 0});
    report("pool1", m[2], INT8, folder);
    m[3] = convolution(m[2], parameters.next("conv2", 14, 224, 1, form_t::requantiser, 0), window_t{1, 1, 1}, padding_t{0, 0, 0, 0}, 0, 1, INT16);
    report("conv2", m[3], INT16, folder);
}

}  // namespace golden

int main(int count, char **arguments) {
    const bool dumps = count == 5 && std::string(arguments[3]) == "--dump";
    if (count != 3 && !dumps) {
        std::fprintf(stderr, "usage: golden golden.bin PICTURE [--dump DIR]\n");
        return 2;
    }
    try {
        golden::run(arguments[1], arguments[2], dumps ? arguments[4] : "");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}

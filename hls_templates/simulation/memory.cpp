#include "memory.h"

#include <algorithm>
#include <cmath>

namespace systolic {
namespace trace {

namespace {

// Add bytes to the bin of cycle ``start``. The width of the bins is doubled until there is a bin for it.
void add_transferred(BundleResult &result, std::int64_t start, std::int64_t bytes) {
    std::vector<std::int64_t> &moved = result.moved;
    if (moved.empty()) return;
    const std::size_t half = moved.size() / 2;
    while (start >> result.shift >= std::int64_t(moved.size())) {
        for (std::size_t i = 0; i < half; ++i) moved[i] = moved[2 * i] + moved[2 * i + 1];
        std::fill(moved.begin() + std::ptrdiff_t(half), moved.end(), 0);
        ++result.shift;
    }
    moved[std::size_t(start >> result.shift)] += bytes;
}

}  // namespace

Channel::Channel(const Options &options, int process_number, Port *the_port, std::int64_t bytes_of_beat)
    : write(the_port->result.write), process(process_number), port(the_port), beat_bytes(bytes_of_beat),
      outstanding_(write ? options.write_outstanding : options.read_outstanding),
      latency_(write ? options.write_latency : options.read_latency), max_beats_(options.max_burst_beats),
      capacity_(options.write_outstanding * options.max_burst_beats),
      // The adapter stores outstanding × burst beats (UG1399, "Options for Controlling AXI4 Burst Behavior").
      beat_times_(outstanding_ * max_beats_ + kDdrChunkBytes), part_times_(outstanding_) {}

void Channel::declare(const Burst &burst, std::int64_t now) {
    std::int64_t left = std::int64_t(burst.beats);
    // Split the burst at pages of kPage bytes and at the longest AXI burst.
    std::int64_t byte = std::int64_t(burst.address) * beat_bytes;
    while (left > 0) {
        const std::int64_t in_page = std::max<std::int64_t>(1, (kPage - byte % kPage) / beat_bytes);
        const std::int64_t beats = std::min(left, std::min(in_page, max_beats_));
        left -= beats;
        byte += beats * beat_bytes;
        parts_.push_back({write ? kUnknown : now, beats, left == 0});
    }
}

std::int64_t Channel::load_ready() { return transferred_ < served_ ? beat_times_[transferred_] : kUnknown; }

void Channel::load(std::int64_t now) {
    ++transferred_;
    if (++transferred_part_beats_ < parts_[transfer_part_].beats) return;
    part_times_[std::int64_t(transfer_part_)] = now;
    ++transfer_part_;
    transferred_part_beats_ = 0;
}

std::int64_t Channel::store_ready() {
    if (transferred_ < capacity_) return 0;
    return transferred_ - capacity_ < served_ ? beat_times_[transferred_ - capacity_] + 1 : kUnknown;
}

void Channel::store(std::int64_t now) {
    ++transferred_;
    if (++transferred_part_beats_ < parts_[transfer_part_].beats) return;
    // Conservative mode, the default: an address is sent after all its data, so that no partial burst blocks the
    // memory.
    parts_[transfer_part_].requested = now + 1;
    ++transfer_part_;
    transferred_part_beats_ = 0;
}

std::int64_t Channel::response_ready() {
    return responses_taken_ < std::int64_t(responses_.size()) ? responses_[std::size_t(responses_taken_)] : kUnknown;
}

std::int64_t Channel::all_responses() {
    if (!write || parts_.empty()) return 0;
    return serving_ == parts_.size() ? part_times_[std::int64_t(serving_) - 1] : kUnknown;
}

std::int64_t Channel::earliest() {
    if (serving_ == parts_.size()) return kNever;
    if (served_beats_ > 0) return port->next_free;
    const Part &part = parts_[serving_];
    if (part.requested == kUnknown) return kNever;
    std::int64_t time = std::max(part.requested, issued_ + 1);
    const std::int64_t slot = std::int64_t(serving_) - outstanding_;
    if (slot >= 0) {
        if (!write && slot >= std::int64_t(transfer_part_))
            return kNever;  // the data of an earlier part is not taken yet
        time = std::max(time, part_times_[slot] + 1);
    }
    return std::max(time, port->next_free);
}

std::int64_t Channel::chunk_beats() const {
    const std::int64_t left = parts_[serving_].beats - served_beats_;
    return std::min(left, std::max<std::int64_t>(1, kDdrChunkBytes / beat_bytes));
}

std::int64_t Channel::serve(std::int64_t start, double cycles_per_beat) {
    // A read's beats arrive a latency after the request.
    const std::int64_t beats = chunk_beats();
    const std::int64_t shift = write ? 0 : latency_;
    const std::int64_t first = served_;
    if (served_beats_ == 0) issued_ = start;
    for (std::int64_t i = 0; i < beats; ++i) {
        beat_times_[served_++] = start + shift + std::int64_t(double(i) * cycles_per_beat);
    }
    served_beats_ += beats;
    port->next_free = start + beats;
    port->result.busy += beats;
    port->result.bytes += beats * beat_bytes;
    add_transferred(port->result, start, beats * beat_bytes);
    if (served_beats_ == parts_[serving_].beats) finish_part(beat_times_[served_ - 1]);
    return beat_times_[first] + (write ? 1 : 0);
}

void Channel::finish_part(std::int64_t last_beat) {
    ++port->result.bursts;
    if (write) {
        part_times_[std::int64_t(serving_)] = last_beat + latency_;
        if (parts_[serving_].last) responses_.push_back(last_beat + latency_);
    }
    ++serving_;
    served_beats_ = 0;
}

std::int64_t Ddr::serve_chunk(Channel &channel, std::int64_t first) {
    const std::int64_t beats = channel.chunk_beats();
    const double start = std::max(free_, double(first));
    free_ = start + double(beats * channel.beat_bytes) / bytes_per_cycle_;
    const double cycles_per_beat = std::max(1.0, double(channel.beat_bytes) / bytes_per_cycle_);
    return channel.serve(std::int64_t(std::ceil(start)), cycles_per_beat);
}

}  // namespace trace
}  // namespace systolic

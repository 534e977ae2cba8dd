// The recorder and the solver with the C interface of c_abi.h. Results are JSON.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "c_abi.h"
#include "solve.h"

namespace {

using namespace systolic::trace;

// Return the text as a JSON string, without control characters.
std::string escape_json(const std::string &text) {
    std::string result = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) result += c;
    }
    return result + "\"";
}

// A writer of JSON that places the commas.
class Json {
public:
    Json &open(char bracket) {
        comma();
        text_ += bracket;
        fresh_ = true;
        return *this;
    }
    Json &close(char bracket) {
        text_ += bracket;
        fresh_ = false;
        return *this;
    }
    Json &key(const char *name) {
        comma();
        text_ += escape_json(name) + ":";
        fresh_ = true;
        return *this;
    }
    Json &value(const std::string &text) { return raw(escape_json(text)); }
    Json &value(const char *text) { return raw(escape_json(text)); }
    Json &value(std::int64_t number) { return raw(std::to_string(number)); }
    Json &value(bool truth) { return raw(truth ? "true" : "false"); }
    const std::string &text() const { return text_; }

private:
    Json &raw(const std::string &text) {
        comma();
        text_ += text;
        return *this;
    }
    void comma() {
        if (!fresh_) text_ += ',';
        fresh_ = false;
    }

    std::string text_;
    bool fresh_ = true;
};

// Return the names of the region's processes. Several instances of one process function are numbered.
std::vector<std::string> process_names(const RegionRecord &region) {
    std::map<std::string, int> total, seen;
    for (const ProcessRecord &process : region.processes) ++total[process.name];
    std::vector<std::string> names;
    for (const ProcessRecord &process : region.processes) {
        const bool alone = total[process.name] == 1;
        names.push_back(alone ? process.name : process.name + "[" + std::to_string(seen[process.name]++) + "]");
    }
    return names;
}

void describe_region(Json &json, const RegionRecord &region) {
    const std::vector<std::string> names = process_names(region);
    json.open('{').key("label").value(std::int64_t(region.label)).key("top").value(region.top);
    json.key("processes").open('[');
    for (std::size_t i = 0; i < names.size(); ++i) {
        const ProcessRecord &process = region.processes[i];
        json.open('{').key("name").value(names[i]);
        json.key("accesses").value(std::int64_t(process.accesses));
        json.key("entries").value(std::int64_t(process.entries.size())).close('}');
    }
    json.close(']').key("streams").open('[');
    for (const StreamRecord &stream : region.streams) {
        json.open('{').key("name").value(stream.name).key("depth").value(stream.depth);
        json.key("element_bytes").value(stream.element_bytes).key("elements").value(stream.writes);
        json.key("bits").value(stream.bits).key("impl").value(stream.impl);
        json.key("writer").value(std::int64_t(stream.writer)).key("reader").value(std::int64_t(stream.reader));
        json.close('}');
    }
    json.close(']').close('}');
}

// Return the memory that the record of a region takes.
std::int64_t bytes_of(const RegionRecord &region) {
    std::size_t bytes = sizeof(region);
    for (const ProcessRecord &process : region.processes) {
        bytes += process.entries.capacity() * sizeof(Entry) + process.runs.capacity() * sizeof(Run) +
                 process.bursts.capacity() * sizeof(Burst);
        for (const Pattern &pattern : process.patterns) bytes += sizeof(pattern) + pattern.raw.size() * 8;
    }
    return std::int64_t(bytes);
}

std::string describe() {
    Json json;
    std::int64_t bytes = 0;
    json.open('{').key("regions").open('[');
    for (const RegionRecord &region : record().regions) {
        describe_region(json, region);
        bytes += bytes_of(region);
    }
    json.close(']').key("bytes").value(bytes).close('}');
    return json.text();
}

void write_lane(Json &json, const ProcessResult &process) {
    static const char *const names[] = {"input", "space", "memory"};
    json.key("lane").open('{').key("bin_cycles").value(std::int64_t(1) << process.lane.shift);
    for (int kind = 0; kind < 3; ++kind) {
        json.key(names[kind]).open('[');
        for (std::int64_t cycles : process.lane.waits[kind]) json.value(cycles);
        json.close(']');
    }
    json.close('}');
}

void write_processes(Json &json, const RegionResult &result, bool lanes) {
    json.key("processes").open('[');
    for (const ProcessResult &process : result.processes) {
        json.open('{').key("end").value(process.end).key("wait_input").value(process.waits[kWaitInput]);
        json.key("wait_space").value(process.waits[kWaitSpace]).key("wait_memory").value(process.waits[kWaitMemory]);
        json.key("iterations").value(std::int64_t(process.iterations));
        if (lanes) write_lane(json, process);
        json.close('}');
    }
    json.close(']');
}

void write_streams(Json &json, const RegionResult &result) {
    json.key("streams").open('[');
    for (const StreamResult &stream : result.streams) {
        json.open('{').key("depth").value(stream.depth).key("max_occupancy").value(stream.max_occupancy);
        json.key("stall_input").value(stream.stall_input).key("stall_space").value(stream.stall_space).close('}');
    }
    json.close(']');
}

void write_bundles(Json &json, const RegionResult &result) {
    json.key("bundles").open('[');
    for (const BundleResult &bundle : result.bundles) {
        json.open('{').key("bundle").value(std::int64_t(bundle.bundle)).key("write").value(bundle.write);
        json.key("bytes").value(bundle.bytes).key("busy").value(bundle.busy).key("bursts").value(bundle.bursts);
        json.key("bin_cycles").value(std::int64_t(1) << bundle.shift).key("moved").open('[');
        for (std::int64_t bytes : bundle.moved) json.value(bytes);
        json.close(']').close('}');
    }
    json.close(']');
}

void write_ring(Json &json, const RegionResult &result) {
    static const char *const waits[] = {"data", "space", "memory", "memory", "memory", "memory", "memory"};
    json.key("ring").open('[');
    for (const Blocked &blocked : result.ring) {
        const Kind kind = kind_of(blocked.code);
        const std::int64_t stream = kind == kRead || kind == kWrite ? std::int64_t(index_of(blocked.code)) : -1;
        json.open('{').key("process").value(std::int64_t(blocked.process)).key("waits_for").value(waits[kind]);
        json.key("stream").value(stream).key("element").value(blocked.element).close('}');
    }
    json.close(']');
}

void write_frames(Json &json, const RegionResult &result) {
    json.key("interval").value(result.interval).key("frame_ends").open('[');
    for (std::int64_t end : result.frame_ends) json.value(end);
    json.close(']');
}

std::string solve_text(std::int64_t number, const Options &options, const std::int64_t *depths,
                       const std::int64_t *in_memory) {
    const RegionRecord &region = record().regions.at(std::size_t(number));
    const RegionResult result = solve_region(record(), region, options, depths, in_memory);
    Json json;
    json.open('{').key("cycles").value(result.cycles).key("limited").value(result.limited);
    write_processes(json, result, options.timeline_bins > 0 && !result.limited);
    write_streams(json, result);
    write_bundles(json, result);
    write_ring(json, result);
    write_frames(json, result);
    json.close('}');
    return json.text();
}

std::string error_text(const char *sentence) {
    Json json;
    json.open('{').key("error").value(sentence).close('}');
    return json.text();
}

// Return the text of ``action``, or an error as JSON. It is stored in ``text``, which outlives the call.
template <typename Action>
const char *catch_errors(std::string &text, Action action) {
    try {
        text = action();
    } catch (const std::exception &error) {
        text = error_text(error.what());
    }
    return text.c_str();
}

}  // namespace

extern "C" {

void systolic_trace_begin() { begin(); }

const char *systolic_trace_end() {
    static std::string sentence;
    try {
        end();
        return nullptr;
    } catch (const std::exception &error) {
        sentence = error.what();
        return sentence.c_str();
    }
}

void systolic_trace_reset() { reset(); }

std::int64_t systolic_trace_regions() { return std::int64_t(record().regions.size()); }

const char *systolic_trace_describe() {
    static std::string text;
    return catch_errors(text, [] { return describe(); });
}

const char *systolic_trace_solve(std::int64_t region, const Options *options, const std::int64_t *depths,
                                 const std::int64_t *in_memory) {
    static std::string text;
    return catch_errors(text, [=] { return solve_text(region, *options, depths, in_memory); });
}

std::int64_t systolic_trace_cycles(std::int64_t region, const Options *options, const std::int64_t *depths,
                                   const std::int64_t *in_memory, std::int64_t *interval) {
    try {
        const RegionRecord &recorded = record().regions.at(std::size_t(region));
        const RegionResult result = solve_region(record(), recorded, *options, depths, in_memory);
        if (result.limited) return -2;
        if (interval != nullptr) *interval = result.interval;
        return result.ring.empty() ? result.cycles : -1;
    } catch (const std::exception &) {
        return -3;
    }
}

}  // extern "C"

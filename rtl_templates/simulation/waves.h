// Records the signals of some passes in a file for GTKWave and Surfer. A cycle is 1 ns, from one rising edge of the
// clock to the next. Time 0 is the cycle in which the registers start the engine.
#ifndef SYSTOLIC_RTL_WAVES_H
#define SYSTOLIC_RTL_WAVES_H

#include <cstdint>
#include <stdexcept>
#include <string>

#include "verilated.h"

namespace waves {

// The passes that are recorded, counted from the start of the program. With an empty path nothing is recorded.
struct window {
    std::string path;
    uint32_t first, last;
};

const uint64_t CYCLE = 1000;  // ps

#ifdef SYSTOLIC_WAVES

// To be called before the model is made, because the model checks only once whether it is traced.
inline void prepare(VerilatedContext &context) { context.traceEverOn(true); }

template <typename file_t>
class recorder {
public:
    template <typename top_t>
    recorder(top_t &top, const window &of) : of_(of) {
        if (of_.path.empty()) return;
        file_.set_time_unit("1ps");
        file_.set_time_resolution("1ps");
        top.trace(&file_, 99);
    }

    // To be called before the first cycle of pass ``index``, also for the index after the last pass.
    void enter(uint32_t index, uint64_t cycle) {
        if (index == 0) start_ = cycle;
        if (of_.path.empty()) return;
        if (index == of_.first) {
            file_.open(of_.path.c_str());
            if (!file_.isOpen()) throw std::runtime_error("waves cannot be written to " + of_.path);
            sample(cycle, 0);
        }
        if (index == of_.last + 1) file_.close();
    }

    // Records the signals at a time after the start of a cycle.
    void sample(uint64_t cycle, uint64_t picoseconds) {
        if (file_.isOpen()) file_.dump((cycle - start_) * CYCLE + picoseconds);
    }

private:
    window of_;
    file_t file_;
    uint64_t start_ = 0;
};

#else

inline void prepare(VerilatedContext &) {}

// A recorder that does nothing, for a library without waveforms.
template <typename file_t>
class recorder {
public:
    template <typename top_t>
    recorder(top_t &, const window &) {}
    void enter(uint32_t, uint64_t) {}
    void sample(uint64_t, uint64_t) {}
};

#endif

}  // namespace waves

#endif  // SYSTOLIC_RTL_WAVES_H

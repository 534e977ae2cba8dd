// Signals over time, of some passes, in a file that GTKWave and Surfer show. A cycle is drawn as 1 ns, from one rising
// edge of the clock to the next, and 0 is the cycle in which the registers start the engine.
#ifndef SYSTOLIC_RTL_WAVES_H
#define SYSTOLIC_RTL_WAVES_H

#include <cstdint>
#include <stdexcept>
#include <string>

#include "verilated.h"

namespace waves {

// Nothing where the path is empty. Passes are counted from the start of the program.
struct window {
    std::string path;
    uint32_t first, last;
};

const uint64_t CYCLE = 1000;  // ps

#ifdef SYSTOLIC_WAVES

// Before the model is made, which looks once whether anything is traced.
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

    // Before the first cycle of pass ``index``, and of the one behind the last.
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

    // What the signals are so many picoseconds behind a cycle's begin.
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

// Of a library that runs as fast as it can.
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

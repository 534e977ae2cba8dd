// Kernels whose cycles are small enough to derive by hand; the tests contain the derivations.
#include <cstdint>
#include <string>

#include "instrument.h"

namespace {

using stream = hls::stream<int>;

struct beat_t {
    int lane[4];  // 16 bytes
};

void source(stream &out, int count) {
    SYSTOLIC_PROCESS("source");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        out.write(i);
    }
}

void relay(stream &in, stream &out, int count, int ii, int depth) {
    SYSTOLIC_PROCESS("relay");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(ii, depth);
        out.write(in.read());
    }
}

void sink(stream &in, int count, int ii) {
    SYSTOLIC_PROCESS("sink");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(ii, 1);
        in.read();
    }
}

void two_loops(int count, int first_ii, int second_ii, int depth) {
    SYSTOLIC_PROCESS("loops");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(first_ii, depth);
    }
    if (second_ii == 0) return;
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(second_ii, depth);
    }
}

void pausing_source(stream &out) {
    SYSTOLIC_PROCESS("source");
    for (int half = 0; half < 2; ++half) {
        if (half) SYSTOLIC_SEQUENTIAL(10);
        SYSTOLIC_ENTER;
        for (int i = 0; i < 4; ++i) {
            SYSTOLIC_PIPELINE(1, 1);
            out.write(i);
        }
    }
}

void fork(stream &left, stream &right, int count) {
    SYSTOLIC_PROCESS("fork");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        left.write(i);
        right.write(i);
    }
}

// One out for four in.
void gather(stream &left, stream &sums, int count) {
    SYSTOLIC_PROCESS("gather");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        left.read();
        if (i % 4 == 3) sums.write(i);
    }
}

void join(stream &sums, stream &right, int count) {
    SYSTOLIC_PROCESS("join");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        if (i % 4 == 0) sums.read();
        right.read();
    }
}

void reader(const beat_t *memory, int bundle, int address, int beats) {
    SYSTOLIC_PROCESS("reader");
    SYSTOLIC_BURST_READ(bundle, address, beats);
    SYSTOLIC_ENTER;
    for (int i = 0; i < beats; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        (void)SYSTOLIC_LOAD(bundle, memory, address + i);
    }
}

// Asks for bursts of four while it takes them, two ahead.
void asking_reader(const beat_t *memory, int bursts) {
    SYSTOLIC_PROCESS("reader");
    int asked = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < 4 * bursts; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
        if (asked < bursts && asked < i / 4 + 2) {
            SYSTOLIC_BURST_READ(0, 4 * asked, 4);
            ++asked;
        }
        (void)SYSTOLIC_LOAD(0, memory, i);
    }
}

// Asks in one loop and loads in another.
void apart_reader(const beat_t *memory, int bursts) {
    SYSTOLIC_PROCESS("reader");
    SYSTOLIC_ENTER;
    for (int i = 0; i < bursts; ++i) {
        SYSTOLIC_PIPELINE(1, 9);
        SYSTOLIC_BURST_READ(0, 4 * i, 4);
    }
    SYSTOLIC_ENTER;
    for (int i = 0; i < 4 * bursts; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
        (void)SYSTOLIC_LOAD(0, memory, i);
    }
}

// No burst: each access is a request of one beat.
void single_reader(const beat_t *memory, int count, bool loop) {
    SYSTOLIC_PROCESS("reader");
    if (!loop) {
        (void)SYSTOLIC_LOAD(0, memory, 0);
        return;
    }
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
        (void)SYSTOLIC_LOAD(0, memory, 7 * i);
    }
}

void writer(beat_t *memory, int beats, bool wait) {
    SYSTOLIC_PROCESS("writer");
    SYSTOLIC_BURST_WRITE(0, 0, beats);
    SYSTOLIC_ENTER;
    for (int i = 0; i < beats; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        SYSTOLIC_STORE(0, memory, i, beat_t{{i, i, i, i}});
    }
    if (wait) SYSTOLIC_BURST_RESPONSE(0);
}

// A value that it reads is forwarded at once, and written again at the end of its pipeline.
void forwarder(stream &from, stream &forwarded, stream &to, int count) {
    SYSTOLIC_PROCESS("forwarder");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(1, 6);
        const auto value = from.read();
        SYSTOLIC_FORWARD(forwarded, value);
        to.write(value);
    }
}

void forwarding_region(int count, int sink_ii) {
    SYSTOLIC_DATAFLOW(9);
    stream pipe[3];
    SYSTOLIC_STREAM(pipe, 2);
    source(pipe[0], count);
    forwarder(pipe[0], pipe[1], pipe[2], count);
    sink(pipe[1], count, sink_ii);
    sink(pipe[2], count, 1);
}

void pipeline_region(int count, int first_ii, int second_ii, int depth) {
    SYSTOLIC_DATAFLOW(0);
    two_loops(count, first_ii, second_ii, depth);
}

void pair_region(int count, int depth) {
    SYSTOLIC_DATAFLOW(1);
    stream pipe;
    SYSTOLIC_STREAM(pipe, depth);
    source(pipe, count);
    sink(pipe, count, 1);
}

// The same with a FIFO of 8 words of ``bits``, in a shift register or in a memory.
void bound_region(int count, bool memory, int bits) {
    SYSTOLIC_DATAFLOW(1);
    stream pipe;
    if (memory) {
        SYSTOLIC_FIFO(pipe, bits, 8, bram);
    } else {
        SYSTOLIC_FIFO(pipe, bits, 8, srl);
    }
    source(pipe, count);
    sink(pipe, count, 1);
}

void chain_region(int count, int sink_ii) {
    SYSTOLIC_DATAFLOW(2);
    stream pipe[2];
    SYSTOLIC_STREAM(pipe, 2);
    source(pipe[0], count);
    relay(pipe[0], pipe[1], count, 1, 1);
    sink(pipe[1], count, sink_ii);
}

void deep_region() {
    SYSTOLIC_DATAFLOW(3);
    stream in, out;
    SYSTOLIC_STREAM(in, 8);
    SYSTOLIC_STREAM(out, 8);
    pausing_source(in);
    relay(in, out, 8, 1, 6);
    sink(out, 8, 1);
}

void fork_region(int count, int depth) {
    SYSTOLIC_DATAFLOW(4);
    stream left, right, sums;
    SYSTOLIC_STREAM(left, 2);
    SYSTOLIC_STREAM(right, depth);
    SYSTOLIC_STREAM(sums, 2);
    fork(left, right, count);
    gather(left, sums, count);
    join(sums, right, count);
}

void read_region(const beat_t *memory, int address, int beats, int readers) {
    SYSTOLIC_DATAFLOW(5);
    for (int i = 0; i < readers; ++i) reader(memory, i, address, beats);
}

void asking_region(const beat_t *memory, int bursts) {
    SYSTOLIC_DATAFLOW(14);
    asking_reader(memory, bursts);
}

void apart_region(const beat_t *memory, int bursts) {
    SYSTOLIC_DATAFLOW(14);
    apart_reader(memory, bursts);
}

void single_region(const beat_t *memory, int count, bool loop) {
    SYSTOLIC_DATAFLOW(15);
    single_reader(memory, count, loop);
}

void write_region(beat_t *memory, int beats, bool wait) {
    SYSTOLIC_DATAFLOW(6);
    writer(memory, beats, wait);
}

// Fork and join over arrays of two streams, which one pragma makes equally deep.
void paired_fork(stream left[2], stream right[2], int count) {
    SYSTOLIC_PROCESS("fork");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        for (int s = 0; s < 2; ++s) {
            left[s].write(i);
            right[s].write(i);
        }
    }
}

void paired_join(stream &sums, stream left[2], stream right[2], int count) {
    SYSTOLIC_PROCESS("join");
    SYSTOLIC_ENTER;
    for (int i = 0; i < count; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        if (i % 4 == 0) sums.read();
        left[1].read();
        for (int s = 0; s < 2; ++s) right[s].read();
    }
}

void paired_region(int count, int depth) {
    SYSTOLIC_DATAFLOW(16);
    stream left[2], right[2], sums;
    SYSTOLIC_STREAM(left, 8);
    SYSTOLIC_STREAM(right, depth);
    SYSTOLIC_STREAM(sums, 2);
    paired_fork(left, right, count);
    gather(left[0], sums, count);
    paired_join(sums, left, right, count);
}

// A chain of any processes, for the comparison with a simulator that steps every clock.
void any_chain(int stages, int count, const int *ii, const int *depth, const int *fifo) {
    SYSTOLIC_DATAFLOW(7);
    stream pipe[8];
    for (int i = 0; i <= stages; ++i) SYSTOLIC_STREAM(pipe[i], fifo[i]);
    source(pipe[0], count);
    for (int i = 0; i < stages; ++i) relay(pipe[i], pipe[i + 1], count, ii[i], depth[i]);
    sink(pipe[stages], count, ii[stages]);
}

// A row of output-stationary PEs: PE j works at stage j, and the sums of a tile are written at stage pes.
void pe_row(stream &in, stream &out, int tiles, int steps, int pes) {
    SYSTOLIC_PROCESS("pe_row");
    int sum = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < tiles * steps; ++i) {
        SYSTOLIC_PIPELINE(1, pes + 1);
        sum = (i % steps ? sum : 0) + in.read() * pes;
        if (i % steps == steps - 1) out.write(sum);
    }
}

void row_region(int tiles, int steps, int pes, int sink_ii, int first, int second) {
    SYSTOLIC_DATAFLOW(13);
    stream activations, sums;
    SYSTOLIC_STREAM(activations, first);
    SYSTOLIC_STREAM(sums, second);
    source(activations, tiles * steps);
    pe_row(activations, sums, tiles, steps, pes);
    sink(sums, tiles, sink_ii);
}

void two_reads_a_cycle() {
    SYSTOLIC_PROCESS("greedy");
    stream pipe;
    SYSTOLIC_STREAM(pipe, 2);
    SYSTOLIC_ENTER;
    {
        SYSTOLIC_PIPELINE(1, 2);
        pipe.write(0);
        pipe.write(1);
    }
    pipe.read();
    pipe.read();
}

void greedy_region() {
    SYSTOLIC_DATAFLOW(8);
    two_reads_a_cycle();
}

void short_burst() {
    SYSTOLIC_PROCESS("short");
    beat_t memory[4] = {};
    SYSTOLIC_BURST_READ(3, 0, 4);
    for (int i = 0; i < 3; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        (void)SYSTOLIC_LOAD(3, memory, i);
    }
}

void short_region() {
    SYSTOLIC_DATAFLOW(9);
    short_burst();
}

void two_sinks_region() {
    SYSTOLIC_DATAFLOW(10);
    stream pipe;
    SYSTOLIC_STREAM(pipe, 2);
    source(pipe, 4);
    sink(pipe, 2, 1);
    sink(pipe, 2, 1);
}

void outer_region() {
    SYSTOLIC_DATAFLOW(11);
    pair_region(4, 2);
}

void uneven_region(int written, int read) {
    SYSTOLIC_DATAFLOW(12);
    stream pipe;
    SYSTOLIC_STREAM(pipe, 2);
    source(pipe, written);
    sink(pipe, read, 1);
}

template <typename Kernel>
const char *guarded(Kernel kernel) {
    static std::string sentence;
    try {
        kernel();
        return nullptr;
    } catch (const std::exception &error) {
        sentence = error.what();
        return sentence.c_str();
    }
}

beat_t memory[1024];

}  // namespace

extern "C" {

const char *run_pipeline(int count, int first_ii, int second_ii, int depth) {
    return guarded([=] { pipeline_region(count, first_ii, second_ii, depth); });
}
const char *run_pair(int count, int depth) {
    return guarded([=] { pair_region(count, depth); });
}
const char *run_bound(int count, int memory, int bits) {
    return guarded([=] { bound_region(count, memory != 0, bits); });
}
const char *run_chain(int count, int sink_ii) {
    return guarded([=] { chain_region(count, sink_ii); });
}
const char *run_forwarding(int count, int sink_ii) {
    return guarded([=] { forwarding_region(count, sink_ii); });
}
const char *run_deep() {
    return guarded([] { deep_region(); });
}
const char *run_fork(int count, int depth) {
    return guarded([=] { fork_region(count, depth); });
}
const char *run_paired(int count, int depth) {
    return guarded([=] { paired_region(count, depth); });
}
const char *run_read(int address, int beats, int readers) {
    return guarded([=] { read_region(memory, address, beats, readers); });
}
const char *run_asking(int bursts) {
    return guarded([=] { asking_region(memory, bursts); });
}
const char *run_apart(int bursts) {
    return guarded([=] { apart_region(memory, bursts); });
}
const char *run_single(int count, int loop) {
    return guarded([=] { single_region(memory, count, loop); });
}
const char *run_write(int beats, int wait) {
    return guarded([=] { write_region(memory, beats, wait); });
}
const char *run_any_chain(int stages, int count, const int *ii, const int *depth, const int *fifo) {
    return guarded([=] { any_chain(stages, count, ii, depth, fifo); });
}
const char *run_row(int tiles, int steps, int pes, int sink_ii, int first, int second) {
    return guarded([=] { row_region(tiles, steps, pes, sink_ii, first, second); });
}
const char *run_top() {
    return guarded([] {
        SYSTOLIC_SEQUENTIAL(5);
        pair_region(8, 2);
        SYSTOLIC_SEQUENTIAL(7);
        pair_region(8, 2);
    });
}
const char *run_greedy() {
    return guarded([] { greedy_region(); });
}
const char *run_short() {
    return guarded([] { short_region(); });
}
const char *run_two_sinks() {
    return guarded([] { two_sinks_region(); });
}
const char *run_nested() {
    return guarded([] { outer_region(); });
}
const char *run_uneven(int written, int read) {
    return guarded([=] { uneven_region(written, read); });
}

}  // extern "C"

// hls::stream for g++: an unbounded queue whose cost is little more than copying the elements.
//
// The processes of a DATAFLOW region run one after the other, so that a stream holds all its elements before the reader
// starts. Elements are stored in chunks. An empty chunk returns to a pool that all streams share, so that a chain of
// processes needs the memory of its largest stream, not of all streams. A warning of the vendor's simulation is an
// error here: a read of an empty stream, or elements that remain when the region ends.
//
// read_nb and write_nb are missing on purpose. Their result would depend on the order in which C simulation calls the
// processes, and not on the hardware's clock.
#ifndef SYSTOLIC_SIMULATION_STREAM
#define SYSTOLIC_SIMULATION_STREAM

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace systolic {

// An error in the design's own sources. The C interface passes its message to Python.
class StreamError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The position of the C simulation, for error messages. regions: open regions. leftover: streams of the open region
// that still have elements.
struct Context {
    const char *process = "top";
    int regions = 0;
    std::string leftover;
};

inline Context &context() {
    static thread_local Context value;
    return value;
}

// 64 KiB is large enough that the pool is rarely used (128 times for 1e6 elements of 8 bytes). It is small enough that
// an array of some hundred streams needs a few MB.
constexpr std::size_t kChunkBytes = std::size_t(1) << 16;
constexpr std::size_t kChunkHeader = 64;

// The header of a chunk; its elements follow after kChunkHeader bytes.
struct Chunk {
    Chunk *next;
};

// The chunks that no stream uses.
class ChunkPool {
public:
    ChunkPool() = default;
    ChunkPool(const ChunkPool &) = delete;
    ChunkPool &operator=(const ChunkPool &) = delete;
    ~ChunkPool() { release(); }

    Chunk *take() {
        Chunk *chunk = free_;
        if (chunk) {
            free_ = chunk->next;
        } else {
            chunk = static_cast<Chunk *>(std::aligned_alloc(kChunkHeader, kChunkBytes));
            if (!chunk) throw std::bad_alloc();
        }
        chunk->next = nullptr;
        return chunk;
    }

    void give(Chunk *chunk) {
        chunk->next = free_;
        free_ = chunk;
    }

    void release() {
        while (free_) std::free(std::exchange(free_, free_->next));
    }

private:
    Chunk *free_ = nullptr;  // last in, first out: the next writer gets the chunk that is still in the cache
};

inline ChunkPool &chunk_pool() {
    static thread_local ChunkPool pool;
    return pool;
}

}  // namespace systolic

#if defined(SYSTOLIC_TRACE)
#include "trace.h"
#endif

namespace hls {

template <typename T>
class stream {
    static constexpr std::size_t kCapacity = (systolic::kChunkBytes - systolic::kChunkHeader) / sizeof(T);
    static_assert(kCapacity >= 1, "an element of a stream must fit into a chunk of 64 KiB");
    static_assert(alignof(T) <= systolic::kChunkHeader, "an element of a stream must be aligned to at most 64 bytes");

public:
    stream() = default;
    explicit stream(const char *name) : name_(name) {}
    explicit stream(const std::string &name) : name_(name) {}
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    // Elements that remain are an error, unless another error is already thrown.
    ~stream() noexcept(false) {
        const std::size_t left = size();
        drop_all();
        if (left && !std::uncaught_exceptions()) report_leftover(left);
    }

    T read() {
        on_read();
        if (__builtin_expect(head_ == limit_, 0)) refill();
        T value(std::move(*head_));
        head_->~T();
        ++head_;
        return value;
    }

    void read(T &value) {
        on_read();
        if (__builtin_expect(head_ == limit_, 0)) refill();
        value = std::move(*head_);
        head_->~T();
        ++head_;
    }

    void write(const T &value) {
        on_write();
        if (__builtin_expect(tail_ == end_, 0)) grow();
        ::new (static_cast<void *>(tail_)) T(value);
        ++tail_;
    }

    // SYSTOLIC_FORWARD: the value is written in the cycle after the read of the value that it forwards.
    void forward(const T &value) {
        on_forward();
        if (__builtin_expect(tail_ == end_, 0)) grow();
        ::new (static_cast<void *>(tail_)) T(value);
        ++tail_;
    }

    void operator>>(T &value) { read(value); }
    void operator<<(const T &value) { write(value); }

    bool empty() const { return head_ == tail_; }
    bool full() const { return false; }

    std::size_t size() const {
        if (first_ == last_) return std::size_t(tail_ - head_);
        std::size_t count = std::size_t(end_of(first_) - head_) + std::size_t(tail_ - begin_of(last_));
        for (systolic::Chunk *chunk = first_->next; chunk != last_; chunk = chunk->next) count += kCapacity;
        return count;
    }

    const std::string &name() const { return name_; }

    // Name the stream. bits: of a word in hardware, at most the bits of T. impl: the primitive of its BIND_STORAGE, or
    // "" if the tool chooses.
    void declare(std::string name, long depth, long bits = 8 * long(sizeof(T)), const char *impl = "") {
        name_ = std::move(name);
#if defined(SYSTOLIC_TRACE)
        tag_.depth = depth;
        tag_.bits = bits;
        tag_.impl = impl;
        systolic::trace::declare_stream(tag_, name_);
#else
        (void)depth, (void)bits, (void)impl;
#endif
    }

private:
    static T *begin_of(systolic::Chunk *chunk) {
        return reinterpret_cast<T *>(reinterpret_cast<char *>(chunk) + systolic::kChunkHeader);
    }
    static T *end_of(systolic::Chunk *chunk) { return begin_of(chunk) + kCapacity; }

    // Update the reader's limit: the writer's current position, or the end of a full chunk.
    __attribute__((noinline)) void refill() {
        if (head_ == tail_) fail_empty();
        if (first_ != last_ && head_ == end_of(first_)) {
            systolic::Chunk *next = first_->next;
            systolic::chunk_pool().give(first_);
            first_ = next;
            head_ = begin_of(next);
        }
        limit_ = first_ == last_ ? tail_ : end_of(first_);
    }

    // Append a chunk.
    __attribute__((noinline)) void grow() {
        systolic::Chunk *chunk = systolic::chunk_pool().take();
        if (first_) {
            last_->next = chunk;
        } else {
            first_ = chunk;
            head_ = limit_ = begin_of(chunk);
        }
        last_ = chunk;
        tail_ = begin_of(chunk);
        end_ = end_of(chunk);
    }

    void drop_all() {
        if constexpr (!std::is_trivially_destructible<T>::value) {
            while (!empty()) read_untraced();
        }
        while (first_) systolic::chunk_pool().give(std::exchange(first_, first_->next));
        last_ = nullptr;
        head_ = limit_ = tail_ = end_ = nullptr;
    }

    void read_untraced() {
        if (head_ == limit_) refill();
        head_->~T();
        ++head_;
    }

    std::string sentence_name() const { return name_.empty() ? "(not named by SYSTOLIC_STREAM)" : "'" + name_ + "'"; }

    [[noreturn]] __attribute__((cold, noinline)) void fail_empty() const {
        throw systolic::StreamError("process '" + std::string(systolic::context().process) + "' reads stream " +
                                    sentence_name() +
                                    " while it is empty; its writer, which runs before it, must "
                                    "write as many elements as are read");
    }

    // In a region, the region's guard throws for all its streams: it is destroyed after them, so that none is omitted.
    __attribute__((cold, noinline)) void report_leftover(std::size_t left) const {
        std::string text =
            "stream " + sentence_name() + " still holds " + std::to_string(left) + " elements that no process reads";
        if (systolic::context().regions == 0) throw systolic::StreamError(text);
        std::string &all = systolic::context().leftover;
        all += (all.empty() ? "" : "; ") + text;
    }

#if defined(SYSTOLIC_TRACE)
    void on_read() { systolic::trace::on_read(tag_, name_); }
    void on_write() { systolic::trace::on_write(tag_, name_); }
    void on_forward() { systolic::trace::on_forward(tag_, name_); }
    systolic::trace::StreamTag tag_{sizeof(T), 0, 0, 0, 0, 2, 8 * long(sizeof(T)), ""};
#else
    void on_read() {}
    void on_write() {}
    void on_forward() {}
#endif

    // head_: the next element to read. limit_: the reader's limit. tail_: the next element to write. end_: the end of
    // its chunk.
    T *head_ = nullptr;
    T *limit_ = nullptr;
    T *tail_ = nullptr;
    T *end_ = nullptr;
    systolic::Chunk *first_ = nullptr;
    systolic::Chunk *last_ = nullptr;
    std::string name_;
};

}  // namespace hls

namespace systolic {

template <typename T, typename... Kind>
void name_stream(hls::stream<T> &stream, const std::string &name, long depth, Kind... kind) {
    stream.declare(name, depth, kind...);
}

// The same for an array of streams of any rank: name[0], name[1], … or name[0][0], …
template <typename S, std::size_t count, typename... Kind>
void name_stream(S (&streams)[count], const std::string &name, long depth, Kind... kind) {
    for (std::size_t i = 0; i < count; ++i) {
        name_stream(streams[i], name + "[" + std::to_string(i) + "]", depth, kind...);
    }
}

// SYSTOLIC_PROCESS: the first statement of a process function.
class Process {
public:
    explicit Process(const char *name) : outer_(std::exchange(context().process, name)) {
#if defined(SYSTOLIC_TRACE)
        trace::begin_process(name);
#endif
    }
    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;
    ~Process() noexcept(false) {
        context().process = outer_;
#if defined(SYSTOLIC_TRACE)
        if (!std::uncaught_exceptions()) trace::end_process();
#endif
    }

private:
    const char *outer_;
};

// SYSTOLIC_DATAFLOW: the first statement of a region function, so that it is destroyed after the region's streams.
class Region {
public:
    explicit Region(long label) : label_(label) {
        ++context().regions;
#if defined(SYSTOLIC_TRACE)
        trace::begin_region(label);
#endif
    }
    Region(const Region &) = delete;
    Region &operator=(const Region &) = delete;
    ~Region() noexcept(false) {
        --context().regions;
        std::string leftover = std::exchange(context().leftover, std::string());
        if (std::uncaught_exceptions()) return;
        if (!leftover.empty()) {
            throw StreamError("region " + std::to_string(label_) + " ends, and " + leftover);
        }
#if defined(SYSTOLIC_TRACE)
        trace::end_region();
#endif
    }

private:
    long label_;
};

}  // namespace systolic

#endif  // SYSTOLIC_SIMULATION_STREAM

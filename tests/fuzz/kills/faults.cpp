// A preloaded library that counts the calls of a process that change files. At one of them, a signal arrives or the call
// fails.
//
// Calls on regular files are counted, except on standard error. Programs that the process starts are not affected.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Fault {
    std::atomic<long> calls;  // the number of calls since the fault was armed
    long at;                  // the number of the call at which the fault occurs, from 1; 0 for none
    int signal;               // the signal that arrives, or 0
    bool late;                // whether the signal arrives after the call
    int error;                // the errno with which the call fails, or 0
    bool stays;               // whether later calls that need disk space fail too
    bool old_kernel;          // whether renameat2 is missing
    pid_t process;            // the process in which calls are counted
};

// Shared memory, because the parent of the interrupted process reads the count.
Fault *fault =
    static_cast<Fault *>(mmap(nullptr, sizeof(Fault), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

struct Undisturbed {
    Undisturbed() { unsetenv("LD_PRELOAD"); }
} undisturbed;

// Counts a call and stores its number (0 in other processes). Raises the signal, if it arrives before this call. Returns
// the errno with which the call fails, or 0.
int strikes(bool needs_space, long &number) {
    number = 0;
    if (fault->process != getpid()) {
        return 0;
    }
    number = ++fault->calls;
    if (fault->error && fault->at && (number == fault->at || (number > fault->at && fault->stays && needs_space))) {
        return fault->error;
    }
    if (number == fault->at && fault->signal && !fault->late) {
        std::raise(fault->signal);
    }
    return 0;
}

// Raises the signal, if it arrives after the call `number`.
void after(long number) {
    if (number && number == fault->at && fault->signal && fault->late) {
        int before = errno;
        std::raise(fault->signal);
        errno = before;
    }
}

template <class Function>
Function next(const char *name, Function) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool regular(int descriptor) {
    struct stat status;
    return descriptor != STDERR_FILENO && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

bool writable(int descriptor) { return regular(descriptor) && (fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY; }

bool opens_to_write(const char *path, int flags) {
    return (flags & (O_CREAT | O_WRONLY | O_RDWR)) && std::strncmp(path, "/dev/", 5) && std::strncmp(path, "/proc/", 6);
}

}  // namespace

#define CALL(needs_space, failed, ...) \
    long number; \
    if (int error = strikes(needs_space, number)) { \
        errno = error; \
        return failed; \
    } \
    auto result = __VA_ARGS__; \
    after(number); \
    return result

extern "C" {

void fault_arm(long at, int signal, int late, int error, int stays, int old_kernel) {
    fault->calls = 0;
    fault->at = at;
    fault->signal = signal;
    fault->late = late;
    fault->error = error;
    fault->stays = stays;
    fault->old_kernel = old_kernel;
    fault->process = getpid();
}

long fault_calls() { return fault->calls; }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        static auto real = next(#name, static_cast<int (*)(const char *, int, mode_t)>(nullptr)); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, mode_t); \
        va_end(more); \
        if (!opens_to_write(path, flags)) { \
            return real(path, flags, mode); \
        } \
        CALL(true, -1, real(path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int descriptor, const void *data, size_t count) {
    static auto real = next("write", static_cast<ssize_t (*)(int, const void *, size_t)>(nullptr));
    if (!regular(descriptor)) {
        return real(descriptor, data, count);
    }
    CALL(true, -1, real(descriptor, data, count));
}

int close(int descriptor) {
    static auto real = next("close", static_cast<int (*)(int)>(nullptr));
    if (fault->process != getpid() || !writable(descriptor)) {
        return real(descriptor);
    }
    // A descriptor is closed even if close fails.
    long number;
    int error = strikes(false, number), result = real(descriptor);
    after(number);
    if (error) {
        errno = error;
        return -1;
    }
    return result;
}

#define NAMED(needs_space, name, types, names) \
    int name types { \
        static auto real = next(#name, static_cast<int(*) types>(nullptr)); \
        CALL(needs_space, -1, real names); \
    }
NAMED(true, fsync, (int descriptor), (descriptor))
NAMED(true, mkdir, (const char *path, mode_t mode), (path, mode))
NAMED(true, rename, (const char *from, const char *to), (from, to))
NAMED(false, unlink, (const char *path), (path))
NAMED(false, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
NAMED(false, rmdir, (const char *path), (path))
NAMED(false, chmod, (const char *path, mode_t mode), (path, mode))

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    static auto real = next("renameat2", static_cast<int (*)(int, const char *, int, const char *, unsigned)>(nullptr));
    if (fault->old_kernel) {
        errno = EINVAL;
        return -1;
    }
    CALL(true, -1, real(from_folder, from, to_folder, to, flags));
}
}

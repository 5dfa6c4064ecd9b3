#include <zkasio/testing/detail/virtual_clock.hpp>

#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <stdexcept>

namespace {

constexpr std::chrono::nanoseconds beginning = std::chrono::hours(1000);

thread_local bool time_is_virtual = false;
thread_local std::chrono::nanoseconds virtual_time{};
thread_local std::chrono::nanoseconds system_time_ahead{};  // of virtual_time
thread_local const zkasio::testing_detail::virtual_clock::waiting* instead_of_waiting = nullptr;
thread_local const std::size_t* readable_descriptors = nullptr;

void show(std::chrono::nanoseconds from, timespec* to) noexcept {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(from);
    to->tv_sec = static_cast<time_t>(seconds.count());
    to->tv_nsec = static_cast<long>((from - seconds).count());
}

}  // namespace

// The dynamic linker finds these functions before those of the system; RTLD_NEXT finds the system's.
extern "C" ZKASIO_EXPORT int clock_gettime(clockid_t clock, timespec* time) noexcept {
    // The raw one is the C library's.
    if (time_is_virtual && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME)) {
        show(virtual_time, time);
        return 0;
    }
    if (time_is_virtual && clock == CLOCK_REALTIME) {
        show(virtual_time + system_time_ahead, time);
        return 0;
    }
    static const auto real = reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
    return real ? real(clock, time) : static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
}

// Without a timerfd, Asio looks at the clock itself.
extern "C" ZKASIO_EXPORT int timerfd_create(clockid_t clock, int flags) noexcept {
    if (!time_is_virtual && !readable_descriptors) return static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
    errno = ENOSYS;
    return -1;
}

// ThreadSanitizer's, where it is in the program: it knows that epoll_wait() hands on what others have registered.
extern "C" [[gnu::weak]] int __interceptor_epoll_wait(int epoll, epoll_event* events, int size, int timeout);

// Asio's loops wait here when they have nothing to do: time passes here.
extern "C" ZKASIO_EXPORT int epoll_wait(int epoll, epoll_event* events, int size, int timeout) {
    using function = int (*)(int, epoll_event*, int, int);
    static const auto real = __interceptor_epoll_wait ? &__interceptor_epoll_wait
                                                      : reinterpret_cast<function>(::dlsym(RTLD_NEXT, "epoll_wait"));
    const auto wait = [&](int milliseconds) {
        return real ? real(epoll, events, size, milliseconds)
                    : static_cast<int>(::syscall(SYS_epoll_pwait, epoll, events, size, milliseconds, nullptr, 0));
    };
    if (timeout == 0 && readable_descriptors && *readable_descriptors == 0) return 0;
    if (!instead_of_waiting) return wait(timeout);
    if (const int ready = wait(0); ready != 0) return ready;
    (*instead_of_waiting)(std::chrono::milliseconds(timeout));
    return wait(0);
}

namespace zkasio::testing_detail {

virtual_clock::virtual_clock() {
    if (time_is_virtual) throw std::logic_error("this thread has a virtual clock already: there can be one at a time");
    const std::chrono::nanoseconds system_time = std::chrono::system_clock::now().time_since_epoch();
    time_is_virtual = true;
    virtual_time = beginning;
    system_time_ahead = system_time - beginning;
    // The standard library must see the virtual time, too.
    if (std::chrono::steady_clock::now().time_since_epoch() == beginning &&
        boot_clock::now().time_since_epoch() == beginning)
        return;
    time_is_virtual = false;
    throw std::runtime_error(
        "this program's clock cannot be replaced: link it dynamically with the C library, and zkasio::testing into the "
        "program itself");
}

virtual_clock::~virtual_clock() {
    time_is_virtual = false;
    instead_of_waiting(nullptr);
}

bool virtual_clock::is_of_this_thread() const noexcept { return std::this_thread::get_id() == thread_; }
void virtual_clock::pass(std::chrono::nanoseconds time) { virtual_time += time; }
std::chrono::nanoseconds virtual_clock::now() const noexcept { return virtual_time - beginning; }
void virtual_clock::instead_of_waiting(const waiting* f) noexcept { ::instead_of_waiting = f; }

void count_readable(const std::size_t* descriptors) noexcept { readable_descriptors = descriptors; }

}  // namespace zkasio::testing_detail

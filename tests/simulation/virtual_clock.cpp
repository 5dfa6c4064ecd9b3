#include "simulation/virtual_clock.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <stdexcept>

namespace {

constexpr std::chrono::nanoseconds beginning = std::chrono::hours(1000);

bool time_is_virtual = false;
std::chrono::nanoseconds virtual_time{};

}  // namespace

// The next ones in the order of the dynamic linker are the system's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
    if (time_is_virtual && (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME)) {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(virtual_time);
        time->tv_sec = static_cast<time_t>(seconds.count());
        time->tv_nsec = static_cast<long>((virtual_time - seconds).count());
        return 0;
    }
    static const auto real = reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
    return real ? real(clock, time) : static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
}

// Asio goes without where there is none, and looks at the clock itself.
extern "C" int timerfd_create(clockid_t clock, int flags) noexcept {
    if (!time_is_virtual) return static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
    errno = ENOSYS;
    return -1;
}

namespace zkasio::test {

virtual_clock::virtual_clock() {
    if (time_is_virtual) throw std::logic_error("there is a virtual clock already");
    time_is_virtual = true;
    virtual_time = beginning;
}

virtual_clock::~virtual_clock() { time_is_virtual = false; }

void virtual_clock::pass(std::chrono::nanoseconds time) { virtual_time += time; }
std::chrono::nanoseconds virtual_clock::now() const noexcept { return virtual_time - beginning; }

}  // namespace zkasio::test

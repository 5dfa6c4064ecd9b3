#include "watchdog.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zklock {

using zkasio::boot_clock;

struct watchdog::page {
    std::atomic<std::int64_t> deadline{0};  // boot_clock, nanoseconds
    std::atomic<std::int32_t> group{0};     // 0: nothing to guard
    std::atomic<bool> fired{false};
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);
};

namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void arm(int timer, std::int64_t at) noexcept {
    itimerspec when{};
    if (at <= 0) at = 1;  // 0 would disarm it; this is in the past
    when.it_value.tv_sec = static_cast<time_t>(at / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(at % 1'000'000'000);
    ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

// Keeps the socket alone, as descriptor 3.
void leave_everything(int socket) noexcept {
    ::setsid();
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    ::prctl(PR_SET_NAME, "lease-watchdog");  // not "zklock": who stops all that are called so does not stop this one
    ::dup2(socket, 3);
    ::close_range(4, ~0U, 0);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
    if (null > 3) ::close(null);
    [[maybe_unused]] const int stays = ::chdir("/");
    ::mlockall(MCL_CURRENT);  // where the limits allow it
}

// Until it has left our terminal, say, and can be relied upon. It says so with one byte.
bool is_ready(int socket) noexcept {
    pollfd source{socket, POLLIN, 0};
    while (::poll(&source, 1, -1) < 0 && errno == EINTR) {
    }
    char byte = 0;
    return ::recv(socket, &byte, 1, 0) == 1;
}

}  // namespace

watchdog::watchdog() {
    void* const memory = ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("mmap");
    page_ = new (memory) page;
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0) pid_ = ::fork();
    if (pid_ == 0) {
        leave_everything(ends[1]);
        run(*page_, 3);
    }
    const int failed = errno;
    if (ends[1] >= 0) ::close(ends[1]);
    if (pid_ < 0) {
        if (ends[0] >= 0) ::close(ends[0]);
        ::munmap(memory, sizeof(page));
        errno = failed;
        fail("cannot start the watchdog");
    }
    socket_ = ends[0];
    if (!is_ready(socket_)) {
        end();
        throw std::system_error(EPROTO, std::generic_category(), "the watchdog has ended");
    }
}

watchdog::~watchdog() {
    guard(0);
    end();
}

void watchdog::end() noexcept {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);  // by the end of the socket it would notice too, unless somebody has stopped it
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    ::close(socket_);
    ::munmap(page_, sizeof(page));
}

void watchdog::set_deadline(boot_clock::time_point t) noexcept {
    page_->deadline.store(t.time_since_epoch().count(), std::memory_order_release);
}

void watchdog::guard(pid_t group) noexcept {
    if (group != 0) page_->fired.store(false, std::memory_order_release);
    page_->group.store(group, std::memory_order_release);
    [[maybe_unused]] const auto n = ::send(socket_, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);  // look again
}

bool watchdog::has_fired() const noexcept { return page_->fired.load(std::memory_order_acquire); }

void watchdog::run(page& shared, int socket) noexcept {
    const int timer = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0 || ::send(socket, "", 1, MSG_NOSIGNAL) != 1) ::_exit(1);
    const auto kill_group = [&shared](pid_t group) {
        shared.fired.store(true, std::memory_order_release);
        ::kill(-group, SIGKILL);
    };
    for (;;) {
        const pid_t group = shared.group.load(std::memory_order_acquire);
        const std::int64_t deadline = shared.deadline.load(std::memory_order_acquire);
        const bool due = group != 0 && boot_clock::now().time_since_epoch().count() >= deadline;
        if (due && !shared.fired.load(std::memory_order_acquire)) kill_group(group);
        const bool waiting = group != 0 && !due;
        if (waiting) arm(timer, deadline);
        pollfd sources[] = {{socket, POLLIN, 0}, {timer, POLLIN, 0}};
        ::poll(sources, waiting ? 2 : 1, -1);
        char bytes[64];
        const ssize_t n = ::recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;  // zklock is gone
    }
    if (const pid_t group = shared.group.load(std::memory_order_acquire)) kill_group(group);
    ::_exit(0);
}

}  // namespace zklock

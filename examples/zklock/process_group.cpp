#include "process_group.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace zklock {
namespace {

std::optional<std::string> read_stat(pid_t pid) {
    const std::string name = "/proc/" + std::to_string(pid) + "/stat";
    const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    std::array<char, 1024> text{};  // the kernel gives all of it to one read()
    const ssize_t n = ::read(file, text.data(), text.size());
    ::close(file);
    if (n <= 0) return std::nullopt;
    return std::string(text.data(), static_cast<std::size_t>(n));
}

// Calls `f` with the id of each process until it returns true. Returns whether it did.
template <class F>
bool any_process(F f) {
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
    if (!proc) return false;
    while (const dirent* const entry = ::readdir(proc.get())) {
        const std::string_view name = entry->d_name;
        pid_t pid = 0;
        const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (failed == std::errc() && end == name.data() + name.size() && f(pid)) return true;
    }
    return false;
}

}  // namespace

std::optional<process_stat> stat_of(pid_t pid) {
    const std::optional<std::string> text = read_stat(pid);
    if (!text) return std::nullopt;
    // proc(5): "pid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime
    // cstime priority nice num_threads ...", and the name may contain blanks and brackets.
    const auto name_end = text->rfind(')');
    if (name_end == std::string::npos) return std::nullopt;
    char state = 0;
    int group = 0;
    long threads = 0;
    const char* const format = " %c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld";
    if (std::sscanf(text->c_str() + name_end + 1, format, &state, &group, &threads) != 3) return std::nullopt;
    process_stat s;
    s.group = group;
    s.ended = (state == 'Z' || state == 'X') && threads <= 1;
    return s;
}

bool process_group::runs() {
    if (::kill(-id_, 0) != 0 && errno == ESRCH) return false;
    const auto runs_in_group = [this](const std::optional<process_stat>& s) {
        return s && s->group == id_ && !s->ended;
    };
    if (known_ != 0 && runs_in_group(stat_of(known_))) return true;
    known_ = 0;
    std::set<pid_t> zombies;
    const bool found = any_process([&](pid_t pid) {
        const std::optional<process_stat> s = stat_of(pid);
        if (runs_in_group(s)) known_ = pid;
        if (s && s->group == id_ && s->ended) zombies.insert(pid);
        return known_ != 0;
    });
    if (found) zombies.clear();
    const bool seen_before = zombies == zombies_;
    zombies_ = std::move(zombies);
    // No sign of its processes: they are hidden from us (no /proc, or one mounted with hidepid). kill() knows.
    return found || zombies_.empty() || !seen_before;
}

}  // namespace zklock

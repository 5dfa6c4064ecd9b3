#pragma once

#include <optional>
#include <set>

#include <sys/types.h>

namespace zklock {

/// A process group, seen from outside: nobody is told when a process leaves a group, nor when one ends whose parent is
/// not us. So the group has to be looked at again and again.
class process_group {
public:
    explicit process_group(pid_t id) noexcept : id_(id) {}

    /// Whether a process of the group still runs. One that has ended and that its parent has not reaped (a zombie)
    /// does not. Reads one file of /proc, as long as the process that was found last runs in the group; else all of it.
    ///
    /// A process that forks and ends while /proc is read may hide its child: so zombies alone are believed only when
    /// the next call finds the same ones, and no others. Whoever forks in between has not been a zombie before.
    bool runs();

private:
    const pid_t id_;
    pid_t known_ = 0;  // ran in the group when it was looked for; 0: none
    std::set<pid_t> zombies_;  // all that was found when nobody ran
};

/// What /proc/PID/stat says of a process.
struct process_stat {
    pid_t group = 0;
    bool ended = false;  ///< all of its threads: a process whose first thread has ended may still run
};
/// Nothing when there is no such process, or it is hidden.
std::optional<process_stat> stat_of(pid_t pid);

}  // namespace zklock

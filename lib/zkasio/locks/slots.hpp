#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace zkasio {

class ZKASIO_EXPORT slots_options : public lock_options<slots_options> {
public:
    slots_options() {}
    /// A number that was given back, or lost with its session, rests for this long (0) before it is given again: until
    /// ids that were made of it cannot collide with new ones, or until peers have forgotten its last holder. All
    /// processes that name the path give the same duration. Throws errc::invalid_argument for a negative duration.
    ///
    /// The servers' clock measures the rest, also while no client runs. The rest begins when the holder gives the
    /// number back. If the holder's session has ended, the rest begins when an acquire looks at the number (at once, if
    /// one waits): the servers note no time by themselves. So a number may rest too long, but not too short. If another
    /// server becomes the leader, its clock counts from then on.
    ///
    /// Costs a persistent node for each number that was ever held, `<path>/used-<number>`, and one, `<path>/clock`,
    /// whose writes tell the servers' time. An acquire looks at the free numbers from the lowest on, until it finds one
    /// that was never held or has rested: it reads the used-nodes of one, then of two, four ... at a time, in as many
    /// round trips. A client reads the used-node of a number that rests once for each rest.
    ///
    /// A rest begins when the release has reached the servers: a try_acquire() soon after gets another number, or
    /// nothing, however short the rest is.
    slots_options& quiet(any_duration d);

    std::chrono::milliseconds quiet() const noexcept { return quiet_; }

private:
    std::chrono::milliseconds quiet_{0};
};

/// The numbers 0 to n-1, each held by one guard at a time: worker ids of id generators, shards, ports. An acquire gets
/// the lowest number that is free, lock_guard::slot(), and waits while all are held.
///
/// A held number is an ephemeral node, `<path>/<number>`. A number is held as a lock is: it is free again when the
/// guard is released, and when the session of its holder has ended. An id that is made of it has to be used only while
/// the guard is held(), in with_lock() say; slots_options::quiet() keeps a distance between two holders. Other children
/// of the directory, and numbers from n on, are ignored.
///
/// Not fair among processes: the first acquire that finds a free number has it, and the others look for another one; a
/// number that becomes free wakes all waiting processes. An acquire to which other clients were faster tries a number
/// at random among the lowest 4 that are free, then among the lowest 16, 64 ...: so n processes that start together
/// need about n log n writes in all, and some of them get higher numbers although lower ones are free. A process that
/// is far from the servers may wait without a bound beside near ones that take every number at once; permits of a
/// semaphore are given in turns. Without quiet(), an acquire takes two round trips.
///
/// Coroutines of one client that wait for the same n stand in line: the first of them asks the servers, and hands on
/// what else it has found. So a change costs each process at most three listings, and one write for each number that it
/// tries, however many coroutines wait. Whoever is first has to be resumed for that: on an executor that stands still,
/// it keeps those behind it waiting. While coroutines of this client have all n numbers, those that wait ask the
/// servers nothing. try_acquire() does not stand in line, and returns nothing only if it has found no number that it
/// may have; without quiet(), it waits for numbers that this client is just giving back.
///
/// commit() is refused, and a release first looks whose node it is, as those of an unfair_mutex. When a guard loses its
/// number while the session lives, the number is given back; while a body runs under that guard, no other acquire of
/// this client gets the number.
///
/// acquire() also fails with errc::invalid_argument for an owner(): each guard has a number of its own; and with
/// errc::would_deadlock for the work under all n numbers that asks for one more, as a mutex's does.
/// acquire_options::on_position() has no effect. Copies name the same slots.
class ZKASIO_EXPORT slots final : public lockable {
public:
    static constexpr std::uint32_t most = 65'536;

    /// @param path a directory of its own; created as a container when it is missing. @param n from 1 to `most`.
    /// Throws errc::invalid_path and errc::invalid_argument.
    slots(client zk, std::string path, std::uint32_t n, slots_options options = slots_options());

    /// How many numbers there are.
    std::uint32_t size() const noexcept { return n_; }

protected:
    lock_attempt attempts(acquire_options how) const override;

private:
    std::uint32_t n_;
    slots_options options_;
};

}  // namespace zkasio

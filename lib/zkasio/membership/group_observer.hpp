#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/group_options.hpp>
#include <zkasio/membership/group_view.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace zkasio {

/// Follows the members of a group, on a children_cache: what children_cache says of sessions, lifetimes and watches
/// applies here.
///
/// *Lifetime*: move-only; ends when destroyed. A call that is still awaited then fails with errc::client_closed.
class ZKASIO_EXPORT group_observer {
public:
    /// As group::observe(). Throws errc::invalid_path.
    group_observer(client zk, std::string path, group_names names = group_names::curator);
    group_observer(group_observer&&) noexcept = default;
    group_observer& operator=(group_observer&&) noexcept = default;

    /// *Completes when* the members were read once; also when there is no group.
    /// *Fails with* what cache::ready() fails with.
    asio::awaitable<void> ready() const;

    /// The members known at this moment; none, and not current, before ready(). On any thread. A moved-from observer
    /// shows no members.
    group_view members() const;

    /// *Completes when* the view differs from the last one that next() has returned, with the newest view; the first
    /// time when the observer is ready(). If the view is no longer current, this is such a change, too.
    /// *Fails with* what cache_changes::next() fails with; errc::invalid_argument when another coroutine awaits next().
    /// *Cancellation*: ends the wait; the next call tells what this one has not told.
    asio::awaitable<group_view> next() const;

    /// As next(), but completes when the view has not changed for the time `quiet`, or `at_most` after the first
    /// change: many members that start are one change. If the members have become what they were before, the view may
    /// equal the last one.
    /// *Fails with* what next() fails with; errc::invalid_argument for a negative time.
    asio::awaitable<group_view> settled(any_duration quiet,
                                        any_duration at_most = std::chrono::nanoseconds::max()) const;

private:
    struct reader;
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio

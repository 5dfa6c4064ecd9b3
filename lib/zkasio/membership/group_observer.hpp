#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/group_options.hpp>
#include <zkasio/membership/group_view.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>

namespace zkasio {

/// Follows who is in a group, on a children_cache: what that says of sessions, lifetimes and watches is true here.
///
/// *Lifetime*: move-only; ends when destroyed, and then who awaits something of it gets errc::client_closed.
class ZKASIO_EXPORT group_observer {
public:
    /// The same as group::observe(). Throws errc::invalid_path.
    group_observer(client zk, std::string path, group_names names = group_names::curator);
    group_observer(group_observer&&) noexcept = default;
    group_observer& operator=(group_observer&&) noexcept = default;

    /// *Completes when* the members were read once; also when there is no group. *Fails with* as cache::ready().
    asio::awaitable<void> ready() const;

    /// What is known at this moment; empty, and not current, before ready(). On any thread. One that was moved from
    /// knows of nobody.
    group_view members() const;

    /// *Completes when* the view is another one than the last that this has told, with the newest; the first time when
    /// it is ready(). That it is not current any more is such a change. *Fails with* as cache_changes::next(); with
    /// errc::invalid_argument when another coroutine awaits it. *Cancellation*: ends the wait; the next call tells what
    /// this one has not told.
    asio::awaitable<group_view> next() const;

private:
    struct reader;
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio

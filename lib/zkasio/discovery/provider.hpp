#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/discovery/provider_options.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/discovery/service_view.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace zkasio {

namespace discovery_detail {
struct member;
class provider_state;
class provider_work;
}  // namespace discovery_detail

/// An instance that was picked, for one use: until it is destroyed, the use counts as outstanding. May be empty.
/// Move-only; may be used on any thread, and outlive the provider and the client.
class ZKASIO_EXPORT picked {
public:
    picked() noexcept = default;
    picked(picked&&) noexcept = default;
    picked& operator=(picked&& other) noexcept;
    ~picked();

    explicit operator bool() const noexcept { return of_ != nullptr; }
    /// As it was when it was picked. Not of an empty one.
    const service_instance& operator*() const noexcept;
    const service_instance* operator->() const noexcept { return &**this; }

    /// The use has failed, and that may be the instance's fault: see provider_options::eject_after(). Any number of
    /// calls counts once. Does nothing when it is empty.
    void report_failure() noexcept;
    /// How many uses of this instance are outstanding in the provider, this one included. 0 when it is empty.
    std::uint32_t outstanding() const noexcept;

private:
    friend class discovery_detail::provider_state;
    explicit picked(std::shared_ptr<const discovery_detail::member> of) noexcept;

    std::shared_ptr<const discovery_detail::member> of_;
    bool failed_ = false;  // and was reported
};

/// The instances of one service, live, and which of them is next: clients balance over instances that come and go.
///
/// Follows the children of `<base>/<name>`, as Curator and registry write them, from the moment when it is made. While
/// there is no connection it picks from what it knew last: if that is not so any more, the use fails, see
/// picked::report_failure(). Instances that are not enabled() are not picked, nor those that provider_options::filter()
/// keeps out. Nodes that are no instances are listed in view().unreadable() and do no harm to the others.
///
/// What is counted of an instance, outstanding uses and failures, belongs to its node: it goes on when the data
/// change, and begins anew when the node was removed and is made again. When all instances are ejected, none of them
/// counts as ejected: somebody who fails is better than nobody. (Curator gives null.)
///
/// *Lifetime*: move-only; closes when destroyed, in the background (client::idle() waits for that). Until then it keeps
/// the client open, and like a guard it must not outlive the execution context of its client. May be used on any
/// thread. Its members return what may be awaited when it is gone. One that was moved from fails with
/// errc::invalid_argument, and picks nothing.
class ZKASIO_EXPORT provider {
public:
    /// @param base of all services: need not exist, as little as the service. Throws errc::invalid_path, and
    /// errc::invalid_argument for a weighted strategy without a weight.
    provider(const client& zk, const std::string& base, const std::string& name,
             const provider_options& options = provider_options());
    provider(provider&& other) noexcept;
    provider& operator=(provider&& other) noexcept;
    ~provider();

    /// *Completes when* an instance can be picked, at once if there is one: waits for the first.
    /// *Fails with* errc::client_closed when the client or this is closed first, errc::forked, zk_errc::auth_failed,
    /// and with session_renewal::none errc::session_expired.
    /// *Cancellation* ends the wait only; nothing counts as outstanding then.
    asio::awaitable<picked> pick() const;

    /// As pick(), always the same instance for the same key, by rendezvous hashing over the names of their nodes, in
    /// every process: whatever the strategy. When an instance goes or is ejected, only its keys move.
    asio::awaitable<picked> pick_for(std::string_view key) const;

    /// As these, at once: empty when there is no instance. Without a lock and without memory.
    picked try_pick() const noexcept;
    picked try_pick_for(std::string_view key) const noexcept;

    /// *Completes when* the service was read once, also when there is no instance. *Fails with* as pick().
    /// *Cancellation* ends the wait only.
    asio::awaitable<void> ready() const;

    /// What is known at this moment.
    service_view view() const;

    /// *Completes when* what is known is another version than `seen`, with that; at once if it already is. A slow
    /// reader gets the newest. *Fails with* as pick(). *Cancellation* ends the wait only.
    asio::awaitable<service_view> changed(service_view seen) const;

    /// Ends it: nothing is picked any more. May be called again.
    /// *Completes when* nothing is left of it on the servers. *Cancellation* ends the wait only.
    asio::awaitable<void> close() const;

    /// Of the service: `<base>/<name>`.
    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
    std::shared_ptr<discovery_detail::provider_state> state_;
    std::unique_ptr<discovery_detail::provider_work> work_;  // with state_
};

}  // namespace zkasio

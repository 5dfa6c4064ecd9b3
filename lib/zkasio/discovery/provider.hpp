#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio {

/// How provider::pick() chooses an instance. Every strategy leaves out ejected instances; their share is spread over
/// the other instances.
class pick_strategy {
public:
    enum class kind { round_robin, random, least_outstanding, sticky, weighted };

    /// One instance after another, for each thread. The default.
    static pick_strategy round_robin() { return pick_strategy(kind::round_robin); }
    static pick_strategy random() { return pick_strategy(kind::random); }
    /// An instance with the fewest `picked` objects of this provider; looks at all instances each time.
    static pick_strategy least_outstanding() { return pick_strategy(kind::least_outstanding); }
    /// One instance, drawn at random, and picked again and again until it is removed or ejected.
    static pick_strategy sticky() { return pick_strategy(kind::sticky); }
    /// At random, each instance in proportion to its weight. `weight(instance)` is called once for each state of an
    /// instance, on the client's strand. If `weight` throws, the instance is unreadable. If the weight is 0, negative,
    /// or not a finite number, the instance is not picked. See also service_instance::payload_number().
    static pick_strategy weighted(std::function<double(const service_instance&)> weight) {
        pick_strategy s(kind::weighted);
        s.weight_ = std::move(weight);
        return s;
    }

    kind how() const noexcept { return kind_; }
    const std::function<double(const service_instance&)>& weight() const noexcept { return weight_; }

private:
    explicit pick_strategy(kind k) : kind_(k) {}
    kind kind_;
    std::function<double(const service_instance&)> weight_;
};

/// The options of a provider.
class ZKASIO_EXPORT provider_options {
public:
    provider_options() {}
    provider_options& strategy(pick_strategy s) { strategy_ = std::move(s); return *this; }
    /// If picked::report_failure() is called `failures` times for an instance within `time`, the instance is not picked
    /// for `time` from then on (2 and 30 s, as Curator's DownInstancePolicy; Curator counts the time from the first
    /// failure). 0 failures: never. Throws errc::invalid_argument for a time that is not above 0.
    provider_options& eject_after(std::uint16_t failures, any_duration time = std::chrono::seconds(30));
    /// Selects, among the enabled() instances, those that are picked at all. `filter(instance)` is called once for each
    /// state of an instance, on the client's strand. If `filter` throws, the instance is unreadable.
    provider_options& filter(std::function<bool(const service_instance&)> f) { filter_ = std::move(f); return *this; }

    const pick_strategy& strategy() const noexcept { return strategy_; }
    std::uint16_t failures() const noexcept { return failures_; }
    std::chrono::milliseconds ejection_time() const noexcept { return ejection_time_; }
    const std::function<bool(const service_instance&)>& filter() const noexcept { return filter_; }

private:
    pick_strategy strategy_ = pick_strategy::round_robin();
    std::uint16_t failures_ = 2;
    std::chrono::milliseconds ejection_time_{30'000};
    std::function<bool(const service_instance&)> filter_;
};

namespace discovery_detail {
struct member;
class provider_state;
class provider_work;
}  // namespace discovery_detail

/// A picked instance, for one use: the use counts as outstanding until this object is destroyed. May be empty.
/// Move-only; may be used on any thread, and may outlive the provider and the client.
class ZKASIO_EXPORT picked {
public:
    picked() noexcept = default;
    picked(picked&&) noexcept = default;
    picked& operator=(picked&& other) noexcept;
    ~picked();

    explicit operator bool() const noexcept { return of_ != nullptr; }
    /// The instance as it was when it was picked. Precondition: not empty.
    const service_instance& operator*() const noexcept;
    const service_instance* operator->() const noexcept { return &**this; }

    /// Reports that the use has failed, and that this may be the instance's fault: see provider_options::eject_after().
    /// Any number of calls counts once. Does nothing if empty.
    void report_failure() noexcept;
    /// The number of uses of this instance that are outstanding in the provider, this one included. 0 if empty.
    std::uint32_t outstanding() const noexcept;

private:
    friend class discovery_detail::provider_state;
    explicit picked(std::shared_ptr<const discovery_detail::member> of) noexcept;

    std::shared_ptr<const discovery_detail::member> of_;
    bool failed_ = false;  // report_failure() was called
};

/// The live instances of one service, and the choice of the next one: clients balance over instances that come and go.
///
/// Follows the children of `<base>/<name>`, in the format of Curator and registry, from the construction of the
/// provider. Without a connection, the provider picks from the last known instances: if a picked instance is gone, the
/// use fails, see picked::report_failure(). Instances that are not enabled() are not picked, nor those that
/// provider_options::filter() rejects. Nodes that are no instances are listed in view().unreadable() and do not affect
/// the other nodes.
///
/// The counts of an instance, outstanding uses and failures, belong to its node. Counts are kept when the data change,
/// and begin at 0 when the node was removed and re-created. If all instances are ejected, none of them counts as
/// ejected: an instance that fails is better than none. (Curator gives null.)
///
/// *Lifetime*: move-only. Destroying a provider closes it, in the background (client::idle() waits for that). Until
/// then the provider keeps the client open, and like a guard it must not outlive the execution context of its client.
/// May be used on any thread. The awaitables that the members return may be awaited after the provider is destroyed. A
/// moved-from provider fails with errc::invalid_argument, and picks nothing.
class ZKASIO_EXPORT provider {
public:
    /// @param base of all services. The base and the service need not exist. Throws errc::invalid_path, and
    /// errc::invalid_argument for a weighted strategy without a weight.
    provider(const client& zk, const std::string& base, const std::string& name,
             const provider_options& options = provider_options());
    /// Of a service of this registry, in its registry_options::format().
    provider(const registry& in, const std::string& name, const provider_options& options = provider_options());
    provider(provider&& other) noexcept;
    provider& operator=(provider&& other) noexcept;
    ~provider();

    /// *Completes when* an instance can be picked: at once if there is one, otherwise with the first one.
    /// *Fails with* errc::client_closed if the client or the provider is closed first, errc::forked,
    /// zk_errc::auth_failed, and with session_renewal::none errc::session_expired.
    /// *Cancellation* ends only the wait; nothing counts as outstanding then.
    asio::awaitable<picked> pick() const;

    /// As pick(), but always the same instance for the same key, in every process and with every strategy: by
    /// rendezvous hashing over the names of the nodes. When an instance is removed or ejected, only its keys move.
    asio::awaitable<picked> pick_for(std::string_view key) const;

    /// As pick() and pick_for(), but at once: empty if no instance can be picked. No lock, no memory allocation.
    picked try_pick() const noexcept;
    picked try_pick_for(std::string_view key) const noexcept;

    /// *Completes when* the service was read once, also if there is no instance.
    /// *Fails with* as pick().
    /// *Cancellation* ends only the wait.
    asio::awaitable<void> ready() const;

    /// The state that is known at this moment.
    service_view view() const;

    /// *Completes when* the version of the known state differs from that of `seen`, with the newest view; at once if it
    /// already differs. A slow reader gets the newest view.
    /// *Fails with* as pick().
    /// *Cancellation* ends only the wait.
    asio::awaitable<service_view> changed(service_view seen) const;

    /// Ends the provider: nothing is picked from now on. May be called again.
    /// *Completes when* nothing of the provider is left on the servers.
    /// *Cancellation* ends only the wait.
    asio::awaitable<void> close() const;

    /// The path of the service: `<base>/<name>`.
    const std::string& path() const noexcept { return path_; }

private:
    provider(const client& zk, const std::string& base, const std::string& name, const instance_format& format,
             const provider_options& options);

    std::string path_;
    std::shared_ptr<discovery_detail::provider_state> state_;
    std::unique_ptr<discovery_detail::provider_work> work_;  // null if state_ is null
};

}  // namespace zkasio

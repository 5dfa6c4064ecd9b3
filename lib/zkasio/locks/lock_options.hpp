#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/locks/lock_owner.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

/// The options that all kinds of lock have in common. @tparam Options the kind's own, which the setters return.
template <class Options>
class lock_options {
public:
    /// Written into the lock's node, for operators and contender_info to read: a host name, say.
    Options& data(bytes d) { data_ = std::move(d).take(); return self(); }
    /// Of the lock's node and of directories created for it (client_options::default_acl()). Must let this client read
    /// and remove the node, and every contender read it: servers do not report the end of a node to a client that may
    /// not read it.
    Options& acl(zkasio::acl a) { acl_ = std::move(a); return self(); }

    const std::string& data() const noexcept { return data_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

protected:
    lock_options() {}
    Options& self() noexcept { return static_cast<Options&>(*this); }

private:
    std::string data_;
    zkasio::acl acl_ = default_acl();
};

/// The options of locks whose nodes queue in a directory.
template <class Options>
class queue_options : public lock_options<Options> {
public:
    /// The naming of the nodes (default: Curator's).
    Options& names(name_scheme n) { names_ = std::move(n); return this->self(); }

    const name_scheme& names() const noexcept { return names_; }

protected:
    queue_options() {}

private:
    name_scheme names_ = name_scheme::curator();
};

/// The position of a waiting contender in the queue of a lock.
struct queue_position {
    std::size_t ahead = 0;    ///< contenders ahead, at the last look; contenders that gave up since are included
    std::string predecessor;  ///< path of the node of the nearest contender ahead; empty: none is ahead
    friend bool operator==(const queue_position&, const queue_position&) = default;
};

/// Called on the client's strand whenever the position has changed, also once at the beginning, and never after the
/// acquire has ended: an acquire that is cancelled on another thread waits for a running observer. May use the client
/// and make other clients; while the observer runs, its client does nothing else. Exceptions are logged.
using position_observer = std::function<void(const queue_position&)>;

/// The options of one acquire. Two acquires of a lock may have different options.
class acquire_options {
public:
    acquire_options() {}
    /// The owner on whose behalf the lock is acquired. If this owner holds the lock already, the acquire completes at
    /// once, see lock_owner.
    acquire_options& owner(lock_owner o) { owner_ = std::move(o); return *this; }
    /// Reports the place in the queue while the acquire waits. Costs a listing whenever only a listing tells the place.
    template <class Observer = position_observer>
    acquire_options& on_position(Observer&& f) {
        observer_ = detail::safe_function<position_observer>(std::forward<Observer>(f));
        return *this;
    }

    /// If the session expires while the acquire waits, the acquire queues again with the next session instead of
    /// failing with errc::session_expired: at the end, since the place is lost with the session (on_position() tells
    /// the new place), and within the same time limit. From then on, the acquire ends as one that has just begun: also
    /// with errc::not_connected, when there is no connection for client_options::connection_timeout, and, with
    /// session_renewal::none, with errc::session_expired. A lock that is held already is still lost with its session.
    /// While one session after another ends before its timeout, there are pauses of up to 15 s: see session_pace.
    acquire_options& survive_expiry() { survive_expiry_ = true; return *this; }

    /// Written into the lock's node instead of lock_options::data() (in an election, of leader_election_options::id()):
    /// the number of a request, say. Without effect if the owner() holds the lock already. A cohort_mutex, whose turns
    /// have one node, and a multi_mutex refuse data with errc::invalid_argument: see multi_mutex::add().
    acquire_options& data(bytes d) { data_ = std::move(d).take(); return *this; }

    const std::optional<lock_owner>& owner() const noexcept { return owner_; }
    const position_observer& on_position() const noexcept { return observer_; }
    const std::optional<std::string>& data() const noexcept { return data_; }
    bool survives_expiry() const noexcept { return survive_expiry_; }

private:
    std::optional<lock_owner> owner_;
    position_observer observer_;
    std::optional<std::string> data_;
    bool survive_expiry_ = false;
};

}  // namespace zkasio

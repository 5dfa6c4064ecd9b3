#pragma once

#include <zkasio/election/leader_observer.hpp>
#include <zkasio/locks/name_scheme.hpp>
#include <zkasio/session.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <string>

namespace zkasio::election_detail {

/// A server's answer about an election. When the answer is no longer true, one of the watches fires.
struct leader_seen {
    leader_view view;
    watch changes;
    std::optional<watch> note;  ///< on the data of the directory; only if the leader's node was read
};

/// *Completes when* one of the watches has fired.
/// *Fails with* what watch::changed() fails with.
asio::awaitable<void> until_changed(const leader_seen& seen);

/// Reads who leads, as far as the server of this session knows. leader_info::since is not filled in.
/// *Fails with* errc::session_expired when the session ends, else as leader_observer::next(), and with what is
/// condition::retryable.
asio::awaitable<leader_seen> read_leader(session on, std::string path, name_scheme names);

}  // namespace zkasio::election_detail

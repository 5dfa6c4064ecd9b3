#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace zkasio {

/// Whether an election has a leader, as far as an observer knows.
enum class leader_state {
    leader,   ///< there is a leader
    nobody,   ///< there is no candidate, or not even a directory
    unknown,  ///< the observer is cut off from the servers: the last leader may still lead, or another one
};

ZKASIO_EXPORT std::string_view to_string(leader_state s) noexcept;

/// The leader of an election.
struct leader_info {
    std::string path;                 ///< of the leader's node
    std::optional<std::string> data;  ///< proclaimed last, or else the id; nothing: this client may not read the node
    /// If this client may not read the node, servers from 3.8.4 on tell only its name: session_id and token are 0.
    std::int64_t session_id = 0;
    fencing_token token;  ///< leadership::token(): rises from one leader to the next
    /// When this observer first saw the leader lead, by this machine's clock. Servers do not keep that time.
    std::chrono::system_clock::time_point since;

    /// Compares all but `since`, which is a property of the observer and not of the election.
    friend bool operator==(const leader_info& a, const leader_info& b) {
        return a.path == b.path && a.data == b.data && a.session_id == b.session_id && a.token == b.token;
    }
};

/// The state of an election at one moment, as an observer tells it.
struct leader_view {
    leader_state state = leader_state::unknown;
    std::optional<leader_info> leader;  ///< with leader_state::leader

    friend bool operator==(const leader_view&, const leader_view&) = default;
};

/// Tells who leads, one change after another, without standing for election.
///
/// The observer works only while next() is awaited; between two calls it keeps no more than two watches of the server.
/// A slow reader hears of the newest state only. A view is what was true when a server said it: another leader may have
/// been elected since. To act for or against a leader, compare tokens.
///
/// The first read in each session follows a sync(). So the observer never tells of an older leader after a newer one,
/// and if a leader itself has told this client that it leads, the observer sees that leader. While there is a leader, a
/// change among the other candidates costs nothing: only the leader's node is watched, and the data of the directory,
/// see leadership::proclaim(). (If the node may not be read, the directory's children are watched instead.)
///
/// One coroutine at a time may await next(): a second one is refused with errc::invalid_argument. Any number of
/// observers may watch one election. Move-only. The observer keeps a copy of the client, and so keeps it open.
class ZKASIO_EXPORT leader_observer {
public:
    /// As leader_election::observe(). Throws errc::invalid_path.
    /// @param path of the election. @param names the name scheme of its candidates.
    leader_observer(client zk, std::string path, name_scheme names = name_scheme::curator_latch());
    leader_observer(leader_observer&&) noexcept = default;
    leader_observer& operator=(leader_observer&&) noexcept = default;

    /// *Completes when* the view differs from the last one that was told, with the newest view; the first time at once.
    /// A proclaimed change of the leader's data is such a change.
    ///
    /// While there is no connection, the last view stays valid for a while, since most connections come back. Then
    /// leader_state::unknown is told: a third of the session timeout after the client has noticed the loss
    /// (session_state::suspended), and so at the latest one session timeout after the last message of a server. The
    /// time without a connection is counted only while next() is awaited: the first next() after a long pause may
    /// therefore tell leader_state::unknown at once. When the connection is back after that, the new view is told, even
    /// if it equals the one before the loss. The end of the observer's own session changes nothing, unless
    /// client_options::renewal() is off.
    ///
    /// *Fails with* errc::foreign_child for a directory with other children than candidates, unless the name scheme
    /// allows these; zk_errc::no_auth when the directory may not be listed; errc::client_closed, errc::forked,
    /// zk_errc::auth_failed; errc::session_expired with session_renewal::none. Instead of failing with
    /// errc::not_connected, next() waits for a connection. After a failure, next() may be called again.
    /// *Cancellation*: ends the wait; the next call tells what this one has not told.
    asio::awaitable<leader_view> next() const;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio

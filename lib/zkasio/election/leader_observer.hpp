#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/election/leader_view.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>

namespace zkasio {

/// Tells who leads, one change after another, without standing for election.
///
/// It does nothing by itself: only while next() is awaited, and what it keeps in between are two watches of the server.
/// Somebody who is slow hears of the newest state only. What it tells is what was true when a server said it: another
/// leader may have been elected since. To act for or against a leader, compare tokens.
///
/// Its first look in each session comes behind a sync(), so it never tells of an older leader after a newer one, and
/// whoever was told by somebody else that he leads sees him. As long as somebody leads, a change among the other
/// candidates costs nothing: only the leader's own node is watched, and the data of the directory, see
/// leadership::proclaim(). (Unless the node may not be read: then the directory's children are.)
///
/// One coroutine at a time: a second one is refused with errc::invalid_argument. Any number of observers may watch one
/// election. Move-only. Keeps a copy of the client, and with it the client open.
class ZKASIO_EXPORT leader_observer {
public:
    /// The same as leader_election::observe(). Throws errc::invalid_path.
    /// @param path of the election. @param names as its candidates have them.
    leader_observer(client zk, std::string path, name_scheme names = name_scheme::curator_latch());
    leader_observer(leader_observer&&) noexcept = default;
    leader_observer& operator=(leader_observer&&) noexcept = default;

    /// *Completes when* the view is another one than the last that was told, with the newest; the first time at once.
    /// A proclaimed change of the leader's data is such a change.
    ///
    /// While there is no connection the old view counts for a while, since most connections come back, and then
    /// leader_state::unknown is told: a third of the session timeout after the client has noticed
    /// (session_state::suspended), which is at the latest one session timeout after the last word of a server. Whoever
    /// asks only when the connection is gone already may be told so at once: an observer that nobody asks does not
    /// notice when that was. When the connection is back, the view of then is told, even if it is the one from before.
    /// The end of the observer's own session changes nothing, unless client_options::renewal() is off.
    ///
    /// *Fails with* errc::foreign_child for a directory with other children than candidates; zk_errc::no_auth when the
    /// directory may not be listed; errc::client_closed, errc::forked, zk_errc::auth_failed; errc::session_expired with
    /// session_renewal::none. Not with errc::not_connected: it waits. After a failure it may be called again.
    /// *Cancellation*: ends the wait; the next call tells what this one has not told.
    asio::awaitable<leader_view> next() const;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio

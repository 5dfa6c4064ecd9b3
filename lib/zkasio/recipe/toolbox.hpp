#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/back_off.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/node_feed.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>
#include <asio/dispatch.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio {

struct lock_wait_report;
struct lock_hold_report;
struct commit_report;
struct delivery_report;
struct barrier_report;
struct lock_stop_report;

/// What an ephemeral node is created for, see client_options::ephemeral_budget().
enum class node_use {
    held,
    waits  ///< in the queue of a lock, until toolbox::now_holds()
};

/// Whether there is room for the node of one more contender of a lock.
enum class contender_room {
    now,
    later,
    never  ///< the create would fail with errc::too_many_ephemerals, and to wait would be to wait for oneself
};

/// The operations on a client or a session that only recipes need: requests that are started and awaited later, writes
/// that are repeated until they are certain, tasks in the background.
///
/// As with `operations`, toolbox(zk) works on the current session of the client, and toolbox(session) on that session.
/// Contracts are those of `operations`, unless a member says otherwise. A toolbox is cheap to make, for one expression
/// or to keep, and does not keep the client open: see client::keep_open().
class ZKASIO_EXPORT toolbox {
public:
    explicit toolbox(operations on) noexcept : on_(std::move(on)) {}

    // ------------------------------------------------------------------------------------------- requests, started

    /// Starts a create (without parents and protection) and does not wait for it. Throws at once for bad arguments.
    pending_create start_create(std::string path, bytes data, create_options options,
                                node_use use = node_use::held) const;
    pending_children start_children(std::string path) const;
    pending_data start_get(std::string path) const;
    /// As start_get() for each path, but may be sent later, also after a write that is started then, and is not sent
    /// when all handles are gone before. 8 nodes at first, and up to 32 while they are small, are one request (as in
    /// operations::multi_read()), two of them under way in a session, so that answers to pings come in between. Calls
    /// take turns. One or two nodes, and nodes of servers before ZooKeeper 3.6, which do not know such a request, are
    /// asked for one by one, at most 256 under way; so are all for ten minutes when two connections in a row have ended
    /// at one, or when four nodes have more than 256 kB.
    std::vector<pending_data> start_gets(std::vector<std::string> paths) const;
    /// The stat of the node, without its data. Servers from 3.8.4 and 3.9.2 on ask for the permission to read the node,
    /// older ones for none. A node that does not exist is an error: zk_errc::no_node.
    pending_data start_exists(std::string path) const;
    pending_watched_data start_get_and_watch(std::string path) const;
    pending_watched_children start_children_and_watch(std::string path) const;

    // --------------------------------------------------------------------------------------------- until certain

    /// Removes a node. The request is sent again whenever its outcome is unknown, until the outcome is certain or the
    /// session is over, also if no coroutine waits for it. A node that is gone already is no error. If an ACL refuses
    /// the removal of an ephemeral node that this session has made, the result is zk_errc::no_auth, and the removal is
    /// asked for again in the background, as with remove_when_allowed().
    /// @param must_exist other nodes that have to exist when the node is removed. If such a node is missing, nothing is
    /// removed, and the result is zk_errc::no_node with the path of the missing node.
    pending_removal ensure_removed(std::string path, std::vector<std::string> must_exist = {}) const;

    /// For a removal of a node of this session that needs more than one request, and that an ACL has just refused:
    /// calls `remove`, again and again at growing intervals of a second to 45, until it ends with anything but
    /// zk_errc::no_auth and condition::retryable, or the session is over. In each directory one removal is tried at a
    /// time until one is allowed. Nothing waits for it: not client::idle(), and close() cancels it. From any thread.
    /// @param path of the node. @param remove a coroutine on the client's strand.
    void remove_when_allowed(std::string path, std::function<asio::awaitable<void>()> remove) const;

    /// Looks for the node that a protected create may have left behind: a child of `parent` whose name contains
    /// `protection_id`. Of several such nodes only the first in sequence stays. A node that this session does not own
    /// is removed, and nothing is returned. Retried until the answer is certain, or the session is over.
    /// @param protection_id of 8 characters or more: a shorter one might be part of another client's name.
    asio::awaitable<std::optional<created>> find_protected(std::string parent, std::string protection_id) const;

    /// Removes, in the background, the node that a create with this id has left or will leave, by find_protected(): for
    /// a caller that gives up while the outcome of that create is unknown. A failure is logged; the node then goes with
    /// the session.
    void ensure_protected_removed(std::string parent, std::string protection_id) const;

    /// find_protected() for many ids at once, without looking at the nodes: the names of the children that carry them,
    /// by id. All calls of both kinds that look into one directory at the same time share listings.
    asio::awaitable<std::multimap<std::string, std::string>> find_all_protected(std::string parent,
                                                                                std::vector<std::string> ids) const;

    /// A write whose answer was lost has been applied, as the recipe has found out by other means than the searches
    /// above: it is not one at which servers hang up, see error::hung_up(). From any thread.
    /// @param path of the write, or of the last step of a transaction.
    void was_applied(std::string path) const;

    /// As operations::multi(), behind checks that the nodes `checked` exist. Messages name `operation`, and count from
    /// the first of `steps`.
    asio::awaitable<std::vector<step_result>> multi_behind(std::vector<std::string> checked, transaction steps,
                                                           std::string operation) const;

    /// A path of a view, client::rooted(), as the client itself has it, and the other way round. For what all views
    /// share: client::unrooted() and session::unrooted(), with whole paths. Without a view, `path` itself; so does
    /// shown_path() return a path that is not below the view's root.
    std::string whole_path(std::string path) const;
    std::string shown_path(std::string path) const;

    /// The ACL of a node that is created with `given`: with client_options::default_acl() in place of default_acl().
    acl completed(acl given) const;

    /// The pauses between attempts after condition::retryable.
    back_off make_back_off() const;

    /// The pauses between the sessions of work that begins again in each. Also of a client that was moved from.
    session_pace make_session_pace() const;

    /// The pauses between reads of a node that servers refuse (zk_errc::no_auth): a second, and each time twice as
    /// long, up to five minutes. A change of an ACL fires no watch, so only another read tells. If the node was refused
    /// for a time by mistake, it is read at most about as long again after that.
    back_off make_refusal_back_off() const;

    // --------------------------------------------------------------- waits, and the client, also of toolbox(session)

    one_shot_event make_one_shot_event() const;

    /// As client::connected() and client::current_session(), of the client; errors name this operation and this path.
    /// Complete without suspending if there is a connection.
    asio::awaitable<void> connected(std::string operation, std::string path) const;
    asio::awaitable<session> current_session(std::string operation, std::string path) const;
    /// The session that the operations run on: of toolbox(session) that one, over or not; else as current_session().
    asio::awaitable<session> own_session(std::string operation, std::string path) const;

    /// A feed that tells `to` of changes of `root` and of all nodes below it that `to` watches, over all sessions of
    /// the client; see node_feed. If there is a connection already, `to` is told of it in a later turn. To be called on
    /// the strand. Throws errc::invalid_path.
    node_feed feed(std::string root, const std::shared_ptr<node_feed_listener>& to) const;

    // ---------------------------------------- room for ephemeral nodes: on the strand, of the client's newest session

    /// @param path_bytes of a node in `directory`, without its sequence number.
    contender_room room_for_contender(const std::string& directory, std::size_t path_bytes) const;
    /// Calls `f`, in a later turn, when room_for_contender() may say something else than contender_room::later: of
    /// several for one directory, in the order of the calls. The end of the session drops `f`.
    void when_room_changes(std::string directory, std::size_t path_bytes, std::function<void()> f) const;
    /// How many claims, nodes of so many bytes in `directory` that their holders give back one after another, or keep
    /// although nobody needs them, fit at once. Claims behind the first one of this session there have half of the
    /// budget. 0: room will come, see when_room_is_released(). Also 1 where none fits and none of this session's nodes
    /// will go: the create is refused.
    std::size_t room_for_claims(const std::string& directory, std::size_t path_bytes) const;
    /// Calls `f` once, in a later turn, when a node of this session may have gone. The end of the session drops `f`.
    void when_room_is_released(std::function<void()> f) const;
    /// The contender with this node has the lock.
    void now_holds(const std::string& path) const;
    /// Another client has removed this node.
    void is_gone(const std::string& path) const;

    // ------------------------------------------------------------------------------- nodes of an earlier process
    // An orphan is an ephemeral node of a session of client_options::resume() that this process has not made. Nobody
    // else removes it as long as this session lives. For a recipe that waits, or is refused, because of such nodes, or
    // that would take one for its own. Without effect, and without a request, for other sessions.

    /// Removes, in the background, the orphans among those children of `directory` for which `is_one` holds: with a
    /// warning that names them, and not before the process that has left them can hold nothing any more, a session
    /// timeout after this connection began. Looks once in a session for each `key`. From any thread.
    /// @param is_one called on the strand; may not throw.
    void remove_orphans(std::string key, std::string directory,
                        std::function<bool(const std::string& name)> is_one) const;
    /// The czxid of the orphan at this path, which is then removed in the same way. From any thread.
    /// *Fails with* the errors of operations::exists() and operations::sync().
    asio::awaitable<std::optional<std::int64_t>> orphan_at(std::string path) const;

    // -------------------------------------------------------------------------------- on the strand, in the background

    /// The object of this session, and of this view (client::rooted()), with the name `key`. If there is none, `make`
    /// makes it, which may call local() with other keys. On the strand only. Throws errc::invalid_argument for a
    /// toolbox of a client.
    std::shared_ptr<session_local> local(const std::string& key,
                                         const std::function<std::shared_ptr<session_local>()>& make) const;

    /// Runs a task on the client's strand. client::close() cancels the task, and waits for its end.
    void run_in_background(asio::awaitable<void> task) const;

    /// client::idle() waits until the result is destroyed: for clean-up that is no task. To be called on the strand;
    /// may be destroyed on any thread.
    std::shared_ptr<const void> begin_background_work() const;

    // ------------------------------------------------------------------------------------------------------- reports

    /// Reports for client_observer and client::stats(). From any thread.
    void report(const lock_wait_report& r) const noexcept;
    void report(const lock_hold_report& r) const noexcept;
    void report(const commit_report& r) const noexcept;
    void report(const delivery_report& r) const noexcept;
    void report(const barrier_report& r) const noexcept;
    void report(const lock_stop_report& r) const noexcept;
    /// Whether there is a client_observer. If not, only the numbers of a report are used, and it needs no path.
    bool has_observer() const noexcept;

private:
    using impl = operations::impl;

    toolbox unrooted() const;

    operations on_;
};

/// Runs `ask()`, a function, on the client's strand, and completes with what it returns. `ask` is named, or has no
/// captures that would have to be destroyed, where the call is awaited at once: see coroutine_safety.hpp.
/// *Fails with* errc::client_closed and errc::forked, under the name of `operation` and `path`.
template <class Ask>
asio::awaitable<std::invoke_result_t<Ask&>> asked_on_strand(session on, std::string operation, std::string path,
                                                            Ask ask) {
    const auto answer = std::make_shared<std::optional<std::invoke_result_t<Ask&>>>();
    const one_shot_event done = toolbox(on).make_one_shot_event();
    asio::dispatch(on.get_executor(), [ask = std::move(ask), answer, done]() mutable {
        answer->emplace(ask());
        done.fire();
    });
    co_await errors_as(std::move(operation), std::move(path), done.wait());
    co_return std::move(**answer);
}

}  // namespace zkasio

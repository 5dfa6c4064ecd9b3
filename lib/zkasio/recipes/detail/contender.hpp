#pragma once

#include <zkasio/client.hpp>
#include <zkasio/recipes/detail/lock_queue.hpp>

#include <optional>
#include <string>

namespace zkasio::recipes::detail {

/// One place in the queue: an ephemeral-sequential node, from the moment its create is sent. Whatever happens to its
/// owner, the node is removed in the end, unless it was kept.
class queue_place {
public:
    queue_place(client zk, session on, std::string directory, std::string marker, std::string data, acl entries);
    queue_place(const queue_place&) = delete;
    queue_place& operator=(const queue_place&) = delete;
    ~queue_place();

    /// Creates the node and lists the directory, in one flight; also creates the directory if it is missing.
    /// Returns the children, our node among them.
    asio::awaitable<std::vector<std::string>> enter();

    /// The children, as of now.
    asio::awaitable<std::vector<std::string>> look();

    lock_step decide(const std::vector<std::string>& children) const;
    void remove_duplicates(const lock_step& step) const;

    const std::string& path() const noexcept { return node_.path; }
    std::int64_t czxid() const noexcept { return node_.stat.czxid; }

    /// From now on somebody else removes the node.
    void keep() noexcept { kept_ = true; }

private:
    client zk_;
    session on_;
    std::string directory_, marker_, data_;
    acl acl_;
    std::string id_;
    std::optional<pending_create> creating_;  // its outcome is not known yet
    created node_;                            // no path: there is none
    bool kept_ = false;
};

/// What a contender ends up with.
struct grant {
    session on;
    session_hold hold;
    std::string path;
    std::int64_t czxid;
};

/// How long to stay.
enum class patience { wait, first_or_nothing };

/// Queues in `directory` and waits for its turn. Nothing when it is not the first and has no patience.
///
/// The algorithm is ZooKeeper's lock recipe as Curator runs it (StandardLockInternalsDriver): a contender watches only
/// its immediate predecessor. When that one was alone ahead of us, its deletion is the grant; else list again.
///
/// *Fails with* what operations fail with; errc::session_expired when the session ends while waiting.
/// *Cancellation*: leaves no node and no watch behind.
asio::awaitable<std::optional<grant>> contend(client zk, std::string directory, std::string marker, std::string data,
                                              acl entries, patience how_long);

}  // namespace zkasio::recipes::detail

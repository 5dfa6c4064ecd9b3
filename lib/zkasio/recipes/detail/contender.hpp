#pragma once

#include <zkasio/client.hpp>
#include <zkasio/recipes/acquire_options.hpp>
#include <zkasio/recipes/detail/lock_queue.hpp>
#include <zkasio/recipes/lock_guard.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace zkasio::recipes::detail {

/// One place in the queue of a lock, for as long as this lives: whatever happens, the node is removed in the end.
class queue_claim final : public lock_claim {
public:
    /// Joins the queue.
    queue_claim(session on, std::string directory, queue_names names, wish what);
    /// The same with a node that exists already: `path`.
    queue_claim(session on, std::string directory, queue_names names, wish what, std::string path);
    queue_claim(const queue_claim&) = delete;
    queue_claim& operator=(const queue_claim&) = delete;
    ~queue_claim() override { give_up(); }

    /// *Completes when* it is granted (true) or refused (false). *Fails with* what has gone wrong.
    asio::awaitable<bool> decided();

    const session_hold& hold() const noexcept override { return *who_->hold; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return who_->czxid; }
    void give_up() noexcept override;
    asio::awaitable<void> gone() override;

    void body_runs_on(asio::any_io_executor executor) override;

    lock_kind kind() const noexcept { return who_->asked.kind; }
    const std::string& directory() const noexcept { return where_->directory; }

    /// A claim at the same place that shares the lock; this one is given up when that is granted.
    asio::awaitable<std::shared_ptr<queue_claim>> downgrade(std::string data, acl entries);

private:
    struct found {
        std::string directory;
        std::shared_ptr<lock_queue> queue;  // found on the strand, and used only there
    };
    queue_claim(session on, std::shared_ptr<found> where, wish what);

    session on_;
    std::shared_ptr<found> where_;
    contender_ptr who_;
    std::vector<std::string> paths_;
    bool granted_ = false;
    bool given_up_ = false;
};

/// Queues in `directory` and waits for its turn. Nothing when it is not the first and has no patience.
///
/// The algorithm is ZooKeeper's lock recipe as Curator runs it (StandardLockInternalsDriver): a contender watches only
/// its immediate predecessor (a reader: the last writer ahead). What lock_queue adds: contenders of one session share listings
/// and watches, and hand over to each other without any.
///
/// *Fails with* what operations fail with; errc::session_expired when the session ends while waiting.
/// *Cancellation*: leaves no node and no watch behind.
asio::awaitable<std::shared_ptr<queue_claim>> contend(client zk, std::string directory, queue_names names, wish what);

/// The same for the owner that `how` names, if it does.
asio::awaitable<std::shared_ptr<lock_claim>> contend_as(client zk, acquire_options how, std::string directory, queue_names names, wish what);

wish make_wish(lock_kind kind, patience how_long, std::string data, acl entries, const acquire_options& how);

/// Nothing for null.
std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim);

/// Throws errc::invalid_path when `path` cannot be the directory of a lock.
void check_directory(std::string_view recipe, const std::string& path);

}  // namespace zkasio::recipes::detail

#pragma once

#include "grant_meter.hpp"
#include "keys.hpp"
#include "lock_view.hpp"
#include "options.hpp"
#include "session.hpp"

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zklock {

/// `locks --watch`: one lock, which tells of its changes, or the locks of a tree, which is searched again and again.
///
/// On a screen, what is known is drawn anew, and goes on through outages. Elsewhere each change is printed once.
class lock_watch {
public:
    /// @param keys must outlive this.
    lock_watch(session s, locks_options o, const key_reader& keys);

    /// *Completes when* it is cancelled, or when the other end of a pipe for input is closed. *Fails with* broken_pipe
    /// when nobody reads the output any more; with the first error of a look, on a screen with the first that is no
    /// outage.
    asio::awaitable<void> run();

private:
    struct watched_lock {
        grant_meter meter;
        lock_view view;
    };
    using counts_by_path = std::map<std::string, std::optional<node_counts>>;

    asio::awaitable<void> look_again_and_again(zkasio::task_scope& tasks);
    asio::awaitable<void> look();
    asio::awaitable<void> pause(bool failed);
    asio::awaitable<void> look_at_one();
    asio::awaitable<void> look_at_tree();
    asio::awaitable<counts_by_path> count_nodes();
    void take(lock_view v, const std::optional<node_counts>& counted);
    void take_gone(const counts_by_path& counts);

    asio::awaitable<void> draw_every_second();
    asio::awaitable<void> draw_when_resized();
    void draw();
    std::string screen_text();
    std::string trouble();

    const session s_;
    const locks_options o_;
    const key_reader& keys_;
    const bool screen_;
    bool looked_ = false;
    std::map<std::string, watched_lock> locks_;
    std::vector<zkasio::watch> watches_;
    std::string failure_;  // of the last look
    std::string about_tree_;
    zkasio::boot_clock::duration took_{0};
    std::optional<zkasio::boot_clock::time_point> unconnected_since_;
};

}  // namespace zklock

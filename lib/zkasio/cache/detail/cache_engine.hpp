#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/cache/detail/cache_board.hpp>
#include <zkasio/cache/detail/tree_sync.hpp>
#include <zkasio/client.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/node_feed.hpp>

#include <asio/any_io_executor.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::cache_detail {

/// Sends the reads that a tree_sync decides on, and shows the known state on a cache_board. Lives on the client's
/// strand. begin() begins and stop() ends the work; both may be called from any thread.
class cache_engine final : public node_feed_listener, public std::enable_shared_from_this<cache_engine> {
public:
    cache_engine(const client& zk, std::string root, tree_scope scope, std::size_t most_reads,
                 std::shared_ptr<cache_board> board);

    void begin(client zk);

    /// Gives up all watches, in the background. Only the first call has an effect.
    void stop() noexcept;
    const std::shared_ptr<cache_board>& board() const noexcept { return board_; }

    /// Fired when nothing of the cache is left on the servers.
    const one_shot_event& stopped() const noexcept { return stopped_; }

private:
    bool wants_one_watch() const override { return wants_one_watch_; }
    void connected(bool by_one_watch) override;
    void disconnected() override;
    void closed(std::error_code why) override;
    void answered(node_read what, const std::string& path, std::error_code code, node_answer answer) override;
    void changed(node_change what, const std::string& path, std::int64_t zxid) override;
    void authenticated() override;
    bool watches(node_read what, const std::string& path) const override { return sync_.watches(what, path); }
    void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const override {
        sync_.for_each_watch(f);
        for (const auto& [what, path] : to_leave_) f(what, path);
    }

    template <class Decision>
    void decide(Decision d);
    void work();
    void send_reads();
    void pause();
    void pause_before_refused();
    void publish_soon();
    void publish();
    void do_without_one_watch();
    void stop_now();
    void begin_to_leave();
    void when_answered(void (cache_engine::*next)());
    void leave_later();
    void leave_some();
    void end();
    void end_refusal_pauses();

    const operations on_;
    const asio::any_io_executor strand_;
    const std::shared_ptr<const std::string> root_;
    const std::size_t most_reads_;
    bool wants_one_watch_;  // not for a single node
    const std::shared_ptr<cache_board> board_;
    const one_shot_event stopped_;
    tree_sync sync_;
    node_feed feed_;
    back_off pauses_;
    back_off refusal_pauses_, between_looks_;  // C9: before each round through the refused nodes, and within one
    // A look at refused nodes is to come (C9): after any pause, and after a short one.
    bool pausing_before_refused_ = false, looks_soon_ = false;
    bool refused_round_over_ = true;
    std::size_t wanted_events_ = 0, useless_events_ = 0;  // of the recursive watch
    bool up_ = false, ready_ = false, publishing_ = false, pausing_ = false;
    bool deciding_ = false;  // a call of `sync_` is running, which may call a user's filter

    std::vector<std::pair<node_read, std::string>> to_leave_;  // watches to be removed
    bool leaving_ = false;                                     // removals are under way
    std::size_t chain_ = 0;                                    // answers to fences with an older number are ignored
    bool stopping_ = false;
    std::shared_ptr<const void> work_;  // held while the engine stops: see toolbox::begin_background_work()
};

}  // namespace zkasio::cache_detail

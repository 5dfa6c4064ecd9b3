#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/client.hpp>
#include <zkasio/recipe/detail/follow_rules.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/node_feed.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/any_io_executor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// The state of one node_follower::next(). Lives on the client's strand until it is told.
struct awaited_report {
    explicit awaited_report(const operations& on) : is_told(toolbox(on).make_one_shot_event()) {}

    void tell(node_report r) {
        report = std::move(r);
        is_told.fire();
    }

    const one_shot_event is_told;
    node_report report;
};
using awaited_report_ptr = std::shared_ptr<awaited_report>;

/// Carries out the decisions of follow_rules. Lives on the client's strand; begin(), tell_next(), forget() and stop()
/// may be called from any thread.
class follow_engine final : public node_feed_listener, public std::enable_shared_from_this<follow_engine> {
public:
    follow_engine(const client& zk, std::string path, node_read what);

    void begin(client zk);
    /// @param who the next() that awaits the report; null: a user's listener, which is not told when it is replaced.
    void tell_next(std::optional<node_mark> known, node_follower::listener tell, awaited_report_ptr who = nullptr);
    /// Cancels the request of `who`, unless another one has replaced it: the node is not read for it again.
    void forget(awaited_report_ptr who) noexcept;
    /// Leaves the watch, in the background. Only the first call has an effect.
    void stop() noexcept;

    const operations& on() const noexcept { return on_; }
    const std::string& path() const noexcept { return path_; }
    /// Fired when no watch of the engine is left on the servers.
    const one_shot_event& stopped() const noexcept { return stopped_; }

private:
    void connected(bool by_one_watch) override;
    void disconnected() override;
    void closed(std::error_code why) override;
    void answered(node_read what, const std::string& path, std::error_code code, node_answer answer) override;
    void changed(node_change what, const std::string& path, std::int64_t zxid) override;
    void authenticated() override;
    bool watches(node_read what, const std::string& path) const override;
    void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const override;

    void work();
    void pause(back_off& pauses);
    void end_refusal();
    void tell(node_report report);
    void tell_end();
    void stop_now();
    void begin_to_leave();
    void when_answered(void (follow_engine::*next)());
    void leave();
    void end();

    const operations on_;
    const asio::any_io_executor strand_;
    const std::string path_;
    const node_read what_;
    const one_shot_event stopped_;
    follow_rules rules_;
    node_feed feed_;
    back_off pauses_, refusal_pauses_;
    node_follower::listener tell_;  // null: no request is pending
    awaited_report_ptr who_;        // the next() that set tell_; null: none
    std::error_code ended_;
    bool up_ = false, pausing_ = false, stopping_ = false;
    bool refused_ = false;  // by the last answer: not for now, but until an ACL or a credential changes
    bool leave_data_ = false, leave_children_ = false;  // while it stops: these watches are to be left
    std::shared_ptr<const void> work_;                  // the same: see toolbox::begin_background_work()
};

}  // namespace zkasio::detail

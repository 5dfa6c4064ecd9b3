#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/client.hpp>
#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/recipe/detail/follow_rules.hpp>
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

/// Who awaits node_follower::next(). Lives on the client's strand until it is told.
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

/// Sends what follow_rules decide. Lives on the client's strand; begin(), stop() and what asks may be called from any
/// thread.
class follow_engine final : public node_feed_listener, public std::enable_shared_from_this<follow_engine> {
public:
    follow_engine(const client& zk, std::string path, node_read what);

    void begin(client zk);
    /// @param who awaits it; null: a listener of the user's, which is not told that another one takes its place.
    void tell_next(std::optional<node_mark> known, node_follower::listener tell, awaited_report_ptr who = nullptr);
    /// He does not await it any more: what is not asked by somebody else meanwhile is not read.
    void forget(awaited_report_ptr who) noexcept;
    /// Leaves the watch, in the background. The first call counts.
    void stop() noexcept;

    const operations& on() const noexcept { return on_; }
    const std::string& path() const noexcept { return path_; }
    /// Fired when nothing is left of it on the servers.
    const one_shot_event& stopped() const noexcept { return stopped_; }

private:
    void connected() override;
    void disconnected() override;
    void closed(std::error_code why) override;
    void answered(node_read what, const std::string& path, std::error_code code, node_answer answer) override;
    void changed(node_change what, const std::string& path) override;
    bool watches(node_read what, const std::string& path) const override;
    void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const override;

    void work();
    void pause();
    void tell(node_report report);
    void tell_end();
    void stop_now();
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
    back_off pauses_;
    node_follower::listener tell_;  // null: nobody wants to know
    awaited_report_ptr who_;        // of tell_
    std::error_code ended_;
    bool up_ = false, pausing_ = false, stopping_ = false;
    bool leave_data_ = false, leave_children_ = false;  // while it stops: these watches are to be left
    std::shared_ptr<const void> work_;                  // the same: see toolbox::begin_background_work()
};

}  // namespace zkasio::detail

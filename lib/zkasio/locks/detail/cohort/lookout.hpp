#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/acquire_request.hpp>
#include <zkasio/locks/detail/revocation_watch.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/session.hpp>
#include <zkasio/watch.hpp>

#include <asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::lock_detail {

class cohort_place;

/// Looks out, for a place that has the lock, for contenders behind it, for requests to give it back, and for the end of
/// the time for which an idle place lingers. On the strand. Reports to the cohort_place until stop().
class lookout : public std::enable_shared_from_this<lookout> {
public:
    /// @param claim of the place.
    lookout(session on, lock_spec_ptr lock, std::shared_ptr<lock_claim> claim, std::weak_ptr<cohort_place> place);
    /// To be called once. The requests to give the place back are watched for when it was kept for a quarter of the
    /// session timeout, since most are not kept for so long.
    void begin();

    enum class then {
        watch,
        list
    };
    /// Looks whether other contenders wait, unless a look is under way. @param how list: the first look needs no watch,
    /// since another contender is expected.
    void look(then how);
    /// Calls cohort_place::lingered() after `time`, or after an hour.
    void wake_after(boot_clock::duration time);
    void stop() noexcept;

private:
    void list();
    void watch_children();
    template <class Pending>
    void answered(Pending& asked);
    void seen(const std::vector<std::string>& names);
    void failed() noexcept;
    void look_later();

    const session on_;
    const lock_spec_ptr lock_;
    const std::shared_ptr<lock_claim> claim_;
    const std::string own_name_;
    const std::weak_ptr<cohort_place> place_;
    bool over_ = false, looking_ = false, fired_ = false;
    std::shared_ptr<pending_watched_children> request_;
    std::optional<watch> watch_;
    back_off pauses_;
    std::optional<revocation_watch> requests_;
    asio::steady_timer timer_, kept_timer_;
};

}  // namespace zkasio::lock_detail

#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/session.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

namespace lock_detail {
/// What errc::would_deadlock says of the work under a lock that acquires the same lock.
inline constexpr const char* holds_it_already =
    "this is the work that holds it: pass a lock_owner on, or acquire on another executor if it does not wait for that";

/// The reason of what is not held(), which has looked at the clock, as a message says it.
inline std::string_view why_not_held(loss_reason why) noexcept {
    return to_string(why == loss_reason::none ? loss_reason::lease_ended : why);
}
}  // namespace lock_detail

/// What is behind a lock_guard: each recipe has its own. For writers of recipes.
///
/// A claim whose hold() is lost while its session lives gives its nodes back by itself, in the background, and does not
/// wait for give_up(): the owner may keep the lost guard for as long as it likes (session_hold::on_lost(),
/// toolbox::ensure_removed()).
///
/// All members may be called from any thread.
class lock_claim {
public:
    virtual ~lock_claim() = default;

    /// The nodes that make it ours, and what watches over them.
    virtual const session_hold& hold() const noexcept = 0;
    virtual const std::vector<std::string>& paths() const noexcept = 0;
    virtual const session& on() const noexcept = 0;
    virtual std::int64_t token() const noexcept = 0;

    /// The sequence number of the node, see lock_guard::sequence(); nothing where the recipe has none.
    virtual std::optional<std::int32_t> sequence() const noexcept { return std::nullopt; }

    /// Whether the existence of the nodes proves that it is ours, so that lock_guard::commit() may rely on it.
    virtual bool proves() const noexcept { return true; }

    /// Work under the lock runs there, until body_ends() with the same executor: who acquires the same lock from there
    /// would wait for itself. Of several that run at a time, or one within another, each is told. The body begins after
    /// this has returned, and only if hold() is not lost then. When hold() is lost while a body runs, who acquires the
    /// lock next in the same session waits until the body has ended or this claim is given up.
    virtual void body_begins(asio::any_io_executor) {}
    virtual void body_ends(asio::any_io_executor) noexcept {}

    /// Ends it for this reason, as if hold() had been lost: for claims that consist of others.
    virtual void lose(loss_reason why) noexcept { hold().lose(why); }

    /// Gives it back; once. From then on hold().held() is false. Of a claim that was lost: the guard is gone.
    virtual void give_up() noexcept = 0;
    /// *Completes when* the servers have taken that note: the nodes are gone, or the session is. *Fails with* what the
    /// servers say when they refuse it.
    virtual asio::awaitable<void> gone() = 0;
};

}  // namespace zkasio

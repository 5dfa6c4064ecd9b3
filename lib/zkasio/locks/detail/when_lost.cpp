#include <zkasio/locks/detail/when_lost.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/dispatch.hpp>
#include <asio/post.hpp>

#include <utility>

namespace zkasio::lock_detail {

void when_lost(const session& on, std::shared_ptr<const session_hold> hold, std::function<void(loss_reason)> f) {
    const asio::any_io_executor strand = on.get_executor();
    asio::dispatch(strand, [strand, hold = std::move(hold), f = std::move(f)] {
        hold->on_lost([strand, f](loss_reason why) {
            // The code that finds the loss may be working on objects that `f` changes: hence a turn of its own.
            if (lost_in_session(why)) asio::post(strand, [f, why] { f(why); });
        });
    });
}

}  // namespace zkasio::lock_detail

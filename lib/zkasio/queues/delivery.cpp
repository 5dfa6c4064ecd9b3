#include <zkasio/queues/delivery.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/item_claim.hpp>
#include <zkasio/recipe/errors.hpp>

#include <exception>
#include <utility>

namespace zkasio {

using queue_detail::item_claim;
using queue_detail::item_claim_ptr;

namespace {

const queue_detail::read_item& item_of(const item_claim_ptr& claim) noexcept {
    static const queue_detail::read_item none;
    return claim ? claim->item() : none;
}

void require(const item_claim_ptr& claim, const char* operation) {
    if (!claim) throw error(errc::lock_released, operation, {}, "this delivery was moved from");
}

asio::awaitable<void> finish(item_claim_ptr claim, transaction also) {
    require(claim, "done");
    const std::string& path = claim->paths().front();
    co_await errors_as("done", path, item_claim::finish(claim, std::move(also), "done"));
}

asio::awaitable<void> bury(item_claim_ptr claim, std::string reason) {
    require(claim, "reject");
    const std::string& path = claim->paths().front();
    co_await errors_as("reject", path, item_claim::reject(claim, std::move(reason)));
}

asio::awaitable<void> after_pause(std::chrono::milliseconds pause) {
    if (pause < pause.zero()) throw error(errc::invalid_argument, "again", {}, "a pause is not negative");
    co_return;
}

}  // namespace

delivery::delivery(item_claim_ptr claim, std::shared_ptr<const void> open)
    : claim_(std::move(claim)), guard_(claim_, std::move(open)) {}
delivery::delivery(delivery&& other) noexcept = default;
delivery& delivery::operator=(delivery&& other) noexcept = default;
delivery::~delivery() = default;

const std::string& delivery::item() const noexcept { return item_of(claim_).data; }
const std::string& delivery::name() const noexcept { return item_of(claim_).name; }
int delivery::attempt() const noexcept { return item_of(claim_).attempt(); }

asio::awaitable<void> delivery::run_body(std::function<asio::awaitable<void>()> body, item_claim_ptr claim) {
    require(claim, "run");
    if (!body) throw error(errc::invalid_argument, "run", claim->paths().front(), "the body is empty");
    if (claim->is_over()) throw error(errc::lock_released, "run", claim->paths().front());
    const auto lost = [&] { return is_loss(claim->hold().reason()); };
    std::exception_ptr failed;
    try {
        if (!lost()) co_await claim->hold().run(std::move(body));
    } catch (...) {
        failed = std::current_exception();
    }
    // A body may end the claim itself.
    if (lost())
        throw_with_body_failure(
            error(errc::lock_lost, "run", claim->paths().front(), to_string(claim->hold().reason())), failed);
    if (failed) std::rethrow_exception(failed);
}

asio::awaitable<void> delivery::done(transaction also) const { return finish(claim_, std::move(also)); }

asio::awaitable<void> delivery::again() { return guard_.release(); }

asio::awaitable<void> delivery::again(any_duration time) {
    const std::chrono::milliseconds pause = time;
    if (pause == pause.zero()) return again();
    if (pause > pause.zero() && claim_) {
        guard_.take_claim();
        claim_->give_up_after(pause);
    }
    return after_pause(pause);
}

asio::awaitable<void> delivery::reject(std::string reason) const { return bury(claim_, std::move(reason)); }

}  // namespace zkasio

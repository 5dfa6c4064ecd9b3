#include <zkasio/counters/detail/adder.hpp>

#include <zkasio/counters/detail/sum.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <limits>
#include <utility>

namespace zkasio::counter_detail {

adder::adder(client zk, const session& on, spec_ptr what)
    : zk_(std::move(zk)), on_(on.patient()), what_(std::move(what)), receipts_(receipts_of(on_, *what_)) {}

std::shared_ptr<adder> adder::of(const client& zk, const session& on, const spec_ptr& what) {
    const auto make = [&] { return std::make_shared<adder>(zk, on, what); };
    return std::static_pointer_cast<adder>(toolbox(on).local("counter " + what->path, make));
}

void adder::add(addition_ptr a) {
    waiting_.push_back(std::move(a));
    if (std::exchange(writing_, true)) return;
    toolbox(on_).run_in_background(write_all(shared_from_this()));
}

void adder::session_over(std::error_code why) noexcept {
    for (const addition_ptr& a : take_waiting()) a->fail(std::make_exception_ptr(error(why, "add", what_->path)));
}

adder::additions adder::take_waiting() {
    additions round = std::exchange(waiting_, {});
    std::erase_if(round, [](const addition_ptr& a) { return !a->take(); });
    return round;
}

asio::awaitable<void> adder::write_all(std::shared_ptr<adder> self) {
    while (!self->waiting_.empty()) {
        additions round = self->take_waiting();
        co_await self->write(std::move(round));
    }
    self->writing_ = false;
}

asio::awaitable<void> adder::write(additions round) {
    std::exception_ptr failed;
    try {
        co_await write_until_certain(round);
    } catch (...) {
        failed = std::current_exception();
    }
    for (const addition_ptr& a : round) a->fail(failed);
}

// Succeeded additions, and those that were refused, leave the round.
asio::awaitable<void> adder::write_until_certain(additions& round) {
    const std::string& lock = what_->options.promote_to();
    back_off pauses = toolbox(on_).make_back_off();
    std::optional<lock_guard> turn;
    for (int tries = 1; !round.empty(); ++tries) {
        const bool written = co_await try_write(round);
        if (written) co_return;
        if (turn || lock.empty() || tries < what_->options.optimistic_tries()) {
            co_await pauses.pause();
        } else {
            const mutex queue(zk_, lock);
            lock_guard guard = co_await queue.acquire();
            turn.emplace(std::move(guard));
        }
    }
}

asio::awaitable<bool> adder::try_write(additions& round) {
    if (!last_) last_ = co_await read_number(on_, what_, conflict_, "add");
    const std::vector<std::int64_t> sums = add_up(round);
    if (sums.empty()) co_return true;
    const numbered before = *std::exchange(last_, std::nullopt);  // not known any longer if the write fails
    const bool written = co_await write_number(receipts_, what_, before, sums.back(), "add");
    conflict_ = !written;
    if (!written) co_return false;
    numbered now;
    now.number = sums.back();
    now.version = static_cast<std::int32_t>(static_cast<std::uint32_t>(before.version) + 1);
    last_ = now;
    for (std::size_t i = 0; i < sums.size(); ++i) round[i]->succeed(sums[i]);
    round.clear();
    co_return true;
}

// The number after each addition, in order. An addition that 64 bits do not hold fails and leaves the round.
std::vector<std::int64_t> adder::add_up(additions& round) const {
    std::vector<std::int64_t> sums;
    std::int64_t number = last_->number;
    std::erase_if(round, [&](const addition_ptr& a) {
        const std::optional<std::int64_t> sum = sum_of(number, a->delta());
        if (sum) {
            number = *sum;
            sums.push_back(number);
            return false;
        }
        a->fail(std::make_exception_ptr(
            error(std::make_error_code(std::errc::result_out_of_range), "add", what_->path,
                  std::to_string(number) + " + " + std::to_string(a->delta()) + " has more than 64 bits")));
        return true;
    });
    return sums;
}

}  // namespace zkasio::counter_detail

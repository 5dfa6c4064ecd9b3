#include <zkasio/counters/detail/adder.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
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
    commit_report r = begin_commit(commit_kind::add);
    r.parts = 0;
    std::exception_ptr failed;
    try {
        co_await write_until_certain(round, r);
    } catch (...) {
        failed = std::current_exception();
    }
    const bool is_refused = !failed && r.parts == 0;  // each addition, and nothing was written
    if (!is_refused) report_commit(on_, r, what_->path, failed);
    for (const addition_ptr& a : round) a->fail(failed);
}

// Additions whose outcome was told leave the round.
asio::awaitable<void> adder::write_until_certain(additions& round, commit_report& r) {
    const std::string& promote_to = what_->options.promote_to();
    back_off pauses = toolbox(on_).make_back_off();
    lock_guard turn;
    while (!round.empty()) {
        bool waits = false;
        if (!promote_to.empty() && !is_turn(turn)) waits = co_await needs_turn(r.conflicts);
        if (waits) {
            r.promoted = true;
            lock_guard guard = co_await take_turn(zk_, what_, "add");
            turn = std::move(guard);
            last_.reset();  // others have written before
        } else if (r.conflicts > 0 && !is_turn(turn)) {
            co_await pauses.pause();
        }
        // Sent together with the write, which does not wait for the answer: the next write does.
        if (!promote_to.empty()) queue_.emplace(toolbox(on_).start_exists(promote_to));
        r.parts = co_await try_write(round);
        if (!round.empty()) ++r.conflicts;
    }
}

asio::awaitable<bool> adder::needs_turn(std::size_t conflicts) {
    if (conflicts >= static_cast<std::size_t>(what_->options.optimistic_tries())) co_return true;
    const std::optional<pending_data> earlier = std::exchange(queue_, std::nullopt);
    if (!earlier) co_return false;
    const bool queued = co_await is_queued(on_, what_, *earlier);
    co_return queued;
}

// A conflict with another client's write leaves the round as it is. Returns how many additions were made.
asio::awaitable<std::size_t> adder::try_write(additions& round) {
    if (!last_) last_ = co_await read_number(on_, what_, conflict_, "add");
    std::vector<sum> sums = add_up(round);
    if (all_refused(sums)) {
        // No write will find out whether the number that leaves no room is still the newest.
        last_ = co_await read_number(on_, what_, true, "add");
        sums = add_up(round);
    }
    if (!all_refused(sums)) {
        const numbered before = *std::exchange(last_, std::nullopt);  // not known any longer if the write fails
        numbered now = before;
        for (const sum& s : sums)
            if (!s.refused) now.number = s.number;
        const bool written = co_await write_number(receipts_, what_, before, now.number, "add");
        conflict_ = !written;
        if (!written) co_return 0;
        if (const std::optional<std::int32_t> version = version_after(before.version)) {
            now.version = *version;
            last_ = now;
        }
    }
    std::size_t made = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i].refused) {
            round[i]->fail(sums[i].refused);
        } else {
            round[i]->succeed(sums[i].number);
            ++made;
        }
    }
    round.clear();
    co_return made;
}

std::vector<adder::sum> adder::add_up(const additions& round) const {
    std::vector<sum> sums;
    std::int64_t number = last_->number;
    for (const addition_ptr& a : round) {
        sum& s = sums.emplace_back();
        const std::optional<std::int64_t> next = sum_of(number, a->delta());
        if (next)
            s.number = number = *next;
        else
            s.refused = std::make_exception_ptr(
                error(std::make_error_code(std::errc::result_out_of_range), "add", what_->path,
                      std::to_string(number) + " + " + std::to_string(a->delta()) + " has more than 64 bits"));
    }
    return sums;
}

bool adder::all_refused(const std::vector<sum>& sums) noexcept {
    return std::all_of(sums.begin(), sums.end(), [](const sum& s) { return s.refused != nullptr; });
}

}  // namespace zkasio::counter_detail

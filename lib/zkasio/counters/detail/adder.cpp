#include <zkasio/counters/detail/adder.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace zkasio::counter_detail {

std::int64_t number_in(const counter_spec& what, const std::string& data, const std::string& operation) {
    try {
        return what.options.format().parse()(data);
    } catch (const std::exception& e) {
        throw error(errc::invalid_argument, operation, what.path, std::string("its data is no counter's: ") + e.what());
    }
}

receipts receipts_of(const session& on, const counter_spec& what) {
    const std::string& elsewhere = what.options.receipts();
    if (elsewhere.empty()) return receipts(on, what.path, what.options.acl(), missing_parents::fail);
    return receipts(on, elsewhere, what.options.acl());
}

namespace {

asio::awaitable<numbered> read_now(session on, spec_ptr what, bool behind_sync, std::string operation) {
    create_options how;
    how.acl(what->options.acl()).parents(missing_parents::create_persistent);
    back_off pauses = toolbox(on).make_back_off();
    for (;; co_await pauses.pause()) {
        if (behind_sync) co_await on.sync(what->path);
        const std::optional<node_data> found = co_await if_exists(on.get(what->path));
        if (found) {
            numbered n;
            n.number = number_in(*what, found->data, operation);
            n.version = found->stat.version;
            co_return n;
        }
        const std::string zero = what->options.format().print()(0);
        bool created_now = false;
        try {
            const std::optional<created> made = co_await on.create_unless_exists(what->path, zero, how);
            created_now = made.has_value();
        } catch (const error& e) {
            if (e.code() != condition::retryable || e.hung_up()) rethrow_as_not_written();
        }
        if (created_now) co_return numbered();
        behind_sync = true;  // another client has created the node, or the answer was lost
    }
}

}  // namespace

asio::awaitable<numbered> read_number(session on, spec_ptr what, bool behind_sync, std::string operation) {
    asio::awaitable<numbered> reading = read_now(on, what, behind_sync, operation);
    return errors_as(std::move(operation), what->path, std::move(reading));
}

asio::awaitable<bool> write_number(receipts with, spec_ptr what, numbered last, std::int64_t next,
                                   std::string operation) {
    if (last.version < 0)
        throw error(std::make_error_code(std::errc::result_out_of_range), operation, what->path,
                    "the node was written 2^31 times, and its version is negative, which no write can name as its "
                    "condition: create the node anew, with the same number");
    transaction steps;
    steps.set(what->path, what->options.format().print()(next), last.version);
    try {
        co_await with.apply(std::move(steps), operation);
        co_return true;
    } catch (const error& e) {
        // no_node: of the node, or of the receipt that is to be created below the node.
        const bool conflict = e.code() == zk_errc::bad_version || e.code() == zk_errc::no_node;
        if (!conflict || e.outcome_unknown()) rethrow_as(operation, what->path);
    }
    co_return false;
}

asio::awaitable<lock_guard> take_turn(client zk, spec_ptr what, std::string operation) {
    const mutex queue(std::move(zk), what->options.promote_to());
    try {
        lock_guard guard = co_await errors_as(std::move(operation), what->path, queue.acquire());
        co_return guard;
    } catch (...) {
        rethrow_as_not_written();
    }
}

asio::awaitable<bool> is_queued(session on, spec_ptr what, pending_data earlier) {
    std::string marker = name_scheme::curator().mutex_marker();
    const bool queued =
        co_await has_contenders(operations(on), what->options.promote_to(), std::move(marker), earlier);
    co_return queued;
}

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
    if (conflicts >= static_cast<std::size_t>(what_->options.tries())) co_return true;
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

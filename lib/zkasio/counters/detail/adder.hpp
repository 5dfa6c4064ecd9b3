#pragma once

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::counter_detail {

/// The path and the options of an atomic_counter.
struct counter_spec {
    std::string path;
    counter_options options;
};
using spec_ptr = std::shared_ptr<const counter_spec>;

/// The number in a node, and the version of the node that has it.
struct numbered {
    std::int64_t number = 0;
    std::int32_t version = 0;
};

/// The version of a node after a write; nothing: it becomes negative, and no write can name it as its condition.
constexpr std::optional<std::int32_t> version_after(std::int32_t version) noexcept {
    if (version == std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    return version + 1;
}

/// The number that `data` says. Throws errc::invalid_argument.
std::int64_t number_in(const counter_spec& what, const std::string& data, const std::string& operation);

/// The receipts of writes to this counter. They do not create the counter's node.
receipts receipts_of(const session& on, const counter_spec& what);

/// Reads the number for a write. Creates the node, with 0, if it is missing. @param on patient. @param behind_sync the
/// server may lag behind the one that has refused a write.
asio::awaitable<numbered> read_number(session on, spec_ptr what, bool behind_sync, std::string operation);

/// Writes `next` into the node that has `last`, exactly once. False: another client has written, created or removed the
/// node.
asio::awaitable<bool> write_number(receipts with, spec_ptr what, numbered last, std::int64_t next,
                                   std::string operation);

/// Waits for the mutex of counter_options::promote_to(). Its queue binds all writers: while it has contenders, each
/// takes its turn there before it writes.
asio::awaitable<lock_guard> take_turn(client zk, spec_ptr what, std::string operation);
/// Whether others have or want that mutex, see has_contenders().
asio::awaitable<bool> is_queued(session on, spec_ptr what, pending_data earlier);

/// Whether the mutex is held, as far as is known: an operator may remove the contender.
inline bool is_turn(const lock_guard& guard) noexcept { return guard.reason() == loss_reason::none; }

/// The sum; nothing if 64 bits do not hold it.
constexpr std::optional<std::int64_t> sum_of(std::int64_t a, std::int64_t b) noexcept {
    using limits = std::numeric_limits<std::int64_t>;
    if (b > 0 ? a > limits::max() - b : a < limits::min() - b) return std::nullopt;
    return a + b;
}

/// One call of add(): made by the caller, carried out by an adder.
class addition {
public:
    addition(std::int64_t delta, one_shot_event done) : delta_(delta), done_(std::move(done)) {}

    std::int64_t delta() const noexcept { return delta_; }
    const one_shot_event& done() const noexcept { return done_; }

    /// Exactly one of the two succeeds: the adder takes the addition into a write, or the caller withdraws it.
    bool take() noexcept { return leave_waiting(state::taken); }
    bool withdraw() noexcept { return leave_waiting(state::withdrawn); }

    /// The outcome, told once, by the adder.
    void succeed(std::int64_t number) noexcept {
        number_ = number;
        done_.fire();
    }
    void fail(std::exception_ptr why) noexcept {
        failed_ = std::move(why);
        done_.fire();
    }
    /// To be called after done(). Throws if the addition has failed.
    std::int64_t number(const std::string& path) const {
        if (failed_) rethrow_to_caller(failed_, "add", path);
        return number_;
    }

private:
    enum class state {
        waiting,
        taken,
        withdrawn
    };
    bool leave_waiting(state next) noexcept {
        state now = state::waiting;
        return state_.compare_exchange_strong(now, next);
    }

    const std::int64_t delta_;
    const one_shot_event done_;
    std::atomic<state> state_{state::waiting};
    std::int64_t number_ = 0;  // written before `done_` is fired, as `failed_`
    std::exception_ptr failed_;
};
using addition_ptr = std::shared_ptr<addition>;

/// The additions of one session to one counter. All that come while a write is under way are the next write: flat
/// combining (Hendler, Incze, Shavit, Tzafrir: SPAA 2010). On the strand.
class adder final : public session_local, public std::enable_shared_from_this<adder> {
public:
    adder(client zk, const session& on, spec_ptr what);

    /// The adder of this session, made when there is none. Kept by its users.
    static std::shared_ptr<adder> of(const client& zk, const session& on, const spec_ptr& what);

    void add(addition_ptr a);
    void session_over(std::error_code why) noexcept override;

private:
    using additions = std::vector<addition_ptr>;
    static asio::awaitable<void> write_all(std::shared_ptr<adder> self);
    asio::awaitable<void> write(additions round);
    asio::awaitable<void> write_until_certain(additions& round, commit_report& r);
    asio::awaitable<bool> needs_turn(std::size_t conflicts);
    asio::awaitable<std::size_t> try_write(additions& round);
    /// After an addition: the number, or why the addition is refused.
    struct sum {
        std::int64_t number = 0;
        std::exception_ptr refused;
    };
    std::vector<sum> add_up(const additions& round) const;
    static bool all_refused(const std::vector<sum>& sums) noexcept;
    additions take_waiting();

    const client zk_;
    const session on_;
    const spec_ptr what_;
    const receipts receipts_;
    additions waiting_;
    std::optional<numbered> last_;  // of our last write, or of a read: a write finds out whether this still holds
    bool writing_ = false, conflict_ = false;
    std::optional<pending_data> queue_;  // asked before the last write: who has or wants the mutex of promote_to()
};

}  // namespace zkasio::counter_detail

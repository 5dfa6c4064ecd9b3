#include <zkasio/counters/atomic_counter.hpp>

#include <zkasio/counters/detail/adder.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace zkasio {
namespace {

template <class Number>
Number from_bytes(std::string_view bytes) {
    if (bytes.empty()) return 0;
    if (bytes.size() != sizeof(Number))
        throw std::invalid_argument(std::to_string(bytes.size()) + " bytes are no number of " +
                                    std::to_string(sizeof(Number)) + " bytes");
    std::make_unsigned_t<Number> n = 0;
    for (const char byte : bytes)
        n = static_cast<std::make_unsigned_t<Number>>(n << 8 | static_cast<unsigned char>(byte));
    return static_cast<Number>(n);
}

template <class Number>
std::string to_bytes(Number number) {
    auto n = static_cast<std::make_unsigned_t<Number>>(number);
    std::string bytes(sizeof(Number), '\0');
    for (std::size_t i = sizeof(Number); i-- > 0; n = static_cast<std::make_unsigned_t<Number>>(n >> 8))
        bytes[i] = static_cast<char>(n & 0xff);
    return bytes;
}

std::int64_t from_digits(std::string_view text) {
    if (text.empty()) return 0;
    std::int64_t n = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (failed != std::errc() && end != text.data()) throw std::invalid_argument("the number has more than 64 bits");
    if (failed != std::errc() || end != text.data() + text.size())
        throw std::invalid_argument("the text is no integer");
    return n;
}

std::string to_digits(std::int64_t n) { return std::to_string(n); }

}  // namespace

config_format<std::int32_t> curator_count() { return {&from_bytes<std::int32_t>, &to_bytes<std::int32_t>}; }
config_format<std::int64_t> curator_long() { return {&from_bytes<std::int64_t>, &to_bytes<std::int64_t>}; }
config_format<std::int64_t> kazoo_counter() { return {&from_digits, &to_digits}; }

using namespace counter_detail;

counter_options& counter_options::promote_to(std::string lock_path) {
    require_path("atomic_counter", lock_path);
    promote_to_ = std::move(lock_path);
    return *this;
}

counter_options& counter_options::tries(int n) {
    if (n < 0) throw error(errc::invalid_argument, "atomic_counter", {}, "a number of tries is not negative");
    tries_ = n;
    return *this;
}

namespace counter_detail {

struct counter_state {
    counter_state(client c, counter_spec s)
        : zk(std::move(c)), what(std::make_shared<const counter_spec>(std::move(s))) {}

    const client zk;
    const spec_ptr what;
    std::shared_ptr<adder> kept;  // strand: of the newest session, with its receipts
};

namespace {

using state_ptr = std::shared_ptr<counter_state>;

const state_ptr& counter_of(const state_ptr& state, const char* operation) {
    if (!state) throw error(errc::invalid_argument, operation, {}, "this atomic_counter was moved from");
    return state;
}

asio::awaitable<std::int64_t> get_number(state_ptr s) {
    const spec_ptr what = counter_of(s, "get")->what;
    const std::optional<node_data> found = co_await if_exists(s->zk.get(what->path));
    co_return found ? number_in(*what, found->data, "get") : 0;
}

asio::awaitable<bool> create_number(state_ptr s, std::int64_t number) {
    const spec_ptr what = counter_of(s, "initialize")->what;
    create_options how;
    how.acl(what->options.acl()).parents(missing_parents::create_persistent);
    asio::awaitable<std::optional<created>> creating =
        s->zk.create_unless_exists(what->path, what->options.format().print()(number), how);
    const std::optional<created> made = co_await errors_as("initialize", what->path, std::move(creating));
    co_return made.has_value();
}

// Waits for the outcome of an addition that has been given to an adder.
asio::awaitable<std::int64_t> outcome_of(addition_ptr mine, std::string path) {
    try {
        co_await mine->done().wait();
    } catch (const std::system_error& e) {
        throw error(e.code(), "add", path, {}, !mine->withdraw());
    }
    co_return mine->number(path);
}

// The adder of this session, which keeps its receipts for the next write.
std::shared_ptr<adder> adder_of(const state_ptr& s, const session& on) {
    s->kept = adder::of(s->zk, on, s->what);
    return s->kept;
}

asio::awaitable<std::int64_t> add_to(state_ptr s, std::int64_t delta) {
    const std::string& path = counter_of(s, "add")->what->path;
    session_pace pace = toolbox(s->zk).make_session_pace();
    for (;;) {
        const session on = co_await toolbox(s->zk).current_session("add", path);
        const auto mine = std::make_shared<addition>(delta, toolbox(on).make_one_shot_event());
        asio::dispatch(on.get_executor(), [s, on, mine] { adder_of(s, on)->add(mine); });
        try {
            co_return co_await outcome_of(mine, path);
        } catch (const error& e) {
            if (!is_for_next_session(e)) throw;
        } catch (const std::system_error& e) {  // cancelled before outcome_of() has begun; the adder has the addition
            throw error(e.code(), "add", path, {}, !mine->withdraw());
        }
        co_await pace.pause("add", path);
    }
}

// Whether a compare_and_set() takes its turn before it writes. @param earlier the answer that came with the number.
asio::awaitable<bool> needs_turn(session on, spec_ptr what, std::size_t conflicts,
                                 std::optional<pending_data> earlier) {
    if (!earlier) co_return false;
    if (conflicts >= static_cast<std::size_t>(what->options.tries())) co_return true;
    const bool queued = co_await is_queued(on, what, *earlier);
    co_return queued;
}

asio::awaitable<bool> set_number_on(client zk, session on, spec_ptr what, std::int64_t expected, std::int64_t desired,
                                    commit_report& r) {
    const receipts with = receipts_of(on, *what);
    const std::string& promote_to = what->options.promote_to();
    back_off pauses = toolbox(on).make_back_off();
    lock_guard turn;
    bool behind_sync = false;  // the server may lag behind other clients' writes
    for (;;) {
        std::optional<pending_data> queue;
        if (!promote_to.empty() && !is_turn(turn)) queue.emplace(toolbox(on).start_exists(promote_to));
        const numbered now = co_await read_number(on, what, behind_sync, "compare_and_set");
        if (now.number == expected) {
            const bool waits = co_await needs_turn(on, what, r.conflicts, queue);
            if (waits) {
                r.promoted = true;
                lock_guard guard = co_await take_turn(zk, what, "compare_and_set");
                turn = std::move(guard);
            } else {
                const bool written = co_await write_number(with, what, now, desired, "compare_and_set");
                if (written) co_return true;
                ++r.conflicts;
                if (!is_turn(turn)) co_await pauses.pause();
            }
        } else if (behind_sync) {
            co_return false;
        }
        behind_sync = true;
    }
}

asio::awaitable<bool> set_in_some_session(state_ptr s, std::int64_t expected, std::int64_t desired, commit_report& r) {
    const spec_ptr what = s->what;
    session_pace pace = toolbox(s->zk).make_session_pace();
    for (;;) {
        const session on = co_await toolbox(s->zk).current_session("compare_and_set", what->path);
        asio::dispatch(on.get_executor(), [s, on] { adder_of(s, on); });
        try {
            co_return co_await set_number_on(s->zk, on.patient(), what, expected, desired, r);
        } catch (const error& e) {
            if (!is_for_next_session(e)) throw;
        } catch (const std::system_error& e) {  // of a pause that was cancelled
            throw error(e.code(), "compare_and_set", what->path);
        }
        co_await pace.pause("compare_and_set", what->path);
    }
}

asio::awaitable<bool> set_number(state_ptr s, std::int64_t expected, std::int64_t desired) {
    const spec_ptr what = counter_of(s, "compare_and_set")->what;
    commit_report r = begin_commit(commit_kind::compare_and_set);
    co_return co_await reported_commit(set_in_some_session(s, expected, desired, r), s->zk, what->path, r);
}

}  // namespace
}  // namespace counter_detail

atomic_counter::atomic_counter(client zk, std::string path, counter_options options) {
    require_path("atomic_counter", path);
    if (!options.receipts().empty()) require_path("atomic_counter", options.receipts());
    state_ = std::make_shared<counter_state>(std::move(zk), counter_spec{std::move(path), std::move(options)});
}

asio::awaitable<std::int64_t> atomic_counter::get() const { return get_number(state_); }
asio::awaitable<std::int64_t> atomic_counter::add(std::int64_t delta) const { return add_to(state_, delta); }
asio::awaitable<bool> atomic_counter::compare_and_set(std::int64_t expected, std::int64_t desired) const {
    return set_number(state_, expected, desired);
}
asio::awaitable<bool> atomic_counter::initialize(std::int64_t number) const { return create_number(state_, number); }
const std::string& atomic_counter::path() const { return counter_of(state_, "path")->what->path; }

}  // namespace zkasio

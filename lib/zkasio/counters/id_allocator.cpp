#include <zkasio/counters/id_allocator.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <deque>
#include <exception>
#include <mutex>
#include <utility>

namespace zkasio {

id_options& id_options::block(std::uint32_t ids) {
    if (ids == 0) throw error(errc::invalid_argument, "id_allocator", {}, "a block has at least one id");
    block_ = ids;
    return *this;
}

namespace counter_detail {
namespace {

create_options how_to_create(const acl& entries) {
    create_options how;
    how.acl(entries).parents(missing_parents::create_persistent);
    return how;
}

// Writes the node without a condition: no other writer gets the version that this write gets. If an answer is lost, the
// write is repeated, and a number is left out. Throws std::errc::result_out_of_range.
asio::awaitable<node_stat> count_up(session on, std::string path, std::string data, std::string operation) {
    node_stat written;
    auto count = [&]() -> asio::awaitable<void> { written = co_await on.set(path, data); };
    co_await retry_until_certain(toolbox(on).make_back_off(), count);
    if (written.version < 1)
        throw error(std::make_error_code(std::errc::result_out_of_range), operation, path,
                    "its version has been counted to the end");
    co_return written;
}

asio::awaitable<std::int32_t> number_of(client zk, std::string path) {
    const session now = co_await toolbox(zk).current_session("next_number", path);
    const session on = now.patient();
    const create_options how = how_to_create(default_acl());
    back_off pauses = toolbox(on).make_back_off();
    for (;; co_await pauses.pause()) {
        try {
            const node_stat written = co_await count_up(on, path, {}, "next_number");
            co_return written.version;
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) throw;
        }
        co_await ensure_created(on, path, bytes(), how);
    }
}

}  // namespace

struct allocator_state {
    allocator_state(client c, std::string p, id_options o)
        : zk(std::move(c)),
          path(std::move(p)),
          options(std::move(o)),
          text("blocks of " + std::to_string(options.block()) + " ids"),
          change(zk, mutex) {}

    struct block {
        std::uint64_t next, end;
    };

    const client zk;
    const std::string path;
    const id_options options;
    const std::string text;  // the node's data

    std::mutex mutex;
    std::deque<block> blocks;  // guarded by the mutex, as all below
    bool fetching = false;
    std::uint64_t failures = 0;         // of fetch(), counted
    std::exception_ptr failure;         // the last failure
    std::optional<node_stat> counted;   // the node at the last write, once its data have been checked
    bool began_again = false;           // then nothing more is written: the new node may have blocks of another size
    change_event change;
};

namespace {

using allocator_ptr = std::shared_ptr<allocator_state>;

const allocator_ptr& allocator_of(const allocator_ptr& state, const char* operation) {
    if (!state) throw error(errc::invalid_argument, operation, {}, "this id_allocator was moved from");
    return state;
}

// The node that counts the blocks: an allocator with blocks of another size would count in it, too.
asio::awaitable<node_stat> check_node(allocator_ptr s, session on) {
    const create_options how = how_to_create(s->options.acl());
    co_await ensure_created(on, s->path, s->text, how);
    co_await on.sync(s->path);
    const node_data found = co_await on.get(s->path);
    if (found.data != s->text)
        throw error(errc::invalid_argument, "next", s->path,
                    "its data is \"" + printable(found.data) + "\", and not \"" + s->text + "\"");
    co_return found.stat;
}

// Whether `now` is a later state of the node than `before`. Servers that were restored from a backup have the same
// node, with a lower version; other clients may have counted it up since, then in older transactions.
bool is_later(const node_stat& now, const node_stat& before) noexcept {
    return now.czxid == before.czxid && now.mzxid > before.mzxid && now.version > before.version;
}

[[noreturn]] void throw_began_again(const std::string& path) {
    throw error(zk_errc::data_inconsistency, "next", path,
                "the node was deleted and re-created, or restored from a backup: its blocks begin again, and with them "
                "ids that were given out");
}

asio::awaitable<allocator_state::block> next_block(allocator_ptr s) {
    const session now = co_await toolbox(s->zk).current_session("next", s->path);
    const session on = now.patient();
    std::optional<node_stat> before;
    bool began_again = false;
    {
        const std::lock_guard lock(s->mutex);
        before = s->counted;
        began_again = s->began_again;
    }
    if (began_again) throw_began_again(s->path);
    if (!before) before = co_await check_node(s, on);
    const node_stat counted = co_await count_up(on, s->path, s->text, "next");
    const bool later = is_later(counted, *before);
    {
        const std::lock_guard lock(s->mutex);
        s->counted = counted;
        s->began_again = !later;
        if (!later) s->blocks.clear();  // other processes will be given the ids that are left
    }
    if (!later) throw_began_again(s->path);
    allocator_state::block b{};
    b.next = (static_cast<std::uint64_t>(counted.version) - 1) * s->options.block();
    b.end = b.next + s->options.block();
    co_return b;
}

asio::awaitable<void> fetch(allocator_ptr s) {
    commit_report r = begin_commit(commit_kind::id_block);
    r.parts = s->options.block();
    std::optional<allocator_state::block> arrived;
    std::exception_ptr failure;
    try {
        arrived = co_await errors_as("next", s->path, next_block(s));
    } catch (...) {
        failure = std::current_exception();
    }
    report_commit(s->zk, r, s->path, failure);
    std::unique_lock lock(s->mutex);
    s->fetching = false;
    if (arrived) s->blocks.push_back(*arrived);
    if (failure) {
        ++s->failures;
        s->failure = failure;
    }
    s->change.notify_all(std::move(lock));
}

// The next id of this process, if there is one. Fetches the next block when a quarter of a block is left.
std::optional<std::uint64_t> take(const allocator_ptr& s, std::string_view operation) {
    std::optional<std::uint64_t> id;
    bool low = false;
    {
        const std::lock_guard lock(s->mutex);
        if (!s->blocks.empty()) {
            allocator_state::block& b = s->blocks.front();
            id = b.next++;
            if (b.next == b.end) s->blocks.pop_front();
        }
        const auto left = [&] { return s->blocks.front().end - s->blocks.front().next; };
        low = s->blocks.empty() || (s->blocks.size() == 1 && left() <= s->options.block() / 4);
        if (low) low = !std::exchange(s->fetching, true);
    }
    try {
        if (low) toolbox(s->zk).run_in_background(fetch(s));
    } catch (const error&) {  // the client was moved from
        rethrow_as(operation, s->path);
    }
    return id;
}

asio::awaitable<std::uint64_t> next_id(allocator_ptr s) {
    const std::optional<std::uint64_t> here = take(allocator_of(s, "next"), "next");
    if (here) co_return *here;
    std::uint64_t failures_before = 0;
    {
        const std::lock_guard lock(s->mutex);
        failures_before = s->failures;
    }
    const auto take_or_fail = [s, failures_before] {
        {
            const std::lock_guard lock(s->mutex);
            if (s->blocks.empty() && s->failures != failures_before) rethrow_to_caller(s->failure, "next", s->path);
        }
        return take(s, "next");
    };
    const std::optional<std::uint64_t> id = co_await s->change.until(take_or_fail, "next", s->path);
    co_return *id;
}

}  // namespace
}  // namespace counter_detail

using namespace counter_detail;

id_allocator::id_allocator(client zk, std::string path, id_options options) {
    require_path("id_allocator", path);
    state_ = std::make_shared<allocator_state>(std::move(zk), std::move(path), std::move(options));
}

asio::awaitable<std::uint64_t> id_allocator::next() const { return next_id(state_); }
std::optional<std::uint64_t> id_allocator::try_next() const {
    return take(allocator_of(state_, "try_next"), "try_next");
}
const std::string& id_allocator::path() const { return allocator_of(state_, "path")->path; }

asio::awaitable<std::int32_t> next_number(client zk, std::string path) {
    asio::awaitable<std::int32_t> counting = number_of(std::move(zk), path);
    return errors_as("next_number", std::move(path), std::move(counting));
}

}  // namespace zkasio

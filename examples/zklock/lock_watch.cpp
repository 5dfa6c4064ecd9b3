#include "lock_watch.hpp"

#include "any_change.hpp"
#include "duration.hpp"
#include "find_locks.hpp"
#include "lock_table.hpp"
#include "node_text.hpp"
#include "pipe_end.hpp"
#include "screen.hpp"
#include "terminal.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace zklock {
namespace {

using zkasio::boot_clock;
using zkasio::printable;
using namespace std::chrono_literals;

bool is_outage(const zkasio::error& e) {
    return e.code() == zkasio::errc::not_connected || e.code() == zkasio::condition::session_ended ||
           e.code() == zkasio::condition::retryable;
}

asio::awaitable<void> wait_for(asio::steady_timer::duration d) {
    asio::steady_timer timer(co_await asio::this_coro::executor, d);
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> end_with_input(zkasio::task_scope& tasks) {
    const bool closed = co_await other_end_closed(STDIN_FILENO);
    if (closed) tasks.cancel();
}

asio::awaitable<void> end_without_reader() {
    const bool closed = co_await other_end_closed(STDOUT_FILENO);
    if (closed) throw std::system_error(std::make_error_code(std::errc::broken_pipe), "standard output");
}

std::string directory_of_grants(const lock_view& v) {
    return v.kind == directory_kind::semaphore ? zkasio::join_path(v.path, "leases") : v.path;
}

bool is_at_or_below(const std::string& path, const std::string& root) {
    return root == "/" || path == root || path.starts_with(root + '/');
}

}  // namespace

lock_watch::lock_watch(session s, locks_options o, const key_reader& keys)
    : s_(std::move(s)), o_(std::move(o)), keys_(keys), screen_(output_is_screen() && !o_.json) {}

asio::awaitable<void> lock_watch::run() {
    auto body = [this](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(end_without_reader());
        if (screen_) {
            tasks.spawn(draw_every_second());
            tasks.spawn(draw_when_resized());
        }
        co_await look_again_and_again(tasks);
    };
    co_await zkasio::with_task_scope(body);
}

asio::awaitable<void> lock_watch::look_again_and_again(zkasio::task_scope& tasks) {
    for (;;) {
        bool failed = false;
        try {
            co_await look();
        } catch (const zkasio::error& e) {
            if (!screen_ || !looked_ || !is_outage(e)) throw;
            failure_ = printable(e.what());
            failed = true;
        }
        if (failed)
            for (auto& [path, lock] : locks_) lock.meter.missed();
        else
            failure_.clear();
        if (!looked_ && !keys_.reads()) tasks.spawn(end_with_input(tasks));  // one look is always shown
        looked_ = true;
        if (screen_) draw();
        co_await pause(failed);
    }
}

asio::awaitable<void> lock_watch::look() {
    const auto begin = boot_clock::now();
    if (o_.recursive)
        co_await look_at_tree();
    else
        co_await look_at_one();
    took_ = boot_clock::now() - begin;
}

asio::awaitable<void> lock_watch::pause(bool failed) {
    if (failed) {
        co_await wait_for(1s);
    } else if (o_.recursive) {
        co_await wait_for(std::max<boot_clock::duration>(1s, 4 * took_));  // busy for a fifth of the time, at most
    } else if (screen_) {
        co_await wait_for(100ms);  // nobody reads faster
        co_await any_changed_or_expired(watches_, 900ms);  // ages change, and data, which have no watch
    } else {
        co_await any_changed_or_expired(watches_);
    }
}

// Watches are set before the lock is listed: they fire for what the list lacks.
asio::awaitable<void> lock_watch::look_at_one() {
    watches_.clear();
    auto there = co_await s_.zk.exists_and_watch(o_.path);
    watches_.push_back(std::move(there.changes));
    std::optional<node_counts> queue, leases;
    if (there.value) queue = counts_of(*there.value);
    std::vector<std::string> directories;
    if (there.value) directories = {o_.path, zkasio::join_path(o_.path, "leases"), zkasio::join_path(o_.path, "locks")};
    for (const std::string& directory : directories) {
        try {
            auto listed = co_await s_.zk.children_and_watch(directory);
            watches_.push_back(std::move(listed.changes));
            if (&directory == &directories[1]) leases = counts_of(listed.value.stat);
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::zk_errc::no_node) throw;
        }
    }
    lock_view v = co_await read_lock(s_.zk, o_.path);
    const bool semaphore = v.kind == directory_kind::semaphore;
    take(std::move(v), semaphore ? leases : queue);
}

asio::awaitable<void> lock_watch::look_at_tree() {
    counts_by_path counts = co_await count_nodes();
    lock_search found = co_await find_locks(s_.zk, o_.path);
    about_tree_ = printable(o_.path) + ": " + std::to_string(found.locks.size()) + " locks in " +
                  std::to_string(found.looked_at) + " nodes";
    if (!found.exists) about_tree_ = printable(o_.path) + ": no such node";
    if (!found.unreadable.empty())
        about_tree_ += ", " + std::to_string(found.unreadable.size()) + " nodes are not for us to read";
    for (lock_view& v : found.locks) {
        const auto counted = counts.find(v.path);
        const std::optional<node_counts> none;
        take(std::move(v), counted == counts.end() ? none : counted->second);
        if (counted != counts.end()) counts.erase(counted);
    }
    // What may not be read is not known to be free: it is no longer shown.
    for (const std::string& path : found.unreadable) {
        const auto is_there = [&path](const auto& known) { return is_at_or_below(known.first, path); };
        std::erase_if(counts, is_there);
        std::erase_if(locks_, is_there);
    }
    take_gone(counts);
}

asio::awaitable<lock_watch::counts_by_path> lock_watch::count_nodes() {
    std::vector<std::string> paths, directories;
    for (const auto& [path, lock] : locks_) {
        paths.push_back(path);
        directories.push_back(directory_of_grants(lock.view));
    }
    counts_by_path counts;
    constexpr std::size_t at_a_time = 256;
    for (std::size_t begin = 0; begin < paths.size(); begin += at_a_time) {
        const std::size_t end = std::min(begin + at_a_time, paths.size());
        std::vector<zkasio::pending_data> reads;
        for (std::size_t i = begin; i < end; ++i)
            reads.push_back(zkasio::toolbox(s_.zk).start_exists(directories[i]));
        for (std::size_t i = begin; i < end; ++i) {
            std::optional<node_counts>& counted = counts[paths[i]];
            try {
                const zkasio::node_data node = co_await reads[i - begin].result();
                counted = counts_of(node.stat);
            } catch (const zkasio::error& e) {
                if (e.code() != zkasio::zk_errc::no_node) throw;
            }
        }
    }
    co_return counts;
}

void lock_watch::take(lock_view v, const std::optional<node_counts>& counted) {
    const auto [at, fresh] = locks_.try_emplace(v.path);
    watched_lock& lock = at->second;
    lock.meter.look(v, counted, boot_clock::now());
    const bool changed = fresh || !looks_the_same(v, lock.view) || v.grants->count != lock.view.grants->count;
    lock.view = std::move(v);
    if (screen_ || !changed) return;
    if (o_.json)
        print(dump(to_json(lock.view), json_layout::one_line));
    else
        print(o_.recursive ? lines_of_locks({lock.view}) : to_text(lock.view));
}

// Locks that were there at the last look, and now have no contenders. Those whose directory is gone, too, are
// forgotten.
void lock_watch::take_gone(const counts_by_path& counts) {
    for (const auto& [path, counted] : counts) {
        lock_view v;
        v.path = path;
        v.exists = counted.has_value();
        take(std::move(v), counted);
        if (!counted) locks_.erase(path);
    }
}

asio::awaitable<void> lock_watch::draw_every_second() {
    for (;;) {
        co_await wait_for(1s);
        draw();
    }
}

asio::awaitable<void> lock_watch::draw_when_resized() {
    asio::signal_set resized(co_await asio::this_coro::executor, SIGWINCH);
    for (;;) {
        co_await resized.async_wait(asio::use_awaitable);
        draw();
    }
}

void lock_watch::draw() {
    if (looked_) print(drawn(screen_text(), keys_.reads() ? painted(colour::dim, "q ends") : "", size_of_screen()));
}

std::string lock_watch::screen_text() {
    const std::string in_trouble = trouble();
    std::string text = in_trouble.empty() ? "" : painted(colour::red, in_trouble) + "\n";
    std::vector<lock_view> all;
    for (const auto& [path, lock] : locks_) all.push_back(lock.view);
    if (!o_.recursive) return all.empty() ? text : text + to_text(all.front());
    // Those that somebody waits for, where not all fit.
    const auto waiting = [](const lock_view& v) { return v.contenders.size() - v.holders().size(); };
    if (all.size() + 3 > size_of_screen().rows)
        std::sort(all.begin(), all.end(), [&](const lock_view& a, const lock_view& b) {
            return waiting(a) != waiting(b) ? waiting(a) > waiting(b) : a.path < b.path;
        });
    return text + about_tree_ + "\n" + table_of_locks(all);
}

// What is shown is old without a connection, and may be old when it is of a server without a quorum (--read-only).
std::string lock_watch::trouble() {
    const zkasio::session_state state = s_.zk.state();
    if (state == zkasio::session_state::connected) {
        unconnected_since_.reset();
        if (!failure_.empty() || !s_.zk.options().reads_only()) return failure_;
        return "no quorum: this is what one server has, and may be old";
    }
    const auto now = boot_clock::now();
    if (!unconnected_since_) unconnected_since_ = now;
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now - *unconnected_since_);
    return "no connection for " + to_text(since) + ": this is how it was before";
}

}  // namespace zklock

#include "simulation/cache_scenario.hpp"

#include <zkasio/error.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::test {
namespace {

// What every cache shows, of whichever kind it is.
struct inside_cache : cache {
    static tree_view view_of(const cache& c) { return (c.*(&inside_cache::view))(); }
};

// What a reader was told, and what the server of its client knew at least by then, see sim_ensemble::connected_at():
// when a late coroutine looks at it, there may be another connection.
struct taken_update {
    std::optional<cache_update> what;
    std::int64_t connected_at = 0;
};

asio::awaitable<void> take_update(const simulation& in, int client, const cache_changes* from, taken_update* to) {
    cache_update update = co_await from->next();
    to->what = std::move(update);
    to->connected_at = in.ensemble.connected_at(client);
}

template <class Stream, class State>
asio::awaitable<void> take_state(const Stream* from, std::optional<std::optional<State>>* to) {
    std::optional<State> state = co_await from->next();
    *to = std::move(state);
}

asio::awaitable<void> watch_once(client zk, std::string path, bool children) {
    watch changes;
    if (children) {
        watched<node_children> list = co_await zk.children_and_watch(path);
        changes = std::move(list.changes);
    } else {
        watched<std::optional<node_stat>> node = co_await zk.exists_and_watch(path);
        changes = std::move(node.changes);
    }
    co_await changes.changed();
}

std::string whose(const std::string& what, int number, int client, const std::string& path) {
    return what + ' ' + std::to_string(number) + " of client " + std::to_string(client) + " at " + path;
}

std::string words_of(const sim_change& c) {
    switch (c.what) {
        case sim_change::kind::created: return c.path + " is made";
        case sim_change::kind::removed: return c.path + " is removed";
        case sim_change::kind::data_set: return c.path + " is set";
        case sim_change::kind::acl_set: return "the ACL of " + c.path + " is set";
    }
    return {};
}

// "/t 5/7, /t/a gone; current".
std::string words_of(const cache_update& update) {
    std::string text = update.look_again ? "all" : "";
    for (const node_delta& change : update.changes) {
        const node_stat& stat = change.after.stat();
        const std::string zxids = std::to_string(stat.czxid) + '/' + std::to_string(stat.mzxid);
        text += change.path + ' ' + (change.after ? zxids : "gone") + ", ";
    }
    return text + (update.now.current() ? "; current" : "; not current");
}

}  // namespace

cache_scenario::cache_scenario(simulation& s) : s_(s), by_one_watch_(s.pick(3) > 0), writer_(s) {
    s_.ensemble.know_multi_read = by_one_watch_;
    s_.ensemble.hang_up_at_unknown = false;  // clients wait before they connect again: without a clock, for ever
    s_.ensemble.one_watch_at_a_path = s_.pick(2) == 0;
    s_.ensemble.on_commit = [this](const sim_txn& txn) {
        history_.committed(txn, s_.ensemble.tree());
        for (const sim_change& c : txn.changes) s_.note(std::to_string(txn.zxid), ": ", words_of(c));
    };
    s_.on_idle = [this] { check(); };
    s_.on_quiet = [this] { check_quiet(); };
}

cache_scenario::~cache_scenario() {
    s_.ensemble.on_commit = [](const sim_txn&) {};
    s_.on_idle = s_.on_quiet = [] {};
}

// ------------------------------------------------------------------------------------------------ who follows

void cache_scenario::open_something(int client) {
    ++followers_[client];
    if (s_.chance(65))
        open_cache(client);
    else
        open_stream(client);
}

void cache_scenario::open_cache(int client) {
    const int number = next_number_++;
    const cache_plan plan(s_, writer_);
    const cache_scope& scope = plan.scope;
    const std::string name = whose("cache", number, client, scope.root);
    followed_cache& c =
        caches_.emplace_back(number, client, plan.remembered, cache_witness(history_, scope, "the view of " + name));
    s_.note("open ", name);
    c.what = plan.make(s_.client_number(client));
    s_.spawn(s_.user_executor(), await_ready(&c, c.what->ready()));
    for (std::size_t readers = s_.pick(3); readers > 0; --readers) {
        c.readers.emplace_back(c, cache_witness(history_, scope, "a reader of " + name));
        s_.spawn(s_.user_executor(), read(&c.readers.back(), c.what->changes()));
    }
}

void cache_scenario::open_stream(int client) {
    const int number = next_number_++;
    const std::string path = s_.chance(3) ? "/" : s_.chance(40) ? "/t" : writer_.random_path();
    const std::string name = whose("stream", number, client, path);
    followed_stream& f = streams_.emplace_back(client, path, told_history(history_, name));
    s_.note("open ", name);
    if (s_.chance(50))
        f.values.emplace(watch_value(s_.client_number(client), path));
    else
        f.children.emplace(watch_children(s_.client_number(client), path));
    s_.spawn(s_.user_executor(), read(&f));
}

// What a coroutine throws that is cancelled now and then, as far as that may be.
asio::awaitable<std::error_code> cache_scenario::perhaps_cancelled(asio::awaitable<void> what, int percent) {
    running task(s_.user_executor(), std::move(what));
    if (s_.chance(percent)) s_.after(s_.pick(30), [task]() mutable { task.cancel(); });
    const std::error_code code = co_await task.code();
    co_return code;
}

asio::awaitable<void> cache_scenario::await_ready(followed_cache* c, asio::awaitable<void> ready) {
    std::error_code code;
    try {
        co_await std::move(ready);
    } catch (const error& e) {
        code = e.code();
    }
    if (c->closed) co_return;
    if (code) throw violation("a cache does not become ready: " + code.message());
    if (!inside_cache::view_of(*c->what).ready()) throw violation("a cache is ready, and its view is not");
    c->ready = true;
}

asio::awaitable<void> cache_scenario::read(reader* r, cache_changes changes) {
    ++reading_;
    for (;;) {
        taken_update told;
        r->waits = true;
        const std::error_code code = co_await perhaps_cancelled(take_update(s_, r->of.client, &changes, &told), 15);
        r->waits = false;
        std::optional<cache_update>& update = told.what;
        if (update) {
            s_.note("a reader of cache ", std::to_string(r->of.number), " hears of ", words_of(*update));
            r->witness.hears(*update, r->of.remembered, told.connected_at);
            r->last = std::move(update);
            if (s_.chance(10)) keep_a_view(*r->last);
            if (s_.chance(20)) co_await s_.pause(s_.pick(60));
        } else if (code == errc::client_closed && r->of.closed) {
            break;
        } else if (code != condition::cancelled) {
            throw violation("a reader fails: " + code.message());
        }
    }
    --reading_;
}

asio::awaitable<void> cache_scenario::read(followed_stream* f) {
    ++reading_;
    for (;;) {
        std::optional<std::optional<node_data>> value;
        std::optional<std::optional<node_children>> children;
        f->waits = true;
        std::error_code code;
        if (f->values)
            code = co_await perhaps_cancelled(take_state(&*f->values, &value), 15);
        else
            code = co_await perhaps_cancelled(take_state(&*f->children, &children), 15);
        f->waits = false;
        // A state is on its way to a late reader while connections come and go.
        const std::int64_t connected_at = s_.users_may_be_late() ? 0 : s_.ensemble.connected_at(f->client);
        if (value) {
            f->told.tells(f->path, *value, connected_at);
            f->last = *value ? std::optional((*value)->stat) : std::nullopt;
        } else if (children) {
            f->told.tells(f->path, *children, connected_at);
            f->last = *children ? std::optional((*children)->stat) : std::nullopt;
        } else if (code == errc::client_closed && f->closed) {
            break;
        } else if (code != condition::cancelled) {
            throw violation("a stream fails: " + code.message());
        }
        f->any = f->any || value || children;
        if (s_.chance(20)) co_await s_.pause(s_.pick(60));
    }
    --reading_;
}

// ------------------------------------------------------------------------------------------------- who leaves

// The last one of a client leaves no watch behind. (A removal that a server has put off is repeated in the background.)
void cache_scenario::left(int client) {
    if (--followers_[client] > 0 || careless_.contains(client) || s_.ensemble.throttled > 0) return;
    if (s_.ensemble.watches_of(client) > 0)
        throw violation("client " + std::to_string(client) + " has closed all, and these are watched:" +
                        s_.ensemble.watched(client));
}

asio::awaitable<void> cache_scenario::close(followed_cache* c) {
    c->closed = true;
    co_await c->what->close();
    left(c->client);
}

asio::awaitable<void> cache_scenario::close(followed_stream* f) {
    f->closed = true;
    if (f->values)
        co_await f->values->close();
    else
        co_await f->children->close();
    left(f->client);
}

// One of the caches, at random: closed, or only destroyed, which leaves its watches in the background.
void cache_scenario::close_something() {
    const auto open = [](const auto& one) { return !one.closed && !one.leaving; };
    if (s_.chance(30)) {
        const auto f = std::find_if(streams_.begin(), streams_.end(), open);
        if (f == streams_.end()) return;
        f->leaving = true;
        return s_.spawn(s_.user_executor(), close(&*f));
    }
    auto c = std::find_if(caches_.begin(), caches_.end(), open);
    if (c == caches_.end()) return;
    if (s_.chance(50)) c = std::find_if(std::next(c), caches_.end(), open);
    if (c == caches_.end()) return;
    s_.note("close cache ", std::to_string(c->number));
    c->leaving = true;
    if (s_.chance(60)) return s_.spawn(s_.user_executor(), close(&*c));
    c->closed = true;
    careless_.insert(c->client);
    --followers_[c->client];
    c->what.reset();
}

void cache_scenario::close_all() {
    for (followed_cache& c : caches_)
        if (!c.closed && !c.leaving) s_.spawn(s_.user_executor(), close(&c));
    for (followed_stream& f : streams_)
        if (!f.closed && !f.leaving) s_.spawn(s_.user_executor(), close(&f));
}

// ----------------------------------------------------------------------------------------------------- checks

bool cache_scenario::is_calm(int client) const {
    return s_.client_number(client).state() == session_state::connected && !s_.ensemble.is_stopped(client) &&
           !s_.ensemble.is_cut_off(client);
}

void cache_scenario::check() {
    for (followed_cache& c : caches_) {
        if (!c.what) continue;
        const tree_view view = inside_cache::view_of(*c.what);
        c.witness.sees(view, s_.ensemble.connected_at(c.client));
        const bool connected = s_.client_number(c.client).state() == session_state::connected;
        if (view.current() && (c.closed || !connected))
            throw violation("cache " + std::to_string(c.number) + " is current " +
                            (c.closed ? "although it was closed" : "without a connection"));
    }
}

void cache_scenario::check_quiet() const {
    for (const followed_cache& c : caches_) {
        if (c.closed || !is_calm(c.client)) continue;
        const auto stats = by_one_watch_ ? cache_witness::also_stats::no : cache_witness::also_stats::yes;
        c.witness.check_equal(inside_cache::view_of(*c.what), s_.ensemble.tree(), stats);
        if (!c.ready) throw violation("ready() of cache " + std::to_string(c.number) + " does not complete");
        for (const reader& r : c.readers) {
            if (!r.waits) continue;
            if (!r.last) throw violation("a reader of cache " + std::to_string(c.number) + " was told nothing");
            r.witness.check_equal(r.last->now, s_.ensemble.tree(), cache_witness::also_stats::no);
        }
    }
    for (const followed_stream& f : streams_)
        if (!f.closed && f.waits && is_calm(f.client)) check_quiet(f);
}

void cache_scenario::check_quiet(const followed_stream& f) const {
    const sim_node* node = s_.ensemble.tree().find(f.path);
    const bool same = f.any && f.last.has_value() == (node != nullptr);
    const auto mark = [&](const node_stat& stat) { return std::pair(stat.czxid, f.values ? stat.mzxid : stat.pzxid); };
    if (!same || (node && mark(*f.last) != mark(node->stat)))
        throw violation("a stream of " + f.path + " has not told what is when all is calm");
}

// What somebody has in his hands never changes.
void cache_scenario::keep_a_view(const cache_update& update) {
    kept_view& kept = kept_.emplace_back();
    kept.view = update.now;
    update.now.for_each([&](const std::string& path, const cached_node& node) {
        kept.nodes.emplace(path, std::pair(node.stat(), node.data()));
    });
}

void cache_scenario::check_kept_views() const {
    for (const kept_view& kept : kept_) {
        std::map<std::string, std::pair<node_stat, std::string>> now;
        kept.view.for_each([&](const std::string& path, const cached_node& node) {
            now.emplace(path, std::pair(node.stat(), node.data()));
        });
        if (now != kept.nodes || kept.view.size() != now.size()) throw violation("a view has changed");
    }
}

// ------------------------------------------------------------------------------------------------ what happens

asio::awaitable<void> cache_scenario::working(asio::awaitable<void> what) {
    ++working_;
    co_await std::move(what);
    --working_;
}

asio::awaitable<void> cache_scenario::come_and_go(std::size_t rounds) {
    for (; rounds > 0; --rounds) {
        co_await s_.pause(5 + s_.pick(60));
        if (s_.chance(60))
            open_something(static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients()))));
        else
            close_something();
    }
}

// Others, who share the watches of the servers.
asio::awaitable<void> cache_scenario::watch_now_and_then(int client, std::size_t rounds) {
    careless_.insert(client);
    for (; rounds > 0; --rounds) {
        co_await s_.pause(s_.pick(20));
        const std::string path = writer_.random_path();
        const std::error_code code =
            co_await perhaps_cancelled(watch_once(s_.client_number(client), path, s_.chance(50)), 100);
        s_.note("client ", std::to_string(client), " has watched ", path, ": ", code.message());
    }
}

void cache_scenario::make_trouble(const cache_faults& f, int victim) {
    const std::size_t what = s_.pick(4);
    if (what == 0 && f.drops) s_.ensemble.drop_connection(victim);
    if (what == 1 && f.outages) {
        s_.ensemble.cut_off(victim);
        s_.after(1 + s_.pick(80), [this, victim] { s_.ensemble.let_in(victim); });
    }
    if (what == 2 && f.stops) {
        s_.ensemble.stop_process(victim);
        s_.after(1 + s_.pick(80), [this, victim] { s_.ensemble.continue_process(victim); });
    }
    if (f.expiries && (what == 3 || s_.chance(20))) s_.ensemble.expire(victim);
}

asio::awaitable<void> cache_scenario::trouble(cache_faults f) {
    for (int n = 0; n < 40 && working_ > 0; ++n) {
        co_await s_.pause(3 + s_.pick(50));
        make_trouble(f, static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients()))));
    }
}

void cache_scenario::begin(const cache_faults& f) {
    s_.let_users_be_late();
    s_.ensemble.throttled = f.throttled;
    const std::size_t clients = 1 + s_.pick(3);
    for (std::size_t n = 0; n < clients; ++n) s_.add_client();
    const auto somebody = [&] { return static_cast<int>(s_.pick(clients)); };
    if (s_.chance(4)) writer_.make_crowd(60 + s_.pick(80));
    for (std::size_t changes = s_.pick(12); changes > 0; --changes) writer_.change();
    for (std::size_t followers = 1 + s_.pick(4); followers > 0; --followers) open_something(somebody());
    s_.spawn(working(writer_.work(5 + s_.pick(s_.chance(80) ? 30 : 150))));
    const int writer = somebody(), watcher = somebody();
    if (s_.chance(60)) s_.spawn(s_.user_executor(), working(writer_.work_as(writer, 1 + s_.pick(15))));
    if (s_.chance(60)) s_.spawn(s_.user_executor(), working(come_and_go(1 + s_.pick(8))));
    if (s_.chance(40)) s_.spawn(s_.user_executor(), working(watch_now_and_then(watcher, 1 + s_.pick(8))));
    if (f.drops || f.expiries || f.outages || f.stops) s_.spawn(trouble(f));
}

void cache_scenario::run_at_random(const cache_faults& f) {
    begin(f);
    s_.run();
    if (working_ > 0) throw violation("somebody has not ended");
    check_quiet();
    check_kept_views();
    s_.ensemble.throttled = 0;
    // What is left to a read that a server then puts off, and nobody repeats, goes with the session only.
    if (f.throttled == 0 && s_.chance(80)) {
        close_all();
    } else {
        for (int n = 0; n < s_.clients(); ++n) s_.spawn(s_.user_executor(), close_client(n));
    }
    s_.run();
    if (reading_ > 0) throw violation("a reader has not ended");
    s_.close();
    check_kept_views();
}

asio::awaitable<void> cache_scenario::close_client(int n) {
    const client zk = s_.client_number(n);
    for (followed_cache& c : caches_) c.closed = c.closed || c.client == n;
    for (followed_stream& f : streams_) f.closed = f.closed || f.client == n;
    co_await zk.close();
}

}  // namespace zkasio::test

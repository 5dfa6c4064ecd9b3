// Random histories of changes, cuts, refusals and waiters who come and go, over a server that may lag behind: no waiter
// sleeps through a change, none is told of a change that there was not, and no watch stays without a waiter.

#include "unit/support/fake_server.hpp"
#include "unit/support/request_steps.hpp"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace zkasio::test::watch_history {

using namespace detail;
using namespace request_steps;

namespace {

using watch_key = std::pair<std::string, watch_kind>;

struct node {
    bool exists = false, readable = true;
    node_stat stat;
};
using tree = std::map<std::string, node>;

const std::array<std::string, 3> paths{"/a", "/b", "/c"};

// All that a watch of this kind can tell of.
bool looks_alike(const node& a, const node& b, watch_kind kind) {
    if (!a.exists || !b.exists) return a.exists == b.exists;
    const bool same_data = a.stat.mzxid == b.stat.mzxid, same_children = a.stat.pzxid == b.stat.pzxid;
    return a.stat.czxid == b.stat.czxid && (kind == watch_kind::children ? same_children : same_data);
}

struct waiter {
    watch_ptr watch = std::make_shared<watch_state>();
    op_id id = 0;
    std::unique_ptr<outcome> read = std::make_unique<outcome>();
    std::size_t asked_at = 0;  // the server was there at least
    node seen;
    bool waits = false, left = false;
};

class history {
public:
    explicit history(unsigned seed) : random_(seed) {
        log_.emplace_back();
        for (const std::string& path : paths) log_.back()[path];
        connect();
    }

    void run(int steps) {
        for (int i = 0; i < steps; ++i) {
            step();
            settle();
        }
        end();
    }

    std::size_t told() const { return told_; }
    std::size_t cuts() const { return cuts_; }

private:
    struct answered {
        op_id id;
        request what;
        reply given;
        std::size_t zxid;
    };
    struct event {
        node_event what;
        std::string path;
    };

    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
    const std::string& any_path() { return paths.at(static_cast<std::size_t>(below(3))); }

    void step() {
        switch (below(12)) {
            case 0:
            case 1: return change();
            case 2:
            case 3: return ask();
            case 4: return leave();
            case 5: return below(6) == 0 ? cut() : serve();
            case 6:
            case 7: return serve();
            case 8: return catch_up();
            case 9: throttles_ = below(4) == 0; return;
            default: return deliver();
        }
    }

    // ------------------------------------------------------------------------------------------ the ensemble
    void change() {
        tree next = log_.back();
        const auto zxid = static_cast<std::int64_t>(log_.size());
        node& n = next.at(any_path());
        switch (below(5)) {
            case 0:
            case 1:
                if (!n.exists) {
                    n = {};
                    n.exists = true;
                    n.stat.czxid = n.stat.mzxid = n.stat.pzxid = zxid;
                } else {
                    n.stat.mzxid = zxid;
                }
                break;
            case 2: n.exists = false; break;
            case 3:
                n.stat.pzxid = zxid;
                n.stat.cversion += 1;
                n.stat.num_children ^= 1;
                break;
            default: n.readable = below(3) > 0; break;
        }
        log_.push_back(std::move(next));
    }

    void fire(node_event e, const std::string& path, std::initializer_list<watch_kind> kinds, bool readable) {
        bool armed = false;
        for (const watch_kind kind : kinds) armed = armed_.erase({path, kind}) > 0 || armed;
        if (armed && readable) out_.emplace_back(event{e, path});
    }

    void catch_up() {
        if (!connected_ || at_ + 1 >= log_.size()) return;
        const tree &before = log_[at_], &now = log_[++at_];
        using kind = watch_kind;
        for (const auto& [path, n] : now) {
            const node& was = before.at(path);
            if (!was.exists && n.exists)
                fire(node_event::created, path, {kind::data}, n.readable);
            else if (was.exists && !n.exists)
                fire(node_event::removed, path, {kind::data, kind::children}, was.readable);
            else if (n.exists && was.stat.mzxid != n.stat.mzxid)
                fire(node_event::data_changed, path, {kind::data}, n.readable);
            else if (n.exists && was.stat.pzxid != n.stat.pzxid)
                fire(node_event::children_changed, path, {kind::children}, n.readable);
        }
        served_ = std::max(served_, at_);
    }

    void serve() {
        auto& asked = bench_.backend.submitted;
        if (!connected_ || asked.empty()) return;
        auto [id, what] = std::move(asked.front());
        asked.erase(asked.begin());
        outstanding_.push_back(id);
        answered a{id, what, {}, at_};
        const auto* removal = std::get_if<remove_watch_request>(&what);
        if (throttles_) {
            a.given.code = zk_errc::throttled;
        } else if (removal) {
            armed_.erase({removal->path, removal->kind});
        } else {
            const watch_target target = watch_of(what);
            REQUIRE(target.path);
            const node& n = log_[at_].at(*target.path);
            if (!n.exists)
                a.given.code = zk_errc::no_node;
            else if (!n.readable)
                a.given.code = zk_errc::no_auth;
            else
                a.given.stat = n.stat;
            if (!a.given.code || (target.missing_node_counts && a.given.code == zk_errc::no_node))
                armed_.insert({*target.path, target.kind});
        }
        out_.emplace_back(std::move(a));
    }

    // ------------------------------------------------------------------------------------------ the connection
    void connect() {
        connected_ = true;
        at_ = known_ + static_cast<std::size_t>(below(static_cast<int>(log_.size() - known_)));
        served_ = std::max(served_, at_);
        bench_.connect();
        bench_.requests.feeds_connected();
        bench_.requests.ask_questions();
    }

    void cut() {
        if (!connected_) return connect();
        ++cuts_;
        connected_ = false;
        out_.clear();
        armed_.clear();
        for (const auto& [id, what] : std::exchange(bench_.backend.submitted, {})) outstanding_.push_back(id);
        for (const op_id id : std::exchange(outstanding_, {})) bench_.requests.answered(id, lost());
        bench_.disconnect();
        bench_.requests.feeds_disconnected();
        const auto forgotten = std::exchange(bench_.backend.forgotten, {});
        for (const watch_key& key : registered_) {
            INFO(key.first);
            CHECK(forgotten.contains(key));
        }
        registered_.clear();
    }

    void deliver() {
        if (!connected_ || out_.empty()) return;
        const auto news = std::move(out_.front());
        out_.pop_front();
        if (const auto* e = std::get_if<event>(&news)) {
            bool known = false;
            if (e->what != node_event::children_changed) known = registered_.erase({e->path, watch_kind::data}) > 0;
            if (e->what == node_event::children_changed || e->what == node_event::removed)
                known = registered_.erase({e->path, watch_kind::children}) > 0 || known;
            if (known) bench_.requests.node_event(e->what, e->path);
            return;
        }
        answered a = std::get<answered>(news);
        std::erase(outstanding_, a.id);
        if (a.given.code != zk_errc::throttled) known_ = std::max(known_, a.zxid);
        const watch_target target = watch_of(a.what);
        if (const auto* removal = std::get_if<remove_watch_request>(&a.what); removal && !a.given.code)
            registered_.erase({removal->path, removal->kind});
        if (target.path && (!a.given.code || (target.missing_node_counts && a.given.code == zk_errc::no_node)))
            registered_.insert({*target.path, target.kind});
        bench_.requests.answered(a.id, std::move(a.given));
        if (waiter* w = waiter_of(a.id)) {
            if (w->read->replies.empty() || !target.path) return;
            const std::error_code code = w->read->code();
            w->waits = !code || (target.missing_node_counts && code == zk_errc::no_node);
            w->seen = log_[a.zxid].at(*target.path);
            w->asked_at = a.zxid;
        }
    }

    // ------------------------------------------------------------------------------------------ the waiters
    waiter* waiter_of(op_id id) {
        for (const auto& w : waiters_)
            if (w->id == id && !w->left) return w.get();
        return nullptr;
    }

    void ask() {
        auto& w = *waiters_.emplace_back(std::make_unique<waiter>());
        command c;
        const std::string& path = any_path();
        switch (below(3)) {
            case 0: c.what = get_request{path, true}; break;
            case 1: c.what = exists_request{path, true}; break;
            default: c.what = children_request{path, true}; break;
        }
        c.watch = w.watch = watch_by(*c.what);
        w.id = bench_.requests.next_id();
        bench_.requests.submit(w.id, std::move(c), w.read->to());
    }

    void leave() {
        if (waiters_.empty()) return;
        waiter& w = *waiters_.at(static_cast<std::size_t>(below(static_cast<int>(waiters_.size()))));
        if (w.left) return;
        w.left = true;
        bench_.requests.cancel(w.id);
        bench_.requests.leave_watch(w.watch);
    }

    void settle() {
        for (auto calls = std::exchange(bench_.later_calls, {}); !calls.empty();
             calls = std::exchange(bench_.later_calls, {}))
            for (const auto& call : calls) call();
        bench_.requests.on_time(boot_clock::now());
        bench_.requests.flush();
        for (const auto& w : waiters_)
            if (w->waits && w->watch->fired->done) check_told(*w);
        std::erase_if(waiters_, [](const auto& w) {
            const bool over = w->read->done() && !w->waits;
            return over || (w->left && w->read->done());
        });
    }

    void check_told(waiter& w) {
        w.waits = false;
        ++told_;
        bool has_changed = false, was_closed = false;
        for (std::size_t i = w.asked_at; i <= served_; ++i) {
            const node& n = log_[i].at(w.watch->path);
            has_changed = has_changed || !looks_alike(n, w.seen, w.watch->kind);
            was_closed = was_closed || !n.readable;
        }
        INFO(w.watch->path << ", told of " << static_cast<int>(w.watch->event));
        CHECK((has_changed || was_closed));
        if (was_closed) return;  // servers do not tell of all changes then, and use the watch up
        if (w.watch->event == node_event::created) CHECK_FALSE(w.seen.exists);
        if (w.watch->event == node_event::removed) CHECK(w.seen.exists);
        const bool of_children = w.watch->event == node_event::children_changed;
        if (of_children) CHECK(w.watch->kind == watch_kind::children);
        if (w.watch->event == node_event::data_changed) CHECK(w.watch->kind == watch_kind::data);
    }

    void run_dry() {
        throttles_ = false;
        for (int quiet = 0; quiet < 100;) {  // the pause after a refusal is a millisecond
            const bool busy = !out_.empty() || !bench_.backend.submitted.empty() || at_ + 1 < log_.size();
            quiet = busy || bench_.requests.size() > 0 ? 0 : quiet + 1;
            serve();
            catch_up();
            deliver();
            settle();
        }
    }

    void end() {
        if (!connected_) connect();
        run_dry();
        cut();
        known_ = log_.size() - 1;  // the next server does not lag: it does not use watches up without telling
        connect();
        run_dry();
        for (const auto& w : waiters_) {
            if (!w->waits || w->left) continue;
            const node& now = log_.back().at(w->watch->path);
            INFO(w->watch->path << " of kind " << static_cast<int>(w->watch->kind));
            CHECK(looks_alike(now, w->seen, w->watch->kind));
            CHECK((now.readable || !now.exists));
            CHECK(w->watch->is_set);
        }
        for (const auto& w : waiters_) bench_.requests.leave_watch(w->watch);
        waiters_.clear();
        run_dry();
        CHECK(armed_.empty());
        CHECK(registered_.empty());
        CHECK(bench_.requests.watches() == 0);
        CHECK(bench_.requests.size() == 0);
    }

    std::mt19937 random_;
    parts_bench bench_{client_options("10.0.0.1").retry(retry_policy::n_times(1, std::chrono::milliseconds(1)))};
    std::vector<tree> log_;
    bool connected_ = false, throttles_ = false;
    std::size_t at_ = 0, known_ = 0, served_ = 0, told_ = 0, cuts_ = 0;
    std::set<watch_key> armed_, registered_;  // by the server, and in the library's table
    std::deque<std::variant<answered, event>> out_;
    std::vector<op_id> outstanding_;
    std::vector<std::unique_ptr<waiter>> waiters_;
};

}  // namespace

TEST_CASE("watch history: no waiter sleeps through a change, and none is told of nothing", "[requests][watch]") {
    std::size_t told = 0, cuts = 0;
    for (unsigned seed = 0; seed < 300; ++seed) {
        INFO("seed " << seed);
        history h(seed);
        h.run(400);
        told += h.told();
        cuts += h.cuts();
    }
    CHECK(told > 1000);
    CHECK(cuts > 1000);
}

}  // namespace zkasio::test::watch_history

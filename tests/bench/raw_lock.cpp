// The lock as a hand-written state machine over libzookeeper_st: what any client built on that library can reach at
// best.

#include "raw_session.hpp"
#include "workers.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace bench {
namespace {

/// What a listing says about one contender.
struct place {
    bool listed = false;
    int ahead = 0;
    int predecessor = -1;  ///< index in the listing
};

place find(const String_vector& children, int own) {
    place p;
    int best = -1;
    for (int i = 0; i < children.count; ++i) {
        const int number = sequence_of(children.data[i]);
        p.listed = p.listed || number == own;
        if (number >= own) continue;
        ++p.ahead;
        if (number > best) {
            best = number;
            p.predecessor = i;
        }
    }
    return p;
}

/// All waiters of one session. Those of the standard recipe list each for themselves; else only those list, together,
/// whose predecessor is not in this session, and the others get the lock when the predecessor's delete has been sent.
class queue {
public:
    queue(const task& what, bool standard) : what_(what), standard_(standard), session_(what.server) {}

    void start();
    bool is_done() const { return removed_ == what_.waiters; }
    void add_to(report& r) const {
        r.operations += granted_;
        for (const waiter& w : waiters_)
            r.crossings += standard_ || w.index == 0 || waiters_[w.index - 1].sequence + 1 != w.sequence;
    }
    raw_session& session() { return session_; }

private:
    struct waiter {
        waiter(queue* q, std::size_t i) : all(q), index(i) {}

        queue* const all;
        const std::size_t index;
        int sequence = -1;
        bool behind_local = false, next = false, released = false;
        std::string path;

        static waiter& of(const void* data) { return *static_cast<waiter*>(const_cast<void*>(data)); }
    };

    // ---- requests
    void list(waiter& w) { check(zoo_aget_children(session_.handle(), what_.directory.c_str(), 0, &on_list, &w)); }
    void list_together() {
        if (std::exchange(listing_, true)) return;
        check(zoo_aget_children(session_.handle(), what_.directory.c_str(), 0, &on_common_list, this));
    }
    void look(waiter& w) {
        if (standard_) return list(w);
        undecided_.push_back(&w);
        list_together();
    }

    // ---- decisions
    void created(waiter& w) {
        if (standard_) return;
        if (w.index > 0 && waiters_[w.index - 1].sequence + 1 == w.sequence)
            wait_for_local(w);
        else
            look(w);
    }
    void wait_for_local(waiter& w) {
        w.behind_local = true;
        if (waiters_[w.index - 1].released) grant(w);
    }
    void decide(waiter& w, const String_vector& children) {
        const place p = find(children, w.sequence);
        if (!standard_ && !p.listed) return look(w);  // the listing was older than the node
        if (p.ahead == 0) return grant(w);
        const char* name = children.data[p.predecessor];
        if (!standard_ && w.index > 0 && waiters_[w.index - 1].sequence == sequence_of(name)) return wait_for_local(w);
        w.next = p.ahead == 1 && !standard_;
        const std::string path = what_.directory + "/" + name;
        check(zoo_awget(session_.handle(), path.c_str(), &on_change, &w, &on_watched, &w));
    }
    void grant(waiter& first) {
        for (waiter* w = &first;; w = &waiters_[w->index + 1]) {
            ++granted_;
            w->released = true;
            check(zoo_adelete(session_.handle(), w->path.c_str(), -1, &on_removed, w));
            if (w->index + 1 == waiters_.size() || !waiters_[w->index + 1].behind_local) return;
        }
    }

    // ---- answers
    static void on_created(int rc, const char* path, const void* data) {
        check(rc);
        waiter& w = waiter::of(data);
        w.path = path;
        w.sequence = sequence_of(w.path);
        w.all->created(w);
    }
    static void on_list(int rc, const String_vector* children, const void* data) {
        check(rc);
        waiter::of(data).all->decide(waiter::of(data), *children);
    }
    static void on_common_list(int rc, const String_vector* children, const void* data) {
        check(rc);
        auto& self = *static_cast<queue*>(const_cast<void*>(data));
        self.listing_ = false;
        for (waiter* w : std::exchange(self.undecided_, {})) self.decide(*w, *children);
    }
    static void on_watched(int rc, const char*, int, const Stat*, const void* data) {
        if (rc == ZNONODE) return waiter::of(data).all->look(waiter::of(data));
        check(rc);
    }
    static void on_change(zhandle_t*, int type, int, const char*, void* data) {
        if (type != ZOO_DELETED_EVENT) return;
        waiter& w = waiter::of(data);
        if (w.next)
            w.all->grant(w);
        else
            w.all->look(w);
    }
    static void on_removed(int rc, const void* data) {
        check(rc);
        ++waiter::of(data).all->removed_;
    }

    const task what_;
    const bool standard_;
    raw_session session_;
    std::deque<waiter> waiters_;  // in the order of their sequence numbers
    std::vector<waiter*> undecided_;
    bool listing_ = false;
    int granted_ = 0, removed_ = 0;
};

void queue::start() {
    const auto n = static_cast<std::size_t>(what_.waiters);
    for (std::size_t i = 0; i < n; ++i) {
        waiter& w = waiters_.emplace_back(this, i);
        const std::string path = what_.directory + "/" + new_node_name();
        check(zoo_acreate(session_.handle(), path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
                          &on_created, &w));
        if (standard_)
            list(w);
        else if (i == 0)
            list_together();
    }
}

/// @param turn drives the sessions of all queues
void run(const task& what, const conductor_link& conductor, std::deque<queue>& all, const std::function<void()>& turn) {
    report r;
    meter m(what.server);
    m.start();
    conductor.ready();
    r.begin = now();
    for (queue& q : all) q.start();
    int own_exists = 1;
    while (all.front().session().children(what.directory) < what.contenders) {
        ++own_exists;
        if (all.size() > 1) turn();
    }
    m.all_wait();
    conductor.queued();
    while (!std::all_of(all.begin(), all.end(), [](const queue& q) { return q.is_done(); })) turn();
    r.end = now();
    m.stop(r, own_exists);
    for (const queue& q : all) q.add_to(r);
    conductor.done(r);
}

void run_one(const task& what, bool standard, const conductor_link& conductor) {
    std::deque<queue> all;
    queue& only = all.emplace_back(what, standard);
    run(what, conductor, all, [&] { turn({&only.session()}); });
}

/// One contender of one session.
class contender {
public:
    contender(const std::string& server, std::string directory) : session(server), directory_(std::move(directory)) {}

    /// The create and the list leave together.
    void acquire() {
        queued = owned = false;
        const std::string path = directory_ + "/" + new_node_name();
        check(zoo_acreate(session.handle(), path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
                          &on_created, this));
        check(zoo_aget_children(session.handle(), directory_.c_str(), 0, &on_list, this));
    }
    void release() {
        released = owned = false;
        check(zoo_adelete(session.handle(), path_.c_str(), -1, &on_removed, this));
    }

    raw_session session;
    bool queued = false, owned = false, released = true;

private:
    static contender& of(const void* data) { return *static_cast<contender*>(const_cast<void*>(data)); }

    static void on_created(int rc, const char* path, const void* data) {
        check(rc);
        of(data).path_ = path;
    }
    static void on_list(int rc, const String_vector* children, const void* data) {
        check(rc);
        contender& self = of(data);
        const place p = find(*children, sequence_of(self.path_));
        if (p.ahead == 0) {
            self.owned = true;
            return;
        }
        if (p.ahead > 1) check(ZRUNTIMEINCONSISTENCY);
        const std::string path = self.directory_ + "/" + children->data[p.predecessor];
        check(zoo_awget(self.session.handle(), path.c_str(), &on_change, &self, &on_watched, &self));
    }
    static void on_watched(int rc, const char*, int, const Stat*, const void* data) {
        check(rc);
        of(data).queued = true;
    }
    static void on_change(zhandle_t*, int type, int, const char*, void* data) {
        if (type == ZOO_DELETED_EVENT) of(data).owned = true;  // it was alone ahead of us
    }
    static void on_removed(int rc, const void* data) {
        check(rc);
        of(data).released = true;
    }

    const std::string directory_;
    std::string path_;
};

}  // namespace

void raw_local_queue(const task& what, const conductor_link& conductor) { run_one(what, false, conductor); }
void raw_standard_queue(const task& what, const conductor_link& conductor) { run_one(what, true, conductor); }
void raw_sessions_queue(const task& what, const conductor_link& conductor) {
    std::deque<queue> all;
    std::vector<raw_session*> sessions;
    for (int i = 0; i < what.sessions; ++i) sessions.push_back(&all.emplace_back(what, false).session());
    raw_sessions together(std::move(sessions));
    run(what, conductor, all, [&] { together.turn(); });
}

void raw_cycles(const task& what, const conductor_link& conductor) {
    contender one(what.server, what.directory);
    report r;
    meter m(what.server);
    m.start();
    conductor.ready();
    r.begin = now();
    while (now() < r.begin + what.seconds) {
        one.acquire();
        while (!one.owned) turn({&one.session});
        one.release();  // leaves together with the next acquire() unless it is awaited
        while (what.await_release && !one.released) turn({&one.session});
        ++r.operations;
    }
    while (!one.released) turn({&one.session});
    r.end = now();
    m.stop(r, 0);
    conductor.done(r);
}

void raw_hand_offs(const task& what, const conductor_link& conductor) {
    contender a(what.server, what.directory), b(what.server, what.directory);
    contender *holder = &a, *waiter = &b;
    const auto until = [&](const bool& flag) {
        while (!flag) turn({&a.session, &b.session});
    };
    report r;
    latencies took;
    meter m(what.server);
    m.start();
    conductor.ready();
    r.begin = now();
    holder->acquire();
    until(holder->owned);
    for (int i = 0; i < what.hand_offs; ++i) {
        waiter->acquire();
        until(waiter->queued);
        for (int k = 0; k < settling_round_trips; ++k) waiter->session.children(what.directory);
        const double idle_until = now() + what.idle_ms * 1e-3;
        for (double left; (left = idle_until - now()) > 0;)
            turn({&a.session, &b.session}, -1, static_cast<int>(left * 1e3) + 1);
        const double start = now();
        holder->release();
        until(waiter->owned);
        took.add(now() - start);
        until(holder->released);
        std::swap(holder, waiter);
    }
    r.end = now();
    r.operations = what.hand_offs;
    m.stop(r, what.hand_offs * settling_round_trips);
    took.write_to(r);
    holder->release();
    until(holder->released);
    conductor.done(r);
}

}  // namespace bench

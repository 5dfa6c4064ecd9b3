#pragma once

#include "unit/session/lease_times.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <utility>

namespace zkasio::test::lease_times {

/// Nothing overtakes in it. What would arrive after the cut is lost.
struct wire {
    duration delay{}, jitter{};
    time_point cut = time_point::max(), last{};
};

/// A leader, the follower that the client is connected to, and the client, in virtual time: what the rule is derived
/// from, packet by packet. Whenever the lease grows, it must be covered by what the leader has been told by then.
class ensemble {
public:
    explicit ensemble(std::uint64_t seed) : random(seed) {}

    std::mt19937_64 random;
    duration half_tick = half;
    duration ping_late{}, ping_later{};  // of the leader's timer: at most, and always
    wire to_follower, to_leader, to_server, to_client;
    duration known_half_tick{};  // what the lease is told
    int renewals = 4;
    bool reads_when_idle = true;

    time_point now = start;
    detail::lease l;
    time_point expires{};  // as the leader has it: its clock may run a little faster
    duration granted = T;
    bool expired = false;
    std::optional<time_point> held_since;
    duration least = duration::max();  // left of the lease while held, whenever it grew, or had to
    bool lost = false;
    std::string wrong;

    duration up_to(duration d) {
        return duration(static_cast<duration::rep>(random() % static_cast<std::uint64_t>(d.count() + 1)));
    }

    void at(time_point t, std::function<void()> what) { events_.push({std::max(t, now), order_++, std::move(what)}); }

    void run(time_point until) {
        while (!events_.empty() && events_.top().at <= until && wrong.empty()) {
            const event e = events_.top();
            events_.pop();
            now = e.at;
            e.what();
        }
    }

    void open() {
        expires = expiry_from(now + to_server.delay + to_leader.delay);
        l.connected(now, granted, known_half_tick, renewals);
        last_sent_ = now;
        at(now + up_to(half_tick), [this] { ping(); });
        at(now + T / 8, [this] { idle(); });
    }

    /// The client goes on with its session at another follower, which grants so much. What was under way is lost.
    void reconnect(duration timeout) {
        if (now < stalled_until_ || shaking_hands_) return;
        shaking_hands_ = true;
        noted_ = false;
        unanswered_.clear();
        const int mine = ++connection_;
        const time_point sent = last_sent_ = now;
        cross(to_server, [=, this] {
            cross(to_leader, [=, this] {
                expired = expired || now >= expires;
                if (expired) return;
                granted = timeout;
                expires = expiry_from(now);
                cross(to_follower, [=, this] { cross(to_client, [=, this] { reconnected(mine, sent); }); });
            });
        });
    }

    void send(bool write, std::function<void()> then = {}) {
        if (now < stalled_until_ || shaking_hands_) return;
        last_sent_ = now;
        const request r{write, connection_, now, std::move(then)};
        cross(to_server, [this, r] { received(r); });
    }

    /// The client's loop does not run: nothing is sent, and answers wait.
    void stall(duration d) { stalled_until_ = std::max(stalled_until_, now + d); }
    /// The link between client and server is silent, and then everything arrives.
    void silence(duration d) {
        for (wire* w : {&to_server, &to_client}) w->last = std::max(w->last, now + d);
    }

    /// Heartbeats as the core sends them.
    void hold() {
        held_since = now;
        least = std::min(least, l.end() - now);
        beat();
    }

    std::function<void(int)> on_heartbeat = [](int) {};

private:
    struct request {
        bool write;
        int connection;
        time_point sent;
        std::function<void()> then;
    };
    struct event {
        time_point at;
        std::uint64_t order;
        std::function<void()> what;
        bool operator<(const event& other) const { return std::tie(other.at, other.order) < std::tie(at, order); }
    };

    void cross(wire& w, std::function<void()> arrive) {
        const time_point arrival = std::max(w.last, now + w.delay + up_to(w.jitter));
        w.last = arrival;
        if (arrival < w.cut) at(arrival, std::move(arrive));
    }

    time_point expiry_from(time_point heard) const { return heard + granted - granted / 2000; }

    void reconnected(int connection, time_point sent) {
        if (now < stalled_until_) return at(stalled_until_, [=, this] { reconnected(connection, sent); });
        shaking_hands_ = false;
        l.connected(sent, granted, known_half_tick, renewals);
        check_end();
        if (held_since) beat();
    }

    void check_end() {
        if (l.end() > expires)
            wrong = "at " + std::to_string(after_start(now).count()) + " the lease ends " +
                    std::to_string((l.end() - expires).count()) + " ns too late";
    }

    void ping() {
        cross(to_follower, [this] {
            const bool noted = std::exchange(noted_, false);
            cross(to_leader, [this, noted, on = connection_] {
                if (noted && !expired && on == connection_) expires = expiry_from(now);
            });
        });
        at(now + half_tick + ping_later + up_to(ping_late), [this] { ping(); });
    }

    void received(const request& r) {
        if (r.connection != connection_) return;
        noted_ = true;
        unanswered_.push_back({r, !r.write});
        if (r.write)
            cross(to_leader, [this, on = r.connection] {
                expired = expired || now >= expires;
                if (expired || on != connection_) return;
                cross(to_follower, [this, on] {
                    if (on != connection_) return;
                    std::find_if(unanswered_.begin(), unanswered_.end(), [](const auto& u) {
                        return !u.second;
                    })->second = true;
                    answer();
                });
            });
        answer();
    }

    // In the order of the requests.
    void answer() {
        for (; !unanswered_.empty() && unanswered_.front().second; unanswered_.pop_front())
            cross(to_client, [this, r = unanswered_.front().first] { answered(r); });
    }

    void answered(const request& r) {
        if (r.connection != connection_) return;
        if (now < stalled_until_) return at(stalled_until_, [this, r] { answered(r); });
        if (held_since) {
            least = std::min(least, l.end() - now);
            lost = lost || l.end() <= now;
        }
        const time_point before = l.end();
        if (r.write)
            l.write_answered(r.sent, now);
        else
            l.answered(r.sent, now);
        if (l.end() > before) check_end();
        if (r.then) r.then();
    }

    void idle() {
        if (!reads_when_idle) return;
        const duration interval = held_since ? l.read_interval() : l.idle_interval();
        if (now >= last_sent_ + interval) send(false);
        at(std::max({stalled_until_, last_sent_ + interval, now + 1ms}), [this] { idle(); });
    }

    void beat() {
        if (now < stalled_until_) return at(stalled_until_, [this] { beat(); });
        if (now < l.heartbeat_due()) return at(l.heartbeat_due(), [this] { beat(); });
        on_heartbeat(beats_++);
        send(true, [this] { beat(); });
    }

    std::priority_queue<event> events_;
    std::uint64_t order_ = 0;
    bool noted_ = false;  // by the follower, since its last report
    int connection_ = 0;
    bool shaking_hands_ = false;
    std::deque<std::pair<request, bool>> unanswered_;  // and whether they could be
    time_point last_sent_{}, stalled_until_{};
    int beats_ = 0;
};

}  // namespace zkasio::test::lease_times

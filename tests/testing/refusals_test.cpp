// Servers that refuse everything: each repetition pauses, and ends when there is no use in it any more. Requests are
// counted as the servers see them.

#include "support/catch.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace std::chrono_literals;
using zkasio::testing::fake_ensemble;

namespace {

constexpr auto a_while = 30s;

/// A client whose servers begin to refuse, and who counts what they are asked for.
class refusing_servers {
public:
    refusing_servers() {
        ensemble.on_step([this](std::string_view step) {
            constexpr std::string_view apply = "apply ";
            const std::size_t at = step.find(apply);
            if (at == step.npos) return;
            std::string text(step.substr(at + apply.size()));
            text.erase(0, text.find(' ') + 1);  // whose
            ++asked_[text];
        });
    }

    /// All that is asked for: the client gets `why` for it, until accept().
    void refuse(std::error_code why) {
        asked_.clear();
        if (why == zk_errc::throttled)
            ensemble.throttle(100);
        else
            ensemble.refuse("/", static_cast<zk_errc>(why.value()));
    }
    void accept() {
        ensemble.throttle(0);
        ensemble.accept("/");
    }

    /// How often the servers were asked for each, without what the client does by itself to keep its lease.
    std::string report() const {
        std::string all;
        for (const auto& [text, times] : asked_)
            if (times > 1) all += text + ": " + std::to_string(times) + '\n';
        return all;
    }
    std::size_t most() const {
        std::size_t most = 0;
        for (const auto& [text, times] : asked_) most = std::max(most, times);
        return most;
    }

    /// What goes on although the test does not wait for it; what it throws is of no interest.
    void begin(std::function<asio::awaitable<void>()> task) {
        tasks_.push_back(std::make_shared<std::function<asio::awaitable<void>()>>(std::move(task)));
        asio::co_spawn(ensemble.context(), (*tasks_.back())(), [](const std::exception_ptr&) {});
    }

    fake_ensemble ensemble;
    client zk = ensemble.client(client_options("zk1").session_timeout(10s));

private:
    std::map<std::string, std::size_t> asked_;
    std::vector<std::shared_ptr<std::function<asio::awaitable<void>()>>> tasks_;
};

// A pause of 50 ms at first, of 2 s at last, a few things that each need the same request; and heartbeats, which are
// T/16 apart.
constexpr std::size_t most_in_a_while = 150;

/// A thing that a client may be busy with: begun while servers accept, ended or gone on with while they refuse.
struct subject {
    std::string name;
    std::function<void(refusing_servers&)> begin, go_on, end;
};

void no_step(refusing_servers&) {}

/// `Thing` is made by `make(client)`, and destroyed while servers refuse.
template <class Thing, class Make>
subject owned(std::string name, Make make) {
    const auto thing = std::make_shared<std::optional<Thing>>();
    return {std::move(name), [thing, make](refusing_servers& s) { thing->emplace(make(s.zk)); },
            [thing](refusing_servers&) { thing->reset(); }, no_step};
}

asio::awaitable<std::optional<lock_guard>> guard_of(asio::awaitable<lock_guard> acquiring) {
    std::optional<lock_guard> guard(co_await std::move(acquiring));
    co_return guard;
}

/// A guard that is destroyed while servers refuse, and another client that waits for it.
template <class Make>
subject locked(std::string name, Make make) {
    const auto guard = std::make_shared<std::optional<lock_guard>>();
    auto begin = [guard, make](refusing_servers& s) {
        auto acquire = [guard, make, &s]() -> asio::awaitable<void> {
            auto lock = make(s.zk);
            *guard = co_await guard_of(lock.acquire());
        };
        s.ensemble.run(acquire);
    };
    auto go_on = [guard, make](refusing_servers& s) {
        s.begin([make, &s]() -> asio::awaitable<void> {
            auto lock = make(s.zk);
            lock_guard next = co_await lock.acquire();
        });
        guard->reset();
    };
    return {std::move(name), begin, go_on, no_step};
}

int parsed_number(std::string_view text) { return std::stoi(std::string(text)); }
std::string printed_number(const int& number) { return std::to_string(number); }

asio::awaitable<void> idle_partition(held_partition&) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

std::vector<subject> subjects() {
    std::vector<subject> all;
    const auto watched_node = std::make_shared<std::optional<watched<node_data>>>();
    all.push_back({"a watch that is left",
                   [watched_node](refusing_servers& s) { *watched_node = s.ensemble.run(s.zk.get_and_watch("/a")); },
                   [watched_node](refusing_servers&) { watched_node->reset(); }, no_step});
    const auto watched_children = std::make_shared<std::optional<watched<node_children>>>();
    all.push_back(
        {"a watch of children that is left",
         [watched_children](refusing_servers& s) { *watched_children = s.ensemble.run(s.zk.children_and_watch("/a")); },
         [watched_children](refusing_servers&) { watched_children->reset(); }, no_step});
    all.push_back(
        {"each kind of request", no_step,
         [](refusing_servers& s) {
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.get("/a"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.exists("/a"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.children("/a"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.sync("/a"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.set("/a", "x"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.create("/b"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.create_or_set("/b", "x"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.remove("/b"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.remove_recursive("/a"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.get_acl("/a"); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.get_config(); });
             s.begin([&s]() -> asio::awaitable<void> { co_await s.zk.add_auth("digest", "a:b"); });
             s.begin(
                 [&s]() -> asio::awaitable<void> { co_await toolbox(s.zk).find_protected("/a", new_protection_id()); });
             s.begin([&s]() -> asio::awaitable<void> {
                 const watched<node_data> seen = co_await s.zk.get_and_watch("/a");
             });
             toolbox(s.zk).ensure_removed("/a/b");
         },
         no_step});
    all.push_back(owned<tree_cache>("a tree_cache", [](const client& zk) { return tree_cache(zk, "/a"); }));
    all.push_back(owned<value_stream>("a value_stream", [](const client& zk) { return watch_value(zk, "/a"); }));
    all.push_back(
        owned<children_stream>("a children_stream", [](const client& zk) { return watch_children(zk, "/a"); }));
    all.push_back(owned<node_follower>("a node_follower", [](const client& zk) {
        node_follower follower(zk, "/a", node_read::data);
        follower.tell_next(std::nullopt, [](node_report) {});
        return follower;
    }));
    all.push_back(
        owned<group_observer>("a group_observer", [](const client& zk) { return group(zk, "/a").observe(); }));
    all.push_back(owned<provider>("a provider", [](const client& zk) { return provider(zk, "/a", "b"); }));
    all.push_back(owned<config_value<int>>("a config_value", [](const client& zk) {
        return config_value<int>(zk, "/a", config_format<int>(&parsed_number, &printed_number),
                                 config_options<int>().default_value(7));
    }));
    all.push_back(
        owned<persistent_node>("a persistent_node", [](const client& zk) { return persistent_node(zk, "/a/mine"); }));
    all.push_back(locked("a mutex", [](const client& zk) { return mutex(zk, "/locks"); }));
    all.push_back(locked("a shared_mutex", [](const client& zk) { return shared_mutex(zk, "/locks"); }));
    all.push_back(locked("an unfair_mutex", [](const client& zk) { return unfair_mutex(zk, "/a/lock"); }));
    all.push_back(locked("slots", [](const client& zk) { return slots(zk, "/locks", 1); }));
    all.push_back(locked("slots that rest", [](const client& zk) {
        return slots(zk, "/locks", 1, slots_options().quiet(std::chrono::milliseconds(1)));
    }));
    all.push_back(
        locked("a semaphore", [](const client& zk) { return semaphore(zk, "/locks", permits::fixed(1)).request(); }));
    all.push_back(locked("a multi_mutex", [](const client& zk) {
        return multi_mutex(zk).add(mutex(zk, "/locks")).add(mutex(zk, "/more"));
    }));
    all.push_back({"an election, and those who look at it", no_step,
                   [](refusing_servers& s) {
                       s.begin([&s]() -> asio::awaitable<void> {
                           const leader_election election(s.zk, "/election");
                           auto body = [](leadership&) -> asio::awaitable<void> { co_return; };
                           co_await election.lead(body);
                       });
                       s.begin([&s]() -> asio::awaitable<void> {
                           const leader_observer observer(s.zk, "/election");
                           for (;;) co_await observer.next();
                       });
                   },
                   no_step});
    all.push_back({"members of a double_barrier", no_step,
                   [](refusing_servers& s) {
                       s.begin([&s]() -> asio::awaitable<void> {
                           barrier_entry entry = co_await double_barrier(s.zk, "/round", 2).enter();
                           co_await entry.leave();
                       });
                       s.begin([&s]() -> asio::awaitable<void> {
                           barrier_entry entry = co_await double_barrier(s.zk, "/round", 2).enter();
                           co_await entry.leave();
                       });
                   },
                   no_step});
    all.push_back({"a partitioner", no_step,
                   [](refusing_servers& s) {
                       s.begin([&s]() -> asio::awaitable<void> {
                           const partitioner work(s.zk, "/work", {"p0", "p1"});
                           co_await work.run(&idle_partition);
                       });
                   },
                   no_step});
    all.push_back({"a partitioner that has begun",
                   [](refusing_servers& s) {
                       s.begin([&s]() -> asio::awaitable<void> {
                           const partitioner work(s.zk, "/work", {"p0", "p1"});
                           co_await work.run(&idle_partition);
                       });
                   },
                   no_step, no_step});
    return all;
}

}  // namespace

TEST_CASE("refusals: whatever a client is busy with, nothing is repeated without a pause", "[testing][refusals]") {
    // No server answers with connection_loss or operation_timeout: by these the C library tells of a lost connection.
    const zk_errc why =
        GENERATE(zk_errc::throttled, zk_errc::unimplemented, zk_errc::no_auth, zk_errc::system_error);
    CAPTURE(std::error_code(why).message());
    const std::size_t number = subjects().size();
    for (std::size_t i = 0; i < number; ++i) {
        subject of = subjects().at(i);
        INFO(of.name);
        refusing_servers s;
        s.ensemble.create("/a/b", "1");
        s.ensemble.set("/a", "1");
        s.ensemble.run(s.zk.connected());
        of.begin(s);
        s.ensemble.run_for(15s);
        s.refuse(why);
        of.go_on(s);
        s.ensemble.run_for(a_while);
        INFO(s.report());
        CHECK(s.most() <= most_in_a_while);
        s.accept();
        of.end(s);
        of = subject();
        s.ensemble.run(s.zk.close());
        CHECK(s.ensemble.watches() == 0);
    }
}

TEST_CASE("refusals: the removal of a watch is tried again while servers are busy, and no watch is left",
          "[testing][refusals]") {
    refusing_servers s;
    s.ensemble.create("/a", "1");
    std::optional<watched<node_data>> seen = s.ensemble.run(s.zk.get_and_watch("/a"));
    s.refuse(zk_errc::throttled);
    seen.reset();
    s.ensemble.run_for(a_while);
    CHECK(s.ensemble.watches() == 1);
    s.accept();
    s.ensemble.run_for(5s);
    CHECK(s.ensemble.watches() == 0);
}

TEST_CASE("refusals: a watch that servers do not remove serves the next who asks, and goes with the connection",
          "[testing][refusals]") {
    refusing_servers s;
    s.ensemble.create("/a", "1");
    std::optional<watched<node_data>> seen = s.ensemble.run(s.zk.get_and_watch("/a"));
    s.refuse(zk_errc::unimplemented);
    seen.reset();
    s.ensemble.run_for(a_while);
    CHECK(s.ensemble.watches() == 1);
    s.accept();

    seen = s.ensemble.run(s.zk.get_and_watch("/a"));
    s.ensemble.set("/a", "2");
    const watch_event changed = s.ensemble.run(seen->changes.changed());
    CHECK(changed.what == node_change::data_changed);

    seen = s.ensemble.run(s.zk.get_and_watch("/a"));
    s.refuse(zk_errc::unimplemented);
    seen.reset();
    s.ensemble.run_for(a_while);
    s.accept();
    s.ensemble.cut(s.zk);
    s.ensemble.run(s.zk.sync());
    CHECK(s.ensemble.watches() == 0);
}

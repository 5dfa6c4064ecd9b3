// Members and what is divided among them, over an ensemble in memory: what happens when, to the second.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

using words = std::vector<std::string>;

client_options a_minute() { return client_options("zk1:2181").session_timeout(60s); }

asio::awaitable<void> work_until_cancelled(held_partition&) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

asio::awaitable<void> working(partitioner p) { co_await p.run(&work_until_cancelled); }

/// "a", the partitions p0, p1 and p2 of "/work", and the members by which they were divided.
class divided_work {
public:
    divided_work() { begin(); }

    void begin() { running_.emplace(ensemble.get_executor(), working(work)); }
    std::error_code end() {
        running_->cancel();
        const std::error_code how = ensemble.run(running_->code());
        ensemble.run(zk.idle());
        return how;
    }
    std::error_code how_it_ended() { return ensemble.run(running_->code(), 60s); }
    void others_come(const std::string& id) { ensemble.create("/work/party/0123-" + id); }
    std::string own_node() const {
        for (const std::string& name : ensemble.children("/work/party"))
            if (name.ends_with("-a")) return "/work/party/" + name;
        return "none";
    }
    /// Whoever stands in line for them.
    std::size_t contenders(const std::string& partition) const {
        return ensemble.children("/work/locks/" + partition).size();
    }

    /// That members come and go.
    words warnings() const {
        words found;
        for (const std::string& line : log)
            if (line.find("/work: members come and go faster than settle(): divided among the 1 of ") == 0)
                found.push_back(line);
        return found;
    }

    words divided;  ///< "a b": by these
    words log;
    fake_ensemble ensemble;
    const client zk = ensemble.client(a_minute().log([this](std::string_view line) { log.emplace_back(line); }));
    const partitioner work{zk, "/work", words{"p0", "p1", "p2"}, options_of_a()};

private:
    partitioner_options options_of_a() {
        partitioner_options how;
        how.id("a").settle(10s);
        how.assignment([this](const std::string& me, const words& members, const words& partitions) {
            std::string all;
            for (const std::string& m : members) all += (all.empty() ? "" : " ") + m;
            divided.push_back(all);
            return assign_in_turn(me, members, partitions);
        });
        return how;
    }
    std::optional<running> running_;
};

}  // namespace

TEST_CASE("partitioner: divides once nobody has come or gone for long enough, each time anew", "[testing]") {
    divided_work w;
    w.ensemble.run_for(9s);
    CHECK(w.divided.empty());
    CHECK(w.work.state() == partitioner_state::allocating);
    w.ensemble.run_for(3s);
    CHECK(w.divided == words{"a"});
    CHECK(w.work.state() == partitioner_state::acquired);
    CHECK(w.work.owned() == words{"p0", "p1", "p2"});

    w.others_come("b");
    w.ensemble.run_for(6s);
    CHECK(w.work.state() == partitioner_state::allocating);
    w.others_come("c");
    w.ensemble.run_for(9s);
    CHECK(w.divided == words{"a"});
    CHECK(w.work.state() == partitioner_state::allocating);
    w.ensemble.run_for(3s);
    CHECK(w.divided == words{"a", "a b c"});
    CHECK(w.work.state() == partitioner_state::acquired);
    CHECK(w.work.owned() == words{"p0"});
    CHECK(w.contenders("p0") == 1);  // it is not asked for again
    CHECK(w.contenders("p1") == 0);
    CHECK(w.end() == asio::error::operation_aborted);
}

TEST_CASE("partitioner: a process that crashes again and again does not keep the work of another one", "[testing]") {
    divided_work w;
    w.ensemble.run_for(12s);
    w.others_come("b");
    w.ensemble.run_for(12s);
    CHECK(w.work.owned() == words{"p0", "p2"});
    w.ensemble.remove("/work/party/0123-b");
    const auto looper_comes_and_goes = [&](int times) {
        for (int i = 0; i < times; ++i) {
            w.others_come("aa");
            w.ensemble.run_for(6s);
            w.ensemble.remove("/work/party/0123-aa");
            w.ensemble.run_for(6s);
        }
    };
    looper_comes_and_goes(7);
    CHECK(w.divided == words{"a", "a b"});
    CHECK(w.warnings().empty());
    looper_comes_and_goes(2);
    CHECK(w.divided == words{"a", "a b", "a"});
    CHECK(w.work.owned() == words{"p0", "p1", "p2"});
    CHECK(w.work.state() == partitioner_state::allocating);
    CHECK(w.warnings().size() == 1);
    looper_comes_and_goes(8);
    CHECK(w.divided == words{"a", "a b", "a", "a"});
    w.ensemble.run_for(12s);
    CHECK(w.divided == words{"a", "a b", "a", "a", "a"});
    CHECK(w.work.state() == partitioner_state::acquired);
    CHECK(w.contenders("p0") == 1);
    CHECK(w.end() == asio::error::operation_aborted);
}

TEST_CASE("partitioner: without a connection nothing is divided by members who may have gone", "[testing]") {
    divided_work w;
    w.ensemble.run_for(12s);
    w.others_come("b");
    w.ensemble.run_for(1s);
    w.ensemble.hold_down(w.zk);
    w.ensemble.remove("/work/party/0123-b");
    w.ensemble.run_for(25s);
    CHECK(w.divided == words{"a"});
    CHECK(w.work.owned() == words{"p0", "p1", "p2"});
    CHECK(w.work.state() == partitioner_state::allocating);
    w.ensemble.let_in(w.zk);
    w.ensemble.run_for(15s);
    CHECK(w.divided == words{"a", "a"});
    CHECK(w.work.owned() == words{"p0", "p1", "p2"});
    CHECK(w.contenders("p0") == 1);
    CHECK(w.end() == asio::error::operation_aborted);
}

TEST_CASE("partitioner: while its own member cannot be seen it keeps what it has, and divides nothing", "[testing]") {
    divided_work w;
    w.ensemble.run_for(12s);
    w.others_come("b");
    w.ensemble.run_for(12s);
    CHECK(w.work.owned() == words{"p0", "p2"});
    const std::string own = w.own_node();
    w.ensemble.refuse(own, zk_errc::throttled);
    w.ensemble.remove(own);
    w.ensemble.run_for(30s);
    CHECK(w.own_node() == "none");
    CHECK(w.divided == words{"a", "a b"});
    CHECK(w.work.owned() == words{"p0", "p2"});
    w.ensemble.accept(own);
    w.ensemble.run_for(15s);
    CHECK(w.own_node() == own);
    CHECK(w.divided == words{"a", "a b", "a b"});
    CHECK(w.work.owned() == words{"p0", "p2"});
    CHECK(w.contenders("p2") == 1);
    CHECK(w.end() == asio::error::operation_aborted);
}

TEST_CASE("partitioner: what ends its membership ends it, and it gives everything up", "[testing]") {
    divided_work w;
    w.ensemble.run_for(12s);
    const std::string own = w.own_node();
    w.ensemble.refuse(own, zk_errc::no_auth);
    w.ensemble.remove(own);
    CHECK(w.how_it_ended() == zk_errc::no_auth);
    CHECK(w.work.state() == partitioner_state::idle);
    CHECK(w.work.owned().empty());
    w.ensemble.run(w.zk.idle());
    CHECK(w.contenders("p0") == 0);
}

TEST_CASE("partitioner: a partition whose lock cannot be had ends it, and it gives everything up", "[testing]") {
    divided_work w;
    w.ensemble.create("/work/locks/p1/nonsense");
    CHECK(w.how_it_ended() == errc::foreign_child);
    CHECK(w.work.state() == partitioner_state::idle);
    CHECK(w.work.owned().empty());
    w.ensemble.run(w.zk.idle());
    CHECK(w.ensemble.children("/work/party").empty());
    CHECK(w.contenders("p0") == 0);
}

TEST_CASE("partitioner: one that runs once more begins as one that has never run", "[testing]") {
    divided_work w;
    w.ensemble.run_for(12s);
    CHECK(w.work.state() == partitioner_state::acquired);
    CHECK(w.end() == asio::error::operation_aborted);
    CHECK(w.work.state() == partitioner_state::idle);
    CHECK(w.work.owned().empty());
    w.others_come("b");
    w.begin();
    w.ensemble.run_for(5s);
    CHECK(w.work.state() == partitioner_state::allocating);
    CHECK(w.work.owned().empty());
    w.ensemble.run_for(7s);
    CHECK(w.work.state() == partitioner_state::acquired);
    CHECK(w.work.owned() == words{"p0", "p2"});
    CHECK(w.end() == asio::error::operation_aborted);
}

TEST_CASE("partitioner: with lost connections a partition has one worker at a time, at any seed", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        ensemble.lose_connections(1);
        ensemble.lag();
        const words all{"p0", "p1", "p2"};
        std::map<std::string, int> inside, begun;
        const auto work = [&](held_partition& mine) -> asio::awaitable<void> {
            const std::string name = mine.name();
            CHECK(++inside[name] == 1);
            ++begun[name];
            const std::error_code ended = co_await code_of(work_until_cancelled(mine));
            --inside[name];
            CHECK(ended == asio::error::operation_aborted);
            throw std::system_error(ended);
        };
        const auto join = [&](client zk, std::string id) -> asio::awaitable<void> {
            const partitioner p(zk, "/work", all, partitioner_options().id(id).settle(1s));
            co_await p.run(work);
        };
        std::vector<client> clients;
        std::vector<std::unique_ptr<running>> members;
        for (const char* id : {"a", "b", "c"}) {
            clients.push_back(ensemble.client(client_options("zk1:2181").session_timeout(10s)));
            members.push_back(std::make_unique<running>(ensemble.get_executor(), join(clients.back(), id)));
        }
        for (const client& one : clients) {
            ensemble.run_for(7s);
            ensemble.hold_down(one);
            ensemble.run_for(20s);
            ensemble.let_in(one);
        }
        ensemble.lose_connections(0);
        ensemble.run_for(60s);
        for (const std::string& partition : all) {
            CHECK(inside[partition] == 1);
            CHECK(begun[partition] > 1);
        }
        for (const auto& member : members) {
            member->cancel();
            CHECK(ensemble.run(member->code()) == asio::error::operation_aborted);
        }
        for (const std::string& partition : all) CHECK(inside[partition] == 0);
    }
}

TEST_CASE("persistent node: once it has stood the pauses before it is tried again are short again", "[testing]") {
    fake_ensemble ensemble;
    int tried = 0;
    bool parent_goes = true;  // just before the node would be made in it
    ensemble.on_step([&](std::string_view step) {
        if (step.find(" apply ") == std::string_view::npos || !step.ends_with("create /dir/node")) return;
        ++tried;
        if (parent_goes && ensemble.exists("/dir")) ensemble.remove("/dir");
    });
    const client zk = ensemble.client(a_minute());
    const persistent_node node(zk, "/dir/node", "ours");
    ensemble.run_for(5min);
    tried = 0;
    ensemble.run_for(30s);
    const int in_half_a_minute = tried;  // with a pause of two seconds each, more or less
    CHECK(in_half_a_minute > 0);
    parent_goes = false;
    ensemble.run(node.created());

    parent_goes = true;
    ensemble.remove("/dir/node");
    tried = 0;
    ensemble.run_for(900ms);
    CHECK(tried * 5 > in_half_a_minute);
    parent_goes = false;
    ensemble.run(node.created());
    ensemble.run(node.leave());
}

TEST_CASE("persistent node: with a time to live it stands while its keeper lives, and goes after that", "[testing]") {
    fake_ensemble ensemble;
    int created = 0;
    ensemble.on_step([&](std::string_view step) {
        created += step.find(" apply ") != std::string_view::npos && step.find("create /dir/") != step.npos;
    });
    const client zk = ensemble.client(a_minute());
    persistent_node_options options;
    options.ttl(5min);
    SECTION("of its own") { options.mode(create_mode::persistent_ttl); }
    SECTION("with a number") { options.mode(create_mode::persistent_sequential_ttl); }
    const persistent_node node(zk, "/dir/node", "ours", options);
    const std::string path = ensemble.run(node.created());
    created = 0;
    ensemble.run_for(1h);
    CHECK(created == 0);
    CHECK(ensemble.exists(path));
    CHECK(ensemble.data(path) == "ours");
    ensemble.set(path, "theirs");
    ensemble.run_for(1h);
    CHECK(created == 0);
    CHECK(ensemble.data(path) == "theirs");

    ensemble.hold_down(zk);
    ensemble.run_for(10min);
    CHECK_FALSE(ensemble.exists(path));
    ensemble.let_in(zk);
    ensemble.run_for(1min);
    CHECK(ensemble.data(path) == "ours");
    CHECK(created > 0);
    created = 0;
    ensemble.run_for(1h);
    CHECK(created == 0);
    ensemble.run(node.leave());
    CHECK_FALSE(ensemble.exists(path));
}

TEST_CASE("persistent node: one with a time to live that it may neither read nor write is made again", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/dir");
    const client zk = ensemble.client(a_minute());
    persistent_node_options options;
    options.mode(create_mode::persistent_ttl).ttl(5min).acl(acl(1, acl_entry(permission::remove, anyone())));
    const persistent_node node(zk, "/dir/node", "ours", options);
    ensemble.run(node.created());
    int stood = 0;
    for (int i = 0; i < 120; ++i) {
        ensemble.run_for(1min);
        stood += ensemble.exists("/dir/node");
    }
    CHECK(stood > 60);
    ensemble.run(node.leave());
}

TEST_CASE("persistent node: data that are refused do not keep it from touching a node with a time to live",
          "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(a_minute());
    persistent_node_options options;
    options.mode(create_mode::persistent_ttl).ttl(5min);
    const persistent_node node(zk, "/dir/node", "ours", options);
    ensemble.run(node.created());
    const std::int64_t czxid = ensemble.stat("/dir/node")->czxid;
    const auto set_too_much = [&]() -> asio::awaitable<void> {
        const std::error_code refused = co_await test::code_of(node.set_data(std::string(2'000'000, 'x')));
        CHECK(refused == errc::too_large);
    };
    for (int i = 0; i < 20; ++i) {
        ensemble.run_for(100s);
        ensemble.run(set_too_much());
    }
    REQUIRE(ensemble.stat("/dir/node"));
    CHECK(ensemble.stat("/dir/node")->czxid == czxid);
    ensemble.run(node.leave());
}

TEST_CASE("persistent node: the pauses between its writes begin anew once it stands", "[testing]") {
    fake_ensemble ensemble;
    int conflicts = 0;
    ensemble.on_step([&](std::string_view step) {
        if (conflicts == 0 || step.find("apply 0: set /dir/node") == step.npos) return;
        --conflicts;
        ensemble.set("/dir/node", "theirs");  // just before it
    });
    const client zk = ensemble.client(a_minute());
    const persistent_node node(zk, "/dir/node", "ours");
    ensemble.run(node.created());
    const auto time_of_write = [&](int others) {
        conflicts = others;
        const auto began = ensemble.now();
        ensemble.run(node.set_data("new"));
        CHECK(ensemble.data("/dir/node") == "new");
        return ensemble.now() - began;
    };
    CHECK(time_of_write(10) > 5s);
    CHECK(time_of_write(2) < 500ms);  // the first is repeated at once: there are new data
    ensemble.run(node.leave());
}

// Three nodes of each kind leave with the last copy of their client.
TEST_CASE("persistent node: left without a server, with its client, it does not keep the loop running", "[testing]") {
    const create_mode mode =
        GENERATE(create_mode::persistent, create_mode::persistent_ttl, create_mode::persistent_sequential);
    const auto cut_off_for = GENERATE(as<std::chrono::seconds>(), 3, 60, 3600);
    fake_ensemble ensemble;
    std::size_t warnings = 0;
    std::optional<client> zk =
        ensemble.client(client_options("zk1:2181").session_timeout(10s).log([&](std::string_view line) {
            warnings += line.find("the node stays: no server was in reach to remove it") != line.npos;
        }));
    persistent_node_options options;
    options.mode(mode);
    if (has_ttl(mode)) options.ttl(5min);
    std::vector<persistent_node> nodes;
    for (const char* path : {"/dir/a", "/dir/b", "/dir/c"}) {
        nodes.emplace_back(*zk, path, "ours", options);
        ensemble.run(nodes.back().created());
    }
    ensemble.hold_down(*zk);
    ensemble.run_for(cut_off_for);
    const auto left_at = ensemble.now();
    nodes.clear();
    zk.reset();
    ensemble.run_dry(1min);
    CHECK(ensemble.now() - left_at < 45s);  // the session's timeout and a third, and twice connection_timeout()
    CHECK(warnings == 3);
    CHECK(ensemble.children("/dir").size() == (has_ttl(mode) && cut_off_for > 5min ? 0u : 3u));
}

TEST_CASE("persistent node: left without a server, it is removed later while its client is used", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(client_options("zk1:2181").session_timeout(10s));
    persistent_node_options options;
    options.mode(create_mode::persistent);
    std::optional<persistent_node> node(std::in_place, zk, "/dir/node", "ours", options);
    ensemble.run(node->created());
    ensemble.hold_down(zk);
    ensemble.run_for(1min);
    node.reset();
    ensemble.run_for(1h);
    CHECK(ensemble.exists("/dir/node"));
    ensemble.let_in(zk);
    ensemble.run(zk.idle());
    CHECK_FALSE(ensemble.exists("/dir/node"));
}

TEST_CASE("persistent node: one that has taken over a node with a time to live keeps it, too", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(a_minute());
    create_options before;
    before.mode(create_mode::persistent_ttl).ttl(5min).parents(missing_parents::create_persistent);
    ensemble.run(zk.create("/dir/node", "theirs", before));
    persistent_node_options options;
    options.mode(create_mode::persistent_ttl).ttl(5min);
    const persistent_node node(zk, "/dir/node", "ours", options);
    ensemble.run(node.created());
    std::vector<std::string> removed;
    ensemble.on_step([&](std::string_view step) {
        if (step.find(" apply ") != std::string_view::npos && step.find("create /dir/node") != step.npos)
            removed.emplace_back(step);
    });
    ensemble.run_for(1h);
    CHECK(removed.empty());
    CHECK(ensemble.data("/dir/node") == "ours");
    ensemble.run(node.leave());
}

// The pauses are those of every cache, see cache.hpp: from a second to five minutes.
TEST_CASE("group: members that were refused are shown again about as long after it as they were refused", "[testing]") {
    const auto refused = GENERATE(3s, 60s, 1800s);
    const bool follows_before = GENERATE(true, false);
    fake_ensemble ensemble;
    ensemble.know_multi_read(!follows_before);  // with a recursive watch, nothing gives a reason to list once more
    const client zk = ensemble.client(a_minute());
    const group all(zk, "/group");
    ensemble.create("/group/one", "1");
    std::optional<group_observer> observer;
    const auto follow = [&] {
        observer.emplace(all.observe());
        ensemble.run(observer->ready());
    };
    if (follows_before) follow();
    ensemble.refuse("/group", zk_errc::no_auth);
    ensemble.create("/group/two", "2");
    if (!follows_before) follow();
    ensemble.run_for(refused);
    CHECK_FALSE(observer->members().readable);
    CHECK(observer->members().members.empty());
    ensemble.accept("/group");
    ensemble.run_for(std::min<std::chrono::seconds>(2 * refused + 2s, 450s));
    const group_view seen = observer->members();
    CHECK(seen.readable);
    CHECK(seen.current);
    CHECK(seen.members.size() == 2);
    CHECK(seen.contains("one"));
    REQUIRE(seen.contains("two"));
    CHECK(seen.find("two")->data == "2");
    ensemble.create("/group/three", "3");
    ensemble.run_for(1s);
    CHECK(observer->members().contains("three"));
}

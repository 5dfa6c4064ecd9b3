// One election with Curator's LeaderLatch and LeaderSelector, and with kazoo's Election.

#include "interop/contender.hpp"
#include "interop/library.hpp"
#include "interop/load.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/election/leader_election.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

leader_election_options named(name_scheme names, std::string id) {
    leader_election_options o;
    o.names(std::move(names)).id(std::move(id));
    return o;
}

/// One of ours who stands for election.
class our_candidate : public contender {
public:
    our_candidate(asio::any_io_executor executor, leader_election election)
        : executor_(std::move(executor)), election_(std::move(election)) {}
    void join() override { standing_.emplace(executor_, stand(election_, leader_)); }
    asio::awaitable<std::string> acquired() override {
        const std::exception_ptr failed = co_await standing_->end();
        if (failed) std::rethrow_exception(failed);
        CHECK((*leader_)->held());
        co_return (*leader_)->path();
    }
    bool has_it() const override { return leader_->has_value(); }
    asio::awaitable<void> release() override {
        co_await (*leader_)->resign();
        leader_->reset();
    }

private:
    static asio::awaitable<void> stand(leader_election election, std::shared_ptr<std::optional<leadership>> leader) {
        leadership elected = co_await election.campaign();
        leader->emplace(std::move(elected));
    }
    asio::any_io_executor executor_;
    leader_election election_;
    std::shared_ptr<std::optional<leadership>> leader_ = std::make_shared<std::optional<leadership>>();
    std::optional<running> standing_;
};

/// An election that ours and theirs share: candidates who come one after another, and lead in that order.
struct shared_election {
    shared_election(client c, std::string p, name_scheme n)
        : zk(std::move(c)), path(std::move(p)), names(std::move(n)) {}

    client zk;
    std::string path;
    name_scheme names;
    std::vector<std::unique_ptr<contender>> line;
    std::vector<std::string> ids;

    asio::awaitable<void> join(std::unique_ptr<contender> next, std::string id) {
        next->join();
        line.push_back(std::move(next));
        ids.push_back(std::move(id));
        co_await until_queued(zk, path, line.size());
    }
    asio::awaitable<void> ours(client on) {
        const std::string id = "ours-" + std::to_string(line.size());
        const leader_election election(on, path, named(names, id));
        auto next = std::make_unique<our_candidate>(co_await asio::this_coro::executor, election);
        co_await join(std::move(next), id);
    }
    asio::awaitable<void> theirs(library who) {
        const std::string id = "n" + std::to_string(line.size());
        auto next = std::make_unique<peer_contender>(who.process, id, who.kind, path);
        co_await join(std::move(next), who.process.name() + "-peer");
    }
    // What everybody says of the candidates who are left from number `first` on.
    asio::awaitable<void> all_agree(std::size_t first, std::vector<library> seen_by) const {
        std::string expected = "candidates";
        for (std::size_t i = first; i < ids.size(); ++i) expected += " " + ids[i];
        for (const library& who : seen_by) {
            who.process.send("see candidates " + who.kind + " " + path);
            const std::string seen = co_await who.process.expect("see");
            CHECK(seen == expected);
        }
    }
    asio::awaitable<void> drain(std::vector<library> seen_by) {
        const leader_election election(zk, path, named(names, "observer"));
        const leader_observer observer = election.observe();
        fencing_token last;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string node = co_await line[i]->acquired();
            leader_view view;
            while (!view.leader || view.leader->path != node) view = co_await observer.next();
            CHECK(view.leader->data == ids[i]);
            CHECK(view.leader->token > last);
            last = view.leader->token;
            co_await all_agree(i, seen_by);
            for (std::size_t later = i + 1; later < line.size(); ++later) CHECK_FALSE(line[later]->has_it());
            co_await line[i]->release();
        }
        leader_view view;
        while (view.state != leader_state::nobody) view = co_await observer.next();
        line.clear();
        ids.clear();
        co_await until_queued(zk, path, 0);
    }
};

asio::awaitable<void> lead_rounds(client zk, leader_election election, int rounds, std::string record,
                                  std::shared_ptr<int> violations) {
    for (int i = 0; i < rounds; ++i) {
        leadership leader = co_await election.campaign();
        const bool violated = co_await violates_record(zk, record, leader.path());
        *violations += violated;
        co_await leader.resign();
    }
}

asio::awaitable<void> keep_tokens(leader_observer observer, std::shared_ptr<std::vector<fencing_token>> tokens) {
    for (;;) {
        const leader_view view = co_await observer.next();
        if (view.leader) tokens->push_back(view.leader->token);
    }
}

asio::awaitable<void> all_ended(std::vector<running> ours) {
    for (const running& r : ours) {
        const std::exception_ptr failed = co_await r.end();
        if (failed) std::rethrow_exception(failed);
    }
}

// What `load` in peers/README.md does, by two clients of ours and by these; and what an observer sees of it.
asio::awaitable<void> lead_under_load(client zk, client second, std::string dir, name_scheme names,
                                      std::vector<library> theirs) {
    constexpr int rounds = 40, tasks = 2;
    const auto executor = co_await asio::this_coro::executor;
    const std::string path = dir + "/election", record = dir + "/record";
    co_await zk.create(path);
    co_await zk.create(record, "0 -");
    const auto violations = std::make_shared<int>(0);
    const auto tokens = std::make_shared<std::vector<fencing_token>>();
    const leader_election election(zk, path, named(names, "a")), again(second, path, named(names, "b"));
    running observing(executor, keep_tokens(election.observe(), tokens));
    std::vector<running> ours;
    for (int i = 0; i < tasks; ++i) {
        ours.emplace_back(executor, lead_rounds(zk, election, rounds, record, violations));
        ours.emplace_back(executor, lead_rounds(second, again, rounds, record, violations));
        for (const library& t : theirs)
            t.process.send("load" + std::to_string(i) + " load " + t.kind + " " + path + " " + std::to_string(rounds) +
                           " " + record);
    }
    co_await all_ended(std::move(ours));
    for (int i = 0; i < tasks; ++i)
        for (const library& t : theirs) {
            const std::string answer = co_await t.process.expect("load" + std::to_string(i));
            CHECK(answer == "done " + std::to_string(rounds) + " 0");
        }
    CHECK(*violations == 0);
    const node_data entered = co_await zk.get(record);
    CHECK(std::stoi(entered.data) == rounds * tasks * (2 + static_cast<int>(theirs.size())));
    co_await until_queued(zk, path, 0);
    observing.cancel();
    co_await observing.code();
    CHECK(tokens->size() > 10);
    for (std::size_t i = 1; i < tokens->size(); ++i) CHECK((*tokens)[i] > (*tokens)[i - 1]);
}

}  // namespace

TEST_CASE("one election with LeaderLatch: all lead in the order in which they came and everybody sees who") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-latch");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer curator(executor, "curator");
        co_await curator.ready();
        const library latch(curator, "latch", true);
        shared_election all(zk, dir + "/line", name_scheme::curator_latch());
        co_await all.theirs(latch);
        co_await all.ours(zk);
        co_await all.theirs(latch);
        co_await all.ours(second);
        co_await all.ours(second);
        co_await all.theirs(latch);
        std::vector<library> seen_by;
        seen_by.push_back(latch);
        co_await all.drain(seen_by);
        co_await lead_under_load(zk, second, dir, name_scheme::curator_latch(), seen_by);
        co_await curator.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("one election with LeaderSelector and with a kazoo that has Curator's names") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-selector");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer curator(executor, "curator"), kazoo(executor, "kazoo");
        co_await curator.ready();
        co_await kazoo.ready();
        const library selector(curator, "selector", true), election(kazoo, "election-curator-names", true);
        shared_election all(zk, dir + "/line", name_scheme::curator());
        co_await all.ours(zk);
        co_await all.theirs(selector);
        co_await all.theirs(election);
        co_await all.ours(second);
        co_await all.theirs(selector);
        co_await all.ours(zk);
        co_await all.theirs(election);
        std::vector<library> theirs;
        theirs.push_back(selector);
        co_await all.drain(theirs);
        theirs.push_back(election);
        co_await lead_under_load(zk, second, dir, name_scheme::curator(), theirs);
        co_await curator.exit();
        co_await kazoo.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("one election with kazoo's Election") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo-election");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer kazoo(executor, "kazoo");
        co_await kazoo.ready();
        const library election(kazoo, "election", true);
        shared_election all(zk, dir + "/line", name_scheme::kazoo());
        co_await all.theirs(election);
        co_await all.ours(zk);
        co_await all.ours(second);
        co_await all.theirs(election);
        co_await all.ours(zk);
        std::vector<library> theirs;
        theirs.push_back(election);
        co_await all.drain(theirs);
        co_await lead_under_load(zk, second, dir, name_scheme::kazoo(), theirs);
        co_await kazoo.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("one election with a LeaderLatch that is killed: we lead when its session has expired and not before") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-latch-killed");
        const auto executor = co_await asio::this_coro::executor;
        peer victim(executor, "curator"), other(executor, "curator");
        co_await victim.ready();
        co_await other.ready();
        const library dying(victim, "latch", true), latch(other, "latch", true);
        shared_election all(zk, dir, name_scheme::curator_latch());
        co_await all.theirs(dying);
        co_await all.ours(zk);
        co_await all.theirs(latch);
        co_await all.line[0]->acquired();
        victim.kill();
        co_await zk.sync(dir);
        CHECK_FALSE(all.line[1]->has_it());
        co_await all.line[1]->acquired();
        co_await until_queued(zk, dir, 2);
        CHECK_FALSE(all.line[2]->has_it());
        co_await all.line[1]->release();
        co_await all.line[2]->acquired();
        co_await all.line[2]->release();
        co_await other.exit();
    };
    with_client_for(60s, options(), body);
}

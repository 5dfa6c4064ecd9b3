// Members of a double_barrier beside members of Curator and kazoo, whose algorithms are retold here request by request.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace double_barrier_peers_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

const std::string path = "/round", ready = "/round/ready";

asio::awaitable<std::vector<std::string>> children(client zk) {
    node_children found;
    try {
        found = co_await zk.children(path);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    std::sort(found.names.begin(), found.names.end());
    co_return std::move(found.names);
}

// A missing node is no error.
asio::awaitable<void> remove(client zk, std::string node) {
    try {
        co_await zk.remove(std::move(node));
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
}

asio::awaitable<void> create(client zk, std::string node, create_mode mode) {
    create_options how;
    how.mode(mode).parents(missing_parents::create_container);
    co_await zk.create_unless_exists(std::move(node), bytes(), how);
}

// Completes when the node is gone, at once if it is.
asio::awaitable<void> until_gone(client zk, std::string name) {
    const auto seen = co_await zk.exists_and_watch(join_path(path, name));
    if (seen.value) co_await seen.changes.changed();
}

class peer {
public:
    peer(client zk, std::string name, std::size_t members)
        : zk_(std::move(zk)), name_(std::move(name)), own_(join_path(path, name_)), members_(members) {}
    virtual ~peer() = default;
    virtual asio::awaitable<void> enter() = 0;
    virtual asio::awaitable<void> leave() = 0;

protected:
    const client zk_;
    const std::string name_, own_;
    const std::size_t members_;
};

// DistributedDoubleBarrier.
class curator final : public peer {
public:
    using peer::peer;
    asio::awaitable<void> enter() override {
        auto seen = co_await zk_.exists_and_watch(ready);
        co_await create(zk_, own_, create_mode::ephemeral);
        if (seen.value) co_return;
        const std::vector<std::string> now = co_await children(zk_);
        if (now.size() >= members_)
            co_await create(zk_, ready, create_mode::persistent);
        else
            co_await seen.changes.changed();
    }
    asio::awaitable<void> leave() override {
        bool in = true;
        for (;;) {
            std::vector<std::string> now = co_await children(zk_);
            std::erase(now, "ready");
            if (now.empty()) break;
            if (in && !std::binary_search(now.begin(), now.end(), name_))
                throw std::runtime_error("Our path is missing");
            if (now.size() == 1) {
                if (in && now.front() != name_) throw std::runtime_error("Last path is not ours");
                if (in) co_await remove(zk_, own_);
                break;
            }
            if (in && now.front() == name_) {
                co_await until_gone(zk_, now.back());
                continue;
            }
            const auto lowest = co_await zk_.exists_and_watch(join_path(path, now.front()));
            if (in) co_await remove(zk_, own_);
            in = false;
            if (lowest.value) co_await lowest.changes.changed();
        }
        co_await remove(zk_, ready);
    }
};

// DoubleBarrier of kazoo.
class kazoo final : public peer {
public:
    using peer::peer;
    asio::awaitable<void> enter() override {
        co_await create(zk_, own_, create_mode::ephemeral);
        const auto seen = co_await zk_.exists_and_watch(ready);
        const std::vector<std::string> now = co_await children(zk_);
        if (now.size() < members_)
            co_await seen.changes.changed();
        else
            co_await create(zk_, ready, create_mode::persistent);
    }
    asio::awaitable<void> leave() override {
        co_await remove(zk_, ready);
        for (;;) {
            const std::vector<std::string> now = co_await children(zk_);
            if (now.empty()) co_return;
            if (now.size() == 1 && now.front() == name_) {
                co_await remove(zk_, own_);
                co_return;
            }
            if (now.front() == name_) {
                co_await until_gone(zk_, now.back());
                continue;
            }
            // The second time, kazoo fails with NoNodeError, and has left.
            if (!std::binary_search(now.begin(), now.end(), name_)) co_return;
            co_await remove(zk_, own_);
            co_await until_gone(zk_, now.front());
        }
    }
};

struct round {
    std::size_t members = 0, begun = 0, leaving = 0, left = 0;
};

// So many steps of the servers.
asio::awaitable<void> turns(fake_ensemble& e, std::size_t n) {
    asio::steady_timer timer(e.get_executor(), n * 100us);
    co_await timer.async_wait(asio::use_awaitable);
}

// @param begins_late, works_long: turns.
asio::awaitable<void> play(fake_ensemble& e, round& r, peer& member, std::size_t begins_late, std::size_t works_long) {
    co_await turns(e, begins_late);
    ++r.begun;
    co_await member.enter();
    CHECK(r.begun == r.members);
    co_await turns(e, works_long);
    ++r.leaving;
    co_await member.leave();
    CHECK(r.leaving == r.members);
    ++r.left;
}

// @param cut_after turns from when it is inside; 0: never.
asio::awaitable<void> play(fake_ensemble& e, round& r, client zk, std::size_t begins_late, std::size_t works_long,
                           std::size_t cut_after) {
    const double_barrier ours(zk, path, r.members);
    co_await turns(e, begins_late);
    ++r.begun;
    barrier_entry entry = co_await ours.enter();
    CHECK(r.begun == r.members);
    const auto cut = [&]() -> asio::awaitable<void> {
        co_await turns(e, cut_after);
        e.cut(zk);
    };
    std::optional<running> cutting;
    if (cut_after > 0) cutting.emplace(e.get_executor(), cut());
    co_await turns(e, works_long);
    ++r.leaving;
    co_await entry.leave();
    if (cutting) {
        co_await cutting->end();
        co_await turns(e, 100);  // until there is a connection again
    }
    CHECK(r.leaving == r.members);
    ++r.left;
}

// All of a round are listed; @param high_names the peers' names come after ours.
template <class Peer>
void play_beside(std::size_t ours, std::size_t theirs, bool high_names, std::uint64_t seed, bool with_cuts) {
    INFO(ours << " of ours, " << theirs << " of theirs, " << (high_names ? "high" : "low") << " names, seed " << seed
              << (with_cuts ? ", cuts" : ""));
    fake_ensemble e(seed);
    std::vector<client> clients;
    for (std::size_t i = 0; i < ours + theirs; ++i) clients.push_back(e.client(calm()));
    const std::size_t length = std::is_same_v<Peer, kazoo> ? 32 : 36;
    std::uint64_t random = seed * 7919;
    const auto draw = [&](std::size_t below) {
        return (random = random * 6364136223846793005u + 1442695040888963407u,
                static_cast<std::size_t>(random >> 33) % below);
    };
    auto body = [&]() -> asio::awaitable<void> {
        for (int n = 0; n < 3; ++n) {
            round r;
            r.members = ours + theirs;
            std::vector<std::unique_ptr<peer>> peers;
            std::vector<running> all;
            for (std::size_t i = 0; i < theirs; ++i) {
                std::string name(length, high_names ? 'f' : '0');
                name.back() = static_cast<char>('1' + i);
                peers.push_back(std::make_unique<Peer>(clients[ours + i], name, r.members));
                all.emplace_back(e.get_executor(), play(e, r, *peers.back(), draw(300), draw(100)));
            }
            for (std::size_t i = 0; i < ours; ++i)
                all.emplace_back(e.get_executor(),
                                 play(e, r, clients[i], draw(300), draw(100), with_cuts ? draw(150) : 0));
            // Who is cut off while a member of kazoo creates and removes `ready` cannot know that it was there.
            if (with_cuts && !std::is_same_v<Peer, kazoo>)
                for (int i = 0; i < 3; ++i) {
                    co_await turns(e, draw(200));
                    e.cut(clients[draw(ours)]);
                }
            for (const running& member : all) {
                const std::exception_ptr failed = co_await member.end();
                CHECK_FALSE(failed);
            }
            CHECK(r.left == r.members);
            for (const client& zk : clients) co_await zk.idle();
            CHECK(e.children(path).empty());
        }
        for (const client& zk : clients) co_await zk.close();
    };
    e.run(body);
    CHECK(e.watches() == 0);
}

template <class Peer>
void play_beside() {
    for (const bool with_cuts : {false, true})
        for (std::uint64_t seed = 1; seed <= 20; ++seed)
            for (const bool high_names : {false, true}) {
                play_beside<Peer>(1, 1, high_names, seed, with_cuts);
                play_beside<Peer>(2, 1, high_names, seed, with_cuts);
                play_beside<Peer>(1, 2, high_names, seed, with_cuts);
            }
}

}  // namespace

TEST_CASE("double_barrier: rounds beside members of Curator", "[barrier]") { play_beside<curator>(); }
TEST_CASE("double_barrier: rounds beside members of kazoo", "[barrier]") { play_beside<kazoo>(); }

// kazoo's first member that leaves has removed `ready`; ours, which has not known, creates another.
TEST_CASE("double_barrier: a ready that was created again does not keep kazoo's last member waiting", "[barrier]") {
    fake_ensemble e;
    const client ours = e.client(calm()), theirs = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await ours.connected();
        kazoo peer(theirs, std::string(32, '0'), 2);
        running enters(e.get_executor(), peer.enter());
        co_await turns(e, 200);
        barrier_entry entry = co_await double_barrier(ours, path, 2).enter();
        co_await enters.end();
        running leaves(e.get_executor(), peer.leave());
        co_await turns(e, 200);
        CHECK_FALSE(e.exists(ready));
        e.create(ready);
        co_await turns(e, 200);
        CHECK_FALSE(leaves.ended());
        co_await entry.leave();
        const std::exception_ptr failed = co_await leaves.end();
        CHECK_FALSE(failed);
        CHECK(e.children(path).empty());
        co_await ours.close();
        co_await theirs.close();
    };
    e.run(body);
}

}  // namespace double_barrier_peers_tests

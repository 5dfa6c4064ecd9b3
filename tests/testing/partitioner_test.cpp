// Members of a partitioner that differ: in their partitions, in their assignments, in their versions.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/membership/partitioner.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
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

asio::awaitable<void> keep_until_cancelled(held_partition&) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

asio::awaitable<void> dividing(partitioner p) { co_await p.run(&keep_until_cancelled); }

words numbered(const std::string& prefix, int from, int to) {
    words all;
    for (int n = from; n <= to; ++n) all.push_back(prefix + std::to_string(n));
    return all;
}

partitioner_options of_member(const std::string& id) { return partitioner_options().id(id).settle(1s); }

/// Members of "/work", each with a client of its own.
class fleet {
public:
    struct member {
        client zk;
        partitioner work;
        running runs;
    };

    member& add(words partitions, partitioner_options how) {
        client zk = ensemble.client(client_options("zk1:2181").session_timeout(40s).log(
            [this](std::string_view line) { log.emplace_back(line); }, log_level::warning));
        partitioner work(zk, "/work", std::move(partitions), std::move(how));
        running runs(ensemble.get_executor(), dividing(work));
        return members.emplace_back(member{std::move(zk), std::move(work), std::move(runs)});
    }
    void end(member& m) {
        m.runs.cancel();
        CHECK(ensemble.run(m.runs.code()) == asio::error::operation_aborted);
        ensemble.run(m.zk.idle());
    }
    void end_all() {
        for (member& m : members) end(m);
        CHECK(ensemble.watches() == 0);
        CHECK(ensemble.children("/work/party").empty());
        for (const std::string& p : ensemble.children("/work/locks"))
            CHECK(ensemble.children("/work/locks/" + p).empty());
    }
    /// By partition; a partition never has two owners.
    std::map<std::string, std::string> owners() const {
        std::map<std::string, std::string> all;
        for (const member& m : members)
            for (const std::string& p : m.work.owned()) CHECK(all.emplace(p, m.work.id()).second);
        return all;
    }
    bool all_acquired() const {
        return std::all_of(members.begin(), members.end(),
                           [](const member& m) { return m.work.state() == partitioner_state::acquired; });
    }
    std::size_t lines_with(const std::string& text) const {
        return static_cast<std::size_t>(std::count_if(
            log.begin(), log.end(), [&](const std::string& line) { return line.find(text) != line.npos; }));
    }

    fake_ensemble ensemble;
    words log;
    std::deque<member> members;
};

std::size_t in_both(const std::map<std::string, std::string>& a, const std::map<std::string, std::string>& b) {
    return static_cast<std::size_t>(std::count_if(a.begin(), a.end(), [&](const auto& owned) {
        return b.contains(owned.first) && b.at(owned.first) == owned.second;
    }));
}

}  // namespace

// A rolling deployment adds a partition: kazoo#392.
TEST_CASE("partitioner: with lists that differ each partition of any list has an owner, and a warning names the lists",
          "[testing][partitioner]") {
    words old_list = numbered("p", 1, 4), new_list = numbered("p", 0, 4);
    SECTION("a partition that is sorted last") {
        old_list = numbered("shard-", 1, 11);
        new_list = numbered("shard-", 1, 12);
    }
    SECTION("lists without a common partition") { new_list = numbered("q", 1, 7); }
    const bool in_turn = GENERATE(true, false);
    const auto how = [&](const std::string& id) {
        return in_turn ? of_member(id).assignment(&assign_in_turn) : of_member(id);
    };
    fleet f;
    for (const char* id : {"a", "b", "c"}) f.add(old_list, how(id));
    f.ensemble.run_for(20s);
    CHECK(f.owners().size() == old_list.size());
    CHECK(f.log.empty());
    f.add(new_list, how("d"));
    f.ensemble.run_for(20s);
    std::set<std::string> all(old_list.begin(), old_list.end());
    all.insert(new_list.begin(), new_list.end());
    CHECK(f.owners().size() == all.size());  // a member that waits for a partition of another one has not acquired all
    CHECK(f.lines_with("the lists of partitions differ: " + std::to_string(old_list.size()) + " partitions") >= 4);
    CHECK(f.lines_with("a, b, c") >= 4);

    // The last one of the old version goes: nothing is left of the difference.
    f.add(new_list, how("e"));
    f.ensemble.run_for(20s);
    CHECK(f.owners().size() == all.size());
    for (int n = 0; n < 3; ++n) f.end(f.members.front()), f.members.pop_front();
    f.ensemble.run_for(20s);
    CHECK(f.owners().size() == new_list.size());
    CHECK(f.all_acquired());
    for (const std::string& p : new_list) CHECK(f.ensemble.children("/work/locks/" + p).size() == 1);
    f.end_all();
}

TEST_CASE("partitioner: few partitions move that could stay, and shares are equal", "[testing][partitioner]") {
    const words all = numbered("p", 100, 399);
    const int members = GENERATE(3, 10);
    fleet f;
    for (int n = 0; n < members; ++n) f.add(all, of_member("host-" + std::to_string(7919 * n)));
    f.ensemble.run_for(30s);
    const auto before = f.owners();
    CHECK(before.size() == all.size());
    f.add(all, of_member("another"));
    f.ensemble.run_for(30s);
    const auto after = f.owners();
    CHECK(after.size() == all.size());
    for (const fleet::member& m : f.members) {
        const std::size_t share = all.size() / f.members.size();
        CHECK((m.work.owned().size() == share || m.work.owned().size() == share + 1));
    }
    const std::size_t needed = f.members.back().work.owned().size();
    const std::size_t moved = all.size() - in_both(before, after);
    INFO(moved << " have moved, " << needed << " of them to the new member");
    CHECK(moved - needed < all.size() / 10);
    f.end_all();
}

TEST_CASE("partitioner: beside a member that publishes no assignment all take the partitions in turn",
          "[testing][partitioner]") {
    const words all = numbered("p", 0, 9);
    fleet f;
    f.add(all, of_member("a"));
    f.add(all, of_member("b"));
    f.ensemble.run_for(20s);
    const auto before = f.owners();
    CHECK(before.size() == all.size());
    f.ensemble.create("/work/party/0123456789abcdef0123456789abcdef-c", "c");  // as kazoo does, and zkasio 0.2
    f.ensemble.run_for(20s);
    const words members{"a", "b", "c"};
    for (const fleet::member& m : f.members) CHECK(m.work.owned() == assign_in_turn(m.work.id(), members, all));
    CHECK(f.owners().size() == 7);  // no other member takes those of c
    CHECK(f.all_acquired());
    f.ensemble.remove("/work/party/0123456789abcdef0123456789abcdef-c");
    f.ensemble.run_for(20s);
    CHECK(f.owners() == before);
    f.end_all();
}

TEST_CASE("partitioner: members whose assignments have different names take the partitions in turn",
          "[testing][partitioner]") {
    const words all = numbered("p", 0, 8);
    fleet f;
    f.add(all, of_member("a"));
    f.add(all, of_member("b").assignment(&assign_in_turn));
    f.ensemble.run_for(20s);
    const words members{"a", "b"};
    for (const fleet::member& m : f.members) CHECK(m.work.owned() == assign_in_turn(m.work.id(), members, all));
    f.end_all();
}

namespace {

// Counts the bodies that begin, by member and partition.
asio::awaitable<void> counting(partitioner p, std::map<std::string, int>* begun) {
    const auto body = [&](held_partition& partition) -> asio::awaitable<void> {
        ++(*begun)[p.id() + ':' + partition.name()];
        co_await keep_until_cancelled(partition);
    };
    co_await p.run(body);
}

}  // namespace

TEST_CASE("partitioner: a member whose connection breaks again and again keeps its share and disturbs nobody",
          "[testing][partitioner]") {
    fake_ensemble ensemble;
    const words all = numbered("p", 1, 9);
    std::map<std::string, int> begun;
    std::vector<client> clients;
    std::vector<partitioner> members;
    std::vector<running> runs;
    for (const char* id : {"a", "b", "c"}) {
        clients.push_back(ensemble.client(client_options("zk1:2181").session_timeout(10s)));
        members.emplace_back(clients.back(), "/work", all, of_member(id));
        runs.emplace_back(ensemble.get_executor(), counting(members.back(), &begun));
    }
    ensemble.run_for(20s);
    const words shares[] = {members[0].owned(), members[1].owned(), members[2].owned()};
    CHECK(begun.size() == all.size());
    const bool sessions_end = GENERATE(false, true);
    for (int n = 0; n < 20; ++n) {
        ensemble.hold_down(clients[1]);
        ensemble.run_for(sessions_end ? 14s : 3s);
        if (sessions_end) {  // the session's timeout, settle(), and some round trips
            CHECK(members[0].owned().size() + members[2].owned().size() == all.size());
        }
        ensemble.let_in(clients[1]);
        ensemble.run_for(10s);
        for (std::size_t m = 0; m < 3; ++m) CHECK(members[m].owned() == shares[m]);
    }
    for (const auto& [who_and_what, times] : begun) {
        INFO(who_and_what);
        const bool is_healthy = who_and_what[0] != 'b';
        const std::string partition = who_and_what.substr(2);
        const words& share = shares[who_and_what[0] - 'a'];
        const bool is_own = std::find(share.begin(), share.end(), partition) != share.end();
        if (is_healthy && is_own) CHECK(times == 1);
        if (!sessions_end) CHECK(is_own);
    }
    for (running& r : runs) {
        r.cancel();
        CHECK(ensemble.run(r.code()) == asio::error::operation_aborted);
    }
}

// Settling is about the members: a connection that breaks and comes back with the same members begins nothing anew.
TEST_CASE("partitioner: a member whose connection breaks more often than settle() takes its share",
          "[testing][partitioner]") {
    const words all = numbered("p", 1, 9);
    const bool down_for_a_while = GENERATE(false, true);
    const bool comes_last = GENERATE(false, true);
    fleet f;
    for (const char* id : {"a", "b"}) f.add(all, of_member(id));
    if (comes_last) f.ensemble.run_for(20s);
    f.add(all, of_member("c"));
    const client zk = f.members.back().zk;
    std::int64_t session = 0;
    for (int n = 0; n < 8; ++n) {
        f.ensemble.run_for(down_for_a_while ? 400ms : 750ms);
        if (n == 0) session = f.ensemble.session_id(zk);
        if (down_for_a_while) {
            f.ensemble.hold_down(zk);
            f.ensemble.run_for(350ms);
            f.ensemble.let_in(zk);
        } else {
            f.ensemble.cut(zk);
        }
    }
    f.ensemble.run_for(100ms);
    CHECK(f.owners().size() == all.size());
    CHECK(f.members.back().work.owned().size() == all.size() / 3);
    CHECK(session == f.ensemble.session_id(zk));
    CHECK(f.lines_with("/work: ") == 0);
    f.ensemble.run_for(20s);
    CHECK(f.all_acquired());
    f.end_all();
}

TEST_CASE("partitioner: a member whose connections never last until the members are read says so once",
          "[testing][partitioner]") {
    const words all = numbered("p", 1, 9);
    fleet f;
    for (const char* id : {"a", "b", "c"}) f.add(all, of_member(id));
    f.ensemble.run_for(20s);
    const std::int64_t session = f.ensemble.session_id(f.members.back().zk);
    f.ensemble.hang_up(f.members.back().zk);
    f.end(f.members.front());
    f.members.pop_front();
    f.ensemble.run_for(9s);
    const auto said = [&] { return f.lines_with("/work: what is assigned to c may have no owner: for 10 s"); };
    CHECK(said() == 0);
    f.ensemble.run_for(60s);
    CHECK(said() == 1);
    CHECK(f.owners().size() < all.size());
    f.ensemble.let_in(f.members.back().zk);
    f.ensemble.run_for(20s);
    CHECK(session == f.ensemble.session_id(f.members.back().zk));
    CHECK(f.owners().size() == all.size());
    CHECK(said() == 1);
    f.end_all();
}

#include "support/catch.hpp"

#include <zkasio/discovery/detail/pick_pool.hpp>
#include <zkasio/discovery/detail/published.hpp>
#include <zkasio/discovery/detail/roster.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace zkasio;
using namespace zkasio::discovery_detail;
using std::chrono::milliseconds;

namespace {

milliseconds fake_now{1'000'000};

ejection_policy with_fake_clock(std::uint16_t failures = 2) {
    ejection_policy policy;
    policy.failures = failures;
    policy.time = milliseconds(30'000);
    policy.now = []() noexcept { return fake_now; };
    return policy;
}

// Members "n0", "n1", ...
std::vector<member_ptr> members_of(const std::vector<double>& weights) {
    std::vector<member_ptr> members;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const std::string name = "n" + std::to_string(i);
        members.push_back(std::make_shared<const member>(name, service_instance(name), weights[i],
                                                         std::make_shared<incarnation>(i + 1, with_fake_clock())));
    }
    return members;
}
std::vector<member_ptr> members_of(std::size_t n) { return members_of(std::vector<double>(n, 1.0)); }

void eject(const member_ptr& m) {
    m->counted->report_failure();
    m->counted->report_failure();
}

using tally = std::map<std::string, int>;

tally picks_of(picker& p, const pick_pool& pool, int n) {
    tally all;
    for (int i = 0; i < n; ++i) {
        const member_ptr* m = p.next(pool);
        ++all[m ? (*m)->node : "none"];
    }
    return all;
}

picker picker_of(pick_strategy::kind kind) { return {kind, with_fake_clock(), 7}; }

const std::vector<pick_strategy::kind> all_kinds{
    pick_strategy::kind::round_robin, pick_strategy::kind::random, pick_strategy::kind::least_outstanding,
    pick_strategy::kind::sticky, pick_strategy::kind::weighted};

}  // namespace

TEST_CASE("failure_record: ejects and lets return") {
    const ejection_policy p = with_fake_clock(3);
    const milliseconds begin(5'000), later = begin + p.time;
    failure_record r;
    CHECK_FALSE(r.ejected(p, begin));
    r = r.after_failure(p, begin);
    r = r.after_failure(p, begin + milliseconds(10'000));
    CHECK_FALSE(r.ejected(p, begin + milliseconds(10'000)));
    CHECK_FALSE(r.may_be_ejected(p));
    SECTION("F2 with the third it is ejected from then on") {
        const milliseconds third = begin + milliseconds(20'000);
        r = r.after_failure(p, third);
        CHECK(r.ejected(p, third));
        CHECK(r.ejected(p, third + p.time - milliseconds(1)));
        CHECK_FALSE(r.ejected(p, third + p.time));
        SECTION("F3 further failures do not count") {
            const failure_record more = r.after_failure(p, third + milliseconds(29'000));
            CHECK(more.word() == r.word());
        }
        SECTION("F4 when it has returned it takes three again") {
            r = r.after_failure(p, third + p.time);
            r = r.after_failure(p, third + p.time);
            CHECK_FALSE(r.ejected(p, third + p.time));
            r = r.after_failure(p, third + p.time);
            CHECK(r.ejected(p, third + p.time));
        }
    }
    SECTION("F1 the first has been too long ago") {
        r = r.after_failure(p, later);
        CHECK_FALSE(r.ejected(p, later));
        r = r.after_failure(p, later);
        CHECK_FALSE(r.ejected(p, later));
        r = r.after_failure(p, later);
        CHECK(r.ejected(p, later));
    }
    SECTION("0: never") {
        const ejection_policy never = with_fake_clock(0);
        CHECK_FALSE(failure_record().after_failure(never, begin).ejected(never, begin));
    }
    SECTION("1: at once") {
        const ejection_policy once = with_fake_clock(1);
        CHECK(failure_record().after_failure(once, begin).ejected(once, begin));
    }
}

TEST_CASE("picker: nothing to pick") {
    for (const auto kind : all_kinds) {
        picker p = picker_of(kind);
        CHECK(p.next(pick_pool()) == nullptr);
        CHECK(p.for_key(pick_pool(), 3) == nullptr);
    }
}

TEST_CASE("picker: round robin") {
    picker p = picker_of(pick_strategy::kind::round_robin);
    const auto members = members_of(4);
    const pick_pool pool(members);
    std::string order;
    for (int i = 0; i < 6; ++i) order += (*p.next(pool))->node;
    CHECK(std::string("n0n1n2n3n0n1n2n3n0n1").find(order) != std::string::npos);
    eject(members[1]);
    const tally all = picks_of(p, pool, 1200);
    CHECK_FALSE(all.contains("n1"));
    for (const auto& [node, n] : all) CHECK(n == 400);  // what it would have got is spread evenly
}

TEST_CASE("picker: random") {
    picker p = picker_of(pick_strategy::kind::random);
    const auto members = members_of(5);
    const pick_pool pool(members);
    const tally before = picks_of(p, pool, 10'000);
    CHECK(before.size() == 5);
    for (const auto& [node, n] : before) CHECK(std::abs(n - 2000) < 200);
    eject(members[4]);
    const tally all = picks_of(p, pool, 10'000);
    CHECK(all.size() == 4);
    for (const auto& [node, n] : all) CHECK(std::abs(n - 2500) < 250);
}

TEST_CASE("picker: least outstanding") {
    picker p = picker_of(pick_strategy::kind::least_outstanding);
    const auto members = members_of(3);
    const pick_pool pool(members);
    CHECK(picks_of(p, pool, 300).size() == 3);  // equals have their turn
    members[0]->counted->outstanding = 2;
    members[1]->counted->outstanding = 5;
    members[2]->counted->outstanding = 3;
    CHECK(picks_of(p, pool, 10)["n0"] == 10);
    eject(members[0]);
    CHECK(picks_of(p, pool, 10)["n2"] == 10);
    eject(members[1]);
    eject(members[2]);
    CHECK(picks_of(p, pool, 10)["n0"] == 10);  // all ejected: none counts as that
}

TEST_CASE("picker: sticky stays until it goes or is ejected") {
    picker p = picker_of(pick_strategy::kind::sticky);
    auto members = members_of(10);
    const pick_pool pool(members);
    const tally first = picks_of(p, pool, 100);
    REQUIRE(first.size() == 1);
    const std::string stuck = first.begin()->first;

    std::reverse(members.begin(), members.end());  // in another place of another pool
    const pick_pool turned(members);
    CHECK(picks_of(p, turned, 100)[stuck] == 100);
    std::erase_if(members, [&](const member_ptr& m) { return m->node == stuck; });
    const pick_pool without(members);
    const tally second = picks_of(p, without, 100);
    REQUIRE(second.size() == 1);
    CHECK_FALSE(second.contains(stuck));
    CHECK(picks_of(p, pool, 100) == second);  // and does not go back
    for (const member_ptr& m : members)
        if (m->node == second.begin()->first) eject(m);
    const tally third = picks_of(p, pool, 100);
    CHECK(third.size() == 1);
    CHECK(third != second);
}

TEST_CASE("picker: sticky stays with one that is ejected as long as all are") {
    picker p = picker_of(pick_strategy::kind::sticky);
    const auto members = members_of(5);
    const pick_pool pool(members);
    const tally first = picks_of(p, pool, 10);
    for (const member_ptr& m : members) eject(m);
    CHECK(picks_of(p, pool, 10) == first);
}

TEST_CASE("picker: by weight") {
    picker p = picker_of(pick_strategy::kind::weighted);
    const auto members = members_of(std::vector<double>{1, 0, 3, -1, std::nan(""), 6, 0});
    const pick_pool pool(members);
    tally all = picks_of(p, pool, 10'000);
    CHECK(all.size() == 3);
    CHECK(std::abs(all["n0"] - 1000) < 150);
    CHECK(std::abs(all["n2"] - 3000) < 250);
    eject(members[5]);
    all = picks_of(p, pool, 10'000);
    CHECK(all.size() == 2);
    CHECK(std::abs(all["n0"] - 2500) < 250);
    eject(members[0]);
    eject(members[2]);
    CHECK(picks_of(p, pool, 1000).size() == 3);  // all ejected: none counts as that

    CHECK(picks_of(p, pick_pool(members_of(std::vector<double>{0, 0})), 3)["none"] == 3);
    const double most = std::numeric_limits<double>::max();
    CHECK(picks_of(p, pick_pool(members_of(std::vector<double>{most, most})), 100).size() == 2);
    CHECK(pool.by_weight(0) == 0);
    CHECK(pool.by_weight(1) == 5);  // what rounding may give
}

TEST_CASE("picker: all are ejected, and return") {
    for (const auto kind : all_kinds) {
        picker p = picker_of(kind);
        const auto members = members_of(3);
        const pick_pool pool(members);
        for (const member_ptr& m : members) eject(m);
        CHECK_FALSE(picks_of(p, pool, 20).contains("none"));
        CHECK(p.for_key(pool, 5) != nullptr);
        fake_now += milliseconds(15'000);
        for (const member_ptr& m : members)
            if (m != members[1]) m->counted->failures = 0;
        CHECK_FALSE(picks_of(p, pool, 20).contains("n1"));
        fake_now += milliseconds(15'000);
        if (kind != pick_strategy::kind::sticky) CHECK(picks_of(p, pool, 100).contains("n1"));
    }
}

TEST_CASE("picker: rendezvous hashing spreads keys and moves few") {
    constexpr int keys = 10'000;
    picker p = picker_of(pick_strategy::kind::round_robin);
    const auto members = members_of(10);
    const pick_pool pool(members);
    const pick_pool without(std::vector<member_ptr>(members.begin(), members.end() - 1));
    std::vector<std::string> owner(keys);
    tally all;
    for (int i = 0; i < keys; ++i) {
        const std::uint64_t key = hash_of("customer-" + std::to_string(i));
        owner[static_cast<std::size_t>(i)] = (*p.for_key(pool, key))->node;
        ++all[owner[static_cast<std::size_t>(i)]];
    }
    for (const auto& [node, n] : all) CHECK(std::abs(n - keys / 10) < 150);
    const auto moved = [&](const pick_pool& to) {
        tally from;
        for (int i = 0; i < keys; ++i) {
            const auto now = (*p.for_key(to, hash_of("customer-" + std::to_string(i))))->node;
            if (now != owner[static_cast<std::size_t>(i)]) ++from[owner[static_cast<std::size_t>(i)]];
        }
        return from;
    };
    const tally removed = moved(without);
    CHECK(removed == tally{{"n9", all["n9"]}});  // its keys, all of them, and no others
    eject(members[3]);
    CHECK(moved(pool) == tally{{"n3", all["n3"]}});
}

TEST_CASE("picker: threads pick and report failures while the pool changes") {
    const auto members = members_of(20);
    for (const auto kind : all_kinds) {
        picker p = picker_of(kind);
        published<pick_pool> pools(std::make_unique<const pick_pool>(members));
        std::atomic<bool> stop{false};
        std::atomic<int> wrong{0};
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 3; ++t)
            threads.emplace_back([&, t] {
                for (unsigned i = 0; !stop; ++i) {
                    const member_ptr got = pools.read([&](const pick_pool& pool) noexcept {
                        const member_ptr* m = i % 4 == t ? p.for_key(pool, i) : p.next(pool);
                        return m ? *m : member_ptr();
                    });
                    if (!got) {
                        ++wrong;
                        continue;
                    }
                    ++got->counted->outstanding;
                    if (got->node != got->instance.name()) ++wrong;
                    if (i % 100 == 0) got->counted->report_failure();
                    --got->counted->outstanding;
                }
            });
        for (std::size_t n = 0; n < 500; ++n) {
            std::vector<member_ptr> some(members.begin() + static_cast<std::ptrdiff_t>(n % 19), members.end());
            pools.set(std::make_unique<const pick_pool>(std::move(some)));
        }
        stop = true;
        for (std::thread& thread : threads) thread.join();
        CHECK(wrong == 0);
        for (const member_ptr& m : members) CHECK(m->counted->outstanding == 0);
    }
}

TEST_CASE("hash_of: the same in every process") {
    CHECK(hash_of("") == 0xcbf29ce484222325);
    CHECK(hash_of("a") == 0xaf63dc4c8601ec8c);
    CHECK(hash_of("foobar") == 0x85944171f73967e8);
}

// ---------------------------------------------------------------------------------------------------------- roster

namespace {

node_state state_of(const std::string& data, std::int64_t czxid, std::int64_t mzxid) {
    node_state s;
    s.data = data;
    s.czxid = czxid;
    s.mzxid = mzxid;
    return s;
}

}  // namespace

TEST_CASE("roster: the same node counts on and another one begins anew") {
    roster all(nullptr, nullptr, with_fake_clock());
    const std::string data = service_instance("orders").to_json();
    all.set("a", state_of(data, 1, 1));
    const auto first = all.pickable().front()->counted;
    all.set("a", state_of(data, 1, 2));
    CHECK(all.pickable().front()->counted == first);
    all.set("a", state_of("nonsense", 1, 3));
    CHECK(all.pickable().empty());
    REQUIRE(all.all().unreadable.size() == 1);
    all.set("a", state_of(data, 1, 4));
    CHECK(all.pickable().front()->counted == first);
    all.set("a", state_of(data, 5, 5));
    const auto second = all.pickable().front()->counted;
    CHECK(second != first);
    CHECK(second->serial != first->serial);
    all.erase("a");
    CHECK(all.all().members.empty());
}

TEST_CASE("roster: looks again") {
    int weighed = 0;
    const auto weight = [&](const service_instance&) { return static_cast<double>(++weighed); };
    roster all(weight, nullptr, with_fake_clock());
    const std::string data = service_instance("orders").to_json();
    all.begin_all();
    for (const char* name : {"a", "b", "c"}) all.set(name, state_of(data, 1, 1));
    all.end_all();
    CHECK(all.all().members.size() == 3);
    all.begin_all();
    all.set("c", state_of(data, 1, 1));
    all.end_all();
    CHECK(all.all().members.size() == 1);
    CHECK(all.pickable().front()->weight == 3);
    CHECK(weighed == 3);  // R3
    node_state closed;
    closed.czxid = 1;
    closed.readable = false;
    all.set("c", closed);
    CHECK(all.all().unreadable.front().why == "its ACL does not let us read it");
}

TEST_CASE("roster: what a filter throws concerns one instance") {
    const auto filter = [](const service_instance& is) {
        if (is.id() == "b") throw 7;
        return is.id() != "c";
    };
    roster all(nullptr, filter, with_fake_clock());
    for (const char* id : {"a", "b", "c"}) all.set(id, state_of(service_instance("orders").id(id).to_json(), 1, 1));
    CHECK(all.all().members.size() == 2);
    CHECK(all.all().unreadable.size() == 1);
    REQUIRE(all.pickable().size() == 1);
    CHECK(all.pickable().front()->node == "a");
}

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
#include <random>
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

const std::vector<pick_strategy::kind> all_kinds{pick_strategy::kind::round_robin, pick_strategy::kind::random,
                                                 pick_strategy::kind::least_outstanding, pick_strategy::kind::sticky,
                                                 pick_strategy::kind::weighted};

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
    const pick_pool pool{member_list(members)};
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
    const pick_pool pool{member_list(members)};
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
    const pick_pool pool{member_list(members)};
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
    const pick_pool pool{member_list(members)};
    const tally first = picks_of(p, pool, 100);
    REQUIRE(first.size() == 1);
    const std::string stuck = first.begin()->first;

    std::reverse(members.begin(), members.end());  // in another place of another pool
    const pick_pool turned{member_list(members)};
    CHECK(picks_of(p, turned, 100)[stuck] == 100);
    std::erase_if(members, [&](const member_ptr& m) { return m->node == stuck; });
    const pick_pool without{member_list(members)};
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
    const pick_pool pool{member_list(members)};
    const tally first = picks_of(p, pool, 10);
    for (const member_ptr& m : members) eject(m);
    CHECK(picks_of(p, pool, 10) == first);
}

TEST_CASE("picker: by weight") {
    picker p = picker_of(pick_strategy::kind::weighted);
    const auto members = members_of(std::vector<double>{1, 0, 3, -1, std::nan(""), 6, 0});
    const pick_pool pool{member_list(members)};
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

    CHECK(picks_of(p, pick_pool(member_list(members_of(std::vector<double>{0, 0}))), 3)["none"] == 3);
    const double most = std::numeric_limits<double>::max();
    CHECK(picks_of(p, pick_pool(member_list(members_of(std::vector<double>{most, most}))), 100).size() == 2);
    CHECK(pool.by_weight(0) == 0);
    CHECK(pool.by_weight(1) == 5);  // what rounding may give
}

TEST_CASE("picker: all are ejected, and return") {
    for (const auto kind : all_kinds) {
        picker p = picker_of(kind);
        const auto members = members_of(3);
        const pick_pool pool{member_list(members)};
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
    const pick_pool pool{member_list(members)};
    const pick_pool without{member_list(std::vector<member_ptr>(members.begin(), members.end() - 1))};
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
        published<pick_pool> pools(std::make_unique<const pick_pool>(member_list(members)));
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
            pools.set(std::make_unique<const pick_pool>(member_list(some)));
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

TEST_CASE("member_list: as a sorted array, whatever comes and goes, and copies do not change") {
    std::mt19937 random(5);
    std::map<std::string, member_ptr> truth;
    member_list list;
    const auto same = [](const member_list& l, const std::map<std::string, member_ptr>& wanted) {
        std::vector<member_ptr> all, by_index, from_the_middle;
        for (const auto& [node, m] : wanted) all.push_back(m);
        std::vector<member_ptr> seen;
        l.for_each([&](const member_ptr& m) { seen.push_back(m); });
        for (std::size_t i = 0; i < l.size(); ++i) by_index.push_back(l[i]);
        l.visit_from(l.size() / 2, [&](std::size_t i, const member_ptr& m) {
            CHECK(l[i] == m);
            from_the_middle.push_back(m);
            return true;
        });
        std::rotate(from_the_middle.begin(),
                    from_the_middle.begin() + static_cast<std::ptrdiff_t>(l.size() - l.size() / 2),
                    from_the_middle.end());
        CHECK(seen == all);
        CHECK(by_index == all);
        CHECK(from_the_middle == all);
        double sum = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {  // weights are integers: sums are exact
            if (all[i]->weight > 0) CHECK(l.by_weight(sum) == i);
            sum += all[i]->weight;
        }
        CHECK(l.weight() == sum);
    };
    for (int step = 0; step < 3000; ++step) {
        const std::string node = "n" + std::to_string(random() % 400);
        if (random() % 3 == 0 || (step > 1500 && random() % 2 == 0)) {
            list.erase(node);
            truth.erase(node);
        } else {
            truth[node] = std::make_shared<const member>(node, service_instance(node), double(random() % 4),
                                                         std::make_shared<incarnation>(1, with_fake_clock()));
            list.set(truth[node]);
        }
        if (step % 300 > 0) continue;
        const member_list copy = list;
        const auto before = truth;
        list.set(std::make_shared<const member>("m", service_instance("m"), 1, nullptr));
        same(copy, before);
        list.erase("m");
        same(list, truth);
    }
    for (int i = 0; i < 400; ++i) list.erase("n" + std::to_string(i));
    CHECK(list.empty());
    CHECK(list.by_weight(0) == 0);
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
    REQUIRE(all.all().unreadable->size() == 1);
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
    CHECK(all.all().unreadable->front().why == "its ACL does not let us read it");
}

TEST_CASE("roster: what a filter throws concerns one instance") {
    const auto filter = [](const service_instance& is) {
        if (is.id() == "b") throw 7;
        return is.id() != "c";
    };
    roster all(nullptr, filter, with_fake_clock());
    for (const char* id : {"a", "b", "c"}) all.set(id, state_of(service_instance("orders").id(id).to_json(), 1, 1));
    CHECK(all.all().members.size() == 2);
    CHECK(all.all().unreadable->size() == 1);
    REQUIRE(all.pickable().size() == 1);
    CHECK(all.pickable().front()->node == "a");
}

TEST_CASE("roster: what changes one of very many instances does not copy the others") {
    roster all(nullptr, nullptr, with_fake_clock());
    const auto name = [](int i) { return "n" + std::to_string(100'000 + i); };
    const auto data = [](int port) {
        return service_instance("orders").port(static_cast<std::uint16_t>(port)).to_json();
    };
    for (int i = 0; i < 1000; ++i) all.set(name(i), state_of(data(1), 1, 1));
    const member_ptr other = all.all().members[500];
    const long shared = other.use_count();
    std::vector<listing> listings;
    std::vector<member_list> pools;
    for (int change = 1; change <= 100; ++change) {
        all.set(name(change % 10), state_of(data(change), 1, 1 + change));
        if (change % 10 == 0) all.set(name(1000 + change), state_of(data(1), 1, 1));
        if (change % 20 == 0) all.erase(name(980));
        listings.push_back(all.all());
        pools.push_back(all.pickable());
    }
    CHECK(other.use_count() == shared);
    CHECK(listings.front().members.size() == 1000);
    CHECK(listings.back().members.size() == 1009);
    CHECK(pools.back().size() == 1009);
    CHECK(listings[4].members.front()->instance.port() != listings.back().members.front()->instance.port());
}

TEST_CASE("roster: instances that are repaired, spoilt and disabled are in the lists that they belong to") {
    roster all(nullptr, nullptr, with_fake_clock());
    const std::string good = service_instance("orders").to_json();
    const std::string disabled = service_instance("orders").enabled(false).to_json();
    std::int64_t zxid = 1;
    const auto counts = [&](const std::string& data) {
        all.set("a", state_of(data, 1, ++zxid));
        return std::vector<std::size_t>{all.all().members.size(), all.pickable().size(), all.all().unreadable->size()};
    };
    using numbers = std::vector<std::size_t>;
    CHECK(counts(good) == numbers{1, 1, 0});
    CHECK(counts("nonsense") == numbers{0, 0, 1});
    CHECK(counts(disabled) == numbers{1, 0, 0});
    CHECK(counts(good) == numbers{1, 1, 0});
    CHECK(counts(disabled) == numbers{1, 0, 0});
    CHECK(counts("nonsense") == numbers{0, 0, 1});
    all.erase("a");
    CHECK(all.all().unreadable->empty());
}

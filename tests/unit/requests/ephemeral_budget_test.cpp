#include "support/catch.hpp"

#include <zkasio/detail/requests/ephemeral_budget.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ephemeral_budget_units {

using namespace zkasio;
using namespace zkasio::detail;
using room = ephemeral_budget::room;

namespace {

constexpr std::size_t chroot = 3;
constexpr std::int64_t ours = 1, others = 2;

create_request creating(std::string path, create_mode mode = create_mode::ephemeral) {
    create_request c;
    c.path = std::move(path);
    c.mode = mode;
    return c;
}

reply created_as(std::string path) {
    reply r;
    r.path = std::move(path);
    return r;
}

const reply lost = [] {
    reply r;
    r.code = zk_errc::connection_loss;
    r.sent = true;
    return r;
}();

// A request from the moment when it waits to be sent.
struct sent_request {
    request what;
    bool waits = false;
    ephemeral_budget::share share;
};

bool begin(ephemeral_budget& b, sent_request& r) { return b.begin(r.what, r.waits, r.share); }
void end(ephemeral_budget& b, sent_request& r, const reply& a) { b.end(r.what, r.waits, r.share, a, false); }
void run(ephemeral_budget& b, request what, const reply& a, bool waits = false) {
    sent_request r{std::move(what), waits, {}};
    REQUIRE(begin(b, r));
    end(b, r, a);
}

// The servers, as far as the nodes of "/d" and "/e" go.
class few_servers {
public:
    reply apply(const request& r) {
        if (const auto* c = std::get_if<create_request>(&r)) return create(*c);
        if (const auto* d = std::get_if<remove_request>(&r)) return remove(d->path);
        if (const auto* m = std::get_if<multi_request>(&r)) return apply_all(*m);
        reply a;
        if (const auto* x = std::get_if<exists_request>(&r)) {
            const auto at = nodes.find(x->path);
            if (at == nodes.end()) a.code = zk_errc::no_node;
            if (at != nodes.end()) a.stat.ephemeral_owner = at->second;
        } else if (const auto* l = std::get_if<children_request>(&r)) {
            for (const auto& [path, owner] : nodes)
                if (parent_path(path) == l->path) a.children.push_back(path.substr(l->path.size() + 1));
        }
        return a;
    }
    std::size_t bytes() const {
        std::size_t all = 0;
        for (const auto& [path, owner] : nodes) all += owner == ours ? path.size() + chroot + 4 : 0;
        return all;
    }
    std::map<std::string, std::int64_t> nodes;

private:
    reply create(const create_request& c) {
        char digits[16];
        std::snprintf(digits, sizeof digits, "%010d", next_++);
        const std::string path = is_sequential(c.mode) ? c.path + digits : c.path;
        reply a;
        if (nodes.emplace(path, ours).second)
            a.path = path;
        else
            a.code = zk_errc::node_exists;
        return a;
    }
    reply remove(const std::string& path) {
        reply a;
        if (nodes.erase(path) == 0) a.code = zk_errc::no_node;
        return a;
    }
    reply apply_all(const multi_request& m) {
        const auto before = nodes;
        reply all;
        all.results.resize(m.ops.size());
        for (std::size_t i = 0; i < m.ops.size() && !all.code; ++i) {
            reply one;
            if (const auto* c = std::get_if<create_request>(&m.ops[i])) one = create(*c);
            if (const auto* d = std::get_if<remove_request>(&m.ops[i])) one = remove(d->path);
            all.results[i].code = all.code = one.code;
            all.results[i].path = one.path;
        }
        if (!all.code) return all;
        nodes = before;
        for (multi_result& r : all.results) r.path.clear();
        return all;
    }
    int next_ = 0;
};

}  // namespace

TEST_CASE("ephemeral budget, histories: never less than what the servers have, and the same when all is answered",
          "[ephemeral_budget]") {
    std::size_t lost_requests = 0, full = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        INFO("seed " << seed);
        std::mt19937_64 random(seed);
        const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
        few_servers servers;
        ephemeral_budget budget(500, chroot, false);
        budget.connected(ours);
        std::deque<sent_request> under_way;
        std::set<std::string> contenders;  // their paths without the number
        const auto is_of_contender = [&](const std::string& path) {
            return path.size() > 10 && contenders.contains(path.substr(0, path.size() - 10));
        };
        const auto ask = [&](request what, bool waits = false) {
            sent_request r{std::move(what), waits, {}};
            if (begin(budget, r))
                under_way.push_back(std::move(r));
            else
                ++full;
        };
        const auto answer = [&] {
            sent_request r = std::move(under_way.front());
            under_way.pop_front();
            end(budget, r, servers.apply(r.what));
        };
        const auto some_path = [&] {
            return (below(2) ? "/d/" : "/e/") + std::string(1, static_cast<char>('a' + below(4)));
        };
        const auto some_node = [&] {
            if (servers.nodes.empty() || below(4) == 0) return some_path();
            return std::next(servers.nodes.begin(), static_cast<std::ptrdiff_t>(below(servers.nodes.size())))->first;
        };
        const auto some_create = [&] {
            const bool numbered = below(2) == 0;
            // An id makes it known whose node it is.
            std::string path = numbered ? some_path() + std::to_string(random()) + "-" : some_path();
            return creating(std::move(path), numbered ? create_mode::ephemeral_sequential : create_mode::ephemeral);
        };
        for (int step = 0; step < 300; ++step) {
            switch (below(10)) {
                case 0:
                case 1:
                case 2: {
                    create_request c = some_create();
                    const bool waits = is_sequential(c.mode) && below(2) == 0;
                    if (waits) contenders.insert(c.path);
                    ask(std::move(c), waits);
                    break;
                }
                case 3:
                case 4: ask(remove_request{some_node(), any_version}); break;
                case 5: {
                    multi_request m;
                    for (std::size_t n = 1 + below(3); n > 0; --n) {
                        if (below(2))
                            m.ops.emplace_back(some_create());
                        else
                            m.ops.emplace_back(remove_request{some_node(), any_version});
                    }
                    ask(std::move(m));
                    break;
                }
                case 6: servers.nodes.emplace(some_path(), others); break;
                case 7:  // another client removes a node; of a contender's node, a watch tells
                    if (under_way.empty()) {
                        const std::string path = some_node();
                        servers.nodes.erase(path);
                        if (is_of_contender(path) || below(2)) budget.heard_gone(path);
                    }
                    break;
                case 8:
                    while (!under_way.empty()) answer();
                    break;
                case 9: {  // the connection breaks: the servers have done the first of what they were sent
                    std::size_t done = below(under_way.size() + 1);
                    for (; !under_way.empty(); under_way.pop_front()) {
                        if (done > 0) servers.apply(under_way.front().what);
                        done -= done > 0;
                        end(budget, under_way.front(), lost);
                        ++lost_requests;
                    }
                    budget.connected(ours);
                    if (below(2)) ask(exists_request{some_node()});  // before the sync()
                    for (request& what : budget.questions()) ask(std::move(what));
                    break;
                }
            }
            CHECK(budget.bytes() >= servers.bytes());
            CHECK(servers.bytes() <= 500);
        }
        while (!under_way.empty()) answer();
        budget.doubt_held();
        for (request& what : budget.questions()) ask(std::move(what));
        while (!under_way.empty()) answer();
        CHECK(budget.questions().empty());
        CHECK(budget.bytes() == servers.bytes());
    }
    CHECK(lost_requests > 1000);
    CHECK(full > 100);
}

TEST_CASE("ephemeral budget: a session that fills it asks for each of its nodes three times", "[ephemeral_budget]") {
    constexpr std::size_t bytes_of_a_node = 6 + chroot + 4;
    for (const std::size_t n : {10u, 100u, 1000u}) {
        ephemeral_budget b(n * bytes_of_a_node, chroot, false);
        b.connected(ours);
        std::size_t asked = 0;
        const auto create = [&](std::size_t i) {
            const std::string path = "/" + std::to_string(10000 + i);
            run(b, creating(path), created_as(path));
            if (!b.is_short()) return;
            b.doubt_held();
            for (request& what : b.questions()) {
                asked += std::holds_alternative<exists_request>(what);
                reply found;
                found.stat.ephemeral_owner = ours;
                run(b, std::move(what), found);
            }
        };
        for (std::size_t i = 0; i < n; ++i) create(i);
        CHECK(asked >= n);
        CHECK(asked <= 4 * n);
        // Where it is nearly full, one that goes and one that comes cost nothing.
        asked = 0;
        for (int i = 0; i < 100; ++i) {
            run(b, remove_request{"/10000", any_version}, reply());
            create(0);
        }
        CHECK(asked == 0);
        // Half of it goes, and comes again.
        for (std::size_t i = 0; i < n / 2; ++i)
            run(b, remove_request{"/" + std::to_string(10000 + i), any_version}, reply());
        for (std::size_t i = 0; i < n / 2; ++i) create(i);
        CHECK(asked >= n / 2);
        CHECK(asked <= 4 * n);
    }
}

TEST_CASE("ephemeral budget: a server that lags may tell of an older removal than the create that was lost",
          "[ephemeral_budget]") {
    ephemeral_budget b(1000, 0, false);
    b.connected(ours);
    run(b, creating("/p"), created_as("/p"));
    const std::size_t one = b.bytes();
    sent_request again{creating("/p"), false, {}};  // another client has removed the first one
    REQUIRE(begin(b, again));
    end(b, again, lost);
    b.connected(ours);
    b.heard_gone("/p");
    CHECK(b.bytes() == one);
    reply none, of_other;
    none.code = zk_errc::no_node;
    of_other.stat.ephemeral_owner = others;
    for (const reply& old : {none, of_other}) {
        run(b, exists_request{"/p"}, old);
        CHECK(b.bytes() == one);
        CHECK(b.is_in_doubt("/p"));
    }
    run(b, sync_request{"/"}, reply());
    reply found;
    found.stat.ephemeral_owner = ours;
    run(b, exists_request{"/p"}, found);
    CHECK(b.bytes() == one);
    b.heard_gone("/p");
    CHECK(b.bytes() == 0);
}

TEST_CASE("ephemeral budget: contenders whose creates were lost may still leave", "[ephemeral_budget]") {
    ephemeral_budget b(1000, 0, false);
    b.connected(ours);
    std::vector<sent_request> all;
    for (int i = 0; b.for_contender("/lock", 7) == room::now; ++i) {
        const std::string path = "/lock/" + std::to_string(i);
        all.push_back({creating(path, create_mode::ephemeral_sequential), true, {}});
        REQUIRE(begin(b, all.back()));
    }
    REQUIRE(all.size() > 10);
    CHECK(b.for_contender("/lock", 7) == room::later);
    for (sent_request& r : all) end(b, r, lost);
    CHECK(b.for_contender("/lock", 7) == room::later);
    b.connected(ours);
    run(b, sync_request{"/"}, reply());
    reply names;
    names.children.emplace_back("30000000000");
    run(b, children_request{"/lock"}, names);
    CHECK(b.nodes() == 1);
    CHECK(b.for_contender("/lock", 7) == room::now);
    // It waits for the lock, as the create did.
    CHECK(b.for_contender("/other", 970) == room::later);
    b.now_holds("/lock/30000000000");
    CHECK(b.for_contender("/other", 970) == room::never);
}

TEST_CASE("ephemeral budget: of nodes that are named like lost ones, as many count as were lost",
          "[ephemeral_budget]") {
    ephemeral_budget b(1000, 0, false);
    b.connected(ours);
    const request create = creating("/members/m-", create_mode::ephemeral_sequential);
    run(b, create, lost);
    const std::size_t one = b.bytes();
    b.connected(ours);
    reply names;
    names.children = {"m-0000000001", "m-0000000002", "m-0000000003", "n", "other-0000000004"};
    run(b, children_request{"/members"}, names);  // of a server that may not know
    CHECK(b.bytes() == one);
    run(b, sync_request{"/"}, reply());
    run(b, children_request{"/members"}, names);
    CHECK(b.bytes() == one);
    names.children.erase(names.children.begin(), names.children.begin() + 2);
    run(b, children_request{"/members"}, names);
    CHECK(b.bytes() == one);
    CHECK(b.nodes() == 1);
    b.heard_gone("/members/m-0000000003");
    CHECK(b.bytes() == 0);
}

TEST_CASE("ephemeral budget: a lost node is found behind 2^31 numbers, too", "[ephemeral_budget]") {
    const std::string prefix = GENERATE("m-", "m");
    const std::string number = GENERATE("2147483647", "-2147483648", "-000000001");
    INFO(prefix << number);
    ephemeral_budget b(1000, 0, false);
    b.connected(ours);
    run(b, creating("/members/" + prefix, create_mode::ephemeral_sequential), lost);
    run(b, sync_request{"/"}, reply());
    reply names;
    names.children = {prefix + number, "other-0000000004"};
    run(b, children_request{"/members"}, names);
    CHECK(b.nodes() == 1);
    CHECK(b.may_have_made("/members/" + prefix + number));
    b.heard_gone("/members/" + prefix + number);
    CHECK(b.bytes() == 0);
}

TEST_CASE("ephemeral budget: locks whose contenders have no room have their turns as they came", "[ephemeral_budget]") {
    ephemeral_budget b(400, 0, false);
    b.connected(ours);
    // A lock of another client: our contenders fill three quarters.
    std::vector<std::string> theirs;
    while (b.for_contender("/x", 20) == room::now) {
        const std::string path = "/x/" + std::to_string(10 + theirs.size()) + std::string(25, '-');
        run(b, creating(path), created_as(path), true);
        theirs.push_back(path);
    }
    std::vector<std::string> called;
    std::size_t waits_for_a = 0;
    const auto wait = [&](std::string name) { b.when_changed(name, 20, [&called, name] { called.push_back(name); }); };
    wait("/x");
    // A lock that is handed on in this process: each time it has no node of ours for a moment.
    for (int i = 0; i < 100; ++i) {
        const std::string path = "/a/" + std::to_string(i);
        run(b, creating(path), created_as(path), true);
        if (waits_for_a++ == 0) wait("/a");
        if (i == 0) wait("/z");
        run(b, remove_request{path, any_version}, reply());
        b.call_waiting();
        if (!called.empty() && called.back() == "/a") wait("/a");
    }
    const std::size_t before = called.size();
    for (int i = 0; i < 4; ++i) run(b, remove_request{theirs.at(static_cast<std::size_t>(i)), any_version}, reply());
    b.call_waiting();
    REQUIRE(called.size() >= before + 1);
    called.erase(called.begin(), called.begin() + static_cast<std::ptrdiff_t>(before));
    const auto z = std::find(called.begin(), called.end(), "/z");
    CHECK(z - called.begin() <= 2);
}

TEST_CASE("ephemeral budget: room comes later while a removal is under way, and not when it was refused",
          "[ephemeral_budget]") {
    ephemeral_budget b(100, 0, false);
    b.connected(ours);
    const std::string path = "/" + std::string(80, 'n');
    run(b, creating(path), created_as(path));
    const auto room_of_another = [&] { return b.for_contender("/other", 20); };
    CHECK(room_of_another() == room::never);
    multi_request too_much;
    too_much.ops.emplace_back(remove_request{path, any_version});
    too_much.ops.emplace_back(creating("/" + std::string(200, 'n')));
    sent_request refused{too_much, false, {}};
    CHECK_FALSE(begin(b, refused));
    CHECK(room_of_another() == room::never);
    sent_request removal{remove_request{path, 7}, false, {}};
    REQUIRE(begin(b, removal));
    CHECK(room_of_another() == room::later);
    SECTION("refused") {
        reply a;
        a.code = zk_errc::bad_version;
        end(b, removal, a);
        CHECK(room_of_another() == room::never);
        CHECK(b.questions().empty());
    }
    SECTION("lost") {
        end(b, removal, lost);
        CHECK(room_of_another() == room::never);
        CHECK(b.questions().size() == 2);
    }
    SECTION("lost, and sent again") {
        b.end(removal.what, false, removal.share, lost, true);
        CHECK(room_of_another() == room::later);
        CHECK(b.questions().empty());
        b.end(removal.what, false, removal.share, reply(), false);
        CHECK(room_of_another() == room::now);
    }
}

namespace {

constexpr std::size_t contender = 20;  // the bytes of its path without the number: it costs 34
std::string long_path(const std::string& directory, std::size_t number) {
    std::string path = directory + "/" + std::to_string(number);
    return path + std::string(contender + 10 - path.size(), '-');
}

// Contenders of /x fill three quarters of 400 bytes: 8 of them.
std::vector<std::string> fill_as_contenders(ephemeral_budget& b) {
    std::vector<std::string> all;
    while (b.for_contender("/x", contender) == room::now) {
        all.push_back(long_path("/x", all.size()));
        run(b, creating(all.back()), created_as(all.back()), true);
    }
    return all;
}

}  // namespace

TEST_CASE("ephemeral budget: a first contender does not wait for those behind a lock of its own session",
          "[ephemeral_budget]") {
    ephemeral_budget b(400, 0, false);
    b.connected(ours);
    const std::vector<std::string> all = fill_as_contenders(b);
    REQUIRE(all.size() == 8);
    b.now_holds(all[0]);
    const std::string rest = "/" + std::string(99, 'h'), more = "/" + std::string(29, 'h');
    run(b, creating(rest), created_as(rest));
    CHECK(b.for_contender("/other", contender) == room::never);
    CHECK(b.for_contender("/x", contender) == room::later);
    // The holder is another session's: one of those that wait may get the lock, and leave.
    b.heard_gone(all[0]);
    run(b, creating(more), created_as(more));
    CHECK(b.for_contender("/other", contender) == room::later);
    int called = 0;
    b.when_changed("/other", contender, [&] { ++called; });
    b.call_waiting();
    CHECK(called == 0);
    // One gets it, and asks for the other lock.
    b.now_holds(all[1]);
    CHECK(b.has_news());
    b.call_waiting();
    CHECK(called == 1);
    CHECK(b.for_contender("/other", contender) == room::never);
}

TEST_CASE("ephemeral budget: of those that wait for room, whoever has none is not in the way of the others",
          "[ephemeral_budget]") {
    ephemeral_budget b(400, 0, false);
    b.connected(ours);
    REQUIRE(fill_as_contenders(b).size() == 8);
    std::vector<std::string> called;
    const auto wait = [&](std::string name) {
        b.when_changed(name, contender, [&called, name] { called.push_back(name); });
    };
    SECTION("one that was the first in its directory when it came") {
        const std::string rest = "/" + std::string(95, 'h');
        run(b, creating(rest), created_as(rest));
        CHECK(b.for_contender("/a", contender) == room::later);
        wait("/a");
        wait("/z");
        run(b, creating("/a/0"), created_as("/a/0"), true);
        run(b, remove_request{rest, any_version}, reply());
        CHECK(b.for_contender("/a", contender) == room::later);
        b.call_waiting();
        CHECK(called == std::vector<std::string>{"/z"});
    }
    SECTION("each directory in its turn") {
        const std::string rest = "/" + std::string(95, 'h');
        run(b, creating(rest), created_as(rest));
        for (const char* name : {"/a", "/z", "/a"}) wait(name);
        run(b, remove_request{rest, any_version}, reply());
        b.call_waiting();
        CHECK(called == std::vector<std::string>{"/a", "/z", "/a"});
    }
    SECTION("one that becomes the first in its directory") {
        wait("/x");
        run(b, creating("/a/0"), created_as("/a/0"), true);
        CHECK(b.for_contender("/a", contender) == room::later);
        wait("/a");
        run(b, remove_request{"/a/0", any_version}, reply());
        CHECK(b.for_contender("/x", contender) == room::later);
        b.call_waiting();
        CHECK(called == std::vector<std::string>{"/a"});
    }
}

TEST_CASE("ephemeral budget: nothing of a session is awaited in the next one", "[ephemeral_budget]") {
    ephemeral_budget b(400, 0, false);
    b.connected(ours);
    for (const char* path : {"/l/1", "/l/2"}) run(b, creating(path), created_as(path), true);
    sent_request create{creating("/l/", create_mode::ephemeral_sequential), true, {}};
    sent_request removal{remove_request{"/l/1", any_version}, false, {}};
    REQUIRE(begin(b, create));
    REQUIRE(begin(b, removal));
    run(b, creating("/l/lost-", create_mode::ephemeral_sequential), lost, true);
    b.clear();
    CHECK(b.bytes() == 0);
    CHECK(b.questions().empty());
    const std::string all = "/" + std::string(390, 'n');
    run(b, creating(all), created_as(all));
    const std::size_t bytes = b.bytes();
    for (const bool ended : {false, true}) {
        if (ended) end(b, create, lost);
        if (ended) end(b, removal, lost);
        CHECK(b.bytes() == bytes);
        CHECK(b.for_contender("/l", contender) == room::never);
        CHECK(b.for_contender("/", contender) == room::never);
    }
    CHECK(b.questions().empty());
    CHECK_FALSE(b.may_have_made("/l/lost-0000000001"));
}

TEST_CASE("ephemeral budget: lost creates are looked for in their own directory, among nodes that are not known",
          "[ephemeral_budget]") {
    ephemeral_budget b(1000, 0, false);
    b.connected(ours);
    const request numbered = creating("/d/m-", create_mode::ephemeral_sequential);
    run(b, numbered, created_as("/d/m-0000000001"));
    run(b, numbered, lost);
    run(b, creating("/d/e/m-", create_mode::ephemeral_sequential), lost);
    const std::size_t bytes = b.bytes();
    b.connected(ours);
    run(b, sync_request{"/"}, reply());
    reply names;
    names.children = {"e", "m-0000000001", "m-0000000002"};
    run(b, children_request{"/d"}, names);
    CHECK(b.nodes() == 2);
    CHECK(b.bytes() == bytes);
    names.children = {"m-0000000003"};
    run(b, children_request{"/d/e"}, names);
    CHECK(b.nodes() == 3);
    CHECK(b.bytes() == bytes);
    for (const char* path : {"/d/m-0000000001", "/d/m-0000000002", "/d/e/m-0000000003"}) b.heard_gone(path);
    CHECK(b.bytes() == 0);
}

TEST_CASE("ephemeral budget: the warning comes once, and again when much has gone before", "[ephemeral_budget]") {
    ephemeral_budget b(10'000'000, 0, false);
    b.connected(ours);
    constexpr std::size_t tenth = ephemeral_budget::worth_a_warning / 10;
    const auto path = [](std::size_t i) { return "/" + std::to_string(i) + std::string(tenth - 2, 'n'); };
    const auto create = [&](std::size_t from, std::size_t to) {
        int warnings = 0;
        for (std::size_t i = from; i < to; ++i) {
            run(b, creating(path(i)), created_as(path(i)));
            warnings += b.take_warning();
        }
        return warnings;
    };
    CHECK(create(0, 9) == 0);
    CHECK(create(9, 20) == 1);
    for (std::size_t i = 7; i < 20; ++i) b.heard_gone(path(i));
    CHECK(create(7, 12) == 0);
    for (std::size_t i = 3; i < 12; ++i) b.heard_gone(path(i));
    CHECK(create(3, 12) == 1);
    b.clear();
    CHECK(create(0, 12) == 1);
}

TEST_CASE("ephemeral budget: creates under way in many directories", "[ephemeral_budget]") {
    constexpr std::size_t n = 200, bytes_of_a_node = 7 + 4;
    ephemeral_budget b(n * bytes_of_a_node + 100, 0, false);
    b.connected(ours);
    const auto directory = [](std::size_t i) { return "/d" + std::to_string(100 + i); };
    std::deque<sent_request> all;
    for (std::size_t i = 0; i < n; ++i) {
        all.push_back({creating(directory(i) + "/n"), true, {}});
        REQUIRE(begin(b, all.back()));
    }
    const auto check = [&] {
        CHECK(b.bytes() == n * bytes_of_a_node);
        for (std::size_t i = 0; i < n; ++i) CHECK(b.for_contender(directory(i), 7) == room::later);
        CHECK(b.for_contender("/other", 7) == room::now);
    };
    check();
    for (std::size_t i = 0; i < n; ++i) end(b, all[i], created_as(directory(i) + "/n"));
    check();
    for (std::size_t i = 0; i < n; ++i) b.heard_gone(directory(i) + "/n");
    CHECK(b.bytes() == 0);
}

TEST_CASE("ephemeral budget: each answer that tells that a node is gone counts, and none that tells nothing",
          "[ephemeral_budget]") {
    const std::string path = "/p";
    multi_request check;
    check.ops.emplace_back(check_op{path, any_version});
    for (const request& what :
         {request(exists_request{path}), request(get_request{path, false}),
          request(set_request{path, "x", any_version}), request(remove_request{path, 1}), request(check)}) {
        INFO(operation_name(what));
        ephemeral_budget b(1000, 0, false);
        b.connected(ours);
        run(b, creating(path), lost);
        const std::size_t one = b.bytes();
        run(b, sync_request{"/"}, reply());
        for (const zk_errc code : {zk_errc::no_auth, zk_errc::bad_version, zk_errc::throttled}) {
            reply a;
            a.code = code;
            a.results.push_back({a.code, {}, {}, {}, {}});
            run(b, what, a);
            CHECK(b.bytes() == one);
            CHECK(b.is_in_doubt(path));
        }
        reply a;
        a.code = zk_errc::no_node;
        a.results.push_back({a.code, {}, {}, {}, {}});
        run(b, what, a);
        CHECK(b.bytes() == 0);
        CHECK(b.questions().empty());
    }
}

// Servers before 3.5 do not tell the path.
TEST_CASE("ephemeral budget: a create in a transaction whose answer has no path counts by its own",
          "[ephemeral_budget]") {
    ephemeral_budget b(1000, 0, false);
    b.connected(ours);
    multi_request steps;
    steps.ops.emplace_back(creating("/p"));
    reply made;
    made.results.resize(1);
    run(b, steps, made);
    CHECK(b.may_have_made("/p"));
    CHECK(b.nodes() == 1);
    b.heard_gone("/p");
    CHECK(b.bytes() == 0);
}

// 1000 bytes; a claim has 9 bytes with "/q/" and a number, and 3 and 4 for the chroot and the length.
TEST_CASE("ephemeral budget: claims behind the first one have half of it, and wait while they may leave",
          "[ephemeral_budget]") {
    ephemeral_budget b(1000, chroot, false);
    b.connected(ours);
    const std::size_t claim = 10, each = claim + chroot + 4;
    CHECK(b.for_claims("/q", claim) == 500 / each);
    SECTION("none of this session has any") {
        run(b, creating("/" + std::string(700 - 8, 'x')), reply());
        REQUIRE(b.bytes() == 700);
        CHECK(b.for_claims("/q", claim) == 1);  // the first one
        run(b, creating("/" + std::string(300 - each - 8 + 1, 'y')), reply());
        CHECK(b.for_claims("/q", claim) == 1);  // is refused
        run(b, creating("/l/c"), reply(), true);
        CHECK(b.for_claims("/q", claim) == 0);  // the contender will leave
        b.now_holds("/l/c");
        CHECK(b.for_claims("/q", claim) == 1);
    }
    SECTION("some of this session's are there") {
        int told = 0;
        for (std::size_t i = 0; i < 500 / each; ++i)
            run(b, creating("/q/entry-" + std::string(1, static_cast<char>('A' + i))), reply());
        CHECK(b.for_claims("/q", claim) == 0);
        CHECK(b.for_claims("/other", claim) == 1);
        CHECK_FALSE(b.has_news());
        b.when_released([&] { ++told; });
        b.call_waiting();
        b.when_released([&] { ++told; });
        CHECK(told == 1);
        run(b, remove_request{"/q/entry-A", any_version}, reply());
        CHECK(b.has_news());
        b.call_waiting();
        CHECK(told == 2);
        CHECK(b.for_claims("/q", claim) == 1);
        run(b, remove_request{"/q/entry-B", any_version}, reply());
        CHECK_FALSE(b.has_news());  // nobody waits
        b.when_released([&] { ++told; });
        b.clear();
        run(b, creating("/q/entry-0"), reply());
        b.heard_gone("/q/entry-0");
        b.call_waiting();
        CHECK(told == 2);
    }
}

TEST_CASE("ephemeral budget: which step of a transaction has no room", "[ephemeral_budget]") {
    ephemeral_budget b(100, 0, false);
    b.connected(ours);
    run(b, creating("/" + std::string(45, 'x')), reply());  // 50
    multi_request m;
    m.ops.emplace_back(check_op{"/", any_version});
    m.ops.emplace_back(creating("/p", create_mode::persistent));
    for (const char* name : {"/a", "/b"}) m.ops.emplace_back(creating(name + std::string(14, 'n')));  // 20 each
    CHECK(b.step_without_room(m) == m.ops.size());
    m.ops.emplace_back(creating("/c" + std::string(14, 'n')));
    CHECK(b.step_without_room(m) == 4);
    m.ops.emplace_back(remove_request{"/" + std::string(45, 'x'), any_version});
    CHECK(b.step_without_room(m) == m.ops.size());
    sent_request fits{m, false, {}};
    CHECK(begin(b, fits));
}

}  // namespace ephemeral_budget_units

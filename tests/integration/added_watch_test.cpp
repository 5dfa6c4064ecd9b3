// Watches that stand until they are removed, at the seam: over servers in memory, and over real ones.

#include "support/catch.hpp"
#include "support/scripted_connection.hpp"
#include "support/surroundings.hpp"
#include "support/test_server.hpp"
#include "support/transport.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/testing/detail/sim/sim_ensemble.hpp>

#include <poll.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace added_watch_test {
namespace {

// A backend, and its servers: those of the test's surroundings.
class side {
public:
    explicit side(bool one_watch_at_a_path) {
        open_params p;
        p.known = std::make_shared<known_requests>();
        p.session_timeout = std::chrono::seconds(10);
        if (surroundings::current().has_real_time()) {
            const std::string first = first_server();
            const std::size_t colon = first.rfind(':');
            const std::string host = first.substr(0, colon);
            p.servers = {{host, host, static_cast<std::uint16_t>(std::atoi(first.c_str() + colon + 1))}};
            backend_ = make_c_backend(seen);
        } else {
            memory_.emplace();
            memory_->one_watch_at_a_path = one_watch_at_a_path;
            backend_ = memory_->factory(0)(seen);
        }
        backend_->open(p);
        until([&] { return is_connected(); });
    }
    ~side() { backend_->close(); }

    bool is_real() const { return !memory_; }
    bool is_connected() const { return !seen.links.empty() && seen.links.back() == link_state::connected; }

    reply ask(request r) {
        const op_id id = ++last_;
        REQUIRE_FALSE(backend_->submit(id, std::move(r)));
        backend_->end_batch();
        until([&] { return seen.replies.contains(id); });
        return seen.replies[id].front();
    }
    std::error_code code_of(request r) { return ask(std::move(r)).code; }
    void reconnect() {
        backend_->abort_connection();
        until([&] { return seen.links.size() >= 3 && is_connected(); });
    }
    /// What the added watches have told since the last call. A read comes behind all that has happened.
    std::vector<std::string> told() {
        ask(exists_request{"/"});
        static const std::vector<std::string> names{"created", "removed", "changed", "children of"};
        std::vector<std::string> all;
        for (const recorder::node_news& e : std::exchange(seen.added, {}))
            all.push_back(names.at(static_cast<std::size_t>(e.what)) + ' ' + e.path);
        return all;
    }

    recorder seen;

private:
    template <class Condition>
    void until(Condition reached) {
        for (int turn = 0; turn < 4000 && !reached(); ++turn) {
            const interest next = backend_->next_interest();
            if (memory_) {
                std::vector<testing_detail::sim_ensemble::step> steps;
                memory_->list_steps(steps);
                if (!steps.empty()) memory_->take(steps.front());
                backend_->process(true, true);
                continue;
            }
            pollfd p{next.descriptor, static_cast<short>(POLLIN | (next.write ? POLLOUT : 0)), 0};
            ::poll(&p, next.descriptor < 0 ? 0 : 1, 5);
            backend_->process((p.revents & ~POLLOUT) != 0, (p.revents & ~POLLIN) != 0);
        }
        REQUIRE(reached());
    }

    std::optional<testing_detail::sim_ensemble> memory_;
    std::unique_ptr<backend> backend_;
    op_id last_ = 0;
};

create_request creation(const std::string& path) {
    create_request r;
    r.path = path;
    r.acl = open_acl();
    return r;
}

// A new node, for the nodes of a test.
std::string fresh(side& s, const std::string& name) {
    const std::string path = "/added-watch-" + name + '-' + std::to_string(::getpid());
    REQUIRE_FALSE(s.code_of(creation(path)));
    return path;
}

using changes = std::vector<std::string>;

bool is_plain() { return !transport::current().is_secure(); }

}  // namespace
}  // namespace added_watch_test

using namespace added_watch_test;

TEST_CASE("added watch: a recursive one tells of all nodes at and below its path, and of no children") {
    if (!is_plain()) return;
    side s(false);
    const std::string dir = fresh(s, "recursive"), a = dir + "/a", b = a + "/b";
    REQUIRE_FALSE(s.code_of(add_watch_request{dir, true}));
    for (const std::string& path : {a, b}) CHECK_FALSE(s.code_of(creation(path)));
    CHECK_FALSE(s.code_of(set_request{b, "x"}));
    CHECK_FALSE(s.code_of(set_request{dir, "x"}));
    for (const std::string& path : {b, a}) CHECK_FALSE(s.code_of(remove_request{path}));
    CHECK(s.told() == changes{"created " + a, "created " + b, "changed " + b, "changed " + dir, "removed " + b,
                              "removed " + a});
    CHECK_FALSE(s.code_of(remove_request{dir}));
    CHECK(s.told() == changes{"removed " + dir});
    CHECK_FALSE(s.code_of(creation(dir)));
    CHECK(s.told() == changes{"created " + dir});
    CHECK_FALSE(s.code_of(remove_request{dir}));
}

TEST_CASE("added watch: a plain one tells of its node and the node's children") {
    if (!is_plain()) return;
    side s(false);
    const std::string dir = fresh(s, "plain"), a = dir + "/a";
    REQUIRE_FALSE(s.code_of(add_watch_request{dir, false}));
    CHECK_FALSE(s.code_of(creation(a)));
    CHECK_FALSE(s.code_of(set_request{a, "x"}));
    CHECK_FALSE(s.code_of(set_request{dir, "x"}));
    CHECK_FALSE(s.code_of(remove_request{a}));
    CHECK(s.told() == changes{"children of " + dir, "changed " + dir, "children of " + dir});
    CHECK_FALSE(s.code_of(remove_request{dir}));
}

TEST_CASE("added watch: ends when it is removed, and with its connection") {
    if (!is_plain()) return;
    side s(false);
    const std::string dir = fresh(s, "end");
    for (const bool recursive : {true, false}) {
        REQUIRE_FALSE(s.code_of(add_watch_request{dir, recursive}));
        CHECK_FALSE(s.code_of(remove_added_watch_request{dir}));
        CHECK_FALSE(s.code_of(set_request{dir, "x"}));
        CHECK(s.told().empty());
        CHECK(s.code_of(remove_added_watch_request{dir}) == zk_errc::no_watcher);
    }
    REQUIRE_FALSE(s.code_of(add_watch_request{dir, true}));
    s.reconnect();
    CHECK_FALSE(s.code_of(set_request{dir, "x"}));
    CHECK(s.told().empty());
    CHECK(s.code_of(remove_added_watch_request{dir}) == zk_errc::no_watcher);
    CHECK_FALSE(s.code_of(remove_request{dir}));
}

// ZOOKEEPER-4466.
TEST_CASE("added watch: a read's watch at its very path, before and since 3.9") {
    if (!is_plain()) return;
    const bool one_at_a_path = GENERATE(false, true);
    side s(one_at_a_path);
    const std::string dir = fresh(s, "4466"), a = dir + "/a";
    CHECK_FALSE(s.code_of(creation(a)));
    REQUIRE_FALSE(s.code_of(add_watch_request{dir, true}));
    CHECK_FALSE(s.code_of(get_request{a, true}));  // below, both stand
    CHECK_FALSE(s.code_of(set_request{a, "x"}));
    CHECK_FALSE(s.code_of(set_request{a, "x"}));
    CHECK(s.told() == changes{"changed " + a, "changed " + a});
    CHECK(s.seen.events.size() == 1);
    CHECK_FALSE(s.code_of(get_request{dir, true}));
    CHECK_FALSE(s.code_of(set_request{dir, "x"}));
    CHECK_FALSE(s.code_of(set_request{dir, "x"}));
    CHECK_FALSE(s.code_of(set_request{a, "x"}));
    const changes told = s.told(), before{"changed " + dir}, since{"changed " + dir, "changed " + dir, "changed " + a};
    if (s.is_real())
        CHECK((told == before || told == since));
    else
        CHECK(told == (one_at_a_path ? before : since));
    CHECK(s.seen.events.size() == 2);
    for (const std::string& path : {a, dir}) CHECK_FALSE(s.code_of(remove_request{path}));
}

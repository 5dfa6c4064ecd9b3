// Servers 3.4.13, which answer requests that they do not know with -6 and hang up: what works, and how the rest fails.

#include "support/opcode.hpp"
#include "support/test_client.hpp"
#include "unit/support/wire_server.hpp"

#include <zkasio/transaction.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string too_old =
    "not implemented by this server (ZooKeeper 3.5 or later is needed, and for nodes with a time to live its setting "
    "zookeeper.extendedTypesEnabled)";

constexpr std::int32_t old_create = 1;

// The node /a, with the child /a/b.
class server_3_4 {
public:
    explicit server_3_4(const asio::any_io_executor& executor) : wire(executor) {
        wire.answer = [this](const wire_server::request& r) { return answer(r); };
    }

    wire_server wire;
    std::map<std::string, std::string> nodes{{"/a", "data"}, {"/a/b", ""}};

private:
    wire_server::outcome answer(const wire_server::request& r) {
        constexpr std::int32_t unimplemented = -6, no_node = -101;
        static const std::set<std::int32_t> known{old_create,      opcode::remove,  opcode::exists,  opcode::get,
                                                  opcode::set,     opcode::get_acl, opcode::set_acl,
                                                  opcode::sync,    opcode::children, opcode::multi};
        if (!known.contains(r.type)) return {unimplemented, {}, true};
        jute_writer w;
        if (r.type == opcode::multi) {  // a create, which is of the first kind
            w.step(1, 0).text("/a/c").end_of_steps();
            return {0, w.bytes()};
        }
        const std::string path = path_in(r);
        if (r.type == old_create) nodes.emplace(path, "");
        if (r.type == old_create || r.type == opcode::sync) return {0, w.text(path).bytes()};
        const auto node = nodes.find(path);
        if (node == nodes.end()) return {no_node};
        if (r.type == opcode::remove) nodes.erase(node);
        if (r.type == opcode::remove) return {};
        if (r.type == opcode::get) w.text(node->second);
        if (r.type == opcode::get_acl) w.acl(open_acl());
        if (r.type == opcode::children) w.texts({"b"});
        return {0, w.stat({}).bytes()};
    }
};

// Runs `body(client, server)`; the client says goodbye, and is answered.
template <class Body>
void run(Body body) {
    test_loop loop(20s);
    server_3_4 server(loop.executor());
    const test_client zk(loop.executor(), client_options(server.wire.address()));
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
        std::exception_ptr failed;
        try {
            co_await body(zk, server);
            const close_result how = co_await zk.close();
            CHECK(how == close_result::confirmed);
        } catch (...) {
            failed = std::current_exception();
        }
        co_await zk.close();
        server.wire.close();
        if (failed) std::rethrow_exception(failed);
    };
    loop.run(task());
    CHECK(zk.inside().pending_operations() == 0);
    CHECK(zk.inside().watches() == 0);
}

const std::vector<std::string> only_b{"b"};

// Behind its answer the server hangs up; until the client has a connection again. What is asked for in between is lost.
asio::awaitable<void> reconnected(client zk, const server_3_4& server, std::size_t connections) {
    const auto is_up = [&]() -> asio::awaitable<bool> {
        co_return server.wire.handshakes.size() == connections && zk.state() == session_state::connected;
    };
    co_await eventually(is_up);
}

}  // namespace

TEST_CASE("server 3.4: reads, set(), remove(), sync() and watches work") {
    auto body = [](client zk, server_3_4& server) -> asio::awaitable<void> {
        const node_data read = co_await zk.get("/a");
        CHECK(read.data == "data");
        const auto there = co_await zk.exists("/a");
        CHECK(there.has_value());
        const auto none = co_await zk.exists("/none");
        CHECK_FALSE(none.has_value());
        const node_children names = co_await zk.children("/a");
        CHECK(names.names == only_b);
        const auto granted = co_await zk.get_acl("/a");
        CHECK(granted.acl == open_acl());
        co_await zk.set("/a", "new");
        co_await zk.set_acl("/a", open_acl());
        co_await zk.sync();
        const auto seen = co_await zk.get_and_watch("/a");
        server.wire.tell(3, "/a");
        const watch_event change = co_await seen.changes.changed();
        CHECK(change.what == node_change::data_changed);
        co_await zk.remove("/a/b");
        CHECK(server.nodes.size() == 1);
        CHECK(server.wire.handshakes.size() == 1);
    };
    run(body);
}

TEST_CASE("server 3.4: a create() costs one connection, once, and those of later kinds fail and say why") {
    auto body = [](client zk, server_3_4& server) -> asio::awaitable<void> {
        const session before = co_await zk.current_session();
        for (const std::string path : {"/a/c", "/a/d"}) {
            const created made = co_await zk.create(path);
            CHECK(made.path == path);
        }
        for (const create_mode mode : {create_mode::container, create_mode::persistent_ttl}) {
            create_options o;
            o.mode(mode);
            if (has_ttl(mode)) o.ttl(1s);
            std::string text;
            bool unknown = true;
            std::error_code code;
            try {
                co_await zk.create("/a/e", "", o);
            } catch (const error& e) {
                text = e.what();
                unknown = e.outcome_unknown();
                code = e.code();
            }
            CHECK(text == "create /a/e: " + too_old);
            CHECK(code == zk_errc::unimplemented);
            CHECK_FALSE(unknown);
        }
        CHECK_FALSE(before.over());
        CHECK(server.wire.count(opcode::create) == 1);
        CHECK(server.wire.count(old_create) == 2);
        CHECK(server.wire.count(opcode::create_container) + server.wire.count(opcode::create_ttl) == 0);
        CHECK(server.wire.handshakes.size() == 2);
        for (const auto& h : server.wire.handshakes) CHECK((h.session == 0 || h.session == before.id()));
    };
    run(body);
}

TEST_CASE("server 3.4: a container is asked for once, and certainly made nothing") {
    auto body = [](client zk, server_3_4& server) -> asio::awaitable<void> {
        for (int i = 0; i < 3; ++i) {
            std::string text;
            bool unknown = true;
            try {
                co_await zk.create("/a/e", "", create_options().mode(create_mode::container));
            } catch (const error& e) {
                text = e.what();
                unknown = e.outcome_unknown();
            }
            CHECK(text == "create /a/e: " + too_old);
            CHECK_FALSE(unknown);
            co_await reconnected(zk, server, 2);
        }
        CHECK(server.wire.count(opcode::create_container) == 1);
    };
    run(body);
}

TEST_CASE("server 3.4: a create() in a transaction works") {
    auto body = [](client zk, server_3_4&) -> asio::awaitable<void> {
        transaction t;
        t.create("/a/c");
        const auto results = co_await zk.multi(t);
        REQUIRE(results.size() == 1);
        CHECK(results[0].path == "/a/c");
    };
    run(body);
}

TEST_CASE("server 3.4: reconfigure() and get_config() say what is missing") {
    auto body = [](client zk, server_3_4& server) -> asio::awaitable<void> {
        const std::error_code no_config = co_await code_of(zk.get_config());
        CHECK(no_config == zk_errc::no_node);
        const std::error_code refused = co_await code_of(zk.reconfigure("", "3"));
        CHECK(refused == zk_errc::unimplemented);
        CHECK(server.wire.count(opcode::reconfigure) == 1);
        co_await reconnected(zk, server, 2);
    };
    run(body);
}

TEST_CASE("server 3.4: a watch that nobody waits for any more costs one connection, and is forgotten") {
    auto body = [](client zk, server_3_4& server) -> asio::awaitable<void> {
        const session before = co_await zk.current_session();
        {
            const auto seen = co_await zk.get_and_watch("/a");
        }
        const auto told = [&]() -> asio::awaitable<bool> { co_return server.wire.count(opcode::remove_watches) > 0; };
        co_await eventually(told);
        co_await zk.get("/a");
        const auto forgotten = [&]() -> asio::awaitable<bool> { co_return zk.stats().watches == 0; };
        co_await eventually(forgotten);
        co_await zk.get("/a");
        CHECK_FALSE(before.over());
        CHECK(server.wire.count(opcode::remove_watches) == 1);
        CHECK(server.wire.handshakes.size() == 2);
    };
    run(body);
}

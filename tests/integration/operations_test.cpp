#include "support/test_client.hpp"

#include <zkasio/detail/handles/node_search.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("create, get, set, exists, children and remove") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "basics");
        const std::string path = dir + "/node";

        const created made = co_await zk.create(path, "one");
        CHECK(made.path == path);
        CHECK(made.stat.czxid > 0);
        CHECK(made.stat.data_length == 3);

        node_data read = co_await zk.get(path);
        CHECK(read.data == "one");
        CHECK(read.stat == made.stat);

        const node_stat after = co_await zk.set(path, "two", 0);
        CHECK(after.version == 1);
        const std::error_code stale = co_await code_of(zk.set(path, "three", 0));
        CHECK(stale == zk_errc::bad_version);
        read = co_await zk.get(path);
        CHECK(read.data == "two");

        const auto there = co_await zk.exists(path);
        REQUIRE(there);
        CHECK(there->version == 1);
        const auto not_there = co_await zk.exists(path + "x");
        CHECK_FALSE(not_there);

        co_await zk.create(dir + "/other");
        const node_children list = co_await zk.children(dir);
        CHECK(std::set<std::string>(list.names.begin(), list.names.end()) == std::set<std::string>{"node", "other"});
        CHECK(list.stat.num_children == 2);

        const std::error_code exists = co_await code_of(zk.create(path));
        CHECK(exists == zk_errc::node_exists);
        const std::error_code wrong = co_await code_of(zk.remove(path, 7));
        CHECK(wrong == zk_errc::bad_version);
        co_await zk.remove(path, 1);
        const std::error_code gone = co_await code_of(zk.get(path));
        CHECK(gone == zk_errc::no_node);
        const std::string text = co_await message_of(zk.get(path));
        CHECK(text == "get " + path + ": no such node");
    };
    with_client(body);
}

TEST_CASE("data is bytes") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "bytes");
        std::string all;
        for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
        co_await zk.create(dir + "/all", all);
        node_data read = co_await zk.get(dir + "/all");
        CHECK(read.data == all);

        const std::vector<std::byte> raw{std::byte{0}, std::byte{255}, std::byte{0}};
        co_await zk.set(dir + "/all", raw);
        read = co_await zk.get(dir + "/all");
        CHECK(read.data == std::string("\0\xff\0", 3));

        co_await zk.set(dir + "/all", "");
        read = co_await zk.get(dir + "/all");
        CHECK(read.data.empty());
    };
    with_client(body);
}

TEST_CASE("all seven kinds of nodes") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "modes");
        const session s = co_await zk.current_session();
        const auto make = [&](create_mode mode, const char* name) {
            create_options o;
            o.mode(mode);
            if (has_ttl(mode)) o.ttl(1h);
            return zk.create(dir + "/" + name, "x", o);
        };
        const created persistent = co_await make(create_mode::persistent, "a");
        CHECK(persistent.stat.ephemeral_owner == 0);
        const created ephemeral = co_await make(create_mode::ephemeral, "b");
        CHECK(ephemeral.stat.ephemeral_owner == s.id());
        const created first = co_await make(create_mode::persistent_sequential, "c-");
        const created second = co_await make(create_mode::ephemeral_sequential, "c-");
        CHECK(first.path.size() == dir.size() + 3 + 10);
        CHECK(first.path < second.path);
        CHECK(second.stat.ephemeral_owner == s.id());
        const created container = co_await make(create_mode::container, "d");
        CHECK(container.path == dir + "/d");
        CHECK(container.stat.czxid > second.stat.czxid);
        const created ttl = co_await make(create_mode::persistent_ttl, "e");
        CHECK(ttl.path == dir + "/e");
        const created ttl_sequential = co_await make(create_mode::persistent_sequential_ttl, "f-");
        CHECK(ttl_sequential.path.size() == dir.size() + 3 + 10);
    };
    with_client(body);
}

TEST_CASE("remove_recursive removes a whole tree") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "recursive");
        for (int i = 0; i < 5; ++i) {
            const std::string child = dir + "/" + std::to_string(i);
            co_await zk.create(child);
            for (int j = 0; j < 70; ++j) co_await zk.create(child + "/" + std::to_string(j));
        }
        const std::error_code not_empty = co_await code_of(zk.remove(dir));
        CHECK(not_empty == zk_errc::not_empty);
        co_await zk.remove_recursive(dir);
        const auto gone = co_await zk.exists(dir);
        CHECK_FALSE(gone);
        co_await zk.remove_recursive(dir);  // no error
    };
    with_client(body);
}

TEST_CASE("multi applies all steps or none, and says which failed", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi");
        co_await zk.create(dir + "/a", "1");

        transaction all;
        create_options sequential;
        sequential.mode(create_mode::persistent_sequential);
        all.check(dir + "/a", 0).set(dir + "/a", "2").create(dir + "/b-", "x", sequential).remove(dir + "/a", 1);
        const std::vector<step_result> done = co_await zk.multi(all);
        REQUIRE(done.size() == 4);
        REQUIRE(done[1].new_stat);
        CHECK(done[1].new_stat->version == 1);
        CHECK(done[2].path.size() == dir.size() + 3 + 10);

        transaction none;
        none.create(dir + "/c").set(dir + "/missing", "x").create(dir + "/d");
        const std::error_code code = co_await code_of(zk.multi(none));
        CHECK(code == zk_errc::no_node);
        const std::string text = co_await message_of(zk.multi(none));
        CHECK(text == "multi " + dir + "/missing: no such node (step 2, set)");
        const auto c = co_await zk.exists(dir + "/c");
        CHECK_FALSE(c);

        const std::vector<step_result> nothing = co_await zk.multi(transaction());
        CHECK(nothing.empty());
    };
    with_client(body);
}

// As a Java HashSet iterates over them.
TEST_CASE("children are listed in no order of names") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "order");
        const auto listed = [&](std::string of, std::vector<std::string> names) -> asio::awaitable<std::string> {
            co_await zk.create(of);
            for (const std::string& name : names) co_await zk.create(of + "/" + name);
            const node_children all = co_await zk.children(of);
            std::string text;
            for (const std::string& name : all.names) text += name + " ";
            co_return text;
        };
        const std::vector<std::string> numbered{"b-1", "a-2", "b-0", "a-10"}, letters{"c", "a", "z", "b", "k"};
        const std::string first = co_await listed(dir + "/n", numbered), second = co_await listed(dir + "/l", letters);
        CHECK(first == "b-0 b-1 a-2 a-10 ");
        CHECK(second == "a z b c k ");
        const node_children now = co_await zk.children(dir + "/l");
        CHECK(now.stat.cversion == 5);
        CHECK(now.stat.pzxid == now.stat.czxid + 5);
    };
    with_client(body);
}

TEST_CASE("numbers of sequential nodes count all children, and nothing that was refused") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "numbers");
        create_options sequential, invalid;
        sequential.mode(create_mode::persistent_sequential);
        invalid.mode(create_mode::persistent_sequential).acl(acl(1, acl_entry(permission::all, acl_id("nope", "x"))));
        std::string made;
        const auto make = [&](std::string name) -> asio::awaitable<void> {
            const created c = co_await zk.create(dir + "/" + name, "", sequential);
            made = c.path.substr(dir.size());
        };
        co_await make("s-");
        CHECK(made == "/s-0000000000");
        co_await zk.create(dir + "/plain");
        co_await make("s-");
        CHECK(made == "/s-0000000002");
        co_await zk.remove(dir + made);
        co_await make("s-");
        CHECK(made == "/s-0000000003");
        std::error_code code = co_await code_of(zk.create(dir + "/s-", "", invalid));
        CHECK(code == zk_errc::invalid_acl);
        code = co_await code_of(zk.create(dir + "/plain"));
        CHECK(code == zk_errc::node_exists);
        co_await make("");
        CHECK(made == "/0000000004");
        transaction refused, applied;
        refused.create(dir + "/t-", "", sequential).create(dir + "/t-", "", sequential).check(dir + "/none");
        code = co_await code_of(zk.multi(refused));
        CHECK(code == zk_errc::no_node);
        applied.create(dir + "/t-", "", sequential).create(dir + "/t-", "", sequential);
        const std::vector<step_result> results = co_await zk.multi(applied);
        CHECK(results[0].path == dir + "/t-0000000005");
        CHECK(results[1].path == dir + "/t-0000000006");
    };
    with_client(body);
}

TEST_CASE("a transaction sees its own steps, and a create in it has no stat") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "own-steps"), n = dir + "/n";
        transaction whole;
        whole.create(n).set(n, "1").set(n, "2", 1).remove(n);
        std::vector<step_result> results = co_await zk.multi(whole);
        CHECK(results[0].path == n);
        CHECK_FALSE(results[0].new_stat);
        REQUIRE(results[1].new_stat);
        CHECK(results[1].new_stat->version == 1);
        CHECK(results[2].new_stat->version == 2);
        CHECK_FALSE(results[3].new_stat);
        transaction stays;
        stays.create(n).create(n + "/c").set(n, "1");
        co_await zk.multi(stays);
        auto stat = co_await zk.exists(n);
        REQUIRE(stat);
        CHECK(stat->version == 1);
        CHECK(stat->cversion == 1);
        CHECK(stat->pzxid == stat->czxid);
        CHECK(stat->mzxid == stat->czxid);
        transaction again;
        again.remove(n + "/c").remove(n).create(n);
        co_await zk.multi(again);
        stat = co_await zk.exists(n);
        REQUIRE(stat);
        CHECK(stat->version == 0);
        CHECK(stat->cversion == 0);
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        transaction below;
        below.create(dir + "/e", "", ephemeral).create(dir + "/e/c");
        std::error_code code = co_await code_of(zk.multi(below));
        CHECK(code == zk_errc::no_children_for_ephemerals);
        transaction two_wrong;
        two_wrong.check(n, 0).check(n, 9).check(dir + "/none");
        code = co_await code_of(zk.multi(two_wrong));
        CHECK(code == zk_errc::bad_version);
    };
    with_client(body);
}

TEST_CASE("below a chroot, paths are relative to it") {
    auto prepare = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "chroot");
        co_await zk.create(dir + "/app");
    };
    with_client(prepare);
    auto body = [](client zk) -> asio::awaitable<void> {
        create_options sequential;
        sequential.mode(create_mode::persistent_sequential);
        const created made = co_await zk.create("/n-", "x", sequential);
        CHECK(made.path == "/n-0000000000");
        const watched<node_data> seen = co_await zk.get_and_watch(made.path);
        co_await zk.set(made.path, "y");
        const watch_event event = co_await seen.changes.changed();
        CHECK(event.path == made.path);
        transaction t;
        t.check(made.path).create("/m");
        co_await zk.multi(t);
        co_await zk.create("/zookeeper");  // a node like any other here
        const auto inside = co_await zk.children("/");
        CHECK(inside.names.size() == 3);
        for (const auto& name : inside.names) co_await zk.remove("/" + name);
    };
    with_client(options(shared_servers() + "/test-chroot/app"), body);
}

TEST_CASE("the owners that servers give to nodes: a session, nobody, or a special one") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owners");
        const session s = co_await zk.current_session();
        create_options container, ttl, ephemeral;
        container.mode(create_mode::container);
        ttl.mode(create_mode::persistent_ttl).ttl(60s);
        ephemeral.mode(create_mode::ephemeral);
        const created a = co_await zk.create(dir + "/persistent");
        const created b = co_await zk.create(dir + "/container", "", container);
        const created c = co_await zk.create(dir + "/ttl", "", ttl);
        const created d = co_await zk.create(dir + "/ephemeral", "", ephemeral);
        CHECK(a.stat.ephemeral_owner == 0);
        CHECK(d.stat.ephemeral_owner == s.id());
        CHECK_FALSE(a.stat.is_ephemeral());
        CHECK_FALSE(b.stat.is_ephemeral());
        CHECK_FALSE(c.stat.is_ephemeral());
        CHECK(d.stat.is_ephemeral());
        // What no session owns is nobody else's: it is found again, and not removed.
        for (const create_options* o : {&container, &ttl}) {
            create_options as = *o;
            as.protection();
            const created made = co_await zk.create(dir + "/n-", "", as);
            const auto found = co_await toolbox(s).find_protected(dir, std::string(node_name(made.path)).substr(3, 36));
            REQUIRE(found);
            CHECK(found->path == made.path);
            const auto there = co_await zk.exists(made.path);
            CHECK(there);
        }
    };
    with_client(body);
}

TEST_CASE("a protected create is found again by its id", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "protection");
        create_options o;
        o.mode(create_mode::ephemeral_sequential).protection();
        const created made = co_await zk.create(dir + "/n-", "x", o);
        const std::string name(node_name(made.path));
        CHECK(name.starts_with("_c_"));
        CHECK(name.size() == 3 + 36 + 1 + 2 + 10);

        const session s = co_await zk.current_session();
        const std::string id = name.substr(3, 36);
        const auto found = co_await toolbox(s).find_protected(dir, id);
        REQUIRE(found);
        CHECK(found->path == made.path);
        const auto nothing = co_await toolbox(s).find_protected(dir, new_protection_id());
        CHECK_FALSE(nothing);

        // A node of another session is never ours (CURATOR-604): it is removed instead.
        const test_client other(co_await asio::this_coro::executor, options());
        const session theirs = co_await other.current_session();
        const auto not_ours = co_await toolbox(theirs).find_protected(dir, id);
        CHECK_FALSE(not_ours);
        auto removed = [&]() -> asio::awaitable<bool> {
            const auto there = co_await zk.exists(made.path);
            co_return !there;
        };
        co_await eventually(removed);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("sync, and the configuration of the ensemble", "[real-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.sync();
        co_await zk.sync("/no/such/node");
        const node_data config = co_await zk.get_config();
        CHECK(config.stat.czxid >= 0);
        const std::error_code bad = co_await code_of(zk.reconfigure("", ""));
        CHECK(bad == errc::invalid_argument);
        const std::error_code refused = co_await code_of(zk.reconfigure("server.9=127.0.0.9:1:2;3", ""));
        CHECK(refused);  // by the server: no permission, or not an ensemble
    };
    with_client(body);
}

TEST_CASE("requests that are started together are answered together, in order", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "pending");
        const pending_create made = toolbox(zk).start_create(dir + "/a", "x", create_options());
        const pending_children list = toolbox(zk).start_children(dir);
        const pending_removal gone = toolbox(zk).ensure_removed(dir + "/a");
        const node_children seen = co_await list.result();
        CHECK(seen.names == std::vector<std::string>{"a"});
        const created a = co_await made.result();
        CHECK(a.path == dir + "/a");
        co_await gone.result();
        const pending_removal again = toolbox(zk).ensure_removed(dir + "/a");
        co_await again.result();  // gone already: no error
    };
    with_client(body);
}

#include "support/test_client.hpp"

#include <zkasio/acl.hpp>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace operations_refused_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<std::error_code> create_with(client zk, std::string path, acl entries) {
    create_options how;
    how.acl(std::move(entries));
    const std::error_code code = co_await code_of(zk.create(path, "", how));
    co_return code;
}

acl only(std::string scheme, std::string id) {
    return acl(1, acl_entry(permission::all, acl_id(std::move(scheme), std::move(id))));
}

}  // namespace

TEST_CASE("missing parents are an error, or are created on demand") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "parents");
        const std::string text = co_await message_of(zk.create(dir + "/a/b/c"));
        CHECK(text.starts_with("create " + dir + "/a/b/c: no such node (the parent does not exist"));

        create_options persistent;
        persistent.parents(missing_parents::create_persistent);
        co_await zk.create(dir + "/a/b/c", "x", persistent);
        const auto b = co_await zk.exists(dir + "/a/b");
        REQUIRE(b);
        CHECK(b->ephemeral_owner == 0);

        create_options container;
        container.parents(missing_parents::create_container);
        co_await zk.create(dir + "/p/q", "x", container);
        const auto p = co_await zk.exists(dir + "/p");
        REQUIRE(p);
        // A server shows nobody what is a container, but removes it when it has become empty. (How soon is a setting of
        // the server: a second for our own, a minute by default.)
        co_await zk.remove(dir + "/p/q");
        auto reaped = [&]() -> asio::awaitable<bool> {
            const auto there = co_await zk.exists(dir + "/p");
            co_return !there;
        };
        co_await eventually(reaped, 150s);
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("the root exists: creating it is refused as for any node") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::error_code c = co_await code_of(zk.create("/"));
        CHECK(c == zk_errc::node_exists);
        const std::optional<created> made = co_await zk.create_unless_exists("/");
        CHECK_FALSE(made);
    };
    with_client(body);
}

// The C library ends the process for each of these (c-client facts, number 16).
TEST_CASE("a multi that would crash the C library is refused") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-guards");
        create_options container;
        container.mode(create_mode::container);
        transaction with_container;
        with_container.check(dir).create(dir + "/a", "", container);
        const std::error_code c = co_await code_of(zk.multi(with_container));
        CHECK(c == errc::invalid_argument);

        transaction bad_path;
        bad_path.create(dir + "//a").create(dir + "/b");
        const std::string text = co_await message_of(zk.multi(bad_path));
        CHECK(text.starts_with("multi (step 1) " + dir + "//a: invalid path"));
    };
    with_client(body);
    with_client(options(shared_servers() + "/"), body);
}

TEST_CASE("bad input is refused before it is sent, and named") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        for (const char* path : {"", "a", "/a/", "/a//b", "/a/./b", "/..", "/\x01", "/\xff"}) {
            const std::error_code c = co_await code_of(zk.get(path));
            CHECK(c == errc::invalid_path);
        }
        std::error_code c = co_await code_of(zk.get(std::string("/a\0b", 4)));
        CHECK(c == errc::invalid_path);
        c = co_await code_of(zk.create("/zookeeper/x"));
        CHECK(c == errc::invalid_path);
        c = co_await code_of(zk.create("/test-large", std::string(operations::max_request, 'x')));
        CHECK(c == errc::too_large);
        const std::string text = co_await message_of(zk.create("/test-large", std::string(2'000'000, 'x')));
        CHECK(text.find("create /test-large: request too large (2000") == 0);
        c = co_await code_of(zk.set("/x", "", -2));
        CHECK(c == errc::invalid_argument);
        create_options ttl;
        ttl.mode(create_mode::persistent_ttl);
        c = co_await code_of(zk.create("/x", "", ttl));
        CHECK(c == errc::invalid_argument);

        // The largest that is let through is accepted by the server, on the same session.
        co_await zk.remove_recursive("/test-large");
        co_await zk.create("/test-large", std::string(operations::max_request - 200, 'x'));
        const node_data large = co_await zk.get("/test-large");
        CHECK(large.data.size() == operations::max_request - 200);
        co_await zk.remove("/test-large");
        CHECK_FALSE(s.over());
    };
    with_client(body);
}

TEST_CASE("permissions: digest, world, and what the error says") {
    auto body = [](client owner) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(owner, "acl");
        co_await owner.add_auth("digest", "ann:secret");
        create_options mine;
        mine.acl(creator_all_acl());
        co_await owner.create(dir + "/mine", "x", mine);

        const operations::acl_and_stat read = co_await owner.get_acl(dir + "/mine");
        REQUIRE(read.acl.size() == 1);
        CHECK(read.acl[0].who() == digest_user("ann", "secret"));
        CHECK(read.acl[0].granted() == permission::all);

        const test_client stranger(co_await asio::this_coro::executor, options());
        const std::error_code refused = co_await code_of(stranger.get(dir + "/mine"));
        CHECK(refused == zk_errc::no_auth);
        const std::string text = co_await message_of(stranger.set(dir + "/mine", "y"));
        CHECK(text.starts_with("set " + dir + "/mine: no permission (the ACL does not allow it"));
        co_await stranger.add_auth("digest", "ann:secret");
        const node_data now = co_await stranger.get(dir + "/mine");
        CHECK(now.data == "x");

        acl entries = read_only_acl();
        entries.emplace_back(permission::all, ip_address("127.0.0.1"));
        co_await owner.set_acl(dir + "/mine", entries, 0);
        const std::error_code stale = co_await code_of(owner.set_acl(dir + "/mine", entries, 0));
        CHECK(stale == zk_errc::bad_version);
        acl wrong;
        wrong.emplace_back(permission::all, acl_id("nonsense", "x"));
        const std::error_code invalid = co_await code_of(owner.set_acl(dir + "/mine", wrong));
        CHECK(invalid == zk_errc::invalid_acl);
        const std::error_code empty = co_await code_of(owner.set_acl(dir + "/mine", acl()));
        CHECK(empty == zk_errc::invalid_acl);
        co_await stranger.close();
    };
    with_client(body);
}

TEST_CASE("permissions: who may do what, and who is shown the digests") {
    auto body = [](client owner) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(owner, "acl-who"), n = dir + "/n";
        const test_client other(co_await asio::this_coro::executor, options());
        const std::error_code nobody = co_await create_with(owner, n, creator_all_acl());
        CHECK(nobody == zk_errc::invalid_acl);  // it has not said who it is
        co_await owner.add_auth("digest", "ann:secret");
        const std::error_code hers = co_await create_with(owner, n, creator_all_acl());
        CHECK_FALSE(hers);
        transaction checks;
        checks.check(n);
        const std::error_code read = co_await code_of(other.get(n)), written = co_await code_of(other.set(n, "")),
                              listed = co_await code_of(other.children(n)),
                              created = co_await code_of(other.create(n + "/c")),
                              shown = co_await code_of(other.get_acl(n)),
                              changed = co_await code_of(other.set_acl(n, open_acl())),
                              checked = co_await code_of(other.multi(checks));
        for (const std::error_code& code : {read, written, listed, created, shown, changed, checked})
            CHECK(code == zk_errc::no_auth);
        const auto there = co_await other.exists(n);  // everybody may ask that
        CHECK(there);
        co_await other.sync(n);
        co_await owner.create(n + "/c");
        const std::error_code removed = co_await code_of(other.remove(n + "/c"));  // what counts is the parent
        CHECK(removed == zk_errc::no_auth);

        acl entries = read_only_acl();
        entries.emplace_back(permission::all, digest_user("ann", "secret"));
        co_await owner.set_acl(n, entries);
        const auto without_secrets = co_await other.get_acl(n);
        CHECK(without_secrets.acl[1].who() == acl_id("digest", "ann:x"));
        const auto whole = co_await owner.get_acl(n);
        CHECK(whole.acl == entries);
        CHECK(whole.stat.aversion == 1);
        const std::error_code now = co_await code_of(other.get(n));
        CHECK_FALSE(now);
        co_await owner.remove(n + "/c");

        const std::error_code closed =
            co_await create_with(owner, dir + "/closed", acl(1, acl_entry(permission::none, anyone())));
        CHECK_FALSE(closed);
        const std::error_code get = co_await code_of(owner.get(dir + "/closed")),
                              get_acl = co_await code_of(owner.get_acl(dir + "/closed"));
        CHECK(get == zk_errc::no_auth);
        CHECK(get_acl == zk_errc::no_auth);
        co_await owner.remove(dir + "/closed");
        co_await other.close();
    };
    with_client(body);
}

// As org.apache.zookeeper.server.auth and PrepRequestProcessor.fixupACL().
TEST_CASE("permissions: which ACLs and credentials are valid") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "acl-valid");
        std::vector<std::pair<acl, bool>> cases;
        for (const char* const id : {":b", "a:b", "a:b:", "a:b::"}) cases.emplace_back(only("digest", id), true);
        for (const char* const id : {"a", "a:", ":", "::", "a:b:c"}) cases.emplace_back(only("digest", id), false);
        for (const char* const id : {"010.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "10.000.0.1/08"})
            cases.emplace_back(only("ip", id), true);
        for (const char* const id : {"1.2.3", "1.2.3.4/33", "1.2.3.4/x", "256.0.0.1", "::1", "nonsense"})
            cases.emplace_back(only("ip", id), false);
        for (const char* const scheme : {"world", "auth", "sasl", "super", "x509"})
            cases.emplace_back(only(scheme, "someone"), false);
        for (const auto& [entries, is_valid] : cases) {
            INFO(entries[0].who().scheme() << ":" << entries[0].who().id());
            const std::error_code code = co_await create_with(zk, dir + "/n", entries);
            CHECK(code == (is_valid ? std::error_code() : zk_errc::invalid_acl));
            if (!code) co_await zk.remove(dir + "/n");
        }
        const acl_entry all(permission::all, anyone()), read(permission::read, anyone());
        acl twice(2, read), once(1, read);
        twice.push_back(all);
        twice.push_back(read);
        once.push_back(all);
        const std::error_code doubled = co_await create_with(zk, dir + "/twice", twice);
        CHECK_FALSE(doubled);
        const auto kept = co_await zk.get_acl(dir + "/twice");
        CHECK(kept.acl == once);

        const test_client plain(co_await asio::this_coro::executor, options());
        std::error_code code = co_await code_of(plain.add_auth("ip", "anything"));
        CHECK_FALSE(code);
        code = co_await create_with(plain, dir + "/own", creator_all_acl());
        CHECK(code == zk_errc::invalid_acl);
        code = co_await code_of(plain.add_auth("digest", "nocolon"));
        CHECK_FALSE(code);
        code = co_await create_with(plain, dir + "/own", creator_all_acl());
        CHECK_FALSE(code);
        code = co_await code_of(zk.get(dir + "/own"));
        CHECK(code == zk_errc::no_auth);
        co_await plain.remove(dir + "/own");
        co_await plain.close();
    };
    with_client(body);
}

TEST_CASE("a chroot that does not exist is an error of the operation") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::error_code c = co_await code_of(zk.create("/x"));
        CHECK(c == zk_errc::no_node);
        transaction t;
        t.create("/x").create("/y");
        const std::error_code m = co_await code_of(zk.multi(t));
        CHECK(m == zk_errc::no_node);
    };
    with_client(options(shared_servers() + "/test-no-such-chroot"), body);
}

}  // namespace operations_refused_tests

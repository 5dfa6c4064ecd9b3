// The operations that the C library does not know.

#include "support/test_client.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace multi_read_test {
namespace {

std::vector<std::string> sorted(std::vector<std::string> all) {
    std::sort(all.begin(), all.end());
    return all;
}

asio::awaitable<void> make(client zk, std::string dir, int nodes) {
    for (int i = 0; i < nodes; ++i) co_await zk.create(dir + "/n" + std::to_string(i), "data " + std::to_string(i));
}

}  // namespace
}  // namespace multi_read_test

using namespace multi_read_test;

TEST_CASE("multi_read: each read has its result, and fails alone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi_read");
        co_await make(zk, dir, 3);
        read_list all;
        all.get(dir + "/n1").children(dir).get(dir + "/missing").children(dir + "/missing").get(dir + "/n2").get(dir);
        const std::vector<read_result> found = co_await zk.multi_read(all);
        REQUIRE(found.size() == 6);
        CHECK_FALSE(found[0].code);
        CHECK(found[0].data == "data 1");
        const node_data same = co_await zk.get(dir + "/n1");
        CHECK((found[0].stat == same.stat));
        CHECK_FALSE(found[1].code);
        CHECK(sorted(found[1].names) == std::vector<std::string>{"n0", "n1", "n2"});
        CHECK(found[2].code == zk_errc::no_node);
        CHECK(found[3].code == zk_errc::no_node);
        CHECK(found[4].data == "data 2");
        CHECK(found[5].stat.num_children == 3);
    };
    with_client(body);
}

TEST_CASE("multi_read: of no node, and of many") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi_read-many");
        co_await make(zk, dir, 20);
        std::vector<read_result> found = co_await zk.multi_read(read_list());
        CHECK(found.empty());
        for (int round = 0; round < 20; ++round) {
            read_list all;
            for (int i = 0; i < 200; ++i) all.get(dir + "/n" + std::to_string(i % 20));
            auto several = zk.multi_read(all);
            co_await zk.set(dir + "/n0", std::to_string(round));
            found = co_await std::move(several);
            REQUIRE(found.size() == 200);
            CHECK(found[0].data == std::to_string(round));
            CHECK(found[199].data == "data 19");
        }
    };
    with_client(body);
}

TEST_CASE("multi_read: a node whose ACL keeps this client out") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi_read-acl");
        co_await zk.create(dir + "/closed", "x", create_options().acl(creator_digest_acl("other", "secret")));
        co_await zk.create(dir + "/open", "y");
        read_list all;
        all.get(dir + "/closed").get(dir + "/open");
        const std::vector<read_result> found = co_await zk.multi_read(all);
        REQUIRE(found.size() == 2);
        CHECK(found[0].code == zk_errc::no_auth);
        CHECK(found[0].data.empty());
        CHECK(found[1].data == "y");
    };
    with_client(body);
}

TEST_CASE("multi_read: a wrong path is named, and nothing is sent") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.multi_read(read_list().get("/a").children("b")));
        CHECK(text.starts_with("multi_read (read 2) b: invalid path"));
        const std::string large = co_await message_of(zk.multi_read(read_list().get('/' + std::string(1 << 20, 'x'))));
        CHECK(large.starts_with("multi_read: "));
    };
    with_client(body);
}

TEST_CASE("who_am_i: the identities of the connection") {
    auto body = [](client zk) -> asio::awaitable<void> {
        std::vector<acl_id> who = co_await zk.who_am_i();
        const auto is_there = [&](std::string scheme, std::string id) {
            return std::find(who.begin(), who.end(), acl_id(scheme, id)) != who.end();
        };
        CHECK(is_there("ip", "127.0.0.1"));
        CHECK_FALSE(is_there("digest", "me"));
        co_await zk.add_auth("digest", "me:secret");
        who = co_await zk.who_am_i();
        CHECK(is_there("ip", "127.0.0.1"));
        CHECK(is_there("digest", "me"));
    };
    with_client(body);
}

TEST_CASE("ephemerals: of this session, by the beginning of their paths") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "ephemerals");
        const create_options ephemeral = create_options().mode(create_mode::ephemeral);
        for (const char* name : {"/a", "/ab", "/b"}) co_await zk.create(dir + name, "", ephemeral);
        co_await zk.create(dir + "/c");
        std::vector<std::string> found = co_await zk.ephemerals();
        CHECK(sorted(found) == std::vector<std::string>{dir + "/a", dir + "/ab", dir + "/b"});
        found = co_await zk.ephemerals(dir + "/a");
        CHECK(sorted(found) == std::vector<std::string>{dir + "/a", dir + "/ab"});
        found = co_await zk.ephemerals(dir + "/x");
        CHECK(found.empty());
    };
    with_client(body);
}

TEST_CASE("count_below: at all depths") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "count_below");
        std::size_t n = co_await zk.count_below(dir);
        CHECK(n == 0);
        co_await make(zk, dir, 3);
        co_await make(zk, dir + "/n0", 2);
        co_await zk.create(dir + "x");
        n = co_await zk.count_below(dir);
        CHECK(n == 5);
        n = co_await zk.count_below(dir + "/n0");
        CHECK(n == 2);
        co_await zk.remove(dir + "x");
        const std::string text = co_await message_of(zk.count_below(dir + "/missing"));
        CHECK(text == "count_below " + dir + "/missing: no such node");
    };
    with_client(body);
}

TEST_CASE("multi_read and its neighbours below a chroot") {
    auto prepare = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-read");
        co_await zk.create(dir + "/app");
    };
    with_client(prepare);
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.create("/a", "x");
        co_await zk.create("/e", "", create_options().mode(create_mode::ephemeral));
        read_list all;
        all.get("/a").children("/");
        const std::vector<read_result> found = co_await zk.multi_read(all);
        REQUIRE(found.size() == 2);
        CHECK(found[0].data == "x");
        CHECK(sorted(found[1].names) == std::vector<std::string>{"a", "e"});
        const std::vector<std::string> ephemeral = co_await zk.ephemerals();
        CHECK(ephemeral == std::vector<std::string>{"/e"});
        const std::size_t n = co_await zk.count_below("/");
        CHECK(n == 2);
        co_await zk.remove_recursive("/a");
        co_await zk.remove("/e");
    };
    with_client(options(shared_servers() + "/test-multi-read/app"), body);
}

#include "unit/support/error_of.hpp"

#include <zkasio/detail/connection/server_list.hpp>
#include <zkasio/detail/seam/server_address.hpp>

#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using zkasio::test::error_of;
using zkasio::test::has;
using namespace std::string_literals;

namespace {

using hosts = std::vector<host_port>;

server_list parse(std::string_view text) { return parse_server_list(text, "client options"); }

struct bad {
    std::string text, part, why;
};

}  // namespace

TEST_CASE("server list: hosts and ports", "[server_list]") {
    CHECK(parse("zk1").hosts == hosts{{"zk1", 2181}});
    CHECK(parse("zk1:2182").hosts == hosts{{"zk1", 2182}});
    CHECK(parse("zk1:1,zk2:65535,10.0.0.1").hosts == hosts{{"zk1", 1}, {"zk2", 65535}, {"10.0.0.1", 2181}});
    CHECK(parse("zk-1.example_x.org:02181").hosts == hosts{{"zk-1.example_x.org", 2181}});
    CHECK(parse("b,a,b").hosts == hosts{{"b", 2181}, {"a", 2181}, {"b", 2181}});  // order and repetition are kept
    CHECK(parse("zk1").chroot == "");
}

TEST_CASE("server list: IPv6 stands in brackets", "[server_list]") {
    CHECK(parse("[::1]").hosts == hosts{{"::1", 2181}});
    CHECK(parse("[::1]:2182").hosts == hosts{{"::1", 2182}});
    CHECK(parse("[fe80::1%eth0]:1,zk").hosts == hosts{{"fe80::1%eth0", 1}, {"zk", 2181}});
    CHECK(parse("[2001:db8::1]:2181/app").chroot == "/app");
}

TEST_CASE("server list: chroot", "[server_list]") {
    CHECK(parse("zk1/app").chroot == "/app");
    CHECK(parse("zk1:2181,zk2/app/more").chroot == "/app/more");
    CHECK(parse("zk1:2181,zk2/app/more").hosts == hosts{{"zk1", 2181}, {"zk2", 2181}});
    CHECK(parse("zk1/").chroot == "");  // the root is no chroot
    CHECK(parse("zk1/\xc3\xbc").chroot == "/\xc3\xbc");
    // All that follows the first '/' is the chroot, as in Java.
    CHECK(parse("zk1/a,zk2").hosts == hosts{{"zk1", 2181}});
    CHECK(parse("zk1/a,zk2").chroot == "/a,zk2");
    CHECK(parse("zk1/a;b").chroot == "/a;b");
    CHECK(parse("zk1/a,b/c:d").chroot == "/a,b/c:d");
}

TEST_CASE("server list: what is wrong is named", "[server_list]") {
    const std::vector<bad> cases{
        {"", "\"\"", "host is empty"},
        {",", "\"\"", "host is empty"},
        {"zk1,", "\"\"", "host is empty"},
        {",zk1", "\"\"", "host is empty"},
        {"zk1,,zk2", "\"\"", "host is empty"},
        {":2181", "\":2181\"", "host is empty"},
        {"/app", "\"\"", "host is empty"},
        {"[]:2181", "\"[]:2181\"", "host is empty"},
        {"zk1:", "\"zk1:\"", "from 1 to 65535"},
        {"zk1:0", "\"zk1:0\"", "from 1 to 65535"},
        {"zk1:65536", "\"zk1:65536\"", "from 1 to 65535"},
        {"zk1:99999999999999999999", "\"zk1:99999999999999999999\"", "from 1 to 65535"},
        {"zk1:-1", "\"zk1:-1\"", "from 1 to 65535"},
        {"zk1:+1", "\"zk1:+1\"", "from 1 to 65535"},
        {"zk1:21x", "\"zk1:21x\"", "from 1 to 65535"},
        {"zk1: 2181", "\"zk1: 2181\"", "no spaces"},
        {"zk0:2181,zk1:http", "\"zk1:http\"", "from 1 to 65535"},
        {"::1", "\"::1\"", "brackets"},
        {"::1:2181", "\"::1:2181\"", "brackets"},
        {"zk1:2181:2182", "\"zk1:2181:2182\"", "one port, that for clients"},
        {"zk0,zk1:2888:3888", "\"zk1:2888:3888\"", "one port, that for clients"},
        {"fe80:1:2:3", "\"fe80:1:2:3\"", "brackets"},
        {"zookeeper://zk1:2181?backup=zk2:2181", "?backup=zk2:2181\"", "all servers stand in one list"},
        {"zk1:2181?backup=zk2:2181,zk3:2181", "?backup=", "all servers stand in one list"},
        {"[::1", "\"[::1\"", "missing ']'"},
        {"[::1]2181", "\"[::1]2181\"", "':port' expected"},
        {"[[::1]]:2181", "\"[[::1]]:2181\"", "':port' expected"},
        {"[[::1]:2181", "\"[[::1]:2181\"", "character not allowed"},
        {"zk1]:2181", "\"zk1]:2181\"", "character not allowed"},
        {"zk[1:2181", "\"zk[1:2181\"", "character not allowed"},
        {"[::1]:", "\"[::1]:\"", "from 1 to 65535"},
        {"[::1]:0", "\"[::1]:0\"", "from 1 to 65535"},
        {" zk1", "\" zk1\"", "character not allowed"},
        {"zk1, zk2", "\" zk2\"", "character not allowed"},
        {"zk1\n", "zk1", "character not allowed"},
        {"user@zk1", "\"user@zk1\"", "character not allowed"},
        {"zk1\0:2181"s, "zk1", "character not allowed"},
        {"zk1\\zk2", "\"zk1\\zk2\"", "character not allowed"},
        {"http://zk1:2181,zk2", "\"http://zk1:2181\"", "no \"http://\" belongs here: a server is host:port"},
        {"zk://zk1:2181/app", "\"zk://zk1:2181/app\"", "no \"zk://\" belongs here"},
        {"zk1:1;zk2:2", "\"zk1:1;zk2:2\"", "separated by ',', not by ';'"},
        {"zk1;zk2/app", "\"zk1;zk2/app\"", "separated by ',', not by ';'"},
        {"zk1:1 zk2:2", "\"zk1:1 zk2:2\"", "no spaces"},
        {"zk1:1/app,zk2:2/app", "\"zk1:1/app,zk2:2/app\"", "behind the last server"},
        {"zk1/app,zk2:2", "\"zk1/app,zk2:2\"", "behind the last server"},
    };
    for (const bad& c : cases) {
        INFO(c.text);
        const auto e = error_of([&] { parse(c.text); });
        REQUIRE(e);
        CHECK(e->code() == errc::invalid_argument);
        CHECK(e->operation() == "client options");
        INFO(e->what());
        CHECK(has(e->what(), c.part));
        CHECK(has(e->what(), c.why));
    }
}

TEST_CASE("server list: a chroot follows the rules for paths", "[server_list]") {
    for (const std::string& text :
         {"zk1/app/"s, "zk1//app"s, "zk1/a/../b"s, "zk1/."s, "zk1/a\x01"s, "zk1/a\0b"s, "zk1/\xff"s}) {
        INFO(text);
        const auto e = error_of([&] { parse_server_list(text, "set_servers"); });
        REQUIRE(e);
        CHECK(e->code() == errc::invalid_argument);
        CHECK(e->operation() == "set_servers");
        CHECK(e->path() == text.substr(3));
        CHECK(has(e->what(), "chroot"));
    }
}

TEST_CASE("server address: where it is, and what it is called", "[server_list]") {
    const server_address v4{"10.0.0.1", "10.0.0.1", 2181}, v6{"::1", "::1", 65535},
        named{"zk1.example", "10.0.0.1", 2182};
    CHECK(endpoint_of(v4) == "10.0.0.1:2181");
    CHECK(endpoint_of(v6) == "[::1]:65535");
    CHECK(endpoint_of(named) == "10.0.0.1:2182");
    CHECK(to_string(v4) == "10.0.0.1:2181");
    CHECK(to_string(v6) == "[::1]:65535");
    CHECK(to_string(named) == "10.0.0.1:2182 (zk1.example)");
}

TEST_CASE("server list: a chroot is not below /zookeeper", "[server_list]") {
    for (const std::string& text : {"zk1/zookeeper"s, "zk1/zookeeper/quota/app"s}) {
        INFO(text);
        const auto e = error_of([&] { parse_server_list(text, "client"); });
        REQUIRE(e);
        CHECK(e->code() == errc::invalid_argument);
        CHECK(has(e->what(), "/zookeeper belongs to the server"));
    }
    CHECK(parse("zk1/zookeepers").chroot == "/zookeepers");
    CHECK(parse("zk1/app/zookeeper").chroot == "/app/zookeeper");
}

TEST_CASE("server list: of an ensemble's configuration", "[server_list]") {
    CHECK(servers_of_config("").empty());
    CHECK(servers_of_config("server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=zk2:2888:3888:observer;2182\n"
                            "server.3=zk3:2888:3888;10.0.0.3:2183\nversion=100000000") ==
          "zk1:2181,zk2:2182,10.0.0.3:2183");
    CHECK(servers_of_config("server.1=[fe80::1]:2888:3888:participant;[0:0:0:0:0:0:0:0]:2181\r\n"
                            "server.2=zk2:2888:3888:participant;[2001:db8::2]:2181\r\nversion=0\r\n") ==
          "[fe80::1]:2181,[2001:db8::2]:2181");
    // Of several addresses for servers, each may be the one that the client reaches.
    CHECK(servers_of_config("server.1=a:2888:3888|[::2]:2889:3889|b:2890:3890:participant;[::]:2181") ==
          "a:2181,[::2]:2181,b:2181");
    CHECK(servers_of_config("server.1=a:1:2|b:1:2:participant;c:2181\nserver.2=c:1:2:participant;c:2181") == "c:2181");
    // One that is known by its own address only, one without a port, and no server at all.
    CHECK(servers_of_config("server.1=zk1:2888:3888:participant\nserver.2=zk2:2888:3888:participant;zk2:2181") ==
          "zk2:2181");
    for (const std::string& text :
         {"server.1=zk1:2888:3888:participant"s, "server.1=zk1:2888:3888;"s, "server.1=zk1:2888:3888;zk1"s,
          "server.1=zk1:2888:3888;zk1:"s, "server.1=zk1:2:3;zk1:0"s, "server.1=zk1:2:3;zk1:70000"s,
          "server.1=;2181"s, "server.1=:2888:3888;2181"s, "server.1=[::1;2181"s, "server.1=a;[::1"s,
          "server.1=a;[:2181"s,
          "server.1;a=b:2181"s, "server.1=a b:1:2;2181"s, "server.1=a:1:2;2181/app"s, "group.1=1:2:3;a:2181"s,
          "version=100000000"s, "server.1=|;2181"s, "server.1=a:1:2;2181/"s, "server.1=a,b:1:2;2181"s,
          "server.1="s + std::string(1000, 'a') + ":1:2;2181", "server.1=a:1:2;2181,c:1"s,
          "server.1=a\0b:1:2;2181"s, "\n\n"s, ";"s, "="s}) {
        INFO(text);
        CHECK(servers_of_config(text).empty());
    }
}

TEST_CASE("server list: whatever the configuration is, what comes of it is a list", "[server_list]") {
    std::minstd_rand random(7);
    const std::string_view parts[] = {"server.", "1", "=", "zk1", ":", "2888", "|", ";",
                                      "[",       "]", "::", "\n", ",", "/", "\nserver.2="};
    for (int i = 0; i < 20000; ++i) {
        std::string text = i % 2 ? "server.1=a:1:2;2181" : "";
        for (auto n = random() % 20; n > 0; --n) text += parts[random() % std::size(parts)];
        INFO(text);
        const std::string servers = servers_of_config(text);
        if (!servers.empty()) CHECK_NOTHROW(parse(servers));
        CHECK(servers.find('/') == servers.npos);
    }
    std::string many;
    for (int i = 0; i < 1000; ++i) many += "server." + std::to_string(i) + "=a:1:2;" + std::to_string(i + 1) + '\n';
    CHECK(parse(servers_of_config(many)).hosts.size() == 255);
}

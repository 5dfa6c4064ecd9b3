// Instances in the formats of other programs, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/texts.hpp"

#include <zkasio/discovery/instance_format.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using testing::fake_ensemble;

namespace {

service_instance read(const instance_format& format, std::string_view data, std::string_view name = "n") {
    return format.read({"orders", name, data});
}
std::string refusal_of(const instance_format& format, std::string_view data, std::string_view name = "n") {
    try {
        return "read: " + read(format, data, name).address();
    } catch (const error& e) {
        CHECK(e.code() == errc::invalid_argument);
        return e.hint();
    }
}

service_instance orders() {
    service_instance is("orders");
    return is.id("a").address("10.0.0.1").port(8080).registered({});
}

// An URL in the name of the node, as Dubbo has it, without what the example does not need.
service_instance read_name(const instance_format::node& of) {
    if (!of.name.starts_with("dubbo%3A%2F%2F")) throw std::runtime_error("no URL of Dubbo");
    return instance_format::host_and_port().read({of.service, of.name.substr(14), ""}).id(std::string(of.name));
}

}  // namespace

TEST_CASE("instance_format: host and port, in the data or in the name", "[testing]") {
    const instance_format format = instance_format::host_and_port();
    const service_instance is = read(format, "10.0.0.1:8080");
    CHECK(is.name() == "orders");
    CHECK(is.id() == "n");
    CHECK(is.address() == "10.0.0.1");
    CHECK(is.port() == 8080);
    CHECK(is == read(format, "10.0.0.1:8080\n"));
    CHECK(read(format, "", "db.example.com:5432").address() == "db.example.com");
    CHECK(read(format, "[2001:db8::1]:80").address() == "2001:db8::1");
    for (const char* bad : {"10.0.0.1", "10.0.0.1:", ":80", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0.1:80x", ":",
                            "2001:db8::1:80", "[]:80", "a:b:80", "\n"})
        CHECK(refusal_of(format, bad) == "this is no \"<address>:<port>\"");

    CHECK(format.write(orders()) == "10.0.0.1:8080");
    CHECK(format.write(orders().address("::1")) == "[::1]:8080");
    CHECK(read(format, format.write(orders().address("::1"))).address() == "::1");
    CHECK_THROWS_AS(format.write(orders().port({})), error);
    CHECK_THROWS_AS(format.write(orders().address("")), error);
}

TEST_CASE("instance_format: members of a ServerSet", "[testing]") {
    const instance_format format = instance_format::server_sets();
    const std::string text = R"({"serviceEndpoint":{"host":"10.0.0.1","port":31001},)"
                             R"("additionalEndpoints":{"http":{"host":"10.0.0.1","port":31002}},)"
                             R"("status":"ALIVE","shard":7})";
    const service_instance is = read(format, text, "member_0000000001");
    CHECK(is.id() == "member_0000000001");
    CHECK(is.address() == "10.0.0.1");
    CHECK(is.port() == 31001);
    CHECK(is.enabled());
    CHECK(is.payload_number("shard") == 7);
    CHECK(is == read(format, text, "member_0000000001"));
    CHECK_FALSE(read(format, R"({"serviceEndpoint":{"host":"a","port":1},"status":"STARTING"})").enabled());
    CHECK(read(format, R"({"serviceEndpoint":{"host":"a","port":1}})").enabled());

    // Written again, what is not the instance's stays.
    const service_instance again = read(format, format.write(service_instance(is).port(31009).enabled(false)));
    CHECK(again.port() == 31009);
    CHECK_FALSE(again.enabled());
    CHECK(again.payload_number("shard") == 7);
    CHECK(again.payload().find("31002") != std::string::npos);
    CHECK(format.write(orders()) ==
          R"({"additionalEndpoints":{},"serviceEndpoint":{"host":"10.0.0.1","port":8080},"status":"ALIVE"})");
    CHECK_THROWS_AS(format.write(orders().payload("[1]")), error);
    CHECK_THROWS_AS(format.write(orders().payload("no JSON")), error);
    CHECK_THROWS_AS(format.write(orders().address("\xff")), error);
    CHECK_THROWS_AS(format.write(orders().port({})), error);

    CHECK(refusal_of(format, "no JSON") == "the data are not JSON");
    CHECK(refusal_of(format, "") == "the data are not JSON");
    CHECK(refusal_of(format, std::string(101, '[')) == "the data are not JSON");
    CHECK(refusal_of(format, "[]") == "the data are no JSON object");
    CHECK(refusal_of(format, "{}") == "there is no \"serviceEndpoint\"");
    CHECK(refusal_of(format, R"({"serviceEndpoint":[]})") == "there is no \"serviceEndpoint\"");
    CHECK(refusal_of(format, R"({"serviceEndpoint":{"port":1}})") == "there is no \"host\"");
    for (const char* port : {"-1", "65536", "1.5", "\"80\"", "null", "18446744073709551617"})
        CHECK(refusal_of(format, R"({"serviceEndpoint":{"host":"a","port":)" + std::string(port) + "}}") ==
              "there is no \"port\" from 0 to 65535");
}

TEST_CASE("instance_format: of a registry, and of its providers", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    const registry at(zk, "/base", registry_options().format(instance_format::host_and_port()));
    provider p(at, "orders");
    const announcement made = ensemble.run(at.announce(orders()));
    CHECK(ensemble.data("/base/orders/a") == "10.0.0.1:8080");
    ensemble.run_for(std::chrono::seconds(1));
    CHECK(p.try_pick()->port() == 8080);
    CHECK(p.try_pick()->name() == "orders");

    ensemble.run(made.update(orders().port(8081)));
    CHECK(ensemble.data("/base/orders/a") == "10.0.0.1:8081");
    ensemble.create("/base/orders/nonsense");
    ensemble.run_for(std::chrono::seconds(1));
    CHECK(p.try_pick()->port() == 8081);
    REQUIRE(p.view().unreadable().size() == 1);
    CHECK(p.view().unreadable().front().why.find("<address>:<port>") != std::string::npos);

    const service_view seen = ensemble.run(at.instances("orders"));
    CHECK(seen.instances().size() == 1);
    CHECK(seen.unreadable().size() == 1);
    CHECK(ensemble.run(at.instance("orders", "a")).value().port() == 8081);
    CHECK(failure_of([&] { ensemble.run(at.instance("orders", "nonsense")); }) ==
          "instance /base/orders/nonsense: invalid argument (this is no \"<address>:<port>\")");
    CHECK(failure_of([&] { ensemble.run(made.update(orders().port({}))); }) ==
          "update /base/orders/a: invalid argument (an instance needs an address and a port in this format)");
}

TEST_CASE("instance_format: members of a ServerSet are announced through a registry", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    const registry at(zk, "/aurora/www", registry_options().format(instance_format::server_sets()));
    // A name of one's own, which is the name of the node.
    announcement one = ensemble.run(at.announce(orders().id("member_0000000007")));
    CHECK(ensemble.children("/aurora/www/orders") == texts{"member_0000000007"});
    CHECK(ensemble.data("/aurora/www/orders/member_0000000007") ==
          R"({"additionalEndpoints":{},"serviceEndpoint":{"host":"10.0.0.1","port":8080},"status":"ALIVE"})");
    CHECK(ensemble.owns(zk, "/aurora/www/orders/member_0000000007"));
    // A numbered one has an id in front.
    service_instance numbered = orders();
    numbered.id("member_").type(service_type::dynamic_sequential).port(8081);
    const announcement two = ensemble.run(at.announce(numbered));
    const std::vector<std::string> names = ensemble.children("/aurora/www/orders");
    REQUIRE(names.size() == 2);
    CHECK(names[0].starts_with("_c_"));
    CHECK(names[0].ends_with("-member_0000000001"));
    CHECK(ensemble.run(at.instances("orders")).instances().size() == 2);
    ensemble.run(one.withdraw());
    const service_view left = ensemble.run(at.instances("orders"));
    REQUIRE(left.instances().size() == 1);
    CHECK(left.instances()[0].port() == 8081);
}

TEST_CASE("instance_format: a reader alone, of names", "[testing]") {
    CHECK_THROWS_AS(instance_format(nullptr), error);
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    const registry at(zk, "/dubbo/com.example.Orders", registry_options().format(instance_format(read_name)));
    const std::string node = "dubbo%3A%2F%2F10.0.0.1:20880";
    ensemble.create("/dubbo/com.example.Orders/providers/" + node);
    ensemble.create("/dubbo/com.example.Orders/providers/other");
    const provider p(at, "providers");
    ensemble.run_for(std::chrono::seconds(1));
    REQUIRE(p.view().instances().size() == 1);
    CHECK(p.try_pick()->address() == "10.0.0.1");
    CHECK(p.view().unreadable().front().why == "no URL of Dubbo");
    CHECK(failure_of([&] { ensemble.run(at.announce(service_instance("providers").address("a").port(1))); }) ==
          "announce /dubbo/com.example.Orders: invalid argument (this format has no writer: instances can only be "
          "looked up)");
}

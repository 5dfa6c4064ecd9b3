// Instances under the id of one that has died, one instance alone, and addresses, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/discovery/registry.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

using namespace zkasio;
using namespace zkasio::test;
using testing::fake_ensemble;

namespace {

service_instance orders(std::string address) {
    service_instance is("orders");
    is.id("a").address(std::move(address)).port(80);
    return is;
}

asio::awaitable<void> announce(registry at, service_instance is, predecessor before,
                               std::optional<announcement>& to) {
    announcement done = co_await at.announce(std::move(is), before);
    to.emplace(std::move(done));
}

}  // namespace

TEST_CASE("registry: the node of a dead predecessor is replaced where that is asked for", "[testing]") {
    fake_ensemble ensemble;
    const client dead = ensemble.client(sessions_of_ten_seconds()), zk = ensemble.client(sessions_of_ten_seconds());
    std::optional<announcement> former, ours;
    ensemble.run(announce(registry(dead, "/base"), orders("10.0.0.1"), predecessor::may_live, former));
    ensemble.silence(dead);  // its session lives on for a while
    const registry at(zk, "/base");
    ensemble.run(zk.connected());
    const auto began = ensemble.now();
    bool written = false;
    SECTION("replaced") {
        ensemble.run(announce(at, orders("10.0.0.2"), predecessor::is_dead, ours));
        CHECK(ensemble.now() - began < 1s);
    }
    SECTION("waited for") {
        ensemble.run(announce(at, orders("10.0.0.2"), predecessor::may_live, ours));
        CHECK(ensemble.now() - began > 5s);
    }
    SECTION("written to between the look and the removal") {
        ensemble.on_step([&](std::string_view what) {
            if (what.find("exists /base/orders/a") == what.npos || std::exchange(written, true)) return;
            asio::post(ensemble.context(), [&] { ensemble.set("/base/orders/a", "the last words"); });
        });
        ensemble.run(announce(at, orders("10.0.0.2"), predecessor::is_dead, ours));
        CHECK(written);
        CHECK(ensemble.now() - began < 5s);
    }
    SECTION("written to, and read from a server that lags") {
        ensemble.lag();
        ensemble.set("/base/orders/a", "the last words");
        ensemble.run(announce(at, orders("10.0.0.2"), predecessor::is_dead, ours));
        CHECK(ensemble.now() - began < 5s);
        ensemble.lag(false);
    }
    SECTION("in the next session, when this one ends between the look and the removal") {
        ensemble.on_step([&](std::string_view what) {
            if (what.find("exists /base/orders/a") == what.npos || std::exchange(written, true)) return;
            asio::post(ensemble.context(), [&] { ensemble.expire(zk); });
        });
        ensemble.run(announce(at, orders("10.0.0.2"), predecessor::is_dead, ours));
        CHECK(written);
        CHECK(ensemble.now() - began < 5s);
    }
    SECTION("with an answer that is lost") {
        ensemble.lose_answer(zk, "remove");
        ensemble.run(announce(at, orders("10.0.0.2"), predecessor::is_dead, ours));
        CHECK(ensemble.now() - began < 9s);
    }
    CHECK(ensemble.run(at.instance("orders", "a"))->address() == "10.0.0.2");
    CHECK(ensemble.owns(zk, "/base/orders/a"));
}

TEST_CASE("registry: a predecessor that lives after all keeps its node", "[testing]") {
    fake_ensemble ensemble;
    const client lives = ensemble.client(sessions_of_ten_seconds()), zk = ensemble.client(sessions_of_ten_seconds());
    std::optional<announcement> former, ours;
    ensemble.run(announce(registry(lives, "/base"), orders("10.0.0.1"), predecessor::may_live, former));
    running announcing(ensemble.get_executor(),
                       announce(registry(zk, "/base"), orders("10.0.0.2"), predecessor::is_dead, ours));
    ensemble.run_for(60s);
    // One of both has it, and neither takes it from the other again and again.
    const auto before = ensemble.stat("/base/orders/a")->czxid;
    ensemble.run_for(60s);
    CHECK(ensemble.stat("/base/orders/a")->czxid == before);
    former.reset();
    CHECK_FALSE(ensemble.run(announcing.code()));
    ensemble.run_for(1s);
    CHECK(ensemble.owns(zk, "/base/orders/a"));
}

TEST_CASE("registry: a node of our own session, and one that is not ephemeral, are not removed", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const registry at(zk, "/base");
    ensemble.create("/base/orders/a", orders("10.0.0.9").to_json());
    const auto created = ensemble.stat("/base/orders/a")->czxid;
    std::optional<announcement> ours;
    ensemble.run(announce(at, orders("10.0.0.2").type(service_type::fixed), predecessor::is_dead, ours));
    CHECK(ensemble.stat("/base/orders/a")->czxid == created);  // taken over
    CHECK(ensemble.run(at.instance("orders", "a"))->address() == "10.0.0.2");
}

TEST_CASE("registry: one instance", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const registry at(zk, "/base");
    CHECK_FALSE(ensemble.run(at.instance("orders", "a")));
    ensemble.create("/base/orders/a", orders("10.0.0.1").to_json());
    ensemble.create("/base/orders/b", "no instance");
    const std::optional<service_instance> found = ensemble.run(at.instance("orders", "a"));
    REQUIRE(found);
    CHECK(found->address() == "10.0.0.1");
    CHECK(found->port() == 80);
    CHECK(ensemble.run(code_of(at.instance("orders", "b"))) == errc::invalid_argument);
    CHECK(ensemble.run(code_of(at.instance("orders", "a/b"))) == errc::invalid_path);
    ensemble.refuse("/base/orders/a", zk_errc::no_auth);
    CHECK(ensemble.run(code_of(at.instance("orders", "a"))) == zk_errc::no_auth);
}

TEST_CASE("uri_of: as Curator's UriSpec") {
    service_instance is = orders("10.0.0.1");
    CHECK(uri_of(is).empty());
    const std::string spec = uri_spec_of("{scheme}://{address}:{ port }/{path}");
    CHECK(spec ==
          R"({"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},)"
          R"({"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true},)"
          R"({"value":"/","variable":false},{"value":"path","variable":true}]})");
    is.uri_spec(spec);
    CHECK(uri_of(is) == "http://10.0.0.1:80/");
    CHECK(uri_of(is, {{"path", "v1"}, {"port", "8080"}}) == "http://10.0.0.1:8080/v1");
    is.ssl_port(443);
    CHECK(uri_of(is) == "https://10.0.0.1:80/");
    is.uri_spec(uri_spec_of("{name} {id} {ssl-port} {service-type} {[}{registration-time-utc}{]}"));
    is.registered(std::chrono::sys_time<std::chrono::milliseconds>(7ms));
    CHECK(uri_of(is) == "orders a 443 dynamic {7}");
    CHECK(uri_of(service_instance::from_json(is.to_json())) == uri_of(is));
    for (const char* const wrong : {"}", "{", "a{b", "{a{b}}", "a}b", "\xff"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(uri_spec_of(wrong), error);
    }
    for (const char* const wrong :
         {"7", "{}", R"({"parts":7})", R"({"parts":[7]})", R"({"parts":[{"value":"a"}]})", "{"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(uri_of(is.uri_spec(wrong)), error);
    }
    CHECK(uri_of(is.uri_spec(uri_spec_of(""))).empty());
}

TEST_CASE("registry: the nodes of an instance have the client's ACL", "[discovery]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(client_options("zk1").auth("digest", "ann:secret").default_acl(creator_all_acl()));
    const announcement announced = ensemble.run(registry(zk, "/services").announce(orders("10.0.0.1")));
    for (const std::string& path : {std::string("/services"), std::string("/services/orders"), announced.path()})
        CHECK(ensemble.run(zk.get_acl(path)).acl == acl_of(acl_entry(permission::all, digest_user("ann", "secret"))));
}

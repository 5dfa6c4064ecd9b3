#include "support/catch.hpp"

#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/error.hpp>

#include <cstddef>
#include <optional>
#include <random>
#include <set>
#include <string>

using namespace zkasio;

namespace {

// What Curator 5.4's JsonInstanceSerializer has written, literally.
const std::string by_curator =
    R"({"name":"orders","id":"0a1","address":"10.0.0.1","port":8080,"sslPort":8443,)"
    R"("payload":{"@class":"java.util.HashMap","weight":5,"l":[1,2.5,10000000000]},)"
    R"("registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC",)"
    R"("uriSpec":{"parts":[{"value":"scheme","variable":true},)"
    R"({"value":"://","variable":false},{"value":"address","variable":true}]}})";
const std::string by_curator_without =
    R"({"name":"orders","id":"0a1","address":null,"port":null,"sslPort":null,"payload":null,)"
    R"("registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC_SEQUENTIAL","uriSpec":null})";
const std::string text_by_curator =
    R"({"name":"orders","id":"0a1","address":"10.0.0.1","port":8080,"sslPort":8443,"payload":"wä\"x/\u0001",)"
    R"("registrationTimeUTC":1700000000000,"serviceType":"STATIC","uriSpec":null})";

std::chrono::sys_time<std::chrono::milliseconds> utc_ms(std::int64_t ms) {
    return std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(ms));
}

std::string refusal_of(const std::string& text) {
    try {
        service_instance::from_json(text);
    } catch (const error& e) {
        CHECK(e.code() == errc::invalid_argument);
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("service_instance: what Curator has written is read") {
    const service_instance is = service_instance::from_json(by_curator);
    CHECK(is.name() == "orders");
    CHECK(is.id() == "0a1");
    CHECK(is.address() == "10.0.0.1");
    CHECK(is.port() == 8080);
    CHECK(is.ssl_port() == 8443);
    CHECK(is.payload_number("weight") == 5);
    CHECK_FALSE(is.payload_number("l"));
    CHECK_FALSE(is.payload_number("none"));
    CHECK_FALSE(service_instance("orders").payload("no JSON").payload_number("weight"));
    CHECK(is.registered() == utc_ms(1700000000000));
    CHECK(is.type() == service_type::dynamic);
    CHECK(is.enabled());

    const service_instance without = service_instance::from_json(by_curator_without);
    CHECK(without.address().empty());
    CHECK_FALSE(without.port());
    CHECK_FALSE(without.payload_number("weight"));
    CHECK(without.type() == service_type::dynamic_sequential);
    CHECK(without.to_json() == by_curator_without);
    CHECK(service_instance::from_json(text_by_curator).to_json() == text_by_curator);
}

TEST_CASE("service_instance: is written as Curator does it, literally") {
    service_instance is("orders");
    is.id("0a1").address("10.0.0.1").port(8080).ssl_port(8443).registered(utc_ms(1700000000000));
    is.payload(R"({"@class":"java.util.HashMap","weight":5,"l":[1,2.5,10000000000]})");
    is.uri_spec(R"({"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},)"
                R"({"value":"address","variable":true}]})");
    CHECK(is.to_json() == by_curator);
    CHECK(service_instance::from_json(by_curator).uri_spec() == is.uri_spec());

    is.enabled(false);
    const std::string disabled = is.to_json();
    CHECK(disabled.find(R"(,"enabled":false})") != std::string::npos);
    CHECK_FALSE(service_instance::from_json(disabled).enabled());
    CHECK(service_instance::from_json(disabled).to_json().size() == disabled.size());
}

TEST_CASE("service_instance: a payload is passed on as it was read, digit by digit") {
    const std::string payload =
        R"({"z":1,"a":12345678901234567890123,"b":1.10,"e":1E5,"k":1,"k":2,"s":"\u0041\"}]\\"})";
    const std::string uri = R"([ {"z":1.50} , "a,b:c" ])";
    const std::string text = "\xef\xbb\xbf {\"name\":\"x\",\"id\":\"y\",\"uriSpec\" : " + uri +
                             " ,\t\"x\":{\"payload\":1},\"payload\":3, " + R"("p\u0061yload": )" + payload + " \n}";
    const service_instance is = service_instance::from_json(text);
    CHECK(is.payload() == payload);
    CHECK(is.uri_spec() == uri);
    const service_instance again = service_instance::from_json(is.to_json());
    CHECK(again == is);
    for (const char* value : {"0", "\"\"", "[]", "{}", "true", "null", "-1e-7", "\"\\\\\""}) {
        INFO(value);
        const std::string last = std::string("{\"name\":\"x\",\"id\":\"y\",\"payload\":") + value + "}";
        CHECK(service_instance::from_json(last).payload() == value);
        const std::string first = std::string("{\"payload\":") + value + ",\"id\":\"y\",\"name\":\"x\"}";
        CHECK(service_instance::from_json(first).payload() == value);
    }
}

TEST_CASE("service_instance: fields that are missing or null or unknown") {
    const service_instance least = service_instance::from_json(R"({"name":"orders","id":"a"})");
    CHECK(least.address().empty());
    CHECK(least.registered() == utc_ms(0));
    CHECK(least.enabled());
    const service_instance nulls = service_instance::from_json(
        R"({"id":"a","name":"orders","port":null,"serviceType":null,"enabled":null,"registrationTimeUTC":null,)"
        R"("address":null,"x":{"y":[1]}})");
    CHECK(nulls == least);
    CHECK(service_instance::from_json(nulls.to_json()) == least);
}

TEST_CASE("service_instance: JSON without a name or an id is no instance") {
    for (const char* text : {"{}", R"({"port":80})", R"({"host":"10.0.0.1","port":80})", R"({"name":"orders"})",
                             R"({"id":"a","address":"10.0.0.1"})", R"({"name":null,"id":"a"})",
                             R"({"name":"","id":"a"})", R"({"name":"orders","id":""})"}) {
        INFO(text);
        CHECK(refusal_of(text).find("no name") != std::string::npos);
    }
}

TEST_CASE("service_instance: what is no instance is refused") {
    for (const std::string text : {"", "x", "[]", "7", "\"x\"", "null", "{", R"({"name":"orders","id":"a"} y)",
                                   R"({"name":7})", R"({"id":[]})"}) {
        INFO(text);
        CHECK_FALSE(refusal_of(text).empty());
    }
    for (const std::string field : {
             R"("port":99999)", R"("port":65536)", R"("port":-1)", R"("port":1.5)", R"("port":"80")",
             R"("sslPort":18446744073709551615)", R"("sslPort":1e5)", R"("registrationTimeUTC":"x")",
             R"("registrationTimeUTC":18446744073709551615)", R"("serviceType":"OTHER")", R"("serviceType":1)",
             R"("enabled":1)", R"("payload":1e999)", "\"address\":\"\xff\"", "\"address\":\"\xc3\""}) {
        INFO(field);
        const std::string why = refusal_of(R"({"name":"orders","id":"a",)" + field + '}');
        CHECK_FALSE(why.empty());
        CHECK(why.find("no name") == std::string::npos);
    }
}

TEST_CASE("service_instance: hostile texts do not end the process") {
    const std::string deep(100'000, '[');
    CHECK(refusal_of(deep).find("more than 100 levels") != std::string::npos);
    CHECK_FALSE(refusal_of("{\"payload\":" + deep + std::string(100'000, ']') + "}").empty());
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
    CHECK_FALSE(refusal_of(objects).empty());
    CHECK(refusal_of("{\"x\":\"" + std::string(1'000'000, 'y')).size() < 400);

    // As deep as is read can be written, and read again.
    const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
    service_instance is("orders");
    CHECK(service_instance::from_json(is.payload(nested(99)).to_json()).payload() == nested(99));
    CHECK_THROWS_AS(is.payload(nested(102)).to_json(), error);

    std::string many = "{\"name\":\"x\",\"id\":\"y\",\"payload\":{";  // 1 MiB of keys
    for (int i = 0; many.size() < 1'000'000; ++i) many += '"' + std::to_string(i) + "\":" + std::to_string(i) + ',';
    const service_instance large = service_instance::from_json(many + "\"last\":1}}");
    CHECK(large.payload_number("777") == 777);
}

TEST_CASE("service_instance: random damage is read or refused") {
    std::mt19937 random(3);
    for (int i = 0; i < 20'000; ++i) {
        std::string text = by_curator;
        for (auto n = 1 + random() % 3; n > 0; --n) {
            const std::size_t where = random() % text.size();
            if (random() % 2) text[where] = static_cast<char>(random());
            else text.erase(where, random() % 20);
        }
        std::optional<service_instance> is;
        try {
            is = service_instance::from_json(text);
        } catch (const error&) {
            continue;
        }
        CHECK(service_instance::from_json(is->to_json()) == *is);
    }
}

TEST_CASE("service_instance: what cannot be written is refused") {
    service_instance is("orders");
    CHECK_NOTHROW(is.to_json());
    CHECK_THROWS_AS(service_instance(is).payload("").to_json(), error);
    CHECK_THROWS_AS(service_instance(is).payload("{").to_json(), error);
    CHECK_THROWS_AS(service_instance(is).payload("1,\"enabled\":false").to_json(), error);
    CHECK_THROWS_AS(service_instance(is).uri_spec("x").to_json(), error);
    CHECK_THROWS_AS(service_instance(is).address("\xff").to_json(), error);
}

TEST_CASE("service_instance: ids are random UUIDs") {
    std::set<std::string> ids;
    for (int i = 0; i < 1000; ++i) ids.insert(service_instance("orders").id());
    CHECK(ids.size() == 1000);
    for (const std::string& id : ids) {
        REQUIRE(id.size() == 36);
        CHECK(id[14] == '4');
    }
}

// DIGEST-MD5 without a server: what is understood of a challenge, and what is answered.

#include "support/catch.hpp"
#include "support/texts.hpp"

#include <zkasio/error.hpp>
#include <zkasio/sasl/detail/digest_challenge.hpp>
#include <zkasio/sasl/detail/digest_response.hpp>
#include <zkasio/sasl/digest_md5.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

const std::string zookeepers = R"(realm="zk-sasl-md5",nonce="c0ffee",charset=utf-8,algorithm=md5-sess)";

std::string why_not(const std::string& challenge) {
    try {
        parse_digest_challenge(challenge);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

sasl_step step_of(sasl_conversation& c, std::string challenge) {
    asio::io_context io;
    sasl_step made;
    std::exception_ptr failed;
    asio::co_spawn(io, c.step(std::move(challenge)), [&](std::exception_ptr e, sasl_step s) {
        failed = e;
        made = std::move(s);
    });
    io.run();
    if (failed) std::rethrow_exception(failed);
    return made;
}

std::string response_in(const std::string& token) { return token.substr(token.find("response=") + 9, 32); }

}  // namespace

TEST_CASE("digest-md5: a challenge is understood however it is spaced and quoted") {
    const std::vector<std::string> texts{
        zookeepers, " realm = \"zk-sasl-md5\" ,\t nonce=c0ffee,, charset=utf-8 , ALGORITHM=md5-sess ,",
        R"(nonce="c\0ff\ee",realm="zk-sasl-md5",realm="second",charset=utf-8,algorithm="md5-sess",qop="auth-int, auth")",
        R"(stale=true,cipher="des,3des",maxbuf=65536,qop=auth,)" + zookeepers};
    for (const std::string& text : texts) {
        CAPTURE(text);
        const digest_challenge c = parse_digest_challenge(text);
        CHECK(c.nonce == "c0ffee");
        CHECK(c.realm == "zk-sasl-md5");
        CHECK(c.has_realm);
        CHECK(c.is_utf8);
    }
    const digest_challenge least = parse_digest_challenge(R"(nonce="\"\\",algorithm=md5-sess)");
    CHECK(least.nonce == "\"\\");
    CHECK_FALSE(least.has_realm);
    CHECK_FALSE(least.is_utf8);
}

TEST_CASE("digest-md5: a challenge that is none is refused, and not quoted in the reason") {
    const std::vector<std::string> texts{
        "", "c0ffee", "realm=\"c0ffee\",algorithm=md5-sess", R"(nonce="c0ffee")", R"(nonce="",algorithm=md5-sess)",
        R"(nonce="c0ffee",nonce="c0ffee",algorithm=md5-sess)", R"(nonce="c0ffee,algorithm=md5-sess)",
        R"(nonce="c0ffee",algorithm=md5-sess,realm="\)", R"(nonce="c0ffee",algorithm=md5)",
        R"(nonce="c0ffee",algorithm=md5-sess,algorithm=md5-sess)", R"(nonce="c0ffee",algorithm=md5-sess,charset=latin1)",
        R"(nonce="c0ffee",algorithm=md5-sess,charset=utf-8,charset=utf-8)", R"(nonce="c0ffee",algorithm=md5-sess,qop=auth-conf)",
        R"(nonce="c0ffee",algorithm=md5-sess,qop="authx")", R"(nonce="c0ffee",algorithm=md5-sess,qop=auth,qop=auth)",
        R"(nonce="c0ffee" algorithm=md5-sess)", R"(nonce,algorithm=md5-sess)", R"(nonce=,algorithm=md5-sess)",
        R"(="c0ffee",algorithm=md5-sess)", std::string("nonce=\"c0ffee\0\",algorithm=md5-sess", 34),
        "nonce=\"c0ffee\",algorithm=md5-sess,\xff=1"};
    for (const std::string& text : texts) {
        const std::string why = why_not(text);
        CAPTURE(text, why);
        CHECK(why.starts_with("DIGEST-MD5: "));
        CHECK_FALSE(has(why, "c0ffee"));
    }
}

TEST_CASE("digest-md5: no challenge is read for long") {
    CHECK(has(why_not(zookeepers + std::string(5000, ',')), "too long"));
    std::string many = zookeepers;
    for (int i = 0; i < 100; ++i) many += ",a=b";
    CHECK(has(why_not(many), "too many"));
}

// Computed with Python's hashlib.
TEST_CASE("digest-md5: the response is that of RFC 2831") {
    const digest_challenge c = parse_digest_challenge(zookeepers);
    const digest_response r(c, "alice", "wonder", "cafe");
    CHECK(r.token() ==
          R"(charset=utf-8,username="alice",realm="zk-sasl-md5",nonce="c0ffee",nc=00000001,cnonce="cafe",)"
          R"(digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=14e0466cb8982a25bc545cae1e7506d6,qop=auth)");
    CHECK(r.is_proved_by("rspauth=ade24a6dd23b1df8232f2416ebfe92d9"));
    CHECK(r.is_proved_by("rspauth=\"ade24a6dd23b1df8232f2416ebfe92d9\""));
    CHECK_FALSE(r.is_proved_by("rspauth=" + response_in(r.token())));
    CHECK_FALSE(r.is_proved_by("rspauth=ade24a6dd23b1df8232f2416ebfe92d90"));
    CHECK_FALSE(r.is_proved_by("rspauth=ade24a6dd23b1df8232f2416ebfe92d9,rspauth=ade24a6dd23b1df8232f2416ebfe92d9"));
    CHECK_FALSE(r.is_proved_by("realm=ade24a6dd23b1df8232f2416ebfe92d9"));
    CHECK_FALSE(r.is_proved_by(""));
    // Hashed as ISO 8859-1 where that has all characters, as Java does; sent as UTF-8.
    const digest_response umlaut(c, "m\xc3\xbcller", "gr\xc3\xbc\xc3\x9f", "cafe");
    CHECK(response_in(umlaut.token()) == "ad6d7291f6d39a41643c312249fe1ef5");
    CHECK(has(umlaut.token(), "username=\"m\xc3\xbcller\""));
    const digest_response euro(c, "alice", "\xe2\x82\xac\xc3\xbc", "cafe");
    CHECK(response_in(euro.token()) == "65508be2d7ed41101ab4e3f46f1b334b");
    // A realm that is no UTF-8 is hashed as it is, whatever it looks like.
    const digest_challenge latin = parse_digest_challenge("realm=\"\xc2\xa3\",nonce=n,algorithm=md5-sess");
    const digest_response pound(latin, "alice", "wonder", "cafe");
    CHECK(response_in(pound.token()) == "5517e14c51fbff7cf1352967307389bf");
}

TEST_CASE("digest-md5: names with quotes and backslashes are quoted") {
    const digest_challenge c = parse_digest_challenge(R"(realm="a \"b\\",nonce="n",algorithm=md5-sess)");
    const digest_response r(c, R"(q"\)", "p", "cafe");
    CHECK(has(r.token(), R"(username="q\"\\",realm="a \"b\\",)"));
    CHECK_FALSE(has(r.token(), "charset"));
    CHECK_THROWS_WITH(digest_response(c, "m\xc3\xbcller", "p", "cafe"),
                      "DIGEST-MD5: the server does not speak UTF-8, in which the user or password is given");
    CHECK_THROWS(digest_response(c, "alice", "gr\xc3\xbc\xc3\x9f", "cafe"));
}

TEST_CASE("digest-md5: a server that does not prove that it knows the password is refused") {
    const auto mechanism = digest_md5("alice", "wonder");
    const auto talk = mechanism->begin(sasl_server("zk1", "10.0.0.1", 2181));
    CHECK_FALSE(mechanism->executor());
    CHECK(step_of(*talk, "").token() == "");
    const sasl_step response = step_of(*talk, zookeepers);
    CHECK_FALSE(response.is_last());
    CHECK(has(response.token().value(), "username=\"alice\""));
    CHECK_FALSE(has(response.token().value(), "wonder"));
    const std::string proof = GENERATE("", "rspauth=00000000000000000000000000000000", "nonce=1");
    CHECK_THROWS_WITH(step_of(*talk, proof), "DIGEST-MD5: the server has not proved that it knows the password");
}

TEST_CASE("digest-md5: each connection has a nonce of its own, and the password of its time") {
    int asked = 0;
    const auto mechanism = digest_md5("alice", [&] { return "wonder" + std::to_string(++asked); });
    const auto one = mechanism->begin(sasl_server("zk1", "10.0.0.1", 2181));
    const auto two = mechanism->begin(sasl_server("zk1", "10.0.0.1", 2181));
    CHECK(asked == 2);
    step_of(*one, "");
    step_of(*two, "");
    const std::string first = step_of(*one, zookeepers).token().value(), second = step_of(*two, zookeepers).token().value();
    CHECK(first != second);
    CHECK_THROWS_AS(digest_md5("", "wonder"), error);
    CHECK_THROWS_AS(digest_md5(std::string("a\0b", 3), "wonder"), error);
    CHECK_THROWS_AS(digest_md5("alice", std::function<std::string()>()), error);
}

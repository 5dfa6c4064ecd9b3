#include "support/catch.hpp"
#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"

#include <zkasio/detail/connection/sasl_login.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sasl_login_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;
using stage = sasl_login::stage;

namespace {

const boot_clock::time_point start(1h);

std::string request_for_session() { return jute_writer().text(std::string(45, 's')).bytes(); }
std::string session_of(std::int32_t ms) {
    greeting g;
    g.timeout_ms = ms;
    return g.frame();
}
std::string token_frame(std::int32_t number, const std::string& token) {
    return jute_writer().number(number).number(102).text(token).frame();
}
std::string answer_frame(std::int32_t number, const std::string& token) {
    return jute_writer().number(number).long_number(0).number(0).text(token).frame();
}
std::string last_answer_frame(std::int32_t number) {
    return jute_writer().number(number).long_number(0).number(0).null().frame();
}
std::string error_frame(std::int32_t number, std::int32_t code) {
    return jute_writer().number(number).long_number(0).number(code).frame();
}

// The library's side and the network's of one login, which moves so many bytes at once.
struct login_rig {
    explicit login_rig(std::size_t bytes_at_once = 1000) : at_once(bytes_at_once) {}

    void library_writes(std::string bytes) {
        while (!bytes.empty()) {
            const std::size_t n = std::min({bytes.size(), at_once, login.may_pass()});
            if (n == 0) return;
            login.passing(std::span<const char>(bytes).first(n), now);
            to_server += bytes.substr(0, n);
            bytes.erase(0, n);
        }
    }
    void flush() {
        while (!login.outgoing().empty()) {
            const std::size_t n = std::min(login.outgoing().size(), at_once);
            to_server += login.outgoing().substr(0, n);
            login.sent(n);
        }
    }
    void server_sends(const std::string& bytes) {
        for (std::size_t i = 0; i < bytes.size(); i += at_once)
            login.received(std::span<const char>(bytes).subspan(i, std::min(at_once, bytes.size() - i)));
        flush();
    }
    // Until the mechanism's first token was sent.
    void open(sasl_step first = sasl_step::send(""), std::int32_t ms = 10'000) {
        REQUIRE(login.take_challenge() == "");
        login.stepped(std::move(first));
        library_writes(request_for_session());
        server_sends(session_of(ms));
    }

    std::size_t at_once;
    boot_clock::time_point now = start;
    sasl_login login;
    std::string to_server;
};

}  // namespace

TEST_CASE("a login precedes all requests, wherever its bytes are cut") {
    const std::size_t at_once = GENERATE(range(std::size_t{1}, std::size_t{60}));
    CAPTURE(at_once);
    login_rig rig(at_once);
    sasl_login& login = rig.login;
    CHECK(login.at() == stage::first_step);
    CHECK(login.may_pass() == 0);
    rig.open();
    CHECK(rig.to_server == request_for_session() + token_frame(1, ""));
    CHECK(login.at() == stage::answer);
    CHECK(login.may_pass() == 0);
    rig.server_sends(answer_frame(1, "challenge"));
    CHECK(login.at() == stage::step);
    CHECK(login.take_challenge() == "challenge");
    CHECK_FALSE(login.take_challenge());
    rig.to_server.clear();
    login.stepped(sasl_step::send("response"));
    rig.flush();
    CHECK(rig.to_server == token_frame(2, "response"));
    rig.server_sends(answer_frame(2, "proof"));
    CHECK(login.take_challenge() == "proof");
    CHECK(login.take_kept().empty() == false);
    login.stepped(sasl_step::done());
    CHECK(login.at() == stage::over);
    CHECK(login.failure() == "");
    CHECK_FALSE(login.is_refused());
}

TEST_CASE("a login keeps the answer to the request for a session, byte by byte") {
    login_rig rig(GENERATE(as<std::size_t>{}, 1, 7, 100));
    rig.open(sasl_step::send_last("all"));
    CHECK(rig.login.at() == stage::answer);
    rig.server_sends(last_answer_frame(1));
    CHECK(rig.login.at() == stage::over);
    CHECK(rig.login.take_kept() == session_of(10'000));
    CHECK(rig.login.take_kept() == "");
}

TEST_CASE("a server that opens no session has no login: what it says passes") {
    greeting over;
    over.timeout_ms = 0;
    over.session = 0;
    const std::vector<std::string> all{over.frame(), error_frame(0, -119), "HTTP/1.1 400 Bad Request",
                                       std::string("\x15\x03\x03\0\x02\x02\x50", 7)};
    const std::string said = all[GENERATE(0u, 1u, 2u, 3u)];
    login_rig other;
    REQUIRE(other.login.take_challenge());
    other.login.stepped(sasl_step::send("token"));
    other.library_writes(request_for_session());
    other.server_sends(said);
    CHECK(other.login.at() == stage::over);
    CHECK(other.login.take_kept() == said);
    CHECK(other.to_server == request_for_session());
}

TEST_CASE("a session of a server older than 3.4 is logged in, too") {
    greeting g;
    g.has_flag = false;
    login_rig rig(GENERATE(as<std::size_t>{}, 1, 100));
    REQUIRE(rig.login.take_challenge());
    rig.login.stepped(sasl_step::send_last("all"));
    rig.library_writes(request_for_session());
    rig.server_sends(g.frame());
    rig.server_sends(last_answer_frame(1));
    CHECK(rig.login.at() == stage::over);
    CHECK(rig.login.take_kept() == g.frame());
}

TEST_CASE("a mechanism that has nothing to say sends nothing") {
    login_rig rig;
    rig.open(sasl_step::done());
    CHECK(rig.login.at() == stage::over);
    CHECK(rig.to_server == request_for_session());
}

TEST_CASE("of the library, nothing passes before the end of a login but the request for a session") {
    login_rig rig(GENERATE(as<std::size_t>{}, 1, 3, 1000));
    REQUIRE(rig.login.take_challenge());
    rig.library_writes("early");
    CHECK(rig.to_server == "");
    rig.login.stepped(sasl_step::send(""));
    rig.library_writes(request_for_session() + "and more");
    CHECK(rig.to_server == request_for_session());
    CHECK(rig.login.may_pass() == 0);
}

TEST_CASE("a server that refuses a login is told from one that fails otherwise") {
    struct row {
        std::int32_t code;
        bool is_refused;
    };
    const auto [code, is_refused] = GENERATE(row{-115, true}, row{-124, true}, row{-4, false}, row{-101, false});
    login_rig rig(GENERATE(as<std::size_t>{}, 1, 1000));
    rig.open();
    rig.server_sends(error_frame(1, code));
    CHECK(rig.login.at() == stage::failed);
    CHECK(rig.login.is_refused() == is_refused);
    CHECK(rig.login.failure().starts_with("SASL: "));
    CHECK(rig.login.take_kept() == "");
    CHECK(rig.login.outgoing() == "");
}

TEST_CASE("a refusal may have a body") {
    login_rig rig;
    rig.open();
    rig.server_sends(jute_writer().number(1).long_number(0).number(-115).null().frame());
    CHECK(rig.login.is_refused());
}

TEST_CASE("a server without SASL says nothing to the first token, which is a refusal") {
    login_rig rig;
    rig.open();
    rig.server_sends(last_answer_frame(1));
    CHECK(rig.login.is_refused());
    CHECK(rig.login.failure().find("does not offer it") != std::string::npos);
}

TEST_CASE("an answer that makes no sense ends a login, and nothing of it is told") {
    const std::string secret = "c0ffee";
    const auto with_size = [&](std::int32_t size) {
        jute_writer w;
        w.number(1).long_number(0).number(0).number(size);
        return jute_writer().text(w.bytes() + secret).bytes();
    };
    const std::vector<std::string> frames{
        jute_writer().number(15).bytes(), jute_writer().number(0).bytes(), jute_writer().number(-1).bytes(),
        jute_writer().number(0x7fffffff).bytes(), jute_writer().number(1 << 20).bytes(), error_frame(1, 0),
        with_size(5), with_size(7), with_size(-2), with_size(-1), with_size(0), with_size(0x7fffffff),
        answer_frame(2, secret), answer_frame(-1, secret), answer_frame(-2, secret), answer_frame(-4, secret),
        answer_frame(1, secret) + secret};
    const std::size_t at_once = GENERATE(1u, 4u, 1000u);
    for (const std::string& frame : frames) {
        CAPTURE(at_once, &frame - frames.data());
        login_rig rig(at_once);
        rig.open();
        rig.server_sends(frame);
        CHECK(rig.login.at() == stage::failed);
        CHECK_FALSE(rig.login.is_refused());
        CHECK(rig.login.failure().starts_with("SASL: "));
        CHECK(rig.login.failure().find(secret) == std::string::npos);
        CHECK_FALSE(rig.login.take_challenge());
    }
}

TEST_CASE("a frame that is claimed to be long is not waited for") {
    login_rig rig;
    rig.open();
    rig.server_sends(jute_writer().number(200'000).bytes());
    CHECK(rig.login.at() == stage::failed);
}

TEST_CASE("a server that speaks out of turn ends a login") {
    login_rig rig;
    SECTION("behind the session, before a token") {
        REQUIRE(rig.login.take_challenge());
        rig.login.stepped(sasl_step::send(""));
        rig.library_writes(request_for_session());
        rig.login.received(session_of(10'000) + answer_frame(1, "early"));
    }
    SECTION("before the token was sent") {
        REQUIRE(rig.login.take_challenge());
        rig.login.stepped(sasl_step::send("token"));
        rig.library_writes(request_for_session());
        rig.login.received(session_of(10'000));
        rig.login.sent(3);
        rig.login.received(answer_frame(1, "early"));
    }
    SECTION("while the mechanism makes a step") {
        rig.open();
        rig.server_sends(answer_frame(1, "challenge"));
        rig.server_sends("x");
    }
    SECTION("behind the last token, with a token") {
        rig.open(sasl_step::send_last("last"));
        rig.server_sends(answer_frame(1, "more"));
    }
    CHECK(rig.login.at() == stage::failed);
    CHECK(rig.login.failure() == "SASL: the server's answers are out of step with the login");
}

TEST_CASE("a login has half of the session's time, as it was granted, from its request on") {
    const std::int32_t granted = GENERATE(4'000, 10'000);
    login_rig rig;
    REQUIRE(rig.login.take_challenge());
    CHECK(rig.login.deadline() == boot_clock::time_point::max());
    rig.now += 20s;  // the first step costs the session nothing
    rig.login.stepped(sasl_step::send(""));
    rig.library_writes(request_for_session().substr(0, 10));
    const auto asked = rig.now;
    rig.now += 1s;
    rig.library_writes(request_for_session().substr(10));
    rig.server_sends(session_of(granted));
    const auto end = asked + std::chrono::milliseconds(granted) / 2;
    CHECK(rig.login.deadline() == end);
    rig.login.check_time(end - 1ns);
    CHECK(rig.login.at() == stage::answer);
    SECTION("in time") {
        rig.server_sends(answer_frame(1, "challenge"));
        rig.login.check_time(end - 1ns);
        rig.login.stepped(sasl_step::done());
        CHECK(rig.login.deadline() == boot_clock::time_point::max());
        rig.login.check_time(end + 1h);
        CHECK(rig.login.at() == stage::over);
    }
    SECTION("too late for the server") {
        rig.login.check_time(end);
        CHECK(rig.login.at() == stage::failed);
    }
    SECTION("too late for the mechanism") {
        rig.server_sends(answer_frame(1, "challenge"));
        rig.login.check_time(end);
        rig.login.stepped(sasl_step::done());
        CHECK(rig.login.at() == stage::failed);
        CHECK(rig.login.failure() == "SASL: the login has taken half of the session timeout");
    }
}

TEST_CASE("a login that never comes to an end is ended, and so is one with a token that is too long") {
    login_rig rig;
    SECTION("for ever") {
        rig.open(sasl_step::send("1"));
        for (int i = 1; i < 100 && rig.login.at() != stage::failed; ++i) {
            rig.server_sends(answer_frame(i, "again"));
            rig.login.stepped(sasl_step::send("again"));
            rig.flush();
            CHECK(i <= sasl_login::most_steps);
        }
    }
    SECTION("without a step") { rig.open(sasl_step()); }
    SECTION("too long") { rig.open(sasl_step::send(std::string(sasl_login::largest_token + 1, 'x'))); }
    SECTION("the mechanism fails") {
        rig.open();
        rig.login.fail("SASL: no ticket");
        CHECK(rig.login.failure() == "SASL: no ticket");
        rig.login.fail("another");
        CHECK(rig.login.failure() == "SASL: no ticket");
    }
    CHECK(rig.login.at() == stage::failed);
}

TEST_CASE("the longest tokens go both ways") {
    login_rig rig(4096);
    const std::string longest(sasl_login::largest_token, 'x');
    rig.open(sasl_step::send(longest));
    CHECK(rig.to_server.size() > longest.size());
    rig.server_sends(answer_frame(1, longest));
    CHECK(rig.login.take_challenge() == longest);
}

TEST_CASE("an answer to a request for a session that has not left ends a login") {
    login_rig rig;
    REQUIRE(rig.login.take_challenge());
    rig.login.stepped(sasl_step::send("token"));
    rig.library_writes(request_for_session().substr(0, GENERATE(0u, 3u, 20u)));
    rig.server_sends(session_of(10'000));
    CHECK(rig.login.at() == stage::failed);
    CHECK(rig.login.failure() == "SASL: the server's answers are out of step with the login");
    CHECK(rig.login.outgoing() == "");
}

TEST_CASE("no session is opened for a first step that cannot be sent") {
    login_rig rig;
    REQUIRE(rig.login.take_challenge());
    rig.login.stepped(GENERATE(sasl_step(), sasl_step::send(std::string(sasl_login::largest_token + 1, 'x'))));
    CHECK(rig.login.at() == stage::failed);
    rig.library_writes(request_for_session());
    CHECK(rig.to_server == "");
}

}  // namespace sasl_login_tests

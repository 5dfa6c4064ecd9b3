// The steps of a mechanism, and the channel that makes them, over a channel that the test plays.

#include "support/catch.hpp"
#include "support/fork_child.hpp"
#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"

#include <zkasio/detail/base/strand.hpp>
#include <zkasio/detail/connection/sasl_channel.hpp>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>

#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;
using progress = secure_channel::progress;

namespace {

struct sasl_wire {
    std::string from_server, to_server;
    std::size_t at_once = 1000;
    std::size_t takes = std::string::npos;  // so many bytes reach the server
    bool has_ended = false, has_failed = false, is_full = false, wants_output = false;
};

class sasl_below final : public secure_channel {
public:
    explicit sasl_below(sasl_wire& w) : wire_(w) {}
    progress handshake() override { return progress::done; }
    transfer read(std::span<char> to) override {
        const std::size_t n = std::min({to.size(), wire_.at_once, wire_.from_server.size()});
        if (wire_.has_failed) return {progress::failed};
        if (wire_.wants_output) return {progress::needs_output};
        if (n == 0) return {wire_.has_ended ? progress::ended : progress::needs_input};
        std::copy_n(wire_.from_server.begin(), n, to.begin());
        wire_.from_server.erase(0, n);
        return {progress::done, n};
    }
    transfer write(std::span<const char> from) override {
        if (wire_.is_full) return {progress::needs_output};
        if (wire_.has_failed) return {progress::failed};
        const std::size_t n = std::min(from.size(), wire_.at_once);
        wire_.to_server.append(from.data(), std::min(n, wire_.takes - wire_.to_server.size()));
        return {progress::done, n};
    }
    std::string failure() const override { return "the wire's"; }

private:
    sasl_wire& wire_;
};

using step_function = std::function<asio::awaitable<sasl_step>(std::string)>;

class scripted_conversation final : public sasl_conversation {
public:
    explicit scripted_conversation(step_function f) : step_(std::move(f)) {}
    asio::awaitable<sasl_step> step(std::string challenge) override { return step_(std::move(challenge)); }

private:
    step_function step_;
};

struct scripted_mechanism final : sasl_mechanism {
    explicit scripted_mechanism(step_function f) : step(std::move(f)) {}
    asio::any_io_executor executor() const override { return where; }
    std::unique_ptr<sasl_conversation> begin(const sasl_server& with) const override {
        host = with.host() + ' ' + with.address() + ' ' + std::to_string(with.port());
        if (makes_none) return nullptr;
        return std::make_unique<scripted_conversation>(step);
    }
    step_function step;
    asio::any_io_executor where;
    bool makes_none = false;
    mutable std::string host;
};

asio::awaitable<sasl_step> answer_challenge(std::string challenge) {
    if (challenge.empty()) co_return sasl_step::send("first");
    if (challenge == "proof") co_return sasl_step::done();
    co_return sasl_step::send("answer to " + challenge);
}
asio::awaitable<sasl_step> wait_for_ever(std::string) {
    asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
    co_await timer.async_wait(asio::use_awaitable);
    co_return sasl_step::done();
}
asio::awaitable<sasl_step> throw_text(std::string) {
    throw std::runtime_error("no ticket");
    co_return sasl_step::done();
}
asio::awaitable<sasl_step> throw_nothing(std::string) {
    throw std::runtime_error("");
    co_return sasl_step::done();
}
asio::awaitable<sasl_step> throw_number(std::string) {
    throw 1;
    co_return sasl_step::done();
}

struct channel_rig {
    explicit channel_rig(step_function f = answer_challenge)
        : mechanism(std::make_shared<scripted_mechanism>(std::move(f))) {}

    sasl_channel& make() {
        if (!steps)
            steps = std::make_shared<sasl_steps>(mechanism, strand_type(asio::any_io_executor(loop->get_executor())),
                                                 [this] { ++wakes; });
        channel = std::make_unique<sasl_channel>(std::make_unique<sasl_below>(wire), steps,
                                                 sasl_server("zk1", "10.0.0.1", 2181));
        return *channel;
    }
    void turn() {
        loop->restart();
        loop->poll();
    }
    progress shake_hands() {
        for (int i = 0; i < 10 && channel->handshake() == progress::needs_input; ++i) turn();
        return channel->handshake();
    }
    // Reads until it waits for something. All that it has read.
    std::string read(progress& how) {
        std::string all;
        std::array<char, 64> some{};
        for (int idle = 0; idle < 6;) {
            const secure_channel::transfer t = channel->read(some);
            how = t.how;
            all.append(some.data(), t.bytes);
            if (t.how == progress::ended || t.how == progress::failed) return all;
            if (t.how == progress::done) continue;
            turn();
            ++idle;
        }
        return all;
    }
    void write(const std::string& bytes) {
        for (std::size_t at = 0; at < bytes.size();) {
            const secure_channel::transfer t = channel->write(std::span<const char>(bytes).subspan(at));
            REQUIRE(t.how == progress::done);
            at += t.bytes;
        }
    }

    sasl_wire wire;
    std::unique_ptr<asio::io_context> loop = std::make_unique<asio::io_context>();
    std::shared_ptr<scripted_mechanism> mechanism;
    std::atomic<int> wakes = 0;
    std::shared_ptr<sasl_steps> steps;
    std::unique_ptr<sasl_channel> channel;
};

std::string session_request() { return jute_writer().text(std::string(45, 's')).bytes(); }
std::string sasl_answer(std::int32_t number, const std::string& token) {
    return jute_writer().number(number).long_number(0).number(0).text(token).frame();
}
std::string sasl_refusal(std::int32_t number) {
    return jute_writer().number(number).long_number(0).number(-115).frame();
}
std::string sasl_token(std::int32_t number, const std::string& token) {
    return jute_writer().number(number).number(102).text(token).frame();
}

// Until the first token was sent.
void begin_login(channel_rig& rig) {
    rig.make();
    REQUIRE(rig.shake_hands() == progress::done);
    rig.write(session_request());
    rig.wire.from_server += greeting().frame();
    progress how{};
    REQUIRE(rig.read(how) == "");
    REQUIRE(how == progress::needs_input);
}

}  // namespace

TEST_CASE("a channel logs in between the session and everything else, wherever its bytes are cut") {
    channel_rig rig;
    rig.wire.at_once = static_cast<std::size_t>(GENERATE(range(1, 50)));
    begin_login(rig);
    CHECK(rig.mechanism->host == "zk1 10.0.0.1 2181");
    CHECK(rig.wire.to_server == session_request() + sasl_token(1, "first"));
    rig.wire.to_server.clear();
    progress how{};
    rig.wire.from_server = sasl_answer(1, "challenge");
    CHECK(rig.read(how) == "");
    CHECK(rig.wire.to_server == sasl_token(2, "answer to challenge"));
    rig.wire.from_server = sasl_answer(2, "proof");
    CHECK(rig.read(how) == greeting().frame());
    CHECK(how == progress::needs_input);
    rig.wire.to_server.clear();
    rig.write("requests");
    CHECK(rig.wire.to_server == "requests");
    rig.wire.from_server = "answers";
    CHECK(rig.read(how) == "answers");
    CHECK(rig.channel->kind_of_failure() == secure_channel::failure_kind::connection);
    CHECK(rig.channel->deadline() == boot_clock::time_point::max());
}

TEST_CASE("a channel whose wire is full waits to write its token") {
    channel_rig rig;
    rig.make();
    REQUIRE(rig.shake_hands() == progress::done);
    rig.write(session_request());
    rig.wire.from_server += greeting().frame();
    rig.wire.is_full = true;
    progress how{};
    rig.read(how);
    CHECK(how == progress::needs_output);
    rig.wire.is_full = false;
    rig.read(how);
    CHECK(how == progress::needs_input);
    CHECK(rig.wire.to_server == session_request() + sasl_token(1, "first"));
    CHECK(rig.channel->awaits() == "SASL: the server does not answer");
    CHECK(rig.channel->deadline() < boot_clock::now() + 5s);
}

TEST_CASE("a channel lets no request pass before the login is over") {
    channel_rig rig;
    begin_login(rig);
    rig.wire.to_server.clear();
    CHECK(rig.channel->write(std::string("early")).how == progress::failed);
    CHECK(rig.wire.to_server == "");
    CHECK(rig.channel->failure() == "SASL: a request came before the end of the login");
}

TEST_CASE("a channel tells a refusal from a failure, and from a server that hangs up") {
    channel_rig rig;
    progress how{};
    using kind = secure_channel::failure_kind;
    SECTION("before the session") {
        rig.make();
        REQUIRE(rig.shake_hands() == progress::done);
        rig.write(session_request());
        rig.wire.has_ended = true;
        rig.read(how);
        CHECK(how == progress::ended);
        CHECK(rig.channel->kind_of_failure() == kind::connection);
    }
    SECTION("hung up") {
        begin_login(rig);
        rig.wire.has_ended = true;
        rig.read(how);
        CHECK(how == progress::failed);
        CHECK(rig.channel->failure() == "SASL: hung up during the login");
        CHECK(rig.channel->kind_of_failure() == kind::login);
    }
    SECTION("refused, and hung up") {
        begin_login(rig);
        rig.wire.from_server = sasl_refusal(1);
        rig.wire.has_ended = true;
        rig.read(how);
        CHECK(how == progress::failed);
        CHECK(rig.channel->kind_of_failure() == kind::refusal);
    }
}

TEST_CASE("what a mechanism throws ends the attempt, with its text") {
    struct row {
        step_function step;
        std::string text;
    };
    const row r = GENERATE(row{throw_text, "SASL: no ticket"}, row{throw_nothing, "SASL: failed, without a reason"},
                           row{throw_number, "SASL: the mechanism has thrown what is no std::exception"});
    channel_rig rig(r.step);
    rig.make();
    CHECK(rig.shake_hands() == progress::failed);
    CHECK(rig.channel->failure() == r.text);
    CHECK(rig.channel->kind_of_failure() == secure_channel::failure_kind::login);
}

TEST_CASE("a mechanism that makes no conversation, and an executor that drops its steps") {
    channel_rig rig;
    auto elsewhere = std::make_unique<asio::io_context>();
    std::string text = "SASL: the mechanism has made no conversation";
    SECTION("none") {
        rig.mechanism->makes_none = true;
        rig.make();
    }
    SECTION("dropped") {
        text = "SASL: the mechanism's executor has dropped its step";
        rig.mechanism->where = elsewhere->get_executor();
        rig.make();
        CHECK(rig.channel->handshake() == progress::needs_input);
        CHECK(rig.channel->awaits() == "SASL: the mechanism does not end its first step");
        rig.mechanism->where = {};
        elsewhere.reset();
        CHECK(rig.wakes == 1);
    }
    CHECK(rig.shake_hands() == progress::failed);
    CHECK(rig.channel->failure() == text);
}

TEST_CASE("a step that hangs is cancelled with its connection, and the next step waits for its end") {
    channel_rig rig(wait_for_ever);
    rig.make();
    CHECK(rig.channel->handshake() == progress::needs_input);
    rig.turn();
    rig.mechanism->step = answer_challenge;
    rig.make();  // the former channel is gone
    CHECK(rig.channel->handshake() == progress::needs_input);
    CHECK(rig.channel->awaits() == "SASL: the mechanism has not ended the step of an earlier connection");
    CHECK(rig.wakes == 0);
    rig.turn();
    CHECK(rig.wakes == 1);
    CHECK(rig.shake_hands() == progress::done);
    CHECK(rig.channel->failure() == "the wire's");
}

TEST_CASE("a step that cannot be cancelled occupies one thread, however often a client tries") {
    asio::thread_pool pool(4);
    std::promise<void> go;
    std::atomic<int> begun = 0;
    const std::shared_future<void> may_end(go.get_future());
    auto block = [&begun, may_end](std::string) -> asio::awaitable<sasl_step> {
        ++begun;
        may_end.wait();
        return answer_challenge("");
    };
    channel_rig rig(block);
    rig.mechanism->where = pool.get_executor();
    for (int i = 0; i < 5; ++i) {
        rig.make();
        CHECK(rig.channel->handshake() == progress::needs_input);
    }
    go.set_value();
    for (int i = 0; i < 1000 && rig.channel->handshake() == progress::needs_input; ++i)
        std::this_thread::sleep_for(2ms);
    CHECK(rig.channel->handshake() == progress::done);
    CHECK(begun == 2);
    pool.join();
}

TEST_CASE("a step may end when its connection, its client and the client's loop are gone") {
    asio::thread_pool pool(1);
    std::promise<void> begun, go;
    const std::shared_future<void> may_end(go.get_future());
    auto block = [&begun, may_end](std::string) -> asio::awaitable<sasl_step> {
        begun.set_value();
        may_end.wait();
        return answer_challenge("");
    };
    {
        channel_rig rig(block);
        rig.mechanism->where = pool.get_executor();
        rig.make();
        CHECK(rig.channel->handshake() == progress::needs_input);
        begun.get_future().wait();
        rig.steps->stop();
        if (GENERATE(true, false)) rig.loop.reset();
    }
    go.set_value();
    pool.join();
}

TEST_CASE("a step on the client's loop goes with the loop") {
    channel_rig rig(wait_for_ever);
    rig.make();
    CHECK(rig.channel->handshake() == progress::needs_input);
    if (GENERATE(true, false)) rig.turn();
    rig.steps->stop();
    rig.loop.reset();
    CHECK(rig.wakes == 0);
}

TEST_CASE("while its mechanism makes the first step, a channel sees what the server does") {
    using kind = secure_channel::failure_kind;
    channel_rig rig(wait_for_ever);
    rig.make();
    REQUIRE(rig.channel->handshake() == progress::needs_input);
    SECTION("it hangs up") {
        rig.wire.has_ended = true;
        CHECK(rig.channel->handshake() == progress::failed);
        CHECK(rig.channel->failure() == "hung up before the login (not serving, or too many connections)");
        CHECK(rig.channel->kind_of_failure() == kind::connection);
    }
    SECTION("its connection fails") {
        rig.wire.has_failed = true;
        CHECK(rig.channel->handshake() == progress::failed);
        CHECK(rig.channel->failure() == "the wire's");
        CHECK(rig.channel->kind_of_failure() == kind::connection);
    }
    SECTION("it says something") {
        rig.wire.from_server = "x";
        CHECK(rig.channel->handshake() == progress::failed);
        CHECK(rig.channel->failure() == "SASL: the server's answers are out of step with the login");
    }
    SECTION("TLS has to write first") {
        rig.wire.wants_output = true;
        CHECK(rig.channel->handshake() == progress::needs_output);
    }
}

TEST_CASE("what wakes a client goes with the client, also while a step blocks a thread") {
    asio::thread_pool pool(1);
    std::promise<void> begun, go;
    const std::shared_future<void> may_end(go.get_future());
    auto block = [&begun, may_end](std::string) -> asio::awaitable<sasl_step> {
        begun.set_value();
        may_end.wait();
        return answer_challenge("");
    };
    channel_rig rig(block);
    rig.mechanism->where = pool.get_executor();
    auto held = std::make_shared<int>();
    const std::weak_ptr<int> seen = held;
    rig.steps = std::make_shared<sasl_steps>(rig.mechanism,
                                             strand_type(asio::any_io_executor(rig.loop->get_executor())),
                                             [held = std::move(held)] {});
    rig.make();
    CHECK(rig.channel->handshake() == progress::needs_input);
    begun.get_future().wait();
    rig.channel.reset();
    rig.steps.reset();
    CHECK(seen.expired());
    go.set_value();
    pool.join();
}

TEST_CASE("a child process cancels a step on the client's loop, and is woken by none") {
    bool cancelled = false;
    auto wait = [&cancelled](std::string) -> asio::awaitable<sasl_step> {
        asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
        try {
            co_await timer.async_wait(asio::use_awaitable);
        } catch (const std::system_error&) {
            cancelled = true;
            throw;
        }
        co_return sasl_step::done();
    };
    channel_rig rig(wait);
    rig.make();
    CHECK(rig.channel->handshake() == progress::needs_input);
    rig.turn();
    const bool loop_first = GENERATE(true, false);
    rig.loop->notify_fork(asio::execution_context::fork_prepare);
    const pid_t pid = fork_child([&]() -> std::string {
        rig.loop->notify_fork(asio::execution_context::fork_child);
        if (!loop_first) {
            rig.channel.reset();
            rig.turn();
            if (!cancelled) return "the step goes on";
        }
        rig.loop.reset();
        return rig.wakes == 0 ? "" : "the client is woken";
    });
    rig.loop->notify_fork(asio::execution_context::fork_parent);
    REQUIRE(pid > 0);
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
}

TEST_CASE("a connection that ends in the middle of a login is a login that has failed, however it ends") {
    using kind = secure_channel::failure_kind;
    channel_rig rig;
    progress how{};
    SECTION("by a reset") {
        begin_login(rig);
        rig.wire.has_failed = true;
        rig.read(how);
        CHECK(how == progress::failed);
        CHECK(rig.channel->failure() == "SASL: hung up during the login: the wire's");
    }
    SECTION("while a token is written") {
        rig.make();
        REQUIRE(rig.shake_hands() == progress::done);
        rig.write(session_request());
        rig.wire.from_server += greeting().frame();
        rig.wire.is_full = true;
        rig.read(how);
        REQUIRE(how == progress::needs_output);
        rig.wire.is_full = false;
        rig.wire.has_failed = true;
        rig.read(how);
        CHECK(how == progress::failed);
        CHECK(rig.channel->failure() == "SASL: hung up during the login: the wire's");
    }
    SECTION("as it is given up") { begin_login(rig); }
    CHECK(rig.channel->kind_of_failure() == kind::login);
}

namespace {

std::string whole_login() {
    return session_request() + sasl_token(1, "first") + sasl_token(2, "answer to challenge");
}

// A server in a login. It ends the connection behind so many bytes that it has sent, or received.
struct server_that_ends {
    explicit server_that_ends(sasl_wire& w) : wire(w) {}

    void take_turn() {
        const std::size_t first = session_request().size(), second = first + sasl_token(1, "first").size();
        const std::size_t heard = wire.to_server.size();
        std::string due;
        if (heard >= first) due += greeting().frame();
        if (heard >= second) due += sasl_answer(1, "challenge");
        if (heard == whole_login().size()) due += sasl_answer(2, "proof");
        due.resize(std::min(due.size(), sends));
        wire.from_server += due.substr(sent);
        sent = due.size();
        if (wire.from_server.empty() && (sent == sends || heard == wire.takes))
            (by_reset ? wire.has_failed : wire.has_ended) = true;
    }

    sasl_wire& wire;
    std::size_t sends = std::string::npos, sent = 0;
    bool by_reset = false;
};

// Until the login is over, or the connection. What has passed to the library.
std::string play_login(channel_rig& rig, server_that_ends& server) {
    rig.make();
    std::string library = session_request(), passed;
    std::array<char, 64> some{};
    for (int i = 0; i < 500; ++i) {
        server.take_turn();
        const progress shaken = rig.channel->handshake();
        if (shaken == progress::failed) return passed;
        rig.turn();
        if (shaken != progress::done) continue;
        if (!library.empty()) {
            const secure_channel::transfer t = rig.channel->write(library);
            if (t.how == progress::failed) return passed;
            library.erase(0, t.bytes);
        }
        const secure_channel::transfer t = rig.channel->read(some);
        passed.append(some.data(), t.bytes);
        if (t.how == progress::failed || t.how == progress::ended || passed == greeting().frame()) return passed;
    }
    FAIL("the login does not end");
    return passed;
}

}  // namespace

TEST_CASE("a connection that ends behind any byte of a login has let nothing pass, and the next one logs in") {
    const std::size_t all_sent = (greeting().frame() + sasl_answer(1, "challenge") + sasl_answer(2, "proof")).size();
    struct end {
        std::size_t sends, takes;
    };
    std::vector<end> ends;
    for (std::size_t n = 0; n < all_sent; ++n) ends.push_back({n, std::string::npos});
    for (std::size_t n = 0; n < whole_login().size(); ++n) ends.push_back({std::string::npos, n});
    const bool by_reset = GENERATE(false, true);
    const std::size_t at_once = GENERATE(as<std::size_t>{}, 1, 7, 1000);
    for (const end& e : ends) {
        CAPTURE(by_reset, at_once, e.sends, e.takes);
        channel_rig rig;
        rig.wire.at_once = at_once;
        rig.wire.takes = e.takes;
        server_that_ends server(rig.wire);
        server.sends = e.sends;
        server.by_reset = by_reset;
        CHECK(play_login(rig, server) == "");
        CHECK(whole_login().starts_with(rig.wire.to_server));
        const bool had_session = e.sends == std::string::npos ? e.takes >= session_request().size()
                                                              : e.sends >= greeting().frame().size();
        using kind = secure_channel::failure_kind;
        CHECK(rig.channel->kind_of_failure() == (had_session ? kind::login : kind::connection));
        if (had_session) CHECK(rig.channel->write(std::string("request")).how == progress::failed);
        CHECK(whole_login().starts_with(rig.wire.to_server));

        rig.wire = {};
        rig.wire.at_once = at_once;
        server_that_ends healthy(rig.wire);
        CHECK(play_login(rig, healthy) == greeting().frame());
        CHECK(rig.wire.to_server == whole_login());
        rig.write("request");
        CHECK(rig.wire.to_server == whole_login() + "request");
    }
}

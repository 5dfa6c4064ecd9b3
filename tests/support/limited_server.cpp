#include "support/limited_server.hpp"

#include "support/jute_writer.hpp"
#include "support/opcode.hpp"

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/connect.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

namespace zkasio::test {

using asio::ip::tcp;

// ----------------------------------------------------------------------------------------------------- profiles

namespace {

constexpr std::int32_t unimplemented = -6, bad_arguments = -8;

std::map<std::int32_t, std::int32_t> all(std::initializer_list<std::int32_t> opcodes, std::int32_t code) {
    std::map<std::int32_t, std::int32_t> unknown;
    for (const std::int32_t o : opcodes) unknown.emplace(o, code);
    return unknown;
}

constexpr std::int32_t check_watches = 17, set_watches_2 = 105;

}  // namespace

const std::vector<std::string_view>& limits::names() {
    static const std::vector<std::string_view> all{"zookeeper-3.4", "zookeeper-3.5", "keeper-25.11",
                                                   "keeper-26.3",   "keeper-26.7",   "worst"};
    return all;
}

limits limits::of(std::string_view name) {
    using o = opcode;
    limits it;
    const bool is_keeper = name.starts_with("keeper-") || name == "worst";
    it.forgets_sessions = it.strange_stats = it.short_handshake = is_keeper;
    if (name == "zookeeper-3.4")
        it.unknown = all({o::create, o::reconfigure, check_watches, o::remove_watches, o::create_container,
                          o::create_ttl, o::multi_read, o::ephemerals, o::count_below, set_watches_2, o::add_watch,
                          o::who_am_i},
                         unimplemented);
    else if (name == "zookeeper-3.5")
        it.unknown = all({o::multi_read, o::ephemerals, o::count_below, set_watches_2, o::add_watch, o::who_am_i},
                         unimplemented);
    else if (name == "keeper-25.11")
        it.unknown = all({o::create, check_watches, o::remove_watches, o::create_container, o::create_ttl,
                          o::set_watches, o::ephemerals, o::count_below, set_watches_2, o::add_watch, o::who_am_i},
                         no_answer);
    else if (name == "keeper-26.3" || name == "keeper-26.7")
        it.unknown = all({o::create_ttl, o::ephemerals, o::count_below, o::who_am_i}, no_answer);
    else if (name == "worst")
        it.unknown = all({o::create, o::reconfigure, check_watches, o::remove_watches, o::create_container,
                          o::create_ttl, o::multi_read, o::set_watches, o::ephemerals, o::count_below, set_watches_2,
                          o::add_watch, o::who_am_i},
                         no_answer);
    else
        throw std::invalid_argument("no such server: " + std::string(name));
    if (name == "keeper-26.3") it.unknown.emplace(o::create_container, bad_arguments);
    return it;
}

// ------------------------------------------------------------------------------------------------------- frames

namespace {

std::int32_t number_at(std::string_view bytes, std::size_t at) {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<unsigned char>(bytes.at(at + i));
    return static_cast<std::int32_t>(v);
}

void put_number(std::string& bytes, std::size_t at, std::int32_t v) {
    for (std::size_t i = 0; i < 4; ++i) bytes.at(at + i) = static_cast<char>(v >> (24 - 8 * i) & 0xff);
}

// Reads what it steps over. Throws std::out_of_range behind the end.
class stepper {
public:
    stepper(std::string_view bytes, std::size_t at) : bytes_(bytes), at_(at) {}
    std::int32_t number() {
        const std::int32_t v = number_at(bytes_, at_);
        at_ += 4;
        return v;
    }
    void bytes(std::size_t n) { at_ += n; }
    void text() { at_ += static_cast<std::size_t>(std::max(number(), 0)); }
    void texts() {
        for (std::int32_t n = number(); n > 0; --n) text();
    }
    void acl() {
        for (std::int32_t n = number(); n > 0; --n) bytes(4), text(), text();
    }
    std::size_t at() const { return at_; }

private:
    std::string_view bytes_;
    std::size_t at_;
};

constexpr std::size_t stat_size = 68, request_head = 8, answer_head = 16, step_head = 9;

// The kinds of the steps of a transaction, or of the reads of a multi_read.
std::vector<std::int32_t> steps_of(std::string_view request) {
    std::vector<std::int32_t> kinds;
    stepper s(request, request_head);
    for (;;) {
        const std::int32_t kind = s.number();
        s.bytes(step_head - 4);
        if (kind < 0) return kinds;
        kinds.push_back(kind);
        s.text();
        switch (kind) {
            case 1:
            case opcode::create:
            case opcode::create_container:
            case opcode::create_ttl:
                s.text(), s.acl(), s.bytes(kind == opcode::create_ttl ? 12 : 4);
                break;
            case opcode::set: s.text(), s.bytes(4); break;
            case opcode::get:
            case 8: s.bytes(1); break;
            default: s.bytes(4);  // a removal, a check
        }
    }
}

// pzxid stays as it was when the node was created, and cversion also counts something else.
void make_strange(std::string& answer, std::size_t stat) {
    std::copy_n(answer.begin() + static_cast<std::ptrdiff_t>(stat), 8,
                answer.begin() + static_cast<std::ptrdiff_t>(stat) + 60);
    const std::int32_t cversion = number_at(answer, stat + 36);
    put_number(answer, stat + 36, 3 * cversion + 7);
}

void make_stats_strange(std::string& answer, std::int32_t of) {
    if (number_at(answer, 12) != 0) return;
    static const std::set<std::int32_t> with_stat_behind{opcode::exists,   opcode::get,    opcode::set,
                                                         opcode::get_acl,  opcode::set_acl, opcode::children,
                                                         opcode::create,   opcode::create_container,
                                                         opcode::create_ttl};
    if (with_stat_behind.contains(of) && answer.size() >= answer_head + stat_size)
        return make_strange(answer, answer.size() - stat_size);
    if (of != opcode::multi && of != opcode::multi_read) return;
    stepper s(answer, answer_head);
    for (;;) {
        const std::int32_t kind = s.number();
        const bool is_last = answer.at(s.at()) != 0;
        s.bytes(step_head - 4);
        if (is_last) return;
        if (kind == -1) s.bytes(4);
        if (kind == 1 || kind == opcode::create || kind == opcode::get) s.text();
        if (kind == 8) s.texts();
        if (kind != opcode::create && kind != opcode::get && kind != opcode::set) continue;
        make_strange(answer, s.at());
        s.bytes(stat_size);
    }
}

std::string with_length(const std::string& frame) {
    jute_writer w;
    return w.text(frame).bytes();
}

}  // namespace

// -------------------------------------------------------------------------------------------------- connections

struct limited_server::impl {
    struct connection {
        connection(tcp::socket c, tcp::socket s) : client(std::move(c)), server(std::move(s)) {}
        tcp::socket client, server;
        std::map<std::int32_t, std::deque<std::int32_t>> asked;  // opcodes, by the number of the request
        bool is_refused = false, is_answering = false;

        void end() {
            asio::error_code ignored;
            client.close(ignored);
            server.close(ignored);
        }
    };
    using connection_ptr = std::shared_ptr<connection>;

    impl(const std::string& server, limits w) : what(std::move(w)) {
        const std::size_t colon = server.rfind(':');
        to = tcp::endpoint(asio::ip::make_address(server.substr(0, colon)),
                           static_cast<std::uint16_t>(std::stoi(server.substr(colon + 1))));
        asio::co_spawn(io, accept(), asio::detached);
        thread = std::thread([this] { io.run(); });
    }
    ~impl() {
        io.stop();
        thread.join();
    }

    asio::awaitable<void> accept() {
        for (;;) {
            tcp::socket client = co_await acceptor.async_accept(asio::use_awaitable);
            count([&] { ++connections; });
            asio::co_spawn(io, serve(std::move(client)), asio::detached);
        }
    }

    asio::awaitable<void> serve(tcp::socket client) {
        auto c = std::make_shared<connection>(std::move(client), tcp::socket(io));
        co_await c->server.async_connect(to, asio::use_awaitable);
        const tcp::no_delay at_once(true);
        c->client.set_option(at_once);
        c->server.set_option(at_once);
        std::array<char, 4> first;
        co_await asio::async_read(c->client, asio::buffer(first), asio::use_awaitable);
        if (std::isalpha(static_cast<unsigned char>(first[0]))) {  // "srvr"
            co_await asio::async_write(c->server, asio::buffer(first), asio::use_awaitable);
            asio::co_spawn(io, copy(c), asio::detached);
            co_return co_await pass_bytes(c);
        }
        asio::co_spawn(io, answers(c), asio::detached);
        try {
            co_await requests(c, number_at(std::string_view(first.data(), first.size()), 0));
        } catch (const std::exception&) {
        }
        if (!c->is_refused) c->end();
    }

    asio::awaitable<void> pass_bytes(connection_ptr c) {
        std::array<char, 1024> some;
        for (;;) {
            const std::size_t n = co_await c->server.async_read_some(asio::buffer(some), asio::use_awaitable);
            co_await asio::async_write(c->client, asio::buffer(some, n), asio::use_awaitable);
        }
    }
    asio::awaitable<void> copy(connection_ptr c) {
        std::array<char, 1024> some;
        for (;;) {
            const std::size_t n = co_await c->client.async_read_some(asio::buffer(some), asio::use_awaitable);
            co_await asio::async_write(c->server, asio::buffer(some, n), asio::use_awaitable);
        }
    }

    static asio::awaitable<std::string> rest_of_frame(tcp::socket& from, std::int32_t length) {
        std::string frame(static_cast<std::size_t>(length), '\0');
        co_await asio::async_read(from, asio::buffer(frame), asio::use_awaitable);
        co_return frame;
    }
    static asio::awaitable<std::string> next_frame(tcp::socket& from) {
        std::array<char, 4> head;
        co_await asio::async_read(from, asio::buffer(head), asio::use_awaitable);
        co_return co_await rest_of_frame(from, number_at(std::string_view(head.data(), head.size()), 0));
    }
    static asio::awaitable<void> send(tcp::socket& to, std::string frame) {
        const std::string whole = with_length(frame);
        co_await asio::async_write(to, asio::buffer(whole), asio::use_awaitable);
    }

    asio::awaitable<void> requests(connection_ptr c, std::int32_t length) {
        std::string hello = co_await rest_of_frame(c->client, length);
        constexpr std::size_t session = 16, password = 28;
        if (what.forgets_sessions) {
            const bool had_one = hello.find_first_not_of('\0', session) < session + 8;
            if (had_one) count([&] { ++forgotten; });
            std::fill_n(hello.begin() + session, 8, '\0');
            std::fill_n(hello.begin() + password, 16, '\0');
        }
        co_await send(c->server, std::move(hello));
        for (;;) {
            std::string frame = co_await next_frame(c->client);
            const std::int32_t number = number_at(frame, 0), kind = number_at(frame, 4);
            std::vector<std::int32_t> kinds{kind};
            if (kind == opcode::multi)
                for (const std::int32_t step : steps_of(frame)) kinds.push_back(step);
            count([&] {
                for (const std::int32_t k : kinds) ++seen[k];
            });
            for (const std::int32_t k : kinds)
                if (const auto unknown = what.unknown.find(k); unknown != what.unknown.end())
                    co_return co_await hang_up(c, number, k, unknown->second);
            c->asked[number].push_back(kind);
            co_await send(c->server, std::move(frame));
        }
    }

    // What the server has been asked before is carried out, and the answers are lost.
    asio::awaitable<void> hang_up(connection_ptr c, std::int32_t number, std::int32_t kind, std::int32_t code) {
        count([&] { ++refused[kind]; });
        c->is_refused = true;
        while (c->is_answering) co_await asio::post(io, asio::use_awaitable);  // not in the middle of an answer
        if (code != limits::no_answer) {
            jute_writer answer;
            answer.number(number).long_number(0).number(code);
            co_await send(c->client, answer.bytes());
        }
        asio::error_code ignored;
        c->client.shutdown(tcp::socket::shutdown_send, ignored);
        c->server.close(ignored);
        // Closed with unread bytes, the socket would reset the connection, and the answer might be lost.
        std::array<char, 1024> unread;
        while (!ignored) co_await c->client.async_read_some(asio::buffer(unread), asio::use_awaitable);
    }

    asio::awaitable<void> answers(connection_ptr c) {
        try {
            std::string hello = co_await next_frame(c->server);
            if (what.short_handshake && hello.size() == 37) {
                hello.pop_back();
                std::fill_n(hello.end() - 16, 16, '\0');
            }
            co_await send(c->client, std::move(hello));
            for (;;) {
                std::string frame = co_await next_frame(c->server);
                if (c->is_refused) co_return;
                const auto asked = c->asked.find(number_at(frame, 0));
                if (asked != c->asked.end()) {
                    const std::int32_t kind = asked->second.front();
                    asked->second.pop_front();
                    if (asked->second.empty()) c->asked.erase(asked);
                    if (what.strange_stats) make_stats_strange(frame, kind);
                }
                c->is_answering = true;
                co_await send(c->client, std::move(frame));
                c->is_answering = false;
            }
        } catch (const std::exception&) {
        }
        c->is_answering = false;
        if (!c->is_refused) c->end();
    }

    template <class Change>
    void count(Change change) {
        const std::lock_guard lock(mutex);
        change();
    }

    const limits what;
    asio::io_context io;
    tcp::endpoint to;
    tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
    std::thread thread;

    mutable std::mutex mutex;
    std::size_t connections = 0, forgotten = 0;
    std::map<std::int32_t, std::size_t> seen, refused;  // by opcode
};

limited_server::limited_server(const std::string& server, limits what)
    : impl_(std::make_unique<impl>(server, std::move(what))) {}
limited_server::~limited_server() = default;

std::string limited_server::address() const {
    return "127.0.0.1:" + std::to_string(impl_->acceptor.local_endpoint().port());
}

std::size_t limited_server::connections() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->connections;
}

std::size_t limited_server::sessions_forgotten() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->forgotten;
}

std::size_t limited_server::hang_ups() const {
    const std::lock_guard lock(impl_->mutex);
    std::size_t n = 0;
    for (const auto& [kind, times] : impl_->refused) n += times;
    return n;
}

std::size_t limited_server::asked(std::int32_t opcode) const {
    const std::lock_guard lock(impl_->mutex);
    const auto it = impl_->seen.find(opcode);
    return it == impl_->seen.end() ? 0 : it->second;
}

std::string limited_server::report() const {
    const std::lock_guard lock(impl_->mutex);
    std::string text = std::to_string(impl_->connections) + " connections, " + std::to_string(impl_->forgotten) +
                       " sessions forgotten, hung up at";
    for (const auto& [kind, times] : impl_->refused)
        text += " " + std::to_string(kind) + " (" + std::to_string(times) + " times)";
    return impl_->refused.empty() ? text + " nothing" : text;
}

}  // namespace zkasio::test

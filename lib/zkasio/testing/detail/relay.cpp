#include <zkasio/testing/detail/relay.hpp>

#include <asio/error.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::testing_detail {

using asio::ip::tcp;

namespace {

// For one direction, in bytes: if so much is under way, no more is read until the other side has taken some of it.
constexpr std::size_t most_under_way = 4 * 1024 * 1024;

}  // namespace

relay::relay(asio::io_context& io, tcp::socket client, const relay_rules& rules)
    : client_(std::move(client)),
      server_(io),
      rules_(rules),
      requests_(client_, server_, io),
      replies_(server_, client_, io) {}

void relay::begin(const tcp::endpoint& server) {
    server_.async_connect(server, [self = shared_from_this()](std::error_code failed) {
        if (self->cut_) return;
        if (failed) return self->cut(false);
        std::error_code ignored;
        self->client_.set_option(tcp::no_delay(true), ignored);
        self->server_.set_option(tcp::no_delay(true), ignored);
        self->read(self->requests_);
        self->read(self->replies_);
    });
}

void relay::cut(bool by_reset) {
    if (std::exchange(cut_, true)) return;
    for (tcp::socket* s : {&client_, &server_}) {
        std::error_code ignored;
        if (by_reset) s->set_option(asio::socket_base::linger(true, 0), ignored);
        s->close(ignored);
    }
    for (direction* d : {&requests_, &replies_}) {
        d->timer.cancel();
        if (!d->writing) d->under_way.clear();
    }
}

void relay::rules_changed() {
    write(requests_);
    write(replies_);
}

void relay::read(direction& d) {
    if (cut_ || d.reading || d.ended || d.size_under_way >= most_under_way) return;
    d.reading = true;
    d.from.async_read_some(
        asio::buffer(d.buffer), [self = shared_from_this(), &d](std::error_code failed, std::size_t n) {
            d.reading = false;
            if (self->cut_) return;
            // A read error other than eof is passed on as a reset. With a silence, a delay or data under way, it is
            // queued, and passed on as a regular end.
            if (failed && failed != asio::error::eof && !self->rules_.silent &&
                self->rules_.delay == std::chrono::milliseconds::zero() && d.under_way.empty())
                return self->cut(true);
            if (failed) d.ended = true;
            self->arrived(d, failed ? std::string() : std::string(d.buffer.data(), n));
            self->read(d);
        });
}

void relay::arrived(direction& d, std::string bytes) {
    if (edit_ && &d == &requests_ && !bytes.empty()) {
        beginning_ += bytes;
        if (!edit_(beginning_)) return;
        bytes = std::exchange(beginning_, {});
        edit_ = nullptr;
    }
    d.size_under_way += bytes.size();
    d.under_way.push_back({std::chrono::steady_clock::now() + rules_.delay, std::move(bytes)});
    write(d);
}

void relay::write(direction& d) {
    if (cut_ || d.writing || d.waiting || rules_.silent || d.under_way.empty()) return;
    const item& next = d.under_way.front();
    if (next.due > std::chrono::steady_clock::now()) {
        d.waiting = true;
        d.timer.expires_at(next.due);
        d.timer.async_wait([self = shared_from_this(), &d](std::error_code) {
            d.waiting = false;
            self->write(d);
        });
        return;
    }
    if (next.bytes.empty()) return end(d);
    d.writing = true;
    const std::size_t let = std::min(next.bytes.size(), d.limit - d.passed);
    asio::async_write(d.to, asio::buffer(next.bytes.data(), let),
                      [self = shared_from_this(), &d](std::error_code failed, std::size_t n) {
                          d.writing = false;
                          d.passed += n;
                          self->wrote(d, failed);
                      });
}

void relay::wrote(direction& d, std::error_code failed) {
    if (cut_) return d.under_way.clear();
    if (failed) return cut(false);
    if (d.passed >= d.limit) return cut(limits_reset_);
    d.size_under_way -= d.under_way.front().bytes.size();
    d.under_way.pop_front();
    write(d);
    read(d);
}

// The other direction may continue: the side that has ended may still wait for an answer.
void relay::end(direction& d) {
    d.under_way.pop_front();
    std::error_code ignored;
    d.to.shutdown(tcp::socket::shutdown_send, ignored);
    const auto over = [](const direction& one) { return one.ended && one.under_way.empty(); };
    if (over(requests_) && over(replies_)) cut(false);
}

}  // namespace zkasio::testing_detail

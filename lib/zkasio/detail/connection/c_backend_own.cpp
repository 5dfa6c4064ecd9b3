// The part of c_backend that sends requests which the library does not know, between the library's on its connection,
// and takes their answers out before the library sees them.
//
// Out: while the library has nothing to send, our frame is written to its descriptor. Once a part of the frame was
// written, the library is not called until the rest was, except to read: it might write.
//
// In: a frame is looked at before it is read, and is ours by its number. So that it is known where a frame begins, the
// library reads one at a time, and says whether it has read the whole one. While none of ours is under way and no added
// watch stands, nothing is looked at.
//
// Through a tunnel all of this happens at the library's end of the socket pair: the tunnel makes no difference between
// the library's frames and ours.

#include <zkasio/detail/connection/c_backend.hpp>
#include <zkasio/detail/connection/request_numbers.hpp>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace zkasio::detail {
namespace {

constexpr std::size_t head_size = 8;     // of a frame: its length, and a number
constexpr std::size_t answer_head = 16;  // behind the length: a number, a transaction, a code
constexpr std::int32_t event_number = -1, unimplemented = -6;
// A path is shorter than a request, and a tunnel's socket pair has to hold the event as a whole.
constexpr std::size_t longest_event = 2 << 20, longest_event_in_tunnel = 64 << 10;
constexpr const char* out_of_step = "its answers are out of step with the requests";

std::int32_t number_at(std::span<const char> bytes, std::size_t at) {
    std::uint32_t v = 0;
    std::memcpy(&v, bytes.data() + at, sizeof v);
    return static_cast<std::int32_t>(ntohl(v));
}

// Ping, credential, watches: numbers of requests that the library sends by itself, see answer_order.
bool is_reserved(std::int32_t number) noexcept { return number == -2 || number == -4 || number == -8; }

bool is_for_later() noexcept { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

// ------------------------------------------------------------------------------------------------------------ out

std::error_code c_backend::submit_own(op_id id, const request& r) {
    const std::error_code not_now = std::make_error_code(std::errc::resource_unavailable_try_again);
    const own_question what = own_question_of(r);
    // The library reads an answer of its own first, behind which a frame begins: without one to come, it is asked for.
    if (!looks_at_frames() && !between_frames_ && outstanding_ == 0) {
        const library_call guard(*this);
        step_over_reserved_numbers(zh_);
        if (zoo_awexists(zh_, "/", nullptr, nullptr, &sink::on_mark, nullptr) == ZOK) ++outstanding_;
    }
    int fd = -1, events = 0;
    timeval tv{};
    if (library_interest(fd, events, tv) != ZOK || (events & ZOOKEEPER_WRITE) != 0 || !connected()) return not_now;

    const std::int32_t number = own_number_after(own_number_);
    unsent_ = own_frame(number, r, chroot_);
    const std::size_t whole = unsent_.size();
    unsent_since_ = std::chrono::steady_clock::now();
    finish_own_frame();
    if (unsent_.size() == whole) {
        unsent_.clear();
        own_wants_write_ = true;
        return not_now;
    }
    own_number_ = number;
    own_request& asked = own_.emplace_back(own_request{id, what, number, outstanding_ - ahead_of_own_, {}});
    ahead_of_own_ += asked.ahead;
    if (what.opcode == add_watch_request::opcode || what.opcode == remove_added_watch_request::opcode)
        asked.watched = path_of(r);
    return {};
}

// True: all of it was sent.
bool c_backend::finish_own_frame() {
    ssize_t n = 1;
    while (!unsent_.empty() && (n = ::send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT)) > 0)
        unsent_.erase(0, static_cast<std::size_t>(n));
    if (!in_batch_) send_through_tunnel();
    return unsent_.empty();
}

// Instead of the library's own interest, which may send a ping. A server that takes nothing for as long as it may be
// silent is left.
interest c_backend::wait_for_own_frame() {
    const auto waited = std::chrono::steady_clock::now() - unsent_since_;
    const std::chrono::milliseconds limit = session_timeout() * 2 / 3;
    if (waited >= limit) {
        fail(server_ + ": no answer for two thirds of the session timeout");
        left_by_us_ = true;
        fail_connection();
    }
    report();
    interest result = network_interest();
    if (waited < limit) result.timeout = std::chrono::ceil<std::chrono::milliseconds>(limit - waited);
    return result;
}

// ------------------------------------------------------------------------------------------------------------- in

// At the beginning of a frame, or of the rest of one of ours.
c_backend::arrival c_backend::look_at_next_frame() {
    if (own_answer_size_ > 0) return read_own_frame();
    std::array<char, 512> seen;  // most events are shorter
    const ssize_t n = ::recv(fd_, seen.data(), seen.size(), MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && is_for_later()) return arrival::nothing;
    if (n < 0) return wrong_frame(std::generic_category().message(errno));  // told only once
    if (n == 0) return arrival::librarys;  // it notices by itself
    const std::span<const char> bytes(seen.data(), static_cast<std::size_t>(n));
    if (bytes.size() < head_size) return wait_for_bytes(head_size);
    low_water(1);
    const std::size_t length = static_cast<std::uint32_t>(number_at(bytes, 0));
    const std::int32_t number = number_at(bytes, 4);
    if (length > answer_order::largest) return wrong_frame("it sends a frame of more than 128 MiB");
    if (length < answer_head) return wrong_frame("it sends a frame that is too short for an answer");
    if (is_own_number(number)) {
        const bool in_turn = !own_.empty() && own_.front().number == number && own_.front().ahead == 0;
        if (!in_turn && bytes.size() < 4 + answer_head) return wait_for_bytes(4 + answer_head);
        if (!in_turn) return look_at_refusal(number, length == answer_head ? number_at(bytes, 16) : 0);
        own_answer_size_ = 4 + length;
        return read_own_frame();
    }
    if (number == event_number) return added_watches_.empty() ? arrival::librarys : look_at_event(bytes, 4 + length);
    // The library asserts that it waits for an answer, and knows nothing of ours, which may have been sent before.
    const bool is_due = outstanding_ > 0 && (own_.empty() || own_.front().ahead > 0);
    return is_due || is_reserved(number) ? arrival::librarys : wrong_frame(out_of_step);
}

// A server that does not know a request says so at once, before it answers what it was asked before, and hangs up.
c_backend::arrival c_backend::look_at_refusal(std::int32_t number, std::int32_t code) {
    const auto asked = std::find_if(own_.begin(), own_.end(), [&](const auto& r) { return r.number == number; });
    if (asked == own_.end() || code != unimplemented) return wrong_frame(out_of_step);
    known_->answered(server_, asked->what.opcode, false, boot_clock::now());
    return wrong_frame("it does not know a request, and hangs up");
}

c_backend::arrival c_backend::look_at_event(std::span<const char> seen, std::size_t length) {
    std::string whole;
    if (length > (tunnel_ ? longest_event_in_tunnel : longest_event))
        return wrong_frame("the path in an event of its is too long");
    if (seen.size() < length) {
        whole.resize(length);
        const ssize_t n = ::recv(fd_, whole.data(), length, MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 || static_cast<std::size_t>(n) < length) return wait_for_bytes(length);
        seen = whole;
        low_water(1);
    }
    std::optional<told_change> change;
    if (const char* const wrong = read_event(seen.subspan(4, length - 4), chroot_, change)) return wrong_frame(wrong);
    if (change) news_.emplace_back(added_watch_news{std::move(*change)});
    return arrival::librarys;
}

c_backend::arrival c_backend::read_own_frame() {
    std::array<char, 16 * 1024> some;
    while (own_answer_.size() < own_answer_size_) {
        const std::size_t most = std::min(some.size(), own_answer_size_ - own_answer_.size());
        const ssize_t n = ::recv(fd_, some.data(), most, MSG_DONTWAIT);
        if (n < 0 && is_for_later()) return arrival::nothing;
        if (n < 0) return wrong_frame(std::generic_category().message(errno));
        if (n == 0) return arrival::librarys;
        own_answer_.append(some.data(), static_cast<std::size_t>(n));
    }
    return take_own_answer();
}

c_backend::arrival c_backend::take_own_answer() {
    const std::string answer = std::exchange(own_answer_, {});
    own_answer_size_ = 0;
    own_request& asked = own_.front();
    reply r;
    if (const char* const wrong = read_own_answer(asked.what, std::span(answer).subspan(4), chroot_, r))
        return wrong_frame(wrong);
    known_->answered(server_, asked.what.opcode, r.code != zk_errc::unimplemented, boot_clock::now());
    if (!r.code && asked.what.opcode == add_watch_request::opcode)
        added_watches_.insert(std::move(asked.watched));
    else if (!r.code && asked.what.opcode == remove_added_watch_request::opcode)
        added_watches_.erase(asked.watched);
    reply_news& told = std::get<reply_news>(news_.emplace_back(std::in_place_type<reply_news>, asked.id));
    told.what = std::move(r);
    own_.pop_front();
    return arrival::ours;
}

// Looking at them does not take them away, so the socket stays readable: the next event is to come with all of them.
c_backend::arrival c_backend::wait_for_bytes(std::size_t bytes) {
    if (tunnel_) return tunnel_->has_ended() && !tunnel_->holds_back() ? arrival::librarys : arrival::nothing;
    if (hung_up_in_between() != handshake::incomplete) {
        std::string all(bytes, '\0');  // they may have come together with the end
        const ssize_t n = ::recv(fd_, all.data(), bytes, MSG_PEEK | MSG_DONTWAIT);
        const bool are_there = n >= 0 && static_cast<std::size_t>(n) == bytes;
        return are_there ? look_at_next_frame() : arrival::librarys;  // it reads those, and then the end
    }
    low_water(bytes);
    return arrival::nothing;
}

void c_backend::low_water(std::size_t bytes) {
    if (std::exchange(low_water_, bytes) == bytes) return;
    const int least = static_cast<int>(bytes);
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

// The requests of the library and ours are answered in the order of sending: to be called with the library's.
void c_backend::count_answers(std::size_t librarys) noexcept {
    const std::size_t n = std::min(librarys, own_.front().ahead);
    own_.front().ahead -= n;
    ahead_of_own_ -= n;
}

c_backend::arrival c_backend::wrong_frame(const std::string& why) {
    fail(server_ + ": " + why);
    left_by_us_ = true;
    fail_connection();
    return arrival::wrong;
}

// The connection is over, or another one begins.
void c_backend::lose_own() {
    for (own_request& asked : std::exchange(own_, {})) {
        reply& r = std::get<reply_news>(news_.emplace_back(std::in_place_type<reply_news>, asked.id)).what;
        r.code = zk_errc::connection_loss;
        r.sent = true;
        if (!left_by_us_) hung_up_at_.insert(asked.what.opcode);
    }
    ahead_of_own_ = own_answer_size_ = 0;
    added_watches_.clear();
    unsent_.clear();
    own_answer_.clear();
    own_wants_write_ = false;
    between_frames_ = true;
    low_water_ = 1;
}

}  // namespace zkasio::detail

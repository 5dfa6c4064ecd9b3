#include <zkasio/detail/connection/sasl_login.hpp>

#include <algorithm>
#include <chrono>

namespace zkasio::detail {
namespace {

constexpr std::size_t length_size = 4, answer_head = 16;  // behind the length: a number, a transaction, a code
constexpr std::int32_t sasl_opcode = 102;
constexpr std::int32_t auth_failed = -115, sasl_required = -124;
constexpr const char* malformed = "SASL: the server's answer is malformed";

std::int32_t number_at(std::string_view bytes, std::size_t at) noexcept {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
    return static_cast<std::int32_t>(v);
}

void append(std::string& to, std::size_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<char>(number >> shift & 0xff));
}

}  // namespace

void sasl_login::fail(std::string why) {
    if (at_ == stage::over || at_ == stage::failed) return;
    at_ = stage::failed;
    failure_ = std::move(why);
    challenge_.reset();
    incoming_.clear();
    outgoing_.clear();
    kept_.clear();
}

// ----------------------------------------------------------------------------------------------- the mechanism

void sasl_login::stepped(sasl_step made) {
    if (at_ != stage::first_step && at_ != stage::step) return;
    if (!made.token() && !made.is_last()) return fail("SASL: the mechanism has made no step");
    if (made.token() && made.token()->size() > largest_token) return fail("SASL: the mechanism's token is too long");
    if (at_ == stage::step) return send(std::move(made));
    first_ = std::move(made);
    at_ = stage::session;
}

void sasl_login::send(sasl_step made) {
    if (!made.token()) return end();
    if (number_ == most_steps) return fail("SASL: the login does not come to an end");
    append(outgoing_, 12 + made.token()->size());
    append(outgoing_, static_cast<std::size_t>(++number_));
    append(outgoing_, sasl_opcode);
    append(outgoing_, made.token()->size());
    outgoing_ += *made.token();
    is_last_ = made.is_last();
    at_ = stage::answer;
}

void sasl_login::end() {
    if (!incoming_.empty()) return fail(out_of_step);
    at_ = stage::over;
}

// ------------------------------------------------------------------------------------------------ to the server

std::size_t sasl_login::request_size() const noexcept {
    return request_sent_ < length_size
               ? length_size
               : length_size + static_cast<std::uint32_t>(number_at({request_head_.data(), length_size}, 0));
}

std::size_t sasl_login::may_pass() const noexcept {
    return at_ == stage::session ? request_size() - request_sent_ : 0;
}

void sasl_login::passing(std::span<const char> bytes, time_point now) {
    if (request_sent_ == 0) requested_at_ = now;
    for (std::size_t i = 0; i < bytes.size() && request_sent_ + i < length_size; ++i)
        request_head_[request_sent_ + i] = bytes[i];
    request_sent_ += bytes.size();
}

// ---------------------------------------------------------------------------------------------- from the server

void sasl_login::received(std::span<const char> bytes) {
    if (at_ == stage::failed) return;
    incoming_.append(bytes.data(), bytes.size());
    if (at_ == stage::session && !read_session()) return;
    if (at_ == stage::answer && !read_answer()) return;
    if (at_ == stage::step && !incoming_.empty()) fail(out_of_step);
}

// True: there is an answer, and a login behind it.
bool sasl_login::read_session() {
    if (incoming_.size() < length_size) return false;
    const std::int32_t length = number_at(incoming_, 0);
    const bool is_answer = length == 36 || length == 37;
    const std::size_t size = is_answer ? length_size + static_cast<std::size_t>(length) : 0;
    if (incoming_.size() < size) return false;
    const std::int32_t timeout = is_answer ? number_at(incoming_, 8) : 0;
    if (timeout <= 0) {  // no session, or no ZooKeeper server: not for us to judge
        kept_ = std::exchange(incoming_, {});
        at_ = stage::over;
        return false;
    }
    if (request_sent_ < request_size()) return fail(out_of_step), false;
    kept_ = incoming_.substr(0, size);
    incoming_.erase(0, size);
    deadline_ = requested_at_ + std::chrono::milliseconds(timeout) / 2;
    if (!incoming_.empty()) return fail(out_of_step), false;
    send(*std::exchange(first_, std::nullopt));
    return at_ == stage::answer;
}

// True: there was an answer, which was in order.
bool sasl_login::read_answer() {
    if (incoming_.empty()) return false;
    if (!outgoing_.empty()) return fail(out_of_step), false;
    if (incoming_.size() < length_size) return false;
    const std::size_t length = static_cast<std::uint32_t>(number_at(incoming_, 0));
    if (length < answer_head || length > answer_head + length_size + largest_token) return fail(malformed), false;
    if (incoming_.size() < 2 * length_size) return false;
    if (number_at(incoming_, 4) != number_) return fail(out_of_step), false;
    if (incoming_.size() < length_size + length) return false;
    if (incoming_.size() > length_size + length) return fail(out_of_step), false;
    const std::string answer = std::exchange(incoming_, {});
    const std::int32_t code = number_at(answer, 16);
    if (code == auth_failed || code == sasl_required)
        return refuse("refuses this client (a wrong user or password, or a server that is not set up for it)"), false;
    if (code != 0) return fail("SASL: the server answers with the error " + std::to_string(code)), false;
    constexpr std::size_t token_at = length_size + answer_head + length_size;
    if (answer.size() < token_at) return fail(malformed), false;
    const std::int32_t size = number_at(answer, token_at - length_size);
    const std::size_t there = answer.size() - token_at;
    if (size < -1 || static_cast<std::size_t>(std::max(size, 0)) != there) return fail(malformed), false;
    if (size == -1 && !is_last_ && number_ == 1)
        return refuse("does not offer it (its JAAS configuration has no section Server)"), false;
    challenged(answer.substr(token_at));
    return at_ == stage::step;
}

void sasl_login::refuse(const char* how) {
    fail(std::string("SASL: the server ") + how);
    is_refused_ = true;
}

void sasl_login::challenged(std::string token) {
    if (!is_last_) {
        challenge_ = std::move(token);
        at_ = stage::step;
        return;
    }
    if (!token.empty()) return fail(out_of_step);
    end();
}

// -------------------------------------------------------------------------------------------------------- time

sasl_login::time_point sasl_login::deadline() const noexcept {
    return at_ == stage::answer || at_ == stage::step ? deadline_ : time_point::max();
}

void sasl_login::check_time(time_point now) {
    if (now >= deadline()) fail("SASL: the login has taken half of the session timeout");
}

}  // namespace zkasio::detail

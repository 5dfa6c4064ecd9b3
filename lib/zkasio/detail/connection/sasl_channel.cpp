#include <zkasio/detail/connection/sasl_channel.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::detail {

sasl_channel::sasl_channel(std::unique_ptr<secure_channel> below, std::shared_ptr<sasl_steps> steps, sasl_server with)
    : below_(std::move(below)), steps_(std::move(steps)), talk_(steps_->begin(std::move(with))) {}

// Starts the step that is due, and takes the outcome of the one that has ended.
void sasl_channel::make_step() {
    if (auto due = login_.take_challenge()) challenge_ = std::move(due);
    if (challenge_ && steps_->start(talk_, *challenge_)) challenge_.reset();
    auto ended = challenge_ ? std::nullopt : steps_->take(talk_);
    if (!ended) return;
    if (ended->made)
        login_.stepped(std::move(*ended->made));
    else
        login_.fail(std::move(ended->failure));
}

secure_channel::progress sasl_channel::handshake() {
    if (!below_is_open_) {
        if (const progress p = below_->handshake(); p != progress::done) return p;
        below_is_open_ = true;
    }
    make_step();
    if (has_failed()) return progress::failed;
    return login_.at() == sasl_login::stage::first_step ? wait_for_first_step() : progress::done;
}

// What comes meanwhile is read: left unread, it would wake the client again at once, and hide that the server is gone.
secure_channel::progress sasl_channel::wait_for_first_step() {
    const progress how = below_->read(buffer_).how;
    if (how == progress::done) login_.fail(sasl_login::out_of_step);
    hung_up_ = how == progress::ended;
    return how == progress::done || hung_up_ ? progress::failed : how;
}

secure_channel::transfer sasl_channel::read(std::span<char> to) {
    if (!is_over())
        if (const transfer t = log_in(); t.how != progress::done) return t;
    if (kept_.empty()) kept_ = login_.take_kept();
    if (kept_.empty()) return below_->read(to);
    const std::size_t n = std::min(kept_.size(), to.size());
    std::copy_n(kept_.begin(), n, to.begin());
    kept_.erase(0, n);
    return {progress::done, n};
}

// done: it is over.
secure_channel::transfer sasl_channel::log_in() {
    for (;;) {
        login_.check_time(boot_clock::now());
        make_step();
        const progress sent = has_failed() ? progress::failed : send();
        if (has_failed()) return {progress::failed};
        if (sent != progress::done) return {ended_by(sent)};
        if (is_over()) return {progress::done};
        const transfer t = below_->read(buffer_);
        if (t.how != progress::done) return {ended_by(t.how)};
        login_.received(std::span<const char>(buffer_).first(t.bytes));
    }
}

// The end of a connection in the middle of a login is a failure of the login: servers hang up on whom they refuse.
secure_channel::progress sasl_channel::ended_by(progress how) {
    if (!is_under_way() || (how != progress::ended && how != progress::failed)) return how;
    const std::string why = how == progress::failed ? below_->failure() : "";
    login_.fail("SASL: hung up during the login" + (why.empty() ? "" : ": " + why));
    return progress::failed;
}

secure_channel::progress sasl_channel::send() {
    while (!login_.outgoing().empty()) {
        const transfer t = below_->write(login_.outgoing());
        if (t.how != progress::done) return t.how;
        login_.sent(t.bytes);
    }
    return progress::done;
}

// The library knows of no session before the login is over, and so it sends nothing but the request for one.
secure_channel::transfer sasl_channel::write(std::span<const char> from) {
    if (is_over()) return below_->write(from);
    const std::size_t most = std::min(from.size(), login_.may_pass());
    if (most == 0) {
        login_.fail("SASL: a request came before the end of the login");
        return {progress::failed};
    }
    const auto now = boot_clock::now();
    const transfer t = below_->write(from.first(most));
    if (t.how == progress::done) login_.passing(from.first(t.bytes), now);
    return t;
}

std::string sasl_channel::failure() const {
    if (hung_up_) return "hung up before the login (not serving, or too many connections)";
    return has_failed() ? login_.failure() : below_->failure();
}

secure_channel::failure_kind sasl_channel::kind_of_failure() const {
    if (is_under_way()) return failure_kind::login;
    if (!has_failed()) return below_->kind_of_failure();
    return login_.is_refused() ? failure_kind::refusal : failure_kind::login;
}

std::string sasl_channel::awaits() const {
    if (challenge_) return "SASL: the mechanism has not ended the step of an earlier connection";
    switch (login_.at()) {
        case sasl_login::stage::first_step:
            return below_is_open_ ? "SASL: the mechanism does not end its first step" : "";
        case sasl_login::stage::answer: return "SASL: the server does not answer";
        case sasl_login::stage::step: return "SASL: the mechanism does not end its step";
        default: return "";
    }
}

}  // namespace zkasio::detail

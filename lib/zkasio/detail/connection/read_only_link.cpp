#include <zkasio/detail/connection/read_only_link.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace zkasio::detail {

using namespace std::chrono_literals;

open_params read_only_link::to_open() const {
    open_params p;
    p.read_only = true;
    p.auth = owner_.credentials();
    return p;
}

void read_only_link::process(bool readable, bool writable) {
    if (!link_.is_open()) return;
    link_.secure();
    if (link_.is_open()) link_.process(readable, writable);
}

void read_only_link::pump(time_point now) {
    if (!owner_.wants_read_only()) return stop();
    if (over_) return pause(now);
    if (!trying_ && now >= not_before_) {
        trying_ = true;
        link_.resolve();  // may open the backend at once, and then calls drive(), which calls pump()
        return;
    }
    if (!link_.is_open()) return;
    link_.read_if_late(now);
    if (link_.is_open() && !over_) link_.pump(now);
    if (over_) pause(now);
}

// A server that accepts connections and closes them is not to be asked in a loop.
void read_only_link::pause(time_point now) {
    stop();
    not_before_ = now + 200ms * (1 << losses_);
    losses_ = std::min(losses_ + 1, 6);
}

void read_only_link::on_time(time_point now) {
    if (!trying_) return;
    link_.on_time(now);
    link_.read_what_has_come();
    link_.give_up_attempt(now);
}

read_only_link::time_point read_only_link::due() const noexcept {
    if (trying_) return link_.due();
    return not_before_ > time_point{} ? not_before_ : time_point::max();
}

void read_only_link::stop() {
    const bool was_up = up_;
    retire();
    if (was_up) owner_.read_only_down();
}

void read_only_link::retire() {
    not_before_ = {};
    up_ = false;
    if (!trying_) return;
    trying_ = over_ = false;
    link_.stop_resolving();
    link_.retire();
}

void read_only_link::on_reply(op_id id, reply&& r) noexcept {
    // This connection and its session have ended, and those of the client have not: the reads are sent again.
    if (r.sent && r.code == condition::session_ended) r.code = zk_errc::connection_loss;
    if (!r.sent) {
        losses_ = 0;
        link_.answered();
    }
    owner_.on_reply(id, std::move(r));
}

void read_only_link::on_link(link_state s) noexcept {
    link_.changed(s);
    if (s == link_state::connected) {
        up_ = true;
        return owner_.read_only_up();
    }
    over_ = true;
    if (std::exchange(up_, false)) owner_.read_only_down();
}

}  // namespace zkasio::detail

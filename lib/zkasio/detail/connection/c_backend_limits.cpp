// The part of c_backend that is about requests which not all servers know: what their answers, and the ends of
// connections, say of the servers; and the create for servers that do not know the one which answers with a stat.

#include <zkasio/detail/connection/c_backend.hpp>
#include <zkasio/detail/connection/request_numbers.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace zkasio::detail {

// ------------------------------------------------------------------------------------------ what the servers know

// none: every server knows the request, or this one has answered one of its kind.
std::int32_t c_backend::doubtful_number(const request& r) const {
    const std::int32_t number = known_requests::number_of(r);
    return answered_here_.contains(number) ? static_cast<std::int32_t>(known_requests::opcode::none) : number;
}

bool c_backend::lacks(std::int32_t number) const {
    return known_->has_doubts() && known_->lacks(server_, number, boot_clock::now());
}

// On this connection the next request may be one that the server does not know, whose refusal has to be recognized.
bool c_backend::may_be_refused() const {
    return !answered_here_.contains(known_requests::opcode::create_with_stat);
}

bool c_backend::has_nothing_to_read() const noexcept {
    char any = 0;
    return ::recv(fd_, &any, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

// Called by the library.
void c_backend::learn_from(op_id id, reply& r) {
    const auto asked = std::find_if(doubtful_.begin(), doubtful_.end(), [id](const auto& d) { return d.first == id; });
    if (asked == doubtful_.end()) return;
    const std::int32_t number = asked->second;
    doubtful_.erase(asked);
    if (r.sent && id == refused_id_) {
        r.sent = false;
        r.code = zk_errc::unimplemented;
        return known_->answered(server_, number, false, boot_clock::now());
    }
    if (r.sent) {
        if (r.code == zk_errc::connection_loss && !left_by_us_) hung_up_at_.insert(number);
        return;
    }
    // ClickHouse Keeper has refused containers so.
    if (number == known_requests::opcode::create_container && r.code == zk_errc::bad_arguments)
        r.code = zk_errc::unimplemented;
    else if (r.code == zk_errc::unimplemented)
        is_refused_request_ = number != known_requests::opcode::create_ttl;
    const bool is_known = r.code != zk_errc::unimplemented;
    const bool is_switched_off = !is_known && number == known_requests::opcode::create_ttl;  // the connection stays
    if (!is_switched_off) known_->answered(server_, number, is_known, boot_clock::now());
    if (is_known) answered_here_.insert(number);
}

// A server refuses a request that it does not know at once, before it answers what it was asked before, and hangs up. The
// library would take that for an answer out of step. It does not tell the numbers of its requests: the refused one is
// the first that not all servers know.
c_backend::arrival c_backend::leave_at_refusal() {
    if (doubtful_.front().second == known_requests::opcode::create_ttl) return arrival::librarys;  // see learn_from()
    refused_id_ = doubtful_.front().first;
    return wrong_frame("it does not know a request, and hangs up");
}

// A server hangs up behind such a refusal: what would still be sent on this connection would be lost.
void c_backend::leave_server_that_lacks() {
    is_refused_request_ = false;
    fail(server_ + ": it does not know a request, and hangs up");
    left_by_us_ = true;
    fail_connection();
}

void c_backend::conclude_requests() {
    if (hung_up_at_.empty()) return;
    known_->hung_up(server_, std::exchange(hung_up_at_, {}), boot_clock::now());
}

// -------------------------------------------------------------------------------------- a create without a stat

namespace {

// The stat that the create would have answered with, of what is read right behind it: another client may have written
// the node in between. None: the node has gone, or is another one of the same name.
node_stat stat_of_created(const node_stat& seen, create_mode mode, std::int64_t session) {
    if (is_ephemeral(mode) && seen.ephemeral_owner != session) return {};
    node_stat s = seen;
    s.mzxid = s.pzxid = s.czxid;
    s.mtime = s.ctime;
    s.version = s.cversion = s.aversion = s.num_children = 0;
    return s;
}

}  // namespace

bool c_backend::is_held_back(std::size_t news_at) const noexcept {
    const auto* const a = std::get_if<reply_news>(&news_[news_at]);
    return a && a->has != reply_news::stat::known;
}

// Of all creates at once. If the connection is lost, the outcome of the create counts as unknown, as if its own answer
// had been lost.
void c_backend::ask_for_stats() {
    if (without_stat_.empty() || made_here_.forked()) return;
    bool is_any_sent = false;
    for (news& one : news_) {
        auto* const a = std::get_if<reply_news>(&one);
        if (!a || a->has != reply_news::stat::missing) continue;
        if (connected() && !unsent_.empty()) return;  // next_interest() comes back
        bool is_sent = false;
        if (connected()) {
            const library_call guard(*this);
            step_over_reserved_numbers(zh_);
            is_sent = zoo_awexists(zh_, a->what.path.c_str(), nullptr, nullptr, &sink::on_created_stat,
                                   as_data(a->id)) == ZOK;
        }
        if (is_sent) {
            ++outstanding_;
            a->has = reply_news::stat::asked;
            is_any_sent = true;
            continue;
        }
        without_stat_.erase(a->id);
        a->has = reply_news::stat::known;
        a->what.path.clear();
        a->what.code = zk_errc::connection_loss;
        a->what.sent = true;
    }
    if (is_any_sent && !in_batch_) send_through_tunnel();
}

void c_backend::sink::on_created_stat(int rc, const ::Stat* s, const void* data) noexcept {
    c_backend* const self = library_call::current;
    if (self->outstanding_ > 0) --self->outstanding_;
    const op_id id = as_id(data);
    const auto created = self->without_stat_.extract(id);
    const auto is_of = [id](const news& one) {
        const auto* const a = std::get_if<reply_news>(&one);
        return a && a->id == id && a->has == reply_news::stat::asked;
    };
    const auto at = std::find_if(self->news_.begin(), self->news_.end(), is_of);
    if (at == self->news_.end() || created.empty()) return;
    reply_news& told = std::get<reply_news>(*at);
    told.has = reply_news::stat::known;
    if (rc == ZOK && s) told.what.stat = stat_of_created(to_stat(*s), created.mapped(), self->session_id());
    if (rc == ZOK || rc == ZNONODE || rc == ZNOAUTH) return;
    told.what.path.clear();
    told.what.code = to_code(rc);
    told.what.sent = true;
}

}  // namespace zkasio::detail

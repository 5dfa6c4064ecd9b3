// The part of c_backend that is about requests which not all servers know: what their answers, and the ends of
// connections, say of the servers; and the create for servers that do not know the one which answers with a stat.

#include <zkasio/detail/connection/c_backend.hpp>
#include <zkasio/detail/connection/request_numbers.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace zkasio::detail {

// ------------------------------------------------------------------------------------------ what the servers know

bool c_backend::lacks(std::int32_t number) const {
    return known_->has_doubts() && known_->lacks(server_, number, boot_clock::now());
}

// Called by the library, which has found the request that a server's answer belongs to. A server of ZooKeeper refuses a
// request that it does not know at once, and hangs up. If it has not answered earlier requests by then, the library
// takes the refusal for an answer out of step: nothing is learnt of it, and the outcome of all requests is unknown, see
// request_table::suspect_refused().
void c_backend::learn_from(op_id id, int rc, reply& r) {
    const auto asked = std::find_if(doubtful_.begin(), doubtful_.end(), [id](const auto& d) { return d.first == id; });
    if (asked == doubtful_.end()) return;
    const std::int32_t number = asked->second;
    doubtful_.erase(asked);
    if (r.sent) {
        if (rc == ZCONNECTIONLOSS && !left_by_us_) hung_up_at_.insert(number);
        return;
    }
    // ClickHouse Keeper has refused containers so.
    const bool is_like_keeper = number == known_requests::opcode::create_container && rc == ZBADARGUMENTS;
    const bool is_refused = rc == ZUNIMPLEMENTED || (is_like_keeper && !known_->is_zookeeper(server_));
    const bool is_of_server = rc == ZOK || rc < ZAPIERROR;  // the library's own codes are larger
    if (!is_refused && !is_of_server) return;
    if (is_refused && number == known_requests::opcode::create_ttl) return;  // switched off; the connection stays
    known_->answered(server_, number, !is_refused, boot_clock::now());
    if (!is_refused) answered_here_.insert(number);
    if (is_refused) r.code = zk_errc::unimplemented;
    is_refused_request_ = rc == ZUNIMPLEMENTED;
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
    const auto at = [this](std::size_t i) { return std::get_if<reply_news>(&news_[i]); };
    for (std::size_t i = 0; i < news_.size(); ++i) {  // the library may log: that is one more of them
        const reply_news* const created = at(i);
        if (!created || created->has != reply_news::stat::missing) continue;
        if (connected() && !unsent_.empty()) return;  // next_interest() comes back
        bool is_sent = false;
        if (connected()) {
            const library_call guard(*this);
            step_over_reserved_numbers(zh_);
            const std::string path = created->what.path;
            is_sent = zoo_awexists(zh_, path.c_str(), nullptr, nullptr, &sink::on_created_stat,
                                   as_data(created->id)) == ZOK;
        }
        reply_news* const a = at(i);
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
    // Nobody may rely on an ephemeral node without a stat, as the owner of a lock would: it is to be looked for.
    const bool is_needed = is_ephemeral(created.mapped()) && told.what.stat.czxid == 0;
    const bool is_answered = rc == ZOK || rc == ZNONODE || rc == ZNOAUTH;
    if (is_answered && !is_needed) return;
    told.what.path.clear();
    told.what.code = is_answered ? make_error_code(zk_errc::connection_loss) : to_code(rc);
    told.what.sent = true;
}

}  // namespace zkasio::detail

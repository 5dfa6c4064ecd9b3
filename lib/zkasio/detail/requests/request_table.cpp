#include <zkasio/detail/requests/request_table.hpp>

#include <zkasio/detail/base/random_engine.hpp>

#include <asio/error.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>

namespace zkasio::detail {

// The invariants: true except while a member function runs.
void request_table::check() const noexcept {
    assert(issued_ <= entries_.size());
    assert(issued_ > 0 || issued_bytes_ == 0);
    assert(spare_.size() <= most_spare);
    assert(expiring_.empty() || !link_.connected());
}

send_queue::lane request_table::lane_of(const entry& e) noexcept {
    if (e.urgent) return send_queue::lane::urgent;
    if (e.is_late) return send_queue::lane::late;
    return e.at == stage::queued_again ? send_queue::lane::again : send_queue::lane::normal;
}

// Whether the request waits for a connection for at most client_options::connection_timeout.
bool request_table::may_expire(const entry& e) const noexcept {
    const bool for_session = e.patient && e.pinned && owner_.id_of(*e.pinned) != 0;
    return !e.until_certain && !std::holds_alternative<internal_receiver>(e.to) && !for_session;
}

// ----------------------------------------------------------------------------------------------- asking for one

void request_table::submit(op_id id, command&& c, request_receiver&& to) {
    entry& e = insert(id, clock::now(), std::move(c));
    e.to = std::move(to);
    enqueue(id, e);
}

void request_table::submit(command&& c, kept_reply_ptr to, repeat r) {
    const op_id id = to->id = next_id();
    entry& e = insert(id, clock::now(), std::move(c));
    e.to = std::move(to);
    e.until_certain = r != repeat::never;
    e.until_gone = r == repeat::until_gone;
    if (e.until_certain) e.work = owner_.work().begin();
    enqueue(id, e);
}

op_id request_table::submit(command&& c, std::function<void(reply&&)> then, urgency u) {
    const op_id id = next_id();
    entry& e = insert(id, clock::now(), std::move(c));
    e.to = std::move(then);
    e.urgent = u == urgency::first;
    enqueue(id, e);
    return id;
}

namespace {

// Or has a frame of our own, which is nothing for a connection that is not the library's as it stands.
bool changes_or_needs_quorum(const request& r) {
    return is_write(r) || std::holds_alternative<sync_request>(r) || is_own(r);
}

}  // namespace

// Here and not by the server: so it is certain that nothing was done.
void request_table::refuse_read_only(op_id id) {
    auto node = entries_.extract(id);
    reply r;
    r.code = zk_errc::not_read_only;
    finish(std::move(node.mapped()), std::move(r), clock::now());
    drop(std::move(node));
}

void request_table::enqueue(op_id id, entry& e) {
    if (const std::error_code refused = owner_.refusal(e.pinned.get())) return fail(id, refused);
    if (options_.reads_only() && e.what && changes_or_needs_quorum(*e.what)) return refuse_read_only(id);
    if (e.what && !take_room(e)) return fail(id, errc::too_many_ephemerals);
    e.is_late = !fatal_.empty() && e.connection != 0 && is_hung_up_at(e);
    queue_.push(lane_of(e), id);
    if (!link_.connected() && may_expire(e)) expiring_.push_back(id);
    // Drops the ids of requests that were cancelled while there was no connection.
    const auto has_ended = [&](op_id other) { return !entries_.contains(other); };
    const std::size_t many = 2 * entries_.size() + 1000;
    if (queue_.waiting() > many) queue_.sweep(has_ended);
    if (expiring_.size() > many) std::erase_if(expiring_, has_ended);
    check();
    owner_.request_waits();
}

request_table::entry& request_table::insert(op_id id, time_point now, command&& c) {
    if (c.again) telemetry_.counters.repeated.add();
    entries::iterator at;
    bool is_new = false;
    if (spare_.empty()) {
        std::tie(at, is_new) = entries_.try_emplace(id);
    } else {
        spare_.back().key() = id;
        auto added = entries_.insert(std::move(spare_.back()));
        spare_.pop_back();
        at = added.position;
        is_new = added.inserted;
    }
    assert(is_new);
    entry& e = at->second;
    static_cast<command&>(e) = std::move(c);
    e.queued = now;
    return e;
}

// ------------------------------------------------------------------------------------------------ ephemeral nodes

bool request_table::take_room(entry& e) {
    if (!ephemerals_.begin(*e.what, e.of_contender, e.ephemerals)) {
        const time_point now = clock::now();
        if (now >= no_search_before_) search_for_room(now);
        return false;
    }
    if (e.ephemerals.bytes == 0) return true;
    if (ephemerals_.take_warning())
        log_.warn(bytes_of_ephemerals() + ": the servers remove all of them in one transaction, see docs/limits.md",
                  {{"nodes", std::to_string(ephemerals_.nodes())}});
    if (ephemerals_.is_short()) search_for_room(clock::now());
    return true;
}

std::string request_table::bytes_of_ephemerals() const {
    return "the whole paths of this session's ephemeral nodes, with 4 bytes for each node, have " +
           std::to_string(ephemerals_.bytes()) + " bytes";
}

void request_table::leave_room(entry& e, const reply& r, bool again) {
    if (!e.what) return;
    ephemerals_.end(*e.what, e.of_contender, e.ephemerals, r, again);
    tell_room();
}

void request_table::tell_room() {
    if (!ephemerals_.has_news() || std::exchange(room_is_told_, true)) return;
    owner_.later([this] {
        room_is_told_ = false;
        ephemerals_.call_waiting();
    });
}

void request_table::search_for_room(time_point now) {
    constexpr std::chrono::minutes pause(1);  // of a client without room that goes on asking for some
    no_search_before_ = now + pause;
    ephemerals_.doubt_held();
    if (link_.connected()) owner_.later([this] { ask_questions(); });  // the next connection asks, too
}

void request_table::drop(entries::node_type node) noexcept {
    if (spare_.size() == most_spare) return;
    std::destroy_at(&node.mapped());
    std::construct_at(&node.mapped());
    spare_.push_back(std::move(node));
    check();
}

// Whether the request may be sent at once: no request waits or is under way, and the socket's send buffer is empty,
// because everything that was sent has been answered, the library's own first requests on this connection included.
// Requests that need several steps (a watch, a credential) or may be large (a transaction) go through submit().
bool request_table::is_alone(const command& c) const {
    constexpr std::size_t small = 2048;  // bytes; no send buffer is smaller
    const bool simple = !c.watch && !std::holds_alternative<add_auth_request>(*c.what) &&
                        !std::holds_alternative<multi_request>(*c.what);
    return link_.connected() && !held_back_ && answered_on_this_connection_ && queue_.empty() && issued_ == 0 &&
           simple && !options_.reads_only() && encoded_size(*c.what) + link_.chroot().size() <= small &&
           ephemerals_.has_room_for(small) && !owner_.refusal(c.pinned.get());
}

bool request_table::submit_at_once(op_id id, command& c, request_receiver& to) {
    if (!is_alone(c)) return false;
    const time_point now = clock::now();
    if (link_.backend().submit(id, *c.what)) return false;  // submit() and flush() find out why
    entry& e = insert(id, now, std::move(c));
    e.to = std::move(to);
    take_room(e);  // is_alone() has seen that there is some
    last_sent_ = now;
    issue(e);
    if (!link_.backend().is_settled()) {
        unsettled_ = true;
        owner_.request_waits();
    }
    return true;
}

void request_table::issue(entry& e) {
    assert(e.at != stage::under_way);
    e.at = stage::under_way;
    e.is_late = false;
    e.sent = last_sent_;
    e.bytes = encoded_size(*e.what);
    e.alone = issued_ == 0 && may_be_fatal(e);
    one_is_alone_ = one_is_alone_ || e.alone;
    ++issued_;
    issued_bytes_ += e.bytes;
    telemetry_.counters.bytes_sent.add(e.bytes);
    check();
}

void request_table::no_longer_issued(const entry& e) noexcept {
    assert(e.at == stage::under_way && issued_ > 0 && issued_bytes_ >= e.bytes);
    if (e.alone) one_is_alone_ = false;
    --issued_;
    issued_bytes_ -= e.bytes;
    check();
}

bool request_table::withdraw(const kept_reply_ptr& asked) {
    const auto it = entries_.find(asked->id);
    if (it == entries_.end() || it->second.at == stage::under_way || it->second.until_certain) return false;
    fail(it->first, asio::error::operation_aborted);
    return true;
}

void request_table::cancel(op_id id, sent_writes writes) {
    const auto it = entries_.find(id);
    if (it == entries_.end() || !std::holds_alternative<request_receiver>(it->second.to)) return;
    entry& e = it->second;
    const bool under_way = e.at == stage::under_way;
    if ((under_way || e.begun) && writes == sent_writes::go_on && e.what && is_write(*e.what)) return;
    reply r;
    r.code = asio::error::operation_aborted;
    r.sent = under_way && is_write(*e.what);
    if (!under_way && !link_.connected())
        if (const std::string why = link_.why_not_connected(); !why.empty())
            r.data = "no connection: " + why;  // the hint of the error
    if (e.what) r.asked = std::make_shared<request>(*e.what);
    if (!under_way) leave_room(e, r);
    request_receiver to = std::get<request_receiver>(std::exchange(e.to, std::monostate()));
    if (!under_way) {
        auto node = entries_.extract(it);
        if (node.mapped().what) report(node.mapped(), r, clock::now());
        drop(std::move(node));
    }
    to.deliver(std::move(r));
}

// ------------------------------------------------------------------------------------------------------ sending

void request_table::flush() {
    const bool unsettled = std::exchange(unsettled_, false);
    if (!link_.connected() || (queue_.empty() && !unsettled)) return;
    const time_point now = clock::now();
    backend& to = link_.backend();
    const bool batch = queue_.size() > 1;
    bool submitted = false, full = false;
    if (batch) to.begin_batch();
    while (!full) {
        const bool is_full = issued_ >= window || issued_bytes_ >= window_bytes || one_is_alone_ || held_back_;
        const std::optional<op_id> id = queue_.next(is_full, now);
        if (!id) break;
        const auto it = entries_.find(*id);
        if (it == entries_.end()) continue;
        if (issued_ > 0 && !it->second.urgent && may_be_fatal(it->second)) {  // when all others are answered
            queue_.put_back(lane_of(it->second), *id);
            break;
        }
        if (!is_needed(*id, it->second)) continue;
        submitted = true;
        last_sent_ = now;
        full = !send(*id, it->second);
    }
    if (batch || submitted || unsettled) to.end_batch();
}

// False: the request has ended, and needs no server.
bool request_table::is_needed(op_id id, const entry& e) {
    if (!e.what) {  // the request has only waited for a connection
        fail(id, {});
        return false;
    }
    if (!late_reads_.empty())
        if (const auto late = late_reads_.extract(id); !late.empty() && late.mapped()->listener.expired()) {
            fail(id, asio::error::operation_aborted);
            return false;
        }
    const auto* r = std::get_if<remove_watch_request>(&*e.what);
    const bool watched_again = r && !confirm_watch_removal(r->path, r->kind);
    if (watched_again || (e.connection && e.connection != feeds_.connection())) {
        drop(entries_.extract(id));
        return false;
    }
    const bool is_removal = std::holds_alternative<remove_added_watch_request>(*e.what);
    if ((is_removal || !one_watches_.empty()) && !is_needed_beside_one_watch(*e.what)) {
        drop(entries_.extract(id));
        return false;
    }
    if (const watch_target target = own_watch_of(e); target.path) watches_.begin(*target.path, target.kind);
    return true;
}

// False: the backend takes no more requests now.
bool request_table::send(op_id id, entry& e) {
    auto* const auth = std::get_if<add_auth_request>(&*e.what);
    if (auth && auth_.knows({auth->scheme, auth->credential}))
        auth->known = true;  // the library presents each credential that it is given
    const bool told_by_one_watch = !one_watches_.empty() && takes_watch_along(*e.what);
    if (told_by_one_watch) set_watch(*e.what, false);
    const std::error_code refused = link_.backend().submit(id, *e.what);
    if (told_by_one_watch) set_watch(*e.what, true);
    if (refused && own_watch_of(e).path) {
        reply none;
        none.code = refused;
        none.sent = true;  // no server has answered
        registration_done(e, none);
    }
    if (refused == std::errc::resource_unavailable_try_again) {
        queue_.put_back(lane_of(e), id);
        flush_when_writable_ = true;
        return false;
    }
    if (refused) {
        fail(id, refused);
        return true;
    }
    if (!one_watches_.empty())
        if (const auto* const it = std::get_if<remove_added_watch_request>(&*e.what)) {
            one_watches_.erase(it->path);
            forget_watches_at(it->path);  // it takes all of them along
        }
    if (auth && !auth->known) {
        ++auth_.unconfirmed;
        e.unconfirmed = true;
    }
    issue(e);
    return true;
}

void request_table::writable() {
    if (std::exchange(flush_when_writable_, false)) flush();
}

// ----------------------------------------------------------------------------------------- the link, and the time

void request_table::connected(time_point now) {
    constexpr std::size_t many = 1000;  // not all clients send so many reads at once to servers that come back
    questions_ = watches_.questions();
    no_questions_before_ = now;
    if (questions_.size() > many)
        no_questions_before_ += std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(jitter()));
    queue_.pause_again({});
    refused_ = 0;
    expiring_.clear();
    answered_on_this_connection_ = false;
    last_sent_ = now;
    pause_fatal(now);
}

void request_table::disconnected(time_point now) {
    drop_queued_removals();
    for (const auto& [path, kind] : watches_.end_connection()) forget_watch(path, kind);
    conclude_fatal();
    begin_to_expire(now);
}

void request_table::begin_to_expire(time_point now) {
    expiring_.clear();
    const auto add = [&](op_id id) {
        const auto it = entries_.find(id);
        if (it == entries_.end() || !is_unsent(it->second) || !may_expire(it->second)) return;
        it->second.queued = std::max(it->second.queued, now);
        expiring_.push_back(id);
    };
    queue_.for_each_again(add);
    queue_.for_each_normal(add);
}

void request_table::on_time(time_point now) {
    if (link_.connected()) {
        if (queue_.is_pause_over(now)) owner_.request_waits();
        ask_refused(now);
        if (feeds_.is_up() && no_one_watch_before_ != time_point{} && now >= no_one_watch_before_) tell_feeds();
        return ask_more();
    }
    while (!expiring_.empty()) {
        const op_id id = expiring_.front();
        const auto it = entries_.find(id);
        if (it != entries_.end() && it->second.queued + options_.connection_timeout() > now) break;
        expiring_.pop_front();
        fail(id, errc::not_connected);
    }
}

request_table::time_point request_table::due(time_point now) {
    if (link_.connected()) {
        time_point next = std::min(queue_.next_end_of_pause(now), refused_removals_.due());
        if (feeds_.is_up() && no_one_watch_before_ != time_point{}) next = std::min(next, no_one_watch_before_);
        if (!questions_.empty() && no_questions_before_ > now) next = std::min(next, no_questions_before_);
        return next;
    }
    while (!expiring_.empty() && !entries_.contains(expiring_.front())) expiring_.pop_front();  // cancelled
    if (expiring_.empty()) return time_point::max();
    return entries_.at(expiring_.front()).queued + options_.connection_timeout();
}

}  // namespace zkasio::detail

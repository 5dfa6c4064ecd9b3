// The part of request_table that ends requests, with a server's answer or without one.

#include <zkasio/detail/requests/request_table.hpp>

#include <zkasio/detail/base/random_engine.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace zkasio::detail {

void request_table::report(const entry& e, const reply& r, time_point now) noexcept {
    const bool failed = r.code && r.code != e.expected, was_sent = e.sent != time_point{};
    telemetry_.counters.ended(e.what->index(), failed, (was_sent ? e.sent : now) - e.queued,
                              was_sent ? now - e.sent : clock::duration(0));
    if (!telemetry_.observed()) return;
    operation_report it;
    if (failed) it.code = r.code;
    it.outcome_unknown = r.code && r.sent && is_write(*e.what);
    it.cancelled = is_abandoned(e);
    it.internal = std::holds_alternative<internal_receiver>(e.to);
    it.asked = e.queued;
    it.sent = e.sent;
    it.ended = now;
    telemetry_.operation_ended(*e.what, std::move(it));
}

void request_table::finish(entry&& e, reply&& r, time_point now) {
    if (e.what) report(e, r, now);
    if (e.connection && r.sent) return finish_if_connected(std::move(e), std::move(r));
    const bool is_credential = e.what && std::holds_alternative<add_auth_request>(*e.what);
    if (r.code == zk_errc::auth_failed && !is_credential) {
        r.data = link_.why_login_refused();
        // A server that refuses a credential does not say which one.
        if (const std::string schemes = auth_.schemes(); r.data.empty() && !schemes.empty())
            r.data = "a credential of " + schemes;
    }
    if (e.what && !is_write(*e.what)) r.sent = false;  // no read is of unknown outcome
    if (auto* const to = std::get_if<request_receiver>(&e.to)) {
        if (r.code && r.code != e.expected && e.what) r.asked = std::make_shared<request>(std::move(*e.what));
        to->deliver(std::move(r));
    } else if (const auto* then = std::get_if<internal_receiver>(&e.to)) {
        (*then)(std::move(r));
    } else if (const auto* kept = std::get_if<kept_reply_ptr>(&e.to)) {
        (*kept)->reply = std::move(r);
        waits_.fire(answer_of(*kept));
    }
}

void request_table::fail(op_id id, std::error_code code) {
    auto node = entries_.extract(id);
    if (node.empty()) return;
    reply r;
    r.code = code;
    r.sent = code && !is_unsent(node.mapped());
    if (code == errc::not_connected) r.data = link_.why_not_connected();  // the hint of the error
    const bool is_asked_less = link_.is_open() && !link_.backend().is_zookeeper() && !options_.tries_all_requests();
    if (code == zk_errc::unimplemented && is_asked_less)
        r.data = "not sent: servers that are not ZooKeeper's may not know it, see client_options::try_all_requests()";
    if (code == errc::too_many_ephemerals) {
        r.data = bytes_of_ephemerals() + ", of at most " + std::to_string(ephemerals_.limit()) +
                 " (client_options::ephemeral_budget()): use fewer nodes, shorter paths, or several clients";
        if (const auto* const m = std::get_if<multi_request>(&*node.mapped().what)) {
            multi_result other;
            other.code = zk_errc::runtime_inconsistency;  // as in a server's answer
            r.results.assign(m->ops.size(), other);
            r.results.at(ephemerals_.step_without_room(*m)).code = code;
        }
    }
    leave_room(node.mapped(), r);
    if (node.mapped().at == stage::under_way) no_longer_issued(node.mapped());
    finish(std::move(node.mapped()), std::move(r), clock::now());
    drop(std::move(node));
}

void request_table::answered(op_id id, reply&& r) {
    auto node = entries_.extract(id);
    if (node.empty()) return;
    entry& e = node.mapped();
    no_longer_issued(e);
    answered_on_this_connection_ = answered_on_this_connection_ || !r.sent;
    if (r.sent || !fatal_.empty()) look_for_fatal(e, r);
    ahead_of_answers_ = ahead_of_answers_ && r.sent;
    if (!queue_.empty()) owner_.request_waits();  // the window has room again
    if (!r.sent && r.code != zk_errc::throttled) refused_ = 0;
    if (own_watch_of(e).path) registration_done(e, r);
    const time_point now = clock::now();
    telemetry_.counters.bytes_received.add(size_of(r));
    owner_.request_answered(*e.what, r, e.sent, now);
    const bool again = repeats(e, r);
    e.is_refused = again && has_stand_in(e, r);
    if (!e.is_refused) leave_room(e, r, again);
    if (again) {
        e.is_without_stat = e.is_without_stat || e.is_refused;
        return send_again(std::move(node));
    }
    conclude_auth(e, r);
    if (r.code == zk_errc::no_node && !link_.chroot().empty() && is_about_root(*e.what))
        r.data = "the chroot \"" + link_.chroot() + "\" does not exist: see client_options::create_chroot()";
    if (e.until_certain) conclude_removal(e, r);
    finish(std::move(e), std::move(r), now);
    drop(std::move(node));
}

namespace {

// Whether the node gets ten digits more than the path says. Of a transaction, its last step counts.
bool creates_sequential(const request& r) noexcept {
    const auto* one = std::get_if<create_request>(&r);
    if (const auto* const m = std::get_if<multi_request>(&r); m && !m->ops.empty())
        one = std::get_if<create_request>(&m->ops.back());
    return one && is_sequential(one->mode);
}

// Of a transaction, that of its last step.
std::string_view last_path_of(const request& r) {
    const auto* const m = std::get_if<multi_request>(&r);
    if (!m || m->ops.empty()) return path_of(r);
    return std::visit([](const auto& step) -> std::string_view { return step.path; }, m->ops.back());
}

std::string text_of(const request& r, std::size_t bytes) {
    std::string text(operation_name(r));
    const std::string_view path = last_path_of(r);
    if (const auto* m = std::get_if<multi_request>(&r); m && !m->ops.empty())
        text += " of " + std::to_string(m->ops.size()) + " steps, the last one at";
    return text + (path.empty() ? "" : " ") + std::string(path) + ", " + std::to_string(bytes) + " bytes";
}

// What a server tells apart: containers and nodes with a time to live have requests of their own.
std::size_t kind_of(const request& r) noexcept {
    const auto* const c = std::get_if<create_request>(&r);
    const bool is_container = c && c->mode == create_mode::container;
    return r.index() * 3 + (is_container ? 1U : c && has_ttl(c->mode) ? 2U : 0U);
}

constexpr int connections_of_suspect = 2;
// In less time, as in a simulation, many cuts in a row say nothing of a request; nor do cuts long ago.
constexpr std::chrono::milliseconds shortest_row(100), longest_pause(60'000);

}  // namespace

const request_table::fatal_request* request_table::fatal_of(std::size_t kind) const noexcept {
    for (const fatal_request& f : fatal_)
        if (f.kind == kind) return clock::now() - f.last < longest_pause ? &f : nullptr;
    return nullptr;
}

bool request_table::may_be_fatal(const entry& e) const noexcept {
    if (fatal_.empty() || !e.what) return false;
    const fatal_request* const known = fatal_of(kind_of(*e.what));
    return known && known->connections >= connections_of_suspect && encoded_size(*e.what) >= known->bytes;
}

// A server before 3.5 has refused a request ahead of its turn, which the library takes for an answer out of step: all
// requests end so, and it is not known which one was refused. The first of a kind that not all servers know is sent
// alone on the next connection, where the refusal is its own.
void request_table::suspect_refused(const entry& e) {
    if (known_requests::number_of(*e.what) == known_requests::opcode::none || largest_lost_.connections > 0) return;
    const time_point now = clock::now();
    largest_lost_ = {kind_of(*e.what), 0, 0, connections_of_suspect, now, now, {}, text_of(*e.what, e.bytes)};
}

// Not the first one without an answer: answers that were sent are lost, too, when a server hangs up. A connection that
// has timed out says nothing.
void request_table::look_for_fatal(const entry& e, reply& r) {
    const std::size_t kind = kind_of(*e.what);
    if (r.code == zk_errc::runtime_inconsistency) return suspect_refused(e);
    if (r.code == zk_errc::connection_loss && r.sent) {
        if (e.bytes <= largest_lost_.bytes) return;
        const time_point now = clock::now();
        const fatal_request* known = fatal_of(kind);
        if (known && e.bytes <= known->answered) known = nullptr;  // lost by chance
        largest_lost_ = {kind, e.bytes, known ? known->answered : 0, known ? std::min(known->connections + 1, 1000) : 1,
                         known ? known->since : now, now, std::string(last_path_of(*e.what)),
                         text_of(*e.what, e.bytes)};
        largest_lost_.is_sequential = creates_sequential(*e.what);
        largest_lost_.is_repeated = e.until_certain || e.connection != 0;
        largest_lost_.pauses = largest_lost_.is_repeated || std::holds_alternative<request_receiver>(e.to);
        if (is_hung_up_at(largest_lost_)) {
            r.hung_up_times = static_cast<std::uint8_t>(std::min(largest_lost_.connections, 255));
            if (is_write(*e.what)) r.hung_up_at = e.bytes;
        }
    } else if (!r.sent) {
        std::erase_if(fatal_, [&](const fatal_request& f) { return f.kind == kind && e.bytes >= f.bytes; });
        for (fatal_request& f : fatal_)
            if (f.kind == kind) f.answered = std::max(f.answered, e.bytes);
        end_pause_without_reason();
    }
}

bool request_table::is_hung_up_at(const fatal_request& f) noexcept {
    return f.connections >= connection_pacing::many && f.last - f.since >= shortest_row;
}

// While such requests pause, here or by their callers, the connection serves the others. A first answer shows that the
// connection is of use: otherwise the pauses before connections would grow as well, and the session might end.
void request_table::pause_fatal(time_point now) {
    bool any_pauses = false;
    time_point until{};
    for (const fatal_request& f : fatal_) {
        if (!is_hung_up_at(f) || now - f.last >= longest_pause) continue;
        any_pauses = any_pauses || f.pauses;
        if (f.is_repeated)
            until = std::max(until, f.last + connection_pacing::pause_of_request(f.connections, jitter()));
    }
    queue_.pause_late(until);
    if (until > now) {
        std::vector<op_id> late;
        queue_.for_each_again([&](op_id id) {
            const auto it = entries_.find(id);
            if (it == entries_.end() || !it->second.what || !is_hung_up_at(it->second)) return;
            it->second.is_late = true;
            late.push_back(id);
        });
        for (const op_id id : late) {
            queue_.drop_again(id);
            queue_.push(send_queue::lane::late, id);
        }
    }
    if (!any_pauses) return;
    command c(exists_request{"/"});
    submit(std::move(c), [](reply&&) {}, urgency::first);
}

void request_table::end_pause_without_reason() {
    const auto pauses = [](const fatal_request& f) { return f.is_repeated && is_hung_up_at(f); };
    if (!queue_.has_late() || std::any_of(fatal_.begin(), fatal_.end(), pauses)) return;
    queue_.pause_late({});
    owner_.request_waits();
}

bool request_table::is_hung_up_at(const entry& e) const noexcept {
    const fatal_request* const known = fatal_of(kind_of(*e.what));
    return known && is_hung_up_at(*known) && encoded_size(*e.what) >= known->bytes;
}

void request_table::conclude_fatal() {
    last_lost_ = std::exchange(largest_lost_, {});
    if (last_lost_.connections == 0) return;
    std::erase_if(fatal_, [&](const fatal_request& f) { return f.kind == last_lost_.kind; });
    fatal_.push_back(last_lost_);
}

void request_table::was_applied(std::string_view path) {
    std::erase_if(fatal_, [path](const fatal_request& f) {
        if (f.path.empty() || !path.starts_with(f.path)) return false;
        const std::string_view number = path.substr(f.path.size());
        if (!f.is_sequential) return number.empty();
        return number.size() >= 10 && number.find_first_not_of("-0123456789") == number.npos;
    });
    end_pause_without_reason();
}

// A server does not know the create that answers with a stat: the backend sends another one for the same request.
bool request_table::has_stand_in(const entry& e, const reply& r) noexcept {
    const auto* const c = std::get_if<create_request>(&*e.what);
    const bool is_plain = c && c->mode != create_mode::container && !has_ttl(c->mode);
    return r.code == zk_errc::unimplemented && is_plain && !e.is_without_stat && !is_abandoned(e);
}

bool request_table::repeats(const entry& e, const reply& r) const {
    if (!r.code) return false;
    if (has_stand_in(e, r)) return owner_.session_lives();
    const bool retryable = r.code == condition::retryable;
    const bool of_feeds = e.connection && (std::holds_alternative<sync_request>(*e.what) ||
                                           std::holds_alternative<add_watch_request>(*e.what) ||
                                           std::holds_alternative<remove_added_watch_request>(*e.what));
    if (of_feeds || e.sets_again || std::holds_alternative<remove_watch_request>(*e.what))
        return retryable && !owner_.is_closing();
    if (std::holds_alternative<add_auth_request>(*e.what)) return retryable && !owner_.is_closing() && !is_abandoned(e);
    return e.until_certain && (r.sent || retryable) && owner_.session_lives();
}

// Queues the request in front of later requests, after a pause: a busy server has refused it, or has answered as if the
// connection were lost. If the connection is lost, connected() ends the pause, or begins a longer one: pause_fatal().
void request_table::send_again(entries::node_type node) {
    entry& e = node.mapped();
    telemetry_.counters.repeated.add();
    e.at = stage::queued_again;
    if (auto* auth = std::get_if<add_auth_request>(&*e.what)) auth->known = true;
    queue_.push(send_queue::lane::again, node.key());
    entries_.insert(std::move(node));
    const time_point now = clock::now();
    if (now >= queue_.again_not_before()) {
        queue_.pause_again(now + options_.retry().pause(refused_, jitter()));
        refused_ = std::min(refused_ + 1, 1000);
    }
    owner_.request_waits();
}

namespace {

// For a removal that depends on other nodes: the node that does not exist, if the removal was refused because of it.
std::optional<std::string> missing_node(const request& removal, const reply& r) {
    const auto* m = std::get_if<multi_request>(&removal);
    if (!m) return std::nullopt;
    for (std::size_t i = 0; i + 1 < std::min(m->ops.size(), r.results.size()); ++i)
        if (r.results[i].code == zk_errc::no_node) return std::get<check_op>(m->ops[i]).path;
    return std::nullopt;
}

// The path of a removal, also of one that depends on other nodes.
std::string removed_path(const request& removal) {
    const auto* m = std::get_if<multi_request>(&removal);
    return m ? std::get<remove_request>(m->ops.back()).path : std::string(path_of(removal));
}

}  // namespace

void request_table::conclude_removal(const entry& e, reply& r) {
    if (r.code == zk_errc::no_node) {
        if (const auto missing = missing_node(*e.what, r)) {
            r.path = *missing;
        } else {
            r.code = {};
            r.found = false;
        }
    } else if (r.code && r.code != zk_errc::not_empty && r.code != condition::session_ended) {
        // The caller that has given up a lock may ignore the result.
        const std::string path = removed_path(*e.what);
        const bool is_ours = e.until_gone && ephemerals_.may_have_made(path);
        const bool later = r.code == zk_errc::no_auth && is_ours;
        log_.warn("remove " + path + ": " + r.code.message() + (later ? "; asked for again until it is allowed" : ""),
                  {{"path", path}, {"reason", r.code.message()}});
        if (later) ask_later(path, nullptr);
    }
}

void request_table::ask_later(std::string path, refused_removals::attempt ask) {
    if (!owner_.session_lives()) return;
    refused_removals_.add(std::move(path), std::move(ask), clock::now(), jitter());
    owner_.request_waits();
}

// Without the checks that the first request may have had (rule G23 of a lock's queue): the servers have made these
// before they refused the removal, and since then the successors know of the loss of their own nodes as owners do.
void request_table::ask_refused(time_point now) {
    while (auto next = refused_removals_.next(now)) {
        const auto removal = std::make_shared<refused_removals::removal>(std::move(*next));
        const auto ended = [this, removal](std::error_code how) {
            refused_removals_.ended(std::move(*removal), how, clock::now(), jitter());
            owner_.request_waits();
        };
        if (removal->ask) {
            removal->ask(ended);
            continue;
        }
        command c(remove_request{removal->path, any_version});
        c.pinned = owner_.current_session();
        c.again = true;
        submit(std::move(c), [ended](reply&& r) { ended(r.code); });
    }
}

void request_table::conclude_auth(const entry& e, const reply& r) {
    const auto* auth = std::get_if<add_auth_request>(&*e.what);
    if (!auth || r.code) return;
    auth_.accepted(auth_info(auth->scheme, auth->credential));
    refused_removals_.hurry(clock::now());
    if (e.unconfirmed) --auth_.unconfirmed;
    owner_.later([this] { feeds_.authenticated(); });
}

}  // namespace zkasio::detail

// The part of c_backend that the library calls, and that reports to the listener.

#include <zkasio/detail/connection/c_backend.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace zkasio::detail {

namespace {

template <class T>
void take_decoded(std::optional<T> decoded, T& to, reply& r) {
    if (decoded)
        to = std::move(*decoded);
    else
        r.code = to_code(ZMARSHALLINGERROR);
}

}  // namespace

template <class Decode>
void c_backend::sink::complete(int rc, const void* data, Decode decode) noexcept {
    c_backend* self = library_call::current;
    if (self->outstanding_ > 0) --self->outstanding_;
    reply& r = std::get<reply_news>(self->news_.emplace_back(std::in_place_type<reply_news>, as_id(data))).what;
    r.code = to_code(rc);
    r.sent = outcome_unknown(rc);
    if (!self->doubtful_.empty()) self->learn_from(as_id(data), rc, r);
    decode(r);
}

void c_backend::sink::on_void(int rc, const void* data) noexcept {
    complete(rc, data, [](reply&) {});
}

void c_backend::sink::on_auth(int rc, const ::Stat*, const void* data) noexcept {
    complete(rc == ZNONODE || rc == ZNOAUTH ? static_cast<int>(ZOK) : rc, data, [](reply&) {});
}

void c_backend::sink::on_stat(int rc, const ::Stat* s, const void* data) noexcept {
    complete(rc, data, [&](reply& r) {
        if (rc == ZOK && s) r.stat = to_stat(*s);
    });
}

void c_backend::sink::on_data(int rc, const char* value, int length, const ::Stat* s, const void* data) noexcept {
    complete(rc, data, [&](reply& r) {
        if (rc == ZOK && s) r.stat = to_stat(*s);
        if (rc == ZOK && value && length > 0) r.data.assign(value, static_cast<std::size_t>(length));
    });
}

void c_backend::sink::on_strings(int rc, const String_vector* names, const ::Stat* s, const void* data) noexcept {
    complete(rc, data, [&](reply& r) {
        if (rc == ZOK && names) take_decoded(to_names(*names), r.children, r);
        if (rc == ZOK && s) r.stat = to_stat(*s);
    });
}

void c_backend::sink::on_string(int rc, const char* value, const void* data) noexcept {
    complete(rc, data, [&](reply& r) {
        if (rc == ZOK && value) r.path = value;
    });
}

void c_backend::sink::on_string_stat(int rc, const char* value, const ::Stat* s, const void* data) noexcept {
    complete(rc, data, [&](reply& r) {
        if (rc == ZOK && value) r.path = value;
        if (rc == ZOK && s) r.stat = to_stat(*s);
    });
}

void c_backend::sink::on_created(int rc, const char* value, const void* data) noexcept {
    complete(rc, data, [&](reply& r) {
        if (rc == ZOK && value) r.path = value;
    });
    c_backend* const self = library_call::current;
    if (rc == ZOK)
        std::get<reply_news>(self->news_.back()).has = reply_news::stat::missing;
    else
        self->without_stat_.erase(as_id(data));
}

void c_backend::sink::on_acl(int rc, ACL_vector* v, ::Stat* s, const void* data) noexcept {
    complete(rc, data, [&](reply& r) {
        if (rc == ZOK && v) take_decoded(to_acl(*v), r.acl, r);
        if (rc == ZOK && s) r.stat = to_stat(*s);
    });
}

void c_backend::sink::on_multi(int rc, const void* data) noexcept {
    complete(rc, data, [&](reply& r) {
        const auto call = library_call::current->multis_.extract(as_id(data));
        if (call.empty()) return;
        const multi_call& c = *call.mapped();
        for (std::size_t i = 0; i < c.ops.size(); ++i) {
            multi_result result;
            result.code = to_code(c.results[i].err);
            if (rc == ZOK && c.ops[i].type == ZOO_CREATE_OP) result.path = c.created_paths[i].c_str();
            if (rc == ZOK && c.ops[i].type == ZOO_SETDATA_OP) result.stat = to_stat(c.stats[i]);
            r.results.push_back(std::move(result));
        }
    });
}

// See submit_own(): of the answer, only the order matters.
void c_backend::sink::on_mark(int, const ::Stat*, const void*) noexcept {
    c_backend* self = library_call::current;
    if (self->outstanding_ > 0) --self->outstanding_;
}

// Fact 17: one watcher function with one context for everything. Session events are ignored here: report() looks at the
// handle's state, which is also right when the library sends no event (fact 10).
void c_backend::sink::on_watch(zhandle_t*, int type, int, const char* path, void* context) noexcept {
    auto& news = static_cast<c_backend*>(context)->news_;
    if (!path) return;
    if (type == ZOO_CREATED_EVENT) news.emplace_back(node_news{node_event::created, path});
    if (type == ZOO_DELETED_EVENT) news.emplace_back(node_news{node_event::removed, path});
    if (type == ZOO_CHANGED_EVENT) news.emplace_back(node_news{node_event::data_changed, path});
    if (type == ZOO_CHILD_EVENT) news.emplace_back(node_news{node_event::children_changed, path});
}

void c_backend::sink::on_log(const char* message) noexcept {
    c_backend* self = library_call::current;
    if (!self || !message || self->ending_connection_) return;
    // The core logs the reasons of failures itself; and the announced delay does not follow, see next_interest().
    if (self->explain(message) || std::strstr(message, "Delaying connection")) return;
    // Nor does the library know of our pauses between attempts.
    if (self->reported_ != link_state::connected && std::strstr(message, "Exceeded deadline")) return;
    self->news_.emplace_back(log_line{message});
}

namespace {

// A server hangs up if it has no quorum, has maxClientCnxns connections from here already, or speaks TLS on this port.
constexpr std::string_view hung_up =
    "hung up instead of answering (not serving, too many connections, or it expects TLS)";
constexpr std::string_view hung_up_behind_tls = "hung up instead of answering (not serving, or too many connections)";

}  // namespace

// The library tells the reason of a failure nowhere but in its log: "...: Socket 127.0.0.1:2181 zk retcode=-4,
// errno=111(Connection refused): server refused ...", in other builds with the address in brackets.
bool c_backend::explain(std::string_view text) {
    constexpr std::string_view code_is = " zk retcode=";
    const std::size_t address = text.find("Socket "), code = text.find(code_is), number = text.find("errno=");
    if (address == text.npos || code == text.npos || number == text.npos) return false;
    const std::string who = with_brackets(text.substr(address + 7, code - address - 7));
    tried_ = who;
    const std::size_t open = text.find('(', number), end = text.find("): ", number);
    if (open == text.npos || end == text.npos) return false;
    std::string_view why = text.substr(open + 1, end - open - 1);
    // For the codes below, errno is only a remainder of the last failed call.
    const int rc = std::atoi(std::string(text.substr(code + code_is.size(), 8)).c_str());
    if (rc == ZSESSIONEXPIRED || rc == ZAUTHFAILED) return true;  // no failure of the connection
    if (rc == ZOPERATIONTIMEOUT && reported_ != link_state::connected) return fail(attempt()), true;
    if (rc == ZOPERATIONTIMEOUT) {
        why = "no answer for two thirds of the session timeout";
        left_by_us_ = true;
    }
    if (rc == ZRUNTIMEINCONSISTENCY) why = "its answers are out of step with the requests";
    const bool is_encrypted = tunnel_ && (!tunnel_->channel() || tunnel_->channel()->encrypts());
    // The library's codes for an end of file. The text of errno would be in the program's language.
    const int failure = std::atoi(std::string(text.substr(number + 6, open - number - 6)).c_str());
    if (rc == ZCONNECTIONLOSS && (failure == EHOSTDOWN || (tunnel_ && failure == EPIPE)))
        why = reported_ == link_state::connected ? "closed by the server" : is_encrypted ? hung_up_behind_tls : hung_up;
    if (tunnel_ && !tunnel_->failure().empty()) why = tunnel_->failure();
    fail(named(who) + ": " + std::string(why));
    return true;
}

// Calls the listener outside of the library, in the order of the news. If the listener's reaction brings more news, the
// outermost of these calls delivers them.
void c_backend::tell_news() {
    if (made_here_.forked()) return news_.clear();
    if (news_.empty() || std::exchange(telling_, true)) return;
    std::size_t told = 0;
    for (; told < news_.size(); ++told) {
        if (is_held_back(told)) ask_for_stats();
        if (is_held_back(told)) break;
        news item = std::move(news_[told]);
        if (auto* a = std::get_if<reply_news>(&item)) {
            if (refused_ && a->what.code == zk_errc::connection_loss) a->what.code = zk_errc::auth_failed;
            listener_.on_reply(a->id, std::move(a->what));
        }
        if (const auto* n = std::get_if<node_news>(&item)) listener_.on_node_event(n->what, n->path);
        if (const auto* n = std::get_if<added_watch_news>(&item))
            listener_.on_added_watch(n->what.what, n->what.path, n->what.zxid);
        if (const auto* l = std::get_if<log_line>(&item)) listener_.on_log(l->text);
    }
    told = std::min(told, news_.size());  // a child process may have cleared them
    news_.erase(news_.begin(), news_.begin() + static_cast<std::ptrdiff_t>(told));
    telling_ = false;
}

// Tells the listener all that has happened, and then whether the link has changed. Called last in each entry point.
void c_backend::report() {
    if (telling_) return;
    if (tunnel_ && tunnel_->has_ended()) look_at_login();
    if (looks_at_frames() && !connected()) lose_own();
    tell_news();
    while (!made_here_.forked() && link() != reported_) {
        reported_ = link();
        if (reported_ != link_state::connected) conclude_requests();
        if (reported_ == link_state::connected) last_failure_.clear(), refusing_.clear();
        if (reported_ == link_state::expired || reported_ == link_state::auth_failed) adopt_descriptor(-1);
        telling_ = true;
        listener_.on_link(reported_);
        telling_ = false;
        tell_news();
    }
}

}  // namespace zkasio::detail

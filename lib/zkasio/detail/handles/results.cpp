#include <zkasio/detail/handles/results.hpp>

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/connection/connection_pacing.hpp>

#include <asio/error.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

namespace zkasio::detail {
namespace {

std::string_view what_it_needs(std::string_view operation) noexcept {
    if (operation == who_am_i_request::name) return "it needs ZooKeeper 3.7 or later";
    constexpr std::string_view add_watch = "add_watch";
    for (const std::string_view name :
         {multi_read_request::name, ephemerals_request::name, count_below_request::name, add_watch})
        if (operation == name) return "it needs ZooKeeper 3.6 or later";
    return {};
}

}  // namespace

void throw_if_failed(const reply& r, std::string_view operation, std::string_view path) {
    if (!r.code) return;
    if (r.hung_up_at > 0) throw error::hung_up_at(operation, path, r.hung_up_at, r.sent);
    const bool says_why = r.code == errc::not_connected || r.code == zk_errc::no_node ||
                          r.code == zk_errc::auth_failed || r.code == errc::too_many_ephemerals ||
                          r.code == asio::error::operation_aborted;
    std::string_view hint = says_why ? std::string_view(r.data) : "";
    if (operation == "create" && r.code == zk_errc::no_node && hint.empty())
        hint = "the parent does not exist: create it, or ask for create_options::parents()";
    if (r.code == zk_errc::not_read_only)
        hint = "a client with client_options::read_only() only reads: use one without it";
    if (r.code == zk_errc::no_auth) hint = "the ACL does not allow it to this client: see get_acl() and add_auth()";
    if (r.code == zk_errc::unimplemented) hint = r.data.empty() ? what_it_needs(operation) : std::string_view(r.data);
    if (r.code == zk_errc::invalid_acl) hint = "an unknown scheme, a malformed id, or auth: without add_auth()";
    throw error(r.code, operation, path, hint, r.sent);
}

asio::awaitable<void> pause_after_hang_up(reply& r) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(connection_pacing::pause_of_request(r.hung_up_times, jitter()));
    std::error_code cancelled;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (!cancelled) co_return;
    r.hung_up_at = 0;
    r.code = cancelled;
}

const std::shared_ptr<core>& there(const std::shared_ptr<core>& c, std::string_view operation, std::string_view path) {
    if (!c) throw error(errc::invalid_argument, operation, path, "this object was moved from");
    return c;
}

namespace {

std::string_view name_of(transaction::kind k) {
    switch (k) {
        case transaction::kind::create: return "create";
        case transaction::kind::set: return "set";
        case transaction::kind::remove: return "remove";
        case transaction::kind::check: return "check";
    }
    return "";
}

}  // namespace

node_data take_data(reply&& r) {
    node_data d;
    d.data = std::move(r.data);
    d.stat = r.stat;
    return d;
}

node_children take_children(reply&& r) {
    node_children c;
    c.names = std::move(r.children);
    c.stat = r.stat;
    return c;
}

created take_created(reply&& r) {
    created c;
    c.path = std::move(r.path);
    c.stat = r.stat;
    return c;
}

node_stat take_stat(reply&& r) { return r.stat; }

std::optional<node_stat> take_stat_if_any(reply&& r) {
    if (r.code == zk_errc::no_node) return std::nullopt;
    return r.stat;
}

operations::acl_and_stat take_acl(reply&& r) {
    operations::acl_and_stat a;
    a.acl = std::move(r.acl);
    a.stat = r.stat;
    return a;
}

std::vector<read_result> take_reads(reply&& r) {
    std::vector<read_result> all;
    all.reserve(r.results.size());
    for (multi_result& one : r.results) {
        read_result& read = all.emplace_back();
        read.code = one.code;
        read.data = std::move(one.data);
        if (one.stat) read.stat = *one.stat;
        read.names = std::move(one.children);
    }
    return all;
}

std::vector<acl_id> take_identities(reply&& r) {
    std::vector<acl_id> all;
    for (const acl_entry& one : r.acl) all.push_back(one.who());
    return all;
}

std::vector<std::string> take_paths(reply&& r) { return std::move(r.children); }

std::size_t take_count(reply&& r) { return static_cast<std::size_t>(r.stat.num_children); }

std::vector<step_result> take_results(reply&& r, const transaction& steps, const std::string& operation,
                                      std::size_t checks) {
    if (r.code && !r.sent) {
        for (std::size_t i = 0; i < r.results.size(); ++i) {
            const std::error_code code = r.results[i].code;
            if (!code || code == zk_errc::runtime_inconsistency) continue;  // the code of all steps but the failed one
            const transaction::step& s = steps.steps()[i];
            if (i < checks) throw error(code, operation, s.path);
            std::string hint = "step " + std::to_string(i + 1 - checks) + ", " + std::string(name_of(s.what));
            if (code == zk_errc::no_node && s.what == transaction::kind::create) hint += ": its parent does not exist";
            if (code == errc::too_many_ephemerals) hint += ": " + r.data;
            throw error(code, operation, s.path, hint);
        }
    }
    throw_if_failed(r, operation, steps.steps().front().path);
    std::vector<step_result> results;
    for (std::size_t i = checks; i < r.results.size(); ++i) {
        multi_result& one = r.results[i];
        step_result s;
        s.path = std::move(one.path);
        s.new_stat = one.stat;
        results.push_back(std::move(s));
    }
    return results;
}

create_request make_create(std::string path, std::string data, const create_options& o) {
    create_request r;
    r.path = std::move(path);
    r.data = std::move(data);
    r.acl = o.acl();
    r.mode = o.mode();
    r.ttl = o.ttl();
    return r;
}

multi_request make_multi(const transaction& t, const std::string& operation) {
    multi_request r;
    for (const transaction::step& s : t.steps()) {
        switch (s.what) {
            case transaction::kind::create:
                if (s.options.is_protected() || s.options.parents() != missing_parents::fail)
                    throw error(errc::invalid_argument, operation, s.path,
                                "no parents on demand and no protection in a transaction");
                r.ops.emplace_back(make_create(s.path, s.data, s.options));
                break;
            case transaction::kind::set: r.ops.emplace_back(set_request{s.path, s.data, s.version}); break;
            case transaction::kind::remove: r.ops.emplace_back(remove_request{s.path, s.version}); break;
            case transaction::kind::check: r.ops.emplace_back(check_op{s.path, s.version}); break;
        }
    }
    return r;
}

multi_read_request make_multi_read(const read_list& nodes) {
    multi_read_request r;
    r.reads.reserve(nodes.size());
    for (const read_list::read& one : nodes.all()) {
        if (one.what == read_list::kind::get)
            r.reads.emplace_back(get_request{one.path});
        else
            r.reads.emplace_back(children_request{one.path});
    }
    return r;
}

}  // namespace zkasio::detail

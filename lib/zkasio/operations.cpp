#include <zkasio/operations.hpp>

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/operations_impl.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/handles/view_paths.hpp>
#include <zkasio/detail/requests/validate.hpp>

#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <type_traits>
#include <utility>

namespace zkasio {

using namespace detail;

// ------------------------------------------------------------------------------------------------ one request

void operations::impl::prepare(const operations& on, command& c, std::string_view operation, std::size_t checks) {
    if (!on.core_) there(on.core_, operation_name(*c.what), path_of(*c.what));
    bind(on, c);
    validate(*c.what, on.core_->chroot_length() + size_of_root(on.root_), operation, checks);
    make_whole(on.root_, *c.what);
}

namespace {

void complete_acls(request& what, core& on) {
    if (auto* const one = std::get_if<create_request>(&what)) on.complete(one->acl);
    if (auto* const one = std::get_if<set_acl_request>(&what)) {
        complete(one->acl, on.options().default_acl());
        on.warn_of_certificate(one->acl);
    }
    if (auto* const several = std::get_if<multi_request>(&what))
        for (multi_op& op : several->ops)
            if (auto* const one = std::get_if<create_request>(&op)) on.complete(one->acl);
}

}  // namespace

void operations::impl::bind(const operations& on, command& c) {
    complete_acls(*c.what, *on.core_);
    c.pinned = on.session_;
    c.patient = on.patient_;
}

command operations::impl::prepared(const operations& on, request what) {
    command c(std::move(what));
    prepare(on, c);
    return c;
}

namespace {

bool is_to_be_repeated(const reply& r) {
    // A request that fails with errc::not_connected has waited already, for as long as an operation is meant to.
    return r.asked && !is_write(*r.asked) && r.code == condition::retryable && r.code != errc::not_connected;
}

// The pause before the next attempt; nothing if it is time to give up.
std::optional<retry_policy::duration> pause_before(const retry_policy& policy, bool patient, int attempt,
                                                   boot_clock::time_point began) {
    if (patient) return policy.pause(attempt, jitter());
    const auto elapsed = std::chrono::duration_cast<retry_policy::duration>(boot_clock::now() - began);
    return policy.pause_before(attempt, elapsed, jitter());
}

// Sends a read again, as long as its connection is lost and the client's retry policy allows another attempt.
asio::awaitable<reply> repeated(core_ptr core, session_record_ptr pinned, bool patient, watch_ptr w,
                                std::error_code expected, reply r, boot_clock::time_point began) {
    for (int attempt = 0; is_to_be_repeated(r); ++attempt) {
        if (r.hung_up_times > 0) {
            co_await pause_after_hang_up(r);
            r.hung_up_times = 0;
            if (!is_to_be_repeated(r)) break;
        }
        const auto pause = pause_before(core->options().retry(), patient, attempt, began);
        if (!pause) break;
        asio::steady_timer timer(co_await asio::this_coro::executor);
        timer.expires_after(*pause);
        std::error_code cancelled;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        if (cancelled) {
            r.code = cancelled;
            break;
        }
        command again(std::move(*r.asked));
        again.pinned = pinned;
        again.patient = patient;
        again.watch = w;
        again.expected = expected;
        again.again = true;
        co_await perform(core, again, r);
    }
    co_return r;
}

}  // namespace

void operations::impl::throw_failure(const operations& on, const reply& r) {
    if (!r.asked) return throw_if_failed(r, {}, {});
    throw_if_failed(r, operation_name(*r.asked), shown_path(on.root_, std::string(path_of(*r.asked))));
}

template <class Result, class Taken>
asio::awaitable<Result> operations::impl::answer(operations on, command c, Taken (*take)(reply&&)) {
    constexpr bool watches = !std::is_same_v<Result, Taken>;
    const auto began = boot_clock::now();
    prepare(on, c);
    if (on.core_->forked())  // the strand may never run: the error is thrown here
        throw error(errc::forked, operation_name(*c.what), shown_path(on.root_, std::string(path_of(*c.what))));
    if constexpr (watches) c.watch = watch_by(*c.what);
    const watch_ptr w = c.watch;
    const std::error_code expected = c.expected;
    reply r;
    co_await perform(on.core_, c, r);
    if (is_to_be_repeated(r))
        r = co_await repeated(on.core_, on.session_, on.patient_, w, expected, std::move(r), began);
    if (r.hung_up_times > 0) co_await pause_after_hang_up(r);
    if (r.code && (!expected || r.code != expected)) throw_failure(on, r);
    make_shown(on.root_, r);
    if constexpr (watches) {
        Result result{take(std::move(r)), access::make<watch>(on.core_, w, on.root_)};
        co_return result;
    } else {
        co_return take(std::move(r));
    }
}

template <class Request, class Taken>
asio::awaitable<Taken> operations::impl::ask(const operations& on, Request what, Taken (*take)(reply&&),
                                             std::error_code expected) {
    return answer<Taken>(on, command(std::move(what), expected), take);
}

template <class Request, class Taken>
asio::awaitable<watched<Taken>> operations::impl::ask_and_watch(const operations& on, Request what,
                                                                Taken (*take)(reply&&), std::error_code expected) {
    return answer<watched<Taken>>(on, command(std::move(what), expected), take);
}

kept_reply_ptr operations::impl::start(const operations& on, command c, request_table::repeat r) {
    auto kept = std::make_shared<kept_reply>();
    on_strand(on.core_, [core = on.core_, c = std::move(c), kept, r]() mutable {
        core->requests().submit(std::move(c), kept, r);
    });
    return kept;
}

// ---------------------------------------------------------------------------------- a row for each single request

asio::awaitable<node_data> operations::get(std::string path) const {
    return impl::ask(*this, get_request{std::move(path)}, &take_data);
}
asio::awaitable<node_stat> operations::set(std::string path, bytes data, std::int32_t version) const {
    return impl::ask(*this, set_request{std::move(path), std::move(data).take(), version}, &take_stat);
}
asio::awaitable<std::optional<node_stat>> operations::exists(std::string path) const {
    return impl::ask(*this, exists_request{std::move(path)}, &take_stat_if_any, zk_errc::no_node);
}
asio::awaitable<node_children> operations::children(std::string path) const {
    return impl::ask(*this, children_request{std::move(path)}, &take_children);
}
asio::awaitable<void> operations::remove(std::string path, std::int32_t version) const {
    return impl::ask(*this, remove_request{std::move(path), version}, &take_nothing);
}
asio::awaitable<void> operations::sync(std::string path) const {
    return impl::ask(*this, sync_request{std::move(path)}, &take_nothing);
}
asio::awaitable<operations::acl_and_stat> operations::get_acl(std::string path) const {
    return impl::ask(*this, get_acl_request{std::move(path)}, &take_acl);
}
asio::awaitable<void> operations::set_acl(std::string path, acl entries, std::int32_t acl_version) const {
    return impl::ask(*this, set_acl_request{std::move(path), std::move(entries), acl_version}, &take_nothing);
}
asio::awaitable<std::vector<acl_id>> operations::who_am_i() const {
    return impl::ask(*this, who_am_i_request{}, &take_identities);
}
asio::awaitable<std::vector<std::string>> operations::ephemerals(std::string prefix) const {
    if (root_) return impl::ephemerals_of_view(*this, std::move(prefix));
    return impl::ask(*this, ephemerals_request{std::move(prefix)}, &take_paths);
}
asio::awaitable<std::vector<std::string>> operations::impl::ephemerals_of_view(operations on, std::string prefix) {
    ephemerals_request asked{std::move(prefix)};
    const std::vector<std::string> paths = co_await ask(on, std::move(asked), &take_paths);
    std::vector<std::string> shown;
    for (const std::string& path : paths) {
        std::string one = shown_path(on.root_, path);
        const bool is_below = one != path;  // "/app" also finds "/apple"
        if (is_below) shown.push_back(std::move(one));
    }
    co_return shown;
}
asio::awaitable<std::size_t> operations::count_below(std::string path) const {
    return impl::ask(*this, count_below_request{std::move(path)}, &take_count);
}
asio::awaitable<std::vector<read_result>> operations::multi_read(read_list nodes) const {
    return impl::ask(*this, make_multi_read(nodes), &take_reads);
}
asio::awaitable<node_data> operations::get_config() const { return impl::ask(*this, get_config_request{}, &take_data); }
asio::awaitable<node_data> operations::reconfigure(std::string joining, std::string leaving, std::string members,
                                                   std::int64_t from_version) const {
    return impl::ask(*this, reconfig_request{std::move(joining), std::move(leaving), std::move(members), from_version},
                     &take_data);
}

asio::awaitable<watched<node_data>> operations::get_and_watch(std::string path) const {
    return impl::ask_and_watch(*this, get_request{std::move(path), true}, &take_data);
}
asio::awaitable<watched<std::optional<node_stat>>> operations::exists_and_watch(std::string path) const {
    return impl::ask_and_watch(*this, exists_request{std::move(path), true}, &take_stat_if_any, zk_errc::no_node);
}
asio::awaitable<watched<node_children>> operations::children_and_watch(std::string path) const {
    return impl::ask_and_watch(*this, children_request{std::move(path), true}, &take_children);
}
asio::awaitable<watch_stream> operations::add_watch(std::string path, watch_mode mode) const {
    return impl::add_watch(*this, std::move(path), mode);
}
asio::awaitable<watched<node_data>> operations::config_and_watch() const {
    return impl::ask_and_watch(*this, get_config_request{true}, &take_data);
}

// ------------------------------------------------------------------------------- operations of several requests

asio::awaitable<created> operations::create(std::string path, bytes data, create_options options) const {
    return impl::create(*this, std::move(path), std::move(data), std::move(options));
}
asio::awaitable<std::optional<created>> operations::create_unless_exists(std::string path, bytes data,
                                                                         create_options options) const {
    return impl::create_unless_exists(*this, std::move(path), std::move(data), std::move(options));
}
asio::awaitable<node_stat> operations::create_or_set(std::string path, bytes data, create_options options) const {
    return impl::create_or_set(*this, std::move(path), std::move(data), std::move(options));
}
asio::awaitable<void> operations::remove_recursive(std::string path) const {
    return impl::remove_recursive(*this, std::move(path));
}

asio::awaitable<std::vector<step_result>> operations::multi(transaction steps) const {
    return impl::multi(*this, {}, std::move(steps), "multi");
}
asio::awaitable<std::vector<step_result>> operations::impl::multi(operations on, std::vector<std::string> checked,
                                                                  transaction steps, std::string operation) {
    there(on.core_, operation);
    transaction all;
    for (std::string& path : checked) all.check(std::move(path));
    all.append(std::move(steps));
    if (all.empty()) co_return std::vector<step_result>();
    command c(make_multi(all, operation));
    prepare(on, c, operation, checked.size());
    reply r;
    co_await perform(on.core_, c, r);
    if (r.hung_up_times > 0) co_await pause_after_hang_up(r);
    make_shown(on.root_, r);
    co_return take_results(std::move(r), all, operation, checked.size());
}

}  // namespace zkasio

// Creating a node: with its parents, and so that it is found again when the answer is lost.

#include <zkasio/back_off.hpp>
#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/node_search.hpp>
#include <zkasio/detail/handles/operations_impl.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/handles/view_paths.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <asio/cancellation_state.hpp>
#include <asio/error.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace zkasio {

using namespace detail;

std::string new_protection_id() {
    std::mt19937_64& engine = random_engine();
    std::array<std::uint64_t, 2> bits{engine(), engine()};
    bits[0] = (bits[0] & ~0xf000ull) | 0x4000ull;                          // version 4
    bits[1] = (bits[1] & ~0xc000000000000000ull) | 0x8000000000000000ull;  // RFC 4122 variant
    static constexpr char digits[] = "0123456789abcdef";
    std::string id(36, '-');
    auto to = id.begin();
    for (std::size_t i = 0; i < 32; ++i) {
        if (i == 8 || i == 12 || i == 16 || i == 20) ++to;
        *to++ = digits[(bits[i / 16] >> (60 - 4 * (i % 16))) & 15];
    }
    return id;
}

std::string protection_prefix(const std::string& id) { return "_c_" + id + '-'; }

asio::awaitable<created> operations::impl::create(operations on, std::string path, bytes data, create_options options) {
    std::string content = std::move(data).take();
    command c = prepared(on, make_create(path, content, options));
    if (options.is_protected())
        co_return co_await create_protected(on, std::move(path), std::move(content), std::move(options));

    reply r;
    co_await perform(on.core_, c, r);
    if (r.code == zk_errc::no_node && options.parents() != missing_parents::fail) {
        // Once a parent was created, a total cancellation has come too late to be without effect: so it ends nothing
        // from here on. The other kinds do, see create_with_parents().
        const bool throws = co_await asio::this_coro::throw_if_cancelled();
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        if (throws && state.cancelled() != asio::cancellation_type::none)
            throw error(asio::error::operation_aborted, "create", path);
        co_await asio::this_coro::throw_if_cancelled(false);
        std::exception_ptr failed;
        try {
            c.what = std::move(*r.asked);
            co_await create_with_parents(on, path, options, c, r);
        } catch (...) {
            failed = std::current_exception();
        }
        co_await asio::this_coro::throw_if_cancelled(throws);
        if (failed) std::rethrow_exception(failed);
    }
    if (r.hung_up_times > 0) co_await pause_after_hang_up(r);
    throw_if_failed(r, "create", path);
    make_shown(on.root_, r);
    co_return take_created(std::move(r));
}

// @param c the create, whose parent was missing; @param r its reply.
asio::awaitable<void> operations::impl::create_with_parents(operations on, std::string path, create_options options,
                                                            command& c, reply& r) {
    // Parents that are containers may be removed again between their creation and the child's.
    for (int attempt = 0; attempt < 10; ++attempt) {
        co_await create_parents(on, path, options);
        c.begun = true;
        bind(on, c);
        r = reply();
        co_await perform(on.core_, c, r);
        if (r.code != zk_errc::no_node) co_return;
        c.what = std::move(*r.asked);
    }
}

asio::awaitable<void> operations::impl::create_parents(operations on, std::string path, create_options options) {
    bool containers = options.parents() == missing_parents::create_container;
    // Those of a view may be above its root, which itself is the parent of a node whose name is a number alone.
    const bool is_in_root = on.root_ && path == "/" && is_sequential(options.mode());
    path = whole_path(on.root_, std::move(path)) + (is_in_root ? "/" : "");
    // From the deepest existing parent downwards: usually only the last parent is missing.
    std::vector<std::string> missing;
    for (std::string p(parent_path(path)); p.size() > 1; p = std::string(parent_path(p))) missing.push_back(p);
    std::size_t i = 0;
    bool begun = false;
    while (i < missing.size()) {
        // A cancellation that came between two requests: no await throws it here.
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        const auto ends = asio::cancellation_type::terminal | asio::cancellation_type::partial;
        if ((state.cancelled() & ends) != asio::cancellation_type::none)
            throw error(asio::error::operation_aborted, "create parent", shown_path(on.root_, missing[i]), {}, begun);
        command c(create_request{
            missing[i], {}, options.acl(), containers ? create_mode::container : create_mode::persistent});
        c.begun = begun;
        bind(on, c);
        reply r;
        co_await perform(on.core_, c, r);
        if (r.code == zk_errc::no_node && i + 1 < missing.size()) {
            ++i;
            continue;
        }
        if (r.code == zk_errc::unimplemented && std::exchange(containers, false)) continue;
        // An unknown outcome does no harm here: the next step finds out.
        const bool unknown = r.sent && r.code != asio::error::operation_aborted && r.code == condition::retryable &&
                             r.hung_up_at == 0;
        if (r.code && r.code != zk_errc::node_exists && !unknown)
            throw_if_failed(r, "create parent", shown_path(on.root_, missing[i]));
        begun = begun || !r.code;
        if (i == 0) co_return;
        --i;
    }
}

asio::awaitable<void> operations::impl::remove_protected(operations on, std::string parent, std::string id) {
    const std::optional<created> left = co_await find_protected(on, std::move(parent), std::move(id));
    if (!left) co_return;
    const kept_reply_ptr removal = ensure_removed(on, left->path);
    // Until the removal is answered there is work in the background, see client::idle().
    const wait_end ended = co_await wait_for(on.core_, answer_of(removal));
    if (ended.code) throw error(ended.code, "remove", left->path, {}, true);
}

void operations::impl::ensure_protected_removed(const operations& on, std::string parent, std::string id) {
    there(on.core_, "ensure_protected_removed", parent);
    run_in_background(on, remove_protected(on, std::move(parent), std::move(id)));
}

void operations::impl::run_in_background(const operations& on, asio::awaitable<void> task) {
    there(on.core_, "run_in_background");
    if (!task.valid()) throw error(errc::invalid_argument, "run_in_background", {}, "the task is empty");
    on_strand(on.core_, [core = on.core_, task = std::move(task)]() mutable {
        core->run_in_background(std::move(task));
    });
}

asio::awaitable<created> operations::impl::create_protected(operations on, std::string path, std::string data,
                                                            create_options options) {
    const std::string parent(parent_path(path));
    if (!on.session_ && is_ephemeral(options.mode())) {
        // The node is recognized by the session that created it. So the session has to be the same throughout.
        reply connected;
        co_await wait_connected(on.core_, connected);
        throw_if_failed(connected, "create", path);
        operations pinned(on.core_, on.core_->current_session_record(), on.root_);
        co_return co_await create_protected(pinned, std::move(path), std::move(data), std::move(options));
    }
    options.protection(false);
    back_off pauses = access::make<back_off>(on.core_);
    for (;;) {
        const std::string id = new_protection_id();
        const std::string name = join_path(parent, protection_prefix(id) + std::string(node_name(path)));
        std::error_code failed;
        std::optional<error> hung_up;
        try {
            co_return co_await on.create(name, bytes(data), options);
        } catch (const error& e) {
            if (!e.outcome_unknown()) throw;
            failed = e.code();
            if (e.hung_up()) hung_up.emplace(e);
        }
        std::optional<created> found;
        std::error_code search_failed;
        if (failed == condition::retryable) {
            try {
                found = co_await find_protected(on, parent, id);
            } catch (const std::system_error& e) {
                search_failed = e.code();
            }
            if (found) co_return *found;
            if (!search_failed) {  // there is no node
                if (hung_up && hung_up->path() == name) throw hung_up->renamed("create", path).not_applied();
                if (hung_up) throw hung_up->not_applied();
                co_await pauses.pause();
                continue;
            }
            failed = search_failed;
        }
        if (failed != condition::session_ended) ensure_protected_removed(on, parent, id);
        throw error(failed, "create", path,
                    search_failed ? "while looking for the node that may have been created" : "", true);
    }
}

// ------------------------------------------------------------------------------------------- nodes that may exist

namespace {

void check_name_is_fixed(std::string_view operation, const std::string& path, const create_options& options) {
    if (is_sequential(options.mode()) || options.is_protected())
        throw error(errc::invalid_argument, operation, path, "a sequential or protected node has a new name each time");
}

}  // namespace

asio::awaitable<std::optional<created>> operations::impl::create_unless_exists(operations on, std::string path,
                                                                               bytes data, create_options options) {
    check_name_is_fixed("create_unless_exists", path, options);
    try {
        created made = co_await on.create(path, std::move(data), std::move(options));
        co_return std::optional<created>(std::move(made));
    } catch (const error& e) {
        if (e.code() != zk_errc::node_exists) rethrow_as("create_unless_exists", path);
    }
    co_return std::nullopt;
}

asio::awaitable<node_stat> operations::impl::create_or_set(operations on, std::string path, bytes data,
                                                           create_options options) {
    check_name_is_fixed("create_or_set", path, options);
    // Wrong options are reported even if the node exists.
    command checked(make_create(path, std::string(data.view()), options));
    prepare(on, checked, "create_or_set");
    // The node may be created, and removed again, between the two requests.
    for (int attempt = 0;; ++attempt) {
        try {
            node_stat now = co_await on.set(path, data);
            co_return now;
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) rethrow_as("create_or_set", path);
        }
        try {
            created made = co_await on.create(path, data, options);
            co_return made.stat;
        } catch (const error& e) {
            if (e.code() != zk_errc::node_exists || attempt == 10) rethrow_as("create_or_set", path);
        }
    }
}

// -------------------------------------------------------------------------------------------- finding them again

asio::awaitable<std::multimap<std::string, std::string>> operations::impl::find_all_protected(
    operations on, std::string parent, std::vector<std::string> ids) {
    there(on.core_, "find_all_protected", parent);
    co_return co_await find_nodes(on.core_, on.root_, on.session_, std::move(parent), std::move(ids));
}

asio::awaitable<std::optional<node_stat>> operations::impl::certain_stat(operations on, std::string path) {
    back_off pauses = access::make<back_off>(on.core_);
    for (;;) {
        try {
            co_return co_await on.exists(path);
        } catch (const error& e) {
            if (e.code() != condition::retryable) throw;
        }
        co_await pauses.pause();
    }
}

bool operations::impl::of_this_session(const operations& on, const node_stat& s) {
    const session_record_ptr mine = on.session_ ? on.session_ : on.core_->current_session_record();
    return !s.is_ephemeral() || s.ephemeral_owner == mine->session_id.load();
}

asio::awaitable<std::optional<created>> operations::impl::find_protected(operations on, std::string parent,
                                                                         std::string protection_id) {
    there(on.core_, "find_protected", parent);
    std::vector<std::string> ids(1, protection_id);
    const nodes_by_id found = co_await find_nodes(on.core_, on.root_, on.session_, parent, std::move(ids));
    std::vector<std::string> paths;
    for (const auto& [id, name] : found) paths.push_back(join_path(parent, name));
    std::sort(paths.begin(), paths.end());

    std::optional<created> kept;
    for (const std::string& path : paths) {
        const std::optional<node_stat> s = co_await certain_stat(on, path);
        if (!s) continue;
        if (!kept && of_this_session(on, *s)) {
            kept.emplace();
            kept->path = path;
            kept->stat = *s;
        } else {
            ensure_removed(on, path);
        }
    }
    co_return kept;
}

}  // namespace zkasio

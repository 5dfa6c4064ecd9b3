#include <zkasio/operations.hpp>

#include <zkasio/detail/await.hpp>
#include <zkasio/detail/node_search.hpp>
#include <zkasio/detail/random_engine.hpp>
#include <zkasio/detail/replies.hpp>
#include <zkasio/detail/throw_error.hpp>
#include <zkasio/detail/validate.hpp>
#include <zkasio/path.hpp>

#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <random>

namespace zkasio {

using namespace detail;

namespace {

watch_ptr new_watch(std::string path, watch_kind kind) {
    auto w = std::make_shared<watch_state>();
    w->path = std::move(path);
    w->kind = kind;
    return w;
}

std::optional<node_stat> take_stat(const reply& r) {
    if (r.code == zk_errc::no_node) return std::nullopt;
    return r.stat;
}

template <class T>
watched<T> with_watch(const core_ptr& core, watch_ptr w, T value) {
    return watched<T>{std::move(value), watch(core, std::move(w))};
}

}  // namespace

std::string new_protection_id() {
    std::mt19937_64& engine = detail::random_engine();
    std::array<std::uint64_t, 2> bits{engine(), engine()};
    bits[0] = (bits[0] & ~0xf000ull) | 0x4000ull;                                     // version 4
    bits[1] = (bits[1] & ~0xc000000000000000ull) | 0x8000000000000000ull;             // RFC 4122 variant
    static constexpr char digits[] = "0123456789abcdef";
    std::string id;
    for (std::size_t i = 0; i < 32; ++i) {
        if (i == 8 || i == 12 || i == 16 || i == 20) id += '-';
        id += digits[(bits[i / 16] >> (60 - 4 * (i % 16))) & 15];
    }
    return id;
}

std::string protection_prefix(const std::string& id) { return "_c_" + id + '-'; }

// The members are no coroutines: what they return may be awaited when the handle is gone. These have a copy of it.
struct operations::impl {
    static asio::awaitable<created> create(operations on, std::string path, bytes data, create_options options);
    static asio::awaitable<void> create_parents(operations on, std::string path, create_options options);
    static asio::awaitable<created> create_protected(operations on, std::string path, std::string data, create_options options);
    static asio::awaitable<node_stat> set(operations on, std::string path, bytes data, std::int32_t version);
    static asio::awaitable<void> remove(operations on, std::string path, std::int32_t version);
    static asio::awaitable<void> remove_recursive(operations on, std::string path);
    static asio::awaitable<std::vector<step_result>> multi(operations on, std::vector<std::string> checked, transaction steps,
                                                           std::string operation);
    static asio::awaitable<void> set_acl(operations on, std::string path, acl entries, std::int32_t acl_version);
    static asio::awaitable<node_data> reconfigure(operations on, std::string joining, std::string leaving, std::string members,
                                                  std::int64_t from_version);
    static asio::awaitable<node_data> get(operations on, std::string path);
    static asio::awaitable<std::optional<node_stat>> exists(operations on, std::string path);
    static asio::awaitable<node_children> children(operations on, std::string path);
    static asio::awaitable<void> sync(operations on, std::string path);
    static asio::awaitable<acl_and_stat> get_acl(operations on, std::string path);
    static asio::awaitable<node_data> get_config(operations on);
    static asio::awaitable<watched<node_data>> get_and_watch(operations on, std::string path);
    static asio::awaitable<watched<std::optional<node_stat>>> exists_and_watch(operations on, std::string path);
    static asio::awaitable<watched<node_children>> children_and_watch(operations on, std::string path);
    static asio::awaitable<watched<node_data>> config_and_watch(operations on);
    static asio::awaitable<std::optional<created>> find_protected(operations on, std::string parent, std::string protection_id);
    static asio::awaitable<nodes_by_id> find_all_protected(operations on, std::string parent, std::vector<std::string> ids);

    // On which session, and whether it makes sense.
    static void prepare(const operations& on, command& c, std::string_view operation = {}, std::size_t checks = 0) {
        if (!on.core_) there(on.core_, operation_name(c.what), path_of(c.what));
        c.pinned = on.session_;
        validate(c.what, on.core_->chroot_length(), operation, checks);
    }
};

namespace {

// Sends a request, and repeats one that only reads when the connection was lost under it.
asio::awaitable<reply> run(core_ptr c, command what) {
    if (is_write(what.what)) co_return co_await perform(c, std::move(what));

    const auto began = boot_clock::now();
    for (int attempt = 0;; ++attempt) {
        command again = what;
        reply r = co_await perform(c, std::move(again));
        // "Not connected" has waited already, for as long as an operation is meant to.
        if (!r.code || r.code == errc::not_connected || r.code != condition::retryable) co_return r;
        const auto elapsed = std::chrono::duration_cast<retry_policy::duration>(boot_clock::now() - began);
        const auto pause = c->options().retry().pause_before(attempt, elapsed, jitter());
        if (!pause) co_return r;
        asio::steady_timer timer(co_await asio::this_coro::executor);
        timer.expires_after(*pause);
        std::error_code cancelled;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        if (cancelled) {
            r.code = cancelled;
            co_return r;
        }
    }
}

}  // namespace

// ----------------------------------------------------------------------------------------------------- writing

asio::awaitable<created> operations::impl::create(operations on, std::string path, bytes data, create_options options) {
    std::string content = std::move(data).take();
    command c;
    c.what = make_create(path, content, options);
    prepare(on, c);
    if (options.is_protected()) co_return co_await create_protected(on, std::move(path), std::move(content), std::move(options));

    // The parents may be removed again between their creation and the child's: they are containers.
    for (int attempt = 0;; ++attempt) {
        command again = c;
        reply r = co_await run(on.core_, std::move(again));
        if (r.code != zk_errc::no_node || options.parents() == missing_parents::fail || attempt == 10) {
            throw_if_failed(r, "create", path);
            co_return take_created(std::move(r));
        }
        co_await create_parents(on, path, options);
    }
}

asio::awaitable<void> operations::impl::create_parents(operations on, std::string path, create_options options) {
    const create_mode mode = options.parents() == missing_parents::create_container ? create_mode::container
                                                                                    : create_mode::persistent;
    // From the deepest that exists downwards: most often only the last one is missing.
    std::vector<std::string> missing;
    for (std::string p(parent_path(path)); p.size() > 1; p = std::string(parent_path(p))) missing.push_back(p);
    std::size_t i = 0;
    while (i < missing.size()) {
        create_request parent;
        parent.path = missing[i];
        parent.acl = options.acl();
        parent.mode = mode;
        command c;
        c.what = std::move(parent);
        c.pinned = on.session_;
        reply r = co_await run(on.core_, std::move(c));
        if (r.code == zk_errc::no_node && i + 1 < missing.size()) {
            ++i;
            continue;
        }
        // An unknown outcome does no harm here: the next step finds out.
        if (r.code != zk_errc::node_exists && !(r.sent && r.code != asio::error::operation_aborted && r.code == condition::retryable))
            throw_if_failed(r, "create parent", missing[i]);
        if (i == 0) co_return;
        --i;
    }
}

asio::awaitable<created> operations::impl::create_protected(operations on, std::string path, std::string data, create_options options) {
    const std::string parent(parent_path(path));
    if (!on.session_ && is_ephemeral(options.mode())) {
        // "Ours" means: of the session that created it. So it has to be one session all along.
        const reply connected = co_await wait_connected(on.core_);
        throw_if_failed(connected, "create", path);
        operations pinned(on.core_, on.core_->current_session_record());
        co_return co_await create_protected(pinned, std::move(path), std::move(data), std::move(options));
    }
    // Whatever is left of it when the caller gives up is looked for, and removed.
    const auto clean_up = [&on, &parent](const std::string& id) {
        on_strand(on.core_, [on, parent, id] {
            on.core_->run_in_background([](operations who, std::string dir, std::string guid) -> asio::awaitable<void> {
                const auto left = co_await who.find_protected(dir, guid);
                if (left) who.ensure_removed(left->path);
            }(on, parent, id));
        });
    };
    for (;;) {
        const std::string id = new_protection_id();
        const std::string name = join_path(parent, protection_prefix(id) + std::string(node_name(path)));
        create_options plain = options;
        plain.protection(false);
        std::error_code failed;
        try {
            co_return co_await on.create(name, bytes(data), plain);
        } catch (const error& e) {
            if (!e.outcome_unknown()) throw;
            failed = e.code();
        }
        std::optional<created> found;
        std::error_code search_failed;
        if (failed == condition::retryable) {
            try {
                found = co_await on.find_protected(parent, id);
            } catch (const std::system_error& e) {
                search_failed = e.code();
            }
            if (found) co_return *found;
            if (!search_failed) continue;
            failed = search_failed;
        }
        if (failed != condition::session_ended) clean_up(id);
        throw error(failed, "create", path, search_failed ? "while looking for the node that may have been created" : "", true);
    }
}

asio::awaitable<node_stat> operations::impl::set(operations on, std::string path, bytes data, std::int32_t version) {
    command c;
    c.what = set_request{path, std::move(data).take(), version};
    prepare(on, c);
    const reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "set", path);
    co_return r.stat;
}

asio::awaitable<void> operations::impl::remove(operations on, std::string path, std::int32_t version) {
    command c;
    c.what = remove_request{path, version};
    prepare(on, c);
    const reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "remove", path);
}

asio::awaitable<void> operations::impl::remove_recursive(operations on, std::string path) {
    command whole;
    whole.what = remove_request{path, any_version};
    prepare(on, whole);
    constexpr std::size_t window = 256;  // requests under way
    for (int round = 0;; ++round) {
        std::vector<std::string> all{path};  // parents before children
        std::string unlisted;                // one that we may not look into
        for (std::size_t begin = 0; begin < all.size();) {
            const std::size_t end = std::min(all.size(), begin + window);
            std::vector<pending_children> listings;
            for (std::size_t i = begin; i < end; ++i) listings.push_back(on.start_children(all[i]));
            for (std::size_t i = begin; i < end; ++i) {
                node_children found;
                std::error_code failed;
                bool again = false;
                do {
                    try {
                        if (again)
                            found = co_await on.children(all[i]);
                        else
                            found = co_await listings[i - begin].result();
                        failed = {};
                    } catch (const error& e) {
                        failed = e.code();
                        // Who may not list a node may still be allowed to remove it: that is for its parent to say.
                        const bool is_answer = failed == zk_errc::no_node || failed == zk_errc::no_auth;
                        if (!is_answer && (again || failed != condition::retryable)) throw;
                    }
                    again = true;
                } while (failed == condition::retryable);
                if (failed == zk_errc::no_auth) unlisted = all[i];
                for (const std::string& name : found.names) all.push_back(join_path(all[i], name));
            }
            begin = end;
        }
        bool not_empty = false;
        while (!all.empty()) {
            std::vector<std::pair<std::string, std::shared_ptr<kept_reply>>> under_way;
            for (; !all.empty() && under_way.size() < window; all.pop_back()) {
                command c;
                c.what = remove_request{all.back(), any_version};
                c.pinned = on.session_;
                auto t = std::make_shared<kept_reply>();
                under_way.emplace_back(all.back(), t);
                on_strand(on.core_, [core = on.core_, c = std::move(c), t]() mutable { core->requests().submit(std::move(c), t, request_table::repeat::until_certain); });
            }
            for (const auto& [removed, t] : under_way) {
                const wait_end failed = co_await wait_for(on.core_, t->answered);
                if (failed.code) throw error(failed.code, "remove_recursive", removed, {}, true);
                if (t->reply.code == zk_errc::not_empty)
                    not_empty = true;
                else
                    throw_if_failed(t->reply, "remove_recursive", removed);
            }
        }
        if (!not_empty) co_return;
        if (!unlisted.empty()) throw error(zk_errc::no_auth, "remove_recursive", unlisted, "its children cannot be listed");
        if (round == 10) throw error(zk_errc::not_empty, "remove_recursive", path, "somebody keeps adding children");
    }
}

asio::awaitable<std::vector<step_result>> operations::impl::multi(operations on, std::vector<std::string> checked, transaction steps,
                                                                  std::string operation) {
    there(on.core_, operation);
    transaction all;
    for (std::string& path : checked) all.check(std::move(path));
    all.append(std::move(steps));
    if (all.empty()) co_return std::vector<step_result>();
    command c;
    c.what = make_multi(all, operation);
    prepare(on, c, operation, checked.size());
    reply r = co_await run(on.core_, std::move(c));
    co_return take_results(std::move(r), all, operation, checked.size());
}

asio::awaitable<void> operations::impl::set_acl(operations on, std::string path, acl entries, std::int32_t acl_version) {
    command c;
    c.what = set_acl_request{path, std::move(entries), acl_version};
    prepare(on, c);
    const reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "set_acl", path);
}

asio::awaitable<node_data> operations::impl::reconfigure(operations on, std::string joining, std::string leaving, std::string members,
                                                   std::int64_t from_version) {
    command c;
    c.what = reconfig_request{std::move(joining), std::move(leaving), std::move(members), from_version};
    prepare(on, c);
    reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "reconfigure", {});
    co_return take_data(std::move(r));
}

// ----------------------------------------------------------------------------------------------------- reading

asio::awaitable<node_data> operations::impl::get(operations on, std::string path) {
    command c;
    c.what = get_request{path, false};
    prepare(on, c);
    reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "get", path);
    co_return take_data(std::move(r));
}

asio::awaitable<std::optional<node_stat>> operations::impl::exists(operations on, std::string path) {
    command c;
    c.what = exists_request{path, false};
    prepare(on, c);
    const reply r = co_await run(on.core_, std::move(c));
    if (r.code != zk_errc::no_node) throw_if_failed(r, "exists", path);
    co_return take_stat(r);
}

asio::awaitable<node_children> operations::impl::children(operations on, std::string path) {
    command c;
    c.what = children_request{path, false};
    prepare(on, c);
    reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "children", path);
    co_return take_children(std::move(r));
}

asio::awaitable<void> operations::impl::sync(operations on, std::string path) {
    command c;
    c.what = sync_request{path};
    prepare(on, c);
    const reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "sync", path);
}

asio::awaitable<operations::acl_and_stat> operations::impl::get_acl(operations on, std::string path) {
    command c;
    c.what = get_acl_request{path};
    prepare(on, c);
    reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "get_acl", path);
    acl_and_stat result;
    result.acl = std::move(r.acl);
    result.stat = r.stat;
    co_return result;
}

asio::awaitable<node_data> operations::impl::get_config(operations on) {
    command c;
    c.what = get_config_request{false};
    prepare(on, c);
    reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "get_config", {});
    co_return take_data(std::move(r));
}

asio::awaitable<watched<node_data>> operations::impl::get_and_watch(operations on, std::string path) {
    command c;
    c.what = get_request{path, true};
    c.watch = new_watch(path, watch_kind::data);
    prepare(on, c);
    const watch_ptr w = c.watch;
    reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "get", path);
    co_return with_watch(on.core_, w, take_data(std::move(r)));
}

asio::awaitable<watched<std::optional<node_stat>>> operations::impl::exists_and_watch(operations on, std::string path) {
    command c;
    c.what = exists_request{path, true};
    c.watch = new_watch(path, watch_kind::data);
    prepare(on, c);
    const watch_ptr w = c.watch;
    const reply r = co_await run(on.core_, std::move(c));
    if (r.code != zk_errc::no_node) throw_if_failed(r, "exists", path);
    co_return with_watch(on.core_, w, take_stat(r));
}

asio::awaitable<watched<node_children>> operations::impl::children_and_watch(operations on, std::string path) {
    command c;
    c.what = children_request{path, true};
    c.watch = new_watch(path, watch_kind::children);
    prepare(on, c);
    const watch_ptr w = c.watch;
    reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "children", path);
    co_return with_watch(on.core_, w, take_children(std::move(r)));
}

asio::awaitable<watched<node_data>> operations::impl::config_and_watch(operations on) {
    command c;
    c.what = get_config_request{true};
    c.watch = new_watch("/zookeeper/config", watch_kind::config);
    prepare(on, c);
    const watch_ptr w = c.watch;
    reply r = co_await run(on.core_, std::move(c));
    throw_if_failed(r, "get_config", {});
    co_return with_watch(on.core_, w, take_data(std::move(r)));
}

// ------------------------------------------------------------------------------------------ for writers of recipes

namespace {

std::shared_ptr<kept_reply> start(const core_ptr& core, command c, request_table::repeat r = request_table::repeat::never) {
    auto t = std::make_shared<kept_reply>();
    on_strand(core, [core, c = std::move(c), t, r]() mutable { core->requests().submit(std::move(c), t, r); });
    return t;
}

}  // namespace

pending_create operations::start_create(std::string path, bytes data, create_options options) const {
    command c;
    c.what = make_create(path, std::move(data).take(), options);
    impl::prepare(*this, c);
    return {core_, start(core_, std::move(c)), "create", std::move(path)};
}

pending_children operations::start_children(std::string path) const {
    command c;
    c.what = children_request{path, false};
    impl::prepare(*this, c);
    return {core_, start(core_, std::move(c)), "children", std::move(path)};
}

pending_data operations::start_get(std::string path) const {
    command c;
    c.what = get_request{path, false};
    impl::prepare(*this, c);
    return {core_, start(core_, std::move(c)), "get", std::move(path)};
}

pending_data operations::start_exists(std::string path) const {
    command c;
    c.what = exists_request{path, false};
    impl::prepare(*this, c);
    return {core_, start(core_, std::move(c)), "exists", std::move(path)};
}

pending_watched_data operations::start_get_and_watch(std::string path) const {
    command c;
    c.what = get_request{path, true};
    c.watch = new_watch(path, watch_kind::data);
    impl::prepare(*this, c);
    const watch_ptr w = c.watch;
    return {core_, start(core_, std::move(c)), w, std::move(path)};
}

pending_removal operations::ensure_removed(std::string path, std::vector<std::string> must_exist) const {
    command c;
    if (must_exist.empty()) {
        c.what = remove_request{path, any_version};
    } else {
        multi_request m;
        for (std::string& node : must_exist) m.ops.emplace_back(check_op{std::move(node), any_version});
        m.ops.emplace_back(remove_request{path, any_version});
        c.what = std::move(m);
    }
    impl::prepare(*this, c);
    return {core_, start(core_, std::move(c), request_table::repeat::until_certain), "remove", std::move(path)};
}

one_shot_event operations::make_one_shot_event() const { return one_shot_event(there(core_, "make_one_shot_event")); }

back_off operations::make_back_off() const { return back_off(there(core_, "make_back_off")); }

void operations::run_in_background(asio::awaitable<void> task) const {
    there(core_, "run_in_background");
    on_strand(core_, [core = core_, task = std::move(task)]() mutable { core->run_in_background(std::move(task)); });
}

asio::awaitable<std::optional<created>> operations::impl::find_protected(operations on, std::string parent, std::string protection_id) {
    there(on.core_, "find_protected", parent);
    std::vector<std::string> ids(1, protection_id);
    const nodes_by_id found = co_await find_nodes(on.core_, on.session_, parent, std::move(ids));
    std::vector<std::string> ours;
    for (const auto& [id, name] : found) ours.push_back(join_path(parent, name));
    std::sort(ours.begin(), ours.end());

    back_off pauses(on.core_);
    std::optional<created> kept;
    for (const std::string& path : ours) {
        std::optional<node_stat> s;
        for (;;) {
            std::error_code failed;
            try {
                s = co_await on.exists(path);
            } catch (const error& e) {
                failed = e.code();
                if (failed != condition::retryable) throw;
            }
            if (!failed) break;
            co_await pauses.pause();
        }
        if (!s) continue;
        const bool of_this_session = !is_owned(s->ephemeral_owner) ||
                                     s->ephemeral_owner == (on.session_ ? on.session_ : on.core_->current_session_record())->session_id.load();
        if (of_this_session && !kept) {
            kept.emplace();
            kept->path = path;
            kept->stat = *s;
        } else {
            on.ensure_removed(path);
        }
    }
    co_return kept;
}

asio::awaitable<nodes_by_id> operations::impl::find_all_protected(operations on, std::string parent, std::vector<std::string> ids) {
    there(on.core_, "find_all_protected", parent);
    co_return co_await find_nodes(on.core_, on.session_, std::move(parent), std::move(ids));
}

// ----------------------------------------------------------------------------------------------------- the members

asio::awaitable<created> operations::create(std::string path, bytes data, create_options options) const {
    return impl::create(*this, std::move(path), std::move(data), std::move(options));
}
asio::awaitable<node_data> operations::get(std::string path) const {
    return impl::get(*this, std::move(path));
}
asio::awaitable<node_stat> operations::set(std::string path, bytes data, std::int32_t version) const {
    return impl::set(*this, std::move(path), std::move(data), version);
}
asio::awaitable<std::optional<node_stat>> operations::exists(std::string path) const {
    return impl::exists(*this, std::move(path));
}
asio::awaitable<node_children> operations::children(std::string path) const {
    return impl::children(*this, std::move(path));
}
asio::awaitable<void> operations::remove(std::string path, std::int32_t version) const {
    return impl::remove(*this, std::move(path), version);
}
asio::awaitable<void> operations::remove_recursive(std::string path) const {
    return impl::remove_recursive(*this, std::move(path));
}
asio::awaitable<std::vector<step_result>> operations::multi(transaction steps) const {
    return impl::multi(*this, {}, std::move(steps), "multi");
}
asio::awaitable<void> operations::sync(std::string path) const {
    return impl::sync(*this, std::move(path));
}
asio::awaitable<operations::acl_and_stat> operations::get_acl(std::string path) const {
    return impl::get_acl(*this, std::move(path));
}
asio::awaitable<void> operations::set_acl(std::string path, acl entries, std::int32_t acl_version) const {
    return impl::set_acl(*this, std::move(path), std::move(entries), acl_version);
}
asio::awaitable<watched<node_data>> operations::get_and_watch(std::string path) const {
    return impl::get_and_watch(*this, std::move(path));
}
asio::awaitable<watched<std::optional<node_stat>>> operations::exists_and_watch(std::string path) const {
    return impl::exists_and_watch(*this, std::move(path));
}
asio::awaitable<watched<node_children>> operations::children_and_watch(std::string path) const {
    return impl::children_and_watch(*this, std::move(path));
}
asio::awaitable<node_data> operations::get_config() const {
    return impl::get_config(*this);
}
asio::awaitable<watched<node_data>> operations::config_and_watch() const {
    return impl::config_and_watch(*this);
}
asio::awaitable<node_data> operations::reconfigure(std::string joining, std::string leaving, std::string members,
                                                   std::int64_t from_version) const {
    return impl::reconfigure(*this, std::move(joining), std::move(leaving), std::move(members), from_version);
}
asio::awaitable<std::optional<created>> operations::find_protected(std::string parent,
                                                                   std::string protection_id) const {
    return impl::find_protected(*this, std::move(parent), std::move(protection_id));
}
asio::awaitable<std::vector<step_result>> operations::multi_behind(std::vector<std::string> checked, transaction steps,
                                                                   std::string operation) const {
    return impl::multi(*this, std::move(checked), std::move(steps), std::move(operation));
}
asio::awaitable<std::multimap<std::string, std::string>> operations::find_all_protected(std::string parent,
                                                                                        std::vector<std::string> ids) const {
    return impl::find_all_protected(*this, std::move(parent), std::move(ids));
}

}  // namespace zkasio

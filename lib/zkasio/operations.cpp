#include <zkasio/operations.hpp>

#include <zkasio/detail/await.hpp>
#include <zkasio/detail/replies.hpp>
#include <zkasio/detail/throw_error.hpp>
#include <zkasio/detail/validate.hpp>
#include <zkasio/path.hpp>

#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
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
    thread_local std::mt19937_64 engine{[] {
        std::random_device device;
        std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
        return std::mt19937_64(seed);
    }()};
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

// Sends a request, and repeats one that only reads when the connection was lost under it.
asio::awaitable<reply> operations::run(command what) const {
    const core_ptr c = core_;
    what.pinned = epoch_;
    if (is_write(what.what)) co_return co_await perform(c, std::move(what));

    const auto began = boot_clock::now();
    for (int attempt = 0;; ++attempt) {
        command again = what;
        reply r = co_await perform(c, std::move(again));
        // "Not connected" has waited already, for as long as an operation is meant to.
        if (!r.code || r.code == errc::not_connected || r.code != condition::retryable) co_return r;
        const auto elapsed = std::chrono::duration_cast<retry_policy::duration>(boot_clock::now() - began);
        const auto pause = c->options().retry().pause_before(attempt, elapsed, c->random());
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

// ----------------------------------------------------------------------------------------------------- writing

asio::awaitable<created> operations::create(std::string path, bytes data, create_options options) const {
    std::string content = std::move(data).take();
    command c;
    c.what = make_create(path, content, options);
    validate(c.what, core_->chroot_length());
    if (options.is_protected()) co_return co_await create_protected(std::move(path), std::move(content), std::move(options));

    // The parents may be removed again between their creation and the child's: they are containers.
    for (int attempt = 0;; ++attempt) {
        command again = c;
        reply r = co_await run(std::move(again));
        if (r.code != zk_errc::no_node || options.parents() == missing_parents::fail || attempt == 10) {
            throw_if_failed(r, "create", path);
            co_return take_created(std::move(r));
        }
        co_await create_parents(path, options);
    }
}

asio::awaitable<void> operations::create_parents(std::string path, create_options options) const {
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
        reply r = co_await run(std::move(c));
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

asio::awaitable<created> operations::create_protected(std::string path, std::string data, create_options options) const {
    const std::string parent(parent_path(path));
    if (!epoch_ && is_ephemeral(options.mode())) {
        // "Ours" means: of the session that created it. So it has to be one session all along.
        const reply connected = co_await wait_connected(core_);
        throw_if_failed(connected, "create", path);
        operations pinned(core_, core_->current_epoch());
        co_return co_await pinned.create_protected(std::move(path), std::move(data), std::move(options));
    }
    // Whatever is left of it when the caller gives up is looked for, and removed.
    const auto clean_up = [this, &parent](const std::string& id) {
        on_strand(core_, [core = core_, self = *this, parent, id] {
            core->run_in_background([](operations on, std::string dir, std::string guid) -> asio::awaitable<void> {
                const auto left = co_await on.find_protected(dir, guid);
                if (left) on.ensure_removed(left->path);
            }(self, parent, id));
        });
    };
    for (;;) {
        const std::string id = new_protection_id();
        const std::string name = join_path(parent, protection_prefix(id) + std::string(node_name(path)));
        create_options plain = options;
        plain.protection(false);
        std::error_code failed;
        try {
            co_return co_await create(name, bytes(data), plain);
        } catch (const error& e) {
            if (!e.outcome_unknown()) throw;
            failed = e.code();
        }
        std::optional<created> found;
        std::error_code search_failed;
        if (failed == condition::retryable) {
            try {
                found = co_await find_protected(parent, id);
            } catch (const std::system_error& e) {
                search_failed = e.code();
            }
            if (found) co_return *found;
            if (!search_failed) continue;
            failed = search_failed;
        }
        if (failed != condition::session_ended) clean_up(id);
        throw error(failed, "create", path, "while looking for the node that may have been created", true);
    }
}

asio::awaitable<node_stat> operations::set(std::string path, bytes data, std::int32_t version) const {
    command c;
    c.what = set_request{path, std::move(data).take(), version};
    validate(c.what, core_->chroot_length());
    const reply r = co_await run(std::move(c));
    throw_if_failed(r, "set", path);
    co_return r.stat;
}

asio::awaitable<void> operations::remove(std::string path, std::int32_t version) const {
    command c;
    c.what = remove_request{path, version};
    validate(c.what, core_->chroot_length());
    const reply r = co_await run(std::move(c));
    throw_if_failed(r, "remove", path);
}

asio::awaitable<void> operations::remove_recursive(std::string path) const {
    validate(remove_request{path, any_version}, core_->chroot_length());
    constexpr std::size_t window = 256;  // requests under way
    for (int round = 0;; ++round) {
        std::vector<std::string> all{path};  // parents before children
        std::string unlisted;                // one that we may not look into
        for (std::size_t begin = 0; begin < all.size();) {
            const std::size_t end = std::min(all.size(), begin + window);
            std::vector<pending_children> listings;
            for (std::size_t i = begin; i < end; ++i) listings.push_back(start_children(all[i]));
            for (std::size_t i = begin; i < end; ++i) {
                node_children found;
                std::error_code failed;
                try {
                    found = co_await listings[i - begin].result();
                } catch (const error& e) {
                    failed = e.code();
                    // Who may not list a node may still be allowed to remove it: that is for its parent to say.
                    if (failed != zk_errc::no_node && failed != zk_errc::no_auth && failed != condition::retryable) throw;
                }
                if (failed == zk_errc::no_auth) unlisted = all[i];
                if (failed == condition::retryable) found = co_await children(all[i]);
                for (const std::string& name : found.names) all.push_back(join_path(all[i], name));
            }
            begin = end;
        }
        bool not_empty = false;
        while (!all.empty()) {
            std::vector<std::pair<std::string, std::shared_ptr<ticket>>> under_way;
            for (; !all.empty() && under_way.size() < window; all.pop_back()) {
                command c;
                c.what = remove_request{all.back(), any_version};
                c.pinned = epoch_;
                auto t = std::make_shared<ticket>();
                under_way.emplace_back(all.back(), t);
                on_strand(core_, [core = core_, c = std::move(c), t]() mutable { core->submit(std::move(c), t, true); });
            }
            for (const auto& [removed, t] : under_way) {
                const wait_end failed = co_await wait_for(core_, t->answered);
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

asio::awaitable<std::vector<step_result>> operations::multi(transaction steps) const {
    if (steps.empty()) co_return std::vector<step_result>();
    command c;
    c.what = make_multi(steps);
    validate(c.what, core_->chroot_length());
    reply r = co_await run(std::move(c));
    co_return take_results(std::move(r), steps);
}

asio::awaitable<void> operations::set_acl(std::string path, acl entries, std::int32_t acl_version) const {
    command c;
    c.what = set_acl_request{path, std::move(entries), acl_version};
    validate(c.what, core_->chroot_length());
    const reply r = co_await run(std::move(c));
    throw_if_failed(r, "set_acl", path);
}

asio::awaitable<node_data> operations::reconfigure(std::string joining, std::string leaving, std::string members,
                                                   std::int64_t from_version) const {
    command c;
    c.what = reconfig_request{std::move(joining), std::move(leaving), std::move(members), from_version};
    validate(c.what, core_->chroot_length());
    reply r = co_await run(std::move(c));
    throw_if_failed(r, "reconfigure", {});
    co_return take_data(std::move(r));
}

// ----------------------------------------------------------------------------------------------------- reading

asio::awaitable<node_data> operations::get(std::string path) const {
    command c;
    c.what = get_request{path, false};
    validate(c.what, core_->chroot_length());
    reply r = co_await run(std::move(c));
    throw_if_failed(r, "get", path);
    co_return take_data(std::move(r));
}

asio::awaitable<std::optional<node_stat>> operations::exists(std::string path) const {
    command c;
    c.what = exists_request{path, false};
    validate(c.what, core_->chroot_length());
    const reply r = co_await run(std::move(c));
    if (r.code != zk_errc::no_node) throw_if_failed(r, "exists", path);
    co_return take_stat(r);
}

asio::awaitable<node_children> operations::children(std::string path) const {
    command c;
    c.what = children_request{path, false};
    validate(c.what, core_->chroot_length());
    reply r = co_await run(std::move(c));
    throw_if_failed(r, "children", path);
    co_return take_children(std::move(r));
}

asio::awaitable<void> operations::sync(std::string path) const {
    command c;
    c.what = sync_request{path};
    validate(c.what, core_->chroot_length());
    const reply r = co_await run(std::move(c));
    throw_if_failed(r, "sync", path);
}

asio::awaitable<operations::acl_and_stat> operations::get_acl(std::string path) const {
    command c;
    c.what = get_acl_request{path};
    validate(c.what, core_->chroot_length());
    reply r = co_await run(std::move(c));
    throw_if_failed(r, "get_acl", path);
    acl_and_stat result;
    result.acl = std::move(r.acl);
    result.stat = r.stat;
    co_return result;
}

asio::awaitable<node_data> operations::get_config() const {
    command c;
    c.what = get_config_request{false};
    reply r = co_await run(std::move(c));
    throw_if_failed(r, "get_config", {});
    co_return take_data(std::move(r));
}

asio::awaitable<watched<node_data>> operations::get_and_watch(std::string path) const {
    command c;
    c.what = get_request{path, true};
    c.watch = new_watch(path, watch_kind::data);
    validate(c.what, core_->chroot_length());
    const watch_ptr w = c.watch;
    reply r = co_await run(std::move(c));
    throw_if_failed(r, "get", path);
    co_return with_watch(core_, w, take_data(std::move(r)));
}

asio::awaitable<watched<std::optional<node_stat>>> operations::exists_and_watch(std::string path) const {
    command c;
    c.what = exists_request{path, true};
    c.watch = new_watch(path, watch_kind::data);
    validate(c.what, core_->chroot_length());
    const watch_ptr w = c.watch;
    const reply r = co_await run(std::move(c));
    if (r.code != zk_errc::no_node) throw_if_failed(r, "exists", path);
    co_return with_watch(core_, w, take_stat(r));
}

asio::awaitable<watched<node_children>> operations::children_and_watch(std::string path) const {
    command c;
    c.what = children_request{path, true};
    c.watch = new_watch(path, watch_kind::children);
    validate(c.what, core_->chroot_length());
    const watch_ptr w = c.watch;
    reply r = co_await run(std::move(c));
    throw_if_failed(r, "children", path);
    co_return with_watch(core_, w, take_children(std::move(r)));
}

asio::awaitable<watched<node_data>> operations::config_and_watch() const {
    command c;
    c.what = get_config_request{true};
    c.watch = new_watch("/zookeeper/config", watch_kind::config);
    const watch_ptr w = c.watch;
    reply r = co_await run(std::move(c));
    throw_if_failed(r, "get_config", {});
    co_return with_watch(core_, w, take_data(std::move(r)));
}

// ------------------------------------------------------------------------------------------ for writers of recipes

namespace {

std::shared_ptr<ticket> start(const core_ptr& core, command c, bool until_certain) {
    auto t = std::make_shared<ticket>();
    on_strand(core, [core, c = std::move(c), t, until_certain]() mutable { core->submit(std::move(c), t, until_certain); });
    return t;
}

}  // namespace

pending_create operations::start_create(std::string path, bytes data, create_options options) const {
    command c;
    c.what = make_create(path, std::move(data).take(), options);
    c.pinned = epoch_;
    validate(c.what, core_->chroot_length());
    return {core_, start(core_, std::move(c), false), "create", std::move(path)};
}

pending_children operations::start_children(std::string path) const {
    command c;
    c.what = children_request{path, false};
    c.pinned = epoch_;
    validate(c.what, core_->chroot_length());
    return {core_, start(core_, std::move(c), false), "children", std::move(path)};
}

pending_data operations::start_get(std::string path) const {
    command c;
    c.what = get_request{path, false};
    c.pinned = epoch_;
    validate(c.what, core_->chroot_length());
    return {core_, start(core_, std::move(c), false), "get", std::move(path)};
}

pending_watched_data operations::start_get_and_watch(std::string path) const {
    command c;
    c.what = get_request{path, true};
    c.pinned = epoch_;
    c.watch = new_watch(path, watch_kind::data);
    validate(c.what, core_->chroot_length());
    const watch_ptr w = c.watch;
    return {core_, start(core_, std::move(c), false), w, std::move(path)};
}

pending_removal operations::ensure_removed(std::string path, std::vector<std::string> witnesses) const {
    command c;
    if (witnesses.empty()) {
        c.what = remove_request{path, any_version};
    } else {
        multi_request m;
        for (std::string& witness : witnesses) m.ops.emplace_back(check_op{std::move(witness), any_version});
        m.ops.emplace_back(remove_request{path, any_version});
        c.what = std::move(m);
    }
    c.pinned = epoch_;
    validate(c.what, core_->chroot_length());
    return {core_, start(core_, std::move(c), true), "remove", std::move(path)};
}

one_shot operations::make_one_shot() const { return one_shot(core_); }

void operations::run_in_background(asio::awaitable<void> task) const {
    on_strand(core_, [core = core_, task = std::move(task)]() mutable { core->run_in_background(std::move(task)); });
}

asio::awaitable<std::optional<created>> operations::find_protected(std::string parent, std::string protection_id) const {
    // A server that lags behind does not show the node yet, so sync first.
    node_children found;
    for (;;) {
        std::error_code failed;
        try {
            co_await sync(parent);
            found = co_await children(parent);
        } catch (const error& e) {
            failed = e.code();
            if (failed == zk_errc::no_node) co_return std::nullopt;
            if (failed != condition::retryable) throw;
        }
        if (!failed) break;
    }
    std::vector<std::string> ours;
    for (const std::string& name : found.names)
        if (name.find(protection_id) != std::string::npos) ours.push_back(join_path(parent, name));
    std::sort(ours.begin(), ours.end());

    std::optional<created> kept;
    for (const std::string& path : ours) {
        std::optional<node_stat> s;
        for (;;) {
            std::error_code failed;
            try {
                s = co_await exists(path);
            } catch (const error& e) {
                failed = e.code();
                if (failed != condition::retryable) throw;
            }
            if (!failed) break;
        }
        if (!s) continue;
        const bool of_this_session =
            s->ephemeral_owner == 0 || s->ephemeral_owner == (epoch_ ? epoch_ : core_->current_epoch())->session_id.load();
        if (of_this_session && !kept) {
            kept.emplace();
            kept->path = path;
            kept->stat = *s;
        } else {
            ensure_removed(path);
        }
    }
    co_return kept;
}

}  // namespace zkasio

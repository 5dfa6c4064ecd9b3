#include <zkasio/locks/detail/take_slot.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/detail/acquire.hpp>
#include <zkasio/locks/detail/fixed_node.hpp>
#include <zkasio/locks/detail/guards_in_the_way.hpp>
#include <zkasio/locks/detail/local_slots.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {

/// One listing of the directory, and what is not used up of it. Of contenders that wait one after another looks for a
/// number, each where the one before has stopped.
struct slot_search {
    explicit slot_search(one_shot_event r) : released(std::move(r)) {}

    const one_shot_event released;  ///< fires when this session has released a number since the listing
    watch changes;                  ///< of the names since the listing; empty if not asked for
    bool is_watched = false;
    std::vector<free_slot> free;  ///< not looked at yet, from `at` on
    std::size_t at = 0;
    std::size_t most = 1;                          ///< how many records are read at once, the next time
    std::vector<slot_offer> rested;                ///< have rested; the first is the last to be tried
    std::optional<std::chrono::milliseconds> now;  ///< the servers' time, since the listing
    std::optional<boot_clock::time_point> next;    ///< when another number has rested
    bool outdated = false;                         ///< something has changed since the listing
};

namespace {

using claim_ptr = std::shared_ptr<lock_claim>;
using search_ptr = std::shared_ptr<slot_search>;

enum class look {
    once,
    and_watch
};

asio::awaitable<void> list_slots(session on, std::string path, slot_search& to, std::vector<std::string>& names) {
    for (;;) {
        std::optional<watched<node_children>> found = co_await if_exists(on.children_and_watch(path));
        if (found) {
            names = std::move(found->value.names);
            to.changes = std::move(found->changes);
            co_return;
        }
        watched<std::optional<node_stat>> directory = co_await on.exists_and_watch(path);
        to.changes = std::move(directory.changes);
        if (!directory.value) co_return;
    }
}

// What list_slots() tells where the path is that of the one node. To look once, its create is enough.
asio::awaitable<void> look_at_node(session on, std::string path, std::shared_ptr<local_slots> local, slot_search& to) {
    if (to.is_watched) {
        watched<std::optional<node_stat>> node = co_await on.exists_and_watch(path);
        to.changes = std::move(node.changes);
        if (node.value && !node.value->is_ephemeral() && local->warns_of_persistent_node())
            log_warning(on,
                        "acquire " + path + " waits for a node that is not ephemeral: no end of a session removes it",
                        {{"path", path}});
        if (node.value) co_return;
    }
    to.free.emplace_back();
}

// @param refusals how often other clients were faster than the caller.
asio::awaitable<search_ptr> begin_search(session on, slot_spec spec, std::shared_ptr<local_slots> local, look how,
                                         unsigned refusals) {
    const auto search = std::make_shared<slot_search>(local->next_release());
    std::vector<std::string> names;
    search->is_watched = how == look::and_watch;
    if (spec.is_node) {
        co_await look_at_node(on, spec.path, local, *search);
        co_return search;
    }
    if (search->is_watched)
        co_await list_slots(on, spec.path, *search, names);
    else
        names = co_await children_if_any(on, spec.path);
    search->free = free_slots(names, spec.n);
    if (!spec.rests())
        for (free_slot& free : search->free) free.used_before = false;  // records of others, who let numbers rest
    spread(search->free, refusals, local->random());
    co_return search;
}

asio::awaitable<std::int64_t> create_node(session on, slot_spec spec, std::uint32_t number) {
    create_options how;
    how.mode(create_mode::ephemeral).acl(spec.entries).parents(missing_parents::create_container);
    const created node = co_await on.create(spec.node_of(number), bytes(spec.data), how);
    co_return node.stat.czxid;
}

// Null: the number is another client's, or its record has changed since it was read.
asio::awaitable<claim_ptr> try_slot(session on, slot_spec spec, slot_offer offer,
                                    std::shared_ptr<local_slots::right> right, boot_clock::time_point asked) {
    const session waits = on.patient();
    const std::string path = spec.node_of(offer.number);
    const auto remove = [waits, spec, path, number = offer.number](std::int64_t czxid) {
        return spec.rests() ? remove_with_record(waits, spec, number, czxid) : remove_fixed_node(waits, path, czxid);
    };
    fixed_node_attempt attempt(waits, path, right, remove);
    std::function<asio::awaitable<std::int64_t>()> create = [&] {
        return spec.rests() ? create_with_record(waits, spec, offer) : create_node(waits, spec, offer.number);
    };
    std::optional<std::int64_t> czxid;
    bool no_node = false;  // no record, or no directory
    try {
        czxid = co_await attempt.created(std::move(create));
    } catch (const error& e) {
        no_node = e.code() == zk_errc::no_node;
        if (!no_node && e.code() != zk_errc::bad_version) throw;
    }
    if (no_node) co_await make_directory(waits, spec.path, spec.entries);
    if (!czxid) co_return nullptr;
    fixed_node_claim::grant granted;
    granted.lock = spec.path;
    granted.node = path;
    granted.czxid = *czxid;
    if (!spec.is_node) granted.slot = offer.number;
    granted.asked = asked;
    granted.remove = [remove, czxid] { return remove(*czxid); };
    co_return std::make_shared<fixed_node_claim>(on, std::move(granted), std::move(right));
}

// Completes when a child has come or gone, this session has released a number, or a number has rested.
asio::awaitable<void> until_changed(const slot_search& seen) {
    std::function<asio::awaitable<void>()> wait = [&]() -> asio::awaitable<void> { co_await seen.changes.changed(); };
    if (!seen.next) {
        co_await seen.released.run_until(std::move(wait));
        co_return;
    }
    const any_duration left = std::max(*seen.next - boot_clock::now(), boot_clock::duration::zero());
    try {
        co_await timeout(left, seen.released.run_until(std::move(wait)));
    } catch (const error& e) {
        if (e.code() != errc::timed_out) throw;
    }
}

struct found_slot {
    found_slot() {}  // user-provided: see coroutine_safety.hpp
    slot_offer offer;
    std::shared_ptr<local_slots::right> right;  // null: no number is free, or has rested
};

// The next number of those that nobody else has tried.
found_slot next_of(std::vector<slot_offer>& offers, local_slots& local) {
    found_slot found;
    while (!found.right && !offers.empty()) {
        found.offer = offers.back();
        offers.pop_back();
        found.right = local.take(found.offer.number);
    }
    return found;
}

// Looks at the records of one number, then of two, four ... at once, until one of them has rested. The first number
// that is looked at is this contender's if it has rested: so tries of one client look at different ones.
asio::awaitable<found_slot> next_slot(session on, slot_spec spec, std::shared_ptr<local_slots> local,
                                      search_ptr search) {
    const auto wait_until = [&](boot_clock::time_point time) {
        search->next = std::min(search->next.value_or(time), time);
    };
    constexpr std::size_t most_at_once = 256;  // other requests of the client stand behind these reads
    for (;;) {
        found_slot found = next_of(search->rested, *local);
        if (found.right) co_return found;
        std::vector<free_slot> looked_at;
        std::shared_ptr<local_slots::right> right;
        for (; search->at < search->free.size() && looked_at.size() < search->most; ++search->at) {
            const free_slot& slot = search->free[search->at];
            if (!looked_at.empty() && !looked_at.back().used_before) break;  // that one may be had at once
            const auto now = boot_clock::now();
            const auto rest = slot.used_before ? local->rest_of(slot.number, now) : std::nullopt;
            if (rest) wait_until(now + *rest);
            if (!rest && !right) right = local->take(slot.number);
            if (!rest && right) looked_at.push_back(slot);
        }
        if (looked_at.empty()) co_return found;
        search->most = std::min(2 * search->most, most_at_once);
        const std::uint32_t first = looked_at.front().number;
        slot_offers offers = co_await rested_slots(on, spec, local, std::move(looked_at), search->now);
        search->outdated = offers.outdated;
        if (search->outdated) co_return found;
        if (offers.next) wait_until(boot_clock::after(any_duration(*offers.next)));
        search->rested.assign(offers.now.rbegin(), offers.now.rend());
        if (!search->rested.empty() && search->rested.back().number == first) {
            found.offer = search->rested.back();
            found.right = std::move(right);
            search->rested.pop_back();
            co_return found;
        }
    }
}

// The orphan of the one node is removed by the attempt to create it.
void remove_orphans(const session& on, const slot_spec& spec) {
    if (spec.is_node) return;
    toolbox(on).remove_orphans("slots " + spec.path, spec.path,
                               [n = spec.n](const std::string& name) { return slot_of(name, n).has_value(); });
}

// Null: all numbers are held, or rest.
asio::awaitable<claim_ptr> try_slots(session on, slot_spec spec, std::shared_ptr<local_slots> local) {
    const boot_clock::time_point asked = boot_clock::now();
    const session waits = on.patient();
    unsigned refusals = 0;
    for (bool second_look = false;;) {
        const search_ptr search = co_await begin_search(waits, spec, local, look::once, refusals);
        found_slot found = co_await next_slot(waits, spec, local, search);
        if (found.right) {
            const claim_ptr claim = co_await try_slot(on, spec, found.offer, std::move(found.right), asked);
            if (claim || spec.is_node) co_return claim;
            ++refusals;
        } else if (search->outdated) {
            ++refusals;
        } else {
            remove_orphans(on, spec);
            if (second_look) co_return nullptr;
            second_look = true;
            if (!spec.rests() && local->want_released(spec.n)) co_await search->released.wait();
            if (!spec.is_node) co_await waits.sync(spec.path);  // a server that lags behind still shows what is gone
        }
    }
}

std::vector<std::string> all_nodes(const slot_spec& spec) {
    std::vector<std::string> nodes;
    for (std::uint32_t i = 0; i < spec.n; ++i) nodes.push_back(spec.node_of(i));
    return nodes;
}

// Sleeps for a random time.
asio::awaitable<void> sleep_up_to(std::chrono::milliseconds most, std::uint64_t random) {
    const auto longest = static_cast<std::uint64_t>(std::chrono::nanoseconds(most).count());
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(std::chrono::nanoseconds(random % (longest + 1)));
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<claim_ptr> wait_for_slot(session on, slot_spec spec, std::shared_ptr<local_slots> local,
                                         std::shared_ptr<local_slots::place> place) {
    const boot_clock::time_point asked = boot_clock::now();
    const session waits = on.patient();
    const std::function<std::vector<std::string>()> all_numbers = [spec] { return all_nodes(spec); };
    unsigned refusals = 0;
    std::chrono::milliseconds pause = spec.first_pause;
    for (;;) {
        search_ptr search = co_await place->turn();
        // With a search that is used up, a wait is likely. Where there is one number, so it is after a refusal.
        look how = search || (spec.n == 1 && refusals > 0) ? look::and_watch : look::once;
        found_slot found;
        while (!found.right) {
            if (!search) search = co_await begin_search(waits, spec, local, how, refusals);
            found = co_await next_slot(waits, spec, local, search);
            if (found.right) break;
            std::optional<guards_in_the_way> alarm;
            if (search->outdated) {
                ++refusals;
            } else if (local->want_all(spec.n)) {  // nobody has to be asked
                alarm.emplace(on, spec.path, asked, all_numbers);
                co_await search->released.wait();
                how = look::once;
            } else {
                remove_orphans(on, spec);
                how = look::and_watch;
                if (search->is_watched) {
                    if (search->free.empty()) alarm.emplace(on, spec.path, asked, all_numbers);
                    co_await until_changed(*search);
                    refusals = 0;
                    if (spec.is_node) {
                        co_await sleep_up_to(pause, local->random());
                        pause = std::min(2 * pause, spec.most_pause);
                        how = look::once;
                    }
                }
            }
            search.reset();
        }
        if (spec.n > 1) {
            local->want(found.offer.number);  // the next contender does not look at it
            place->pass_turn(std::move(search));
        }
        const claim_ptr claim = co_await try_slot(on, spec, found.offer, std::move(found.right), asked);
        if (claim) co_return claim;
        ++refusals;
    }
}

asio::awaitable<std::optional<lock_guard>> take_slot(client zk, slot_spec spec, acquire_options how,
                                                     if_contended when_contended) {
    refuse_owner(how, spec.path, spec.no_owner);
    if (how.data()) spec.data = *how.data();
    const session on = co_await toolbox(zk).current_session("acquire", spec.path);
    const std::shared_ptr<local_slots> local = co_await local_slots::of(on, spec.path);
    std::shared_ptr<local_slots::place> place;
    if (when_contended == if_contended::wait) {
        if (local->has_all(spec.n)) {
            const asio::any_io_executor here = co_await asio::this_coro::executor;
            const bool itself = co_await own_guards::all_run_on(on, spec.path, all_nodes(spec), here);
            if (itself) throw error(errc::would_deadlock, "acquire", spec.path, holds_it_already);
        }
        place = std::make_shared<local_slots::place>(local, local_slots::line_key(spec.n, spec.quiet));
    }
    for (;;) {
        claim_ptr claim;
        if (place)
            claim = co_await wait_for_slot(on, spec, local, place);
        else
            claim = co_await try_slots(on, spec, local);
        bool over = !claim;
        if (!over) over = co_await wait_until_covered(claim);
        if (over) co_return to_guard(claim, zk);
    }
}

}  // namespace

lock_attempt attempts_at_slot(client zk, slot_spec spec, acquire_options how) {
    return [zk = std::move(zk), spec = std::move(spec), how = std::move(how)](if_contended when_contended) {
        return reported(errors_as_acquire(take_slot(zk, spec, how, when_contended), spec.path), zk, spec.path);
    };
}

}  // namespace zkasio::lock_detail

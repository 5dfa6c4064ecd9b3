#include <zkasio/locks/slots.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/finish_acquire.hpp>
#include <zkasio/locks/detail/fixed_node.hpp>
#include <zkasio/locks/detail/fixed_node_claim.hpp>
#include <zkasio/locks/detail/local_slots.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/detail/slot_rest.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace zkasio {

using namespace lock_detail;

slots_options& slots_options::quiet(any_duration d) {
    const std::chrono::nanoseconds rest = d;
    if (rest < std::chrono::nanoseconds::zero())
        throw error(errc::invalid_argument, "slots", {}, "numbers do not rest for a negative time");
    quiet_ = std::chrono::ceil<std::chrono::milliseconds>(rest);
    return *this;
}

namespace {

using claim_ptr = std::shared_ptr<lock_claim>;

struct slot_listing {
    std::vector<std::string> names;
    watch changes;  // of the names; empty if not asked for
};

enum class look {
    once,
    and_watch
};

asio::awaitable<slot_listing> list_slots(session on, std::string path, look how) {
    slot_listing seen;
    if (how == look::once) {
        seen.names = co_await children_if_any(on, std::move(path));
        co_return seen;
    }
    for (;;) {
        std::optional<watched<node_children>> found = co_await if_exists(on.children_and_watch(path));
        if (found) {
            seen.names = std::move(found->value.names);
            seen.changes = std::move(found->changes);
            co_return seen;
        }
        watched<std::optional<node_stat>> directory = co_await on.exists_and_watch(path);
        seen.changes = std::move(directory.changes);
        if (!directory.value) co_return seen;
    }
}

asio::awaitable<std::int64_t> create_node(session on, slot_spec spec, std::uint32_t number) {
    create_options how;
    how.mode(create_mode::ephemeral).acl(spec.entries).parents(missing_parents::create_container);
    const created node = co_await on.create(spec.node_of(number), bytes(spec.data), how);
    co_return node.stat.czxid;
}

// Null: the number is another client's.
asio::awaitable<claim_ptr> try_slot(session on, slot_spec spec, slot_offer offer, std::shared_ptr<local_right> right,
                                    boot_clock::time_point asked) {
    const session waits = on.patient();
    const std::string path = spec.node_of(offer.number);
    const auto remove = [waits, spec, path, number = offer.number](std::int64_t czxid) {
        return spec.rests() ? remove_with_record(waits, spec, number, czxid) : remove_fixed_node(waits, path, czxid);
    };
    fixed_node_attempt attempt(waits, path, right, remove);
    std::function<asio::awaitable<std::int64_t>()> create = [&] {
        return spec.rests() ? create_with_record(waits, spec, offer) : create_node(waits, spec, offer.number);
    };
    const std::optional<std::int64_t> czxid = co_await attempt.created(std::move(create));
    if (!czxid) co_return nullptr;
    fixed_node_claim::grant granted;
    granted.lock = spec.path;
    granted.node = path;
    granted.czxid = *czxid;
    granted.slot = offer.number;
    granted.asked = asked;
    granted.remove = [remove, czxid] { return remove(*czxid); };
    co_return std::make_shared<fixed_node_claim>(on, std::move(granted), std::move(right));
}

// try_slot() of a number that rests between two holders. Null also if an operator or another client has replaced the
// number's record, or if the directory is missing, which is then created; then `changed` is true.
asio::awaitable<claim_ptr> try_rested_slot(session on, slot_spec spec, slot_offer offer,
                                           std::shared_ptr<local_right> right, boot_clock::time_point asked,
                                           bool& changed) {
    bool no_node = false;
    try {
        co_return co_await try_slot(on, spec, offer, std::move(right), asked);
    } catch (const error& e) {
        no_node = e.code() == zk_errc::no_node;
        if (!no_node && e.code() != zk_errc::bad_version) throw;
    }
    changed = true;
    if (no_node) co_await make_directory(on.patient(), spec.path, spec.entries);
    co_return nullptr;
}

// Completes when a child has come or gone, this session has released a number, or a number has rested.
asio::awaitable<void> until_changed(const watch& children, one_shot_event released,
                                    std::optional<std::chrono::milliseconds> next) {
    std::function<asio::awaitable<void>()> wait = [&]() -> asio::awaitable<void> { co_await children.changed(); };
    if (!next) {
        co_await released.run_until(std::move(wait));
        co_return;
    }
    try {
        co_await timeout(*next, released.run_until(std::move(wait)));
    } catch (const error& e) {
        if (e.code() != errc::timed_out) throw;
    }
}

struct slot_attempt {
    slot_attempt() {}  // user-provided: see coroutine_safety.hpp
    claim_ptr claim;
    bool refused = false;                           // another client was faster
    bool changed = false;                           // look again, after a pause
    std::optional<std::chrono::milliseconds> next;  // until a number has rested
};

asio::awaitable<slot_attempt> try_free_slots(session on, slot_spec spec, std::shared_ptr<local_slots> local,
                                             std::vector<free_slot> free, boot_clock::time_point asked) {
    slot_attempt result;
    for (const free_slot& slot : free) {
        std::shared_ptr<local_right> right = local->take(slot.number);
        if (!right) continue;
        slot_offer offer;
        offer.number = slot.number;
        result.claim = co_await try_slot(on, spec, offer, std::move(right), asked);
        result.refused = !result.claim;
        break;
    }
    co_return result;
}

// Looks at the records of one number, then of two, four ... at once, until one of them has rested. A number that is
// looked at alone, or as the first of several, is this contender's if it has rested: so contenders of one client look
// at different ones.
asio::awaitable<slot_attempt> try_rested_slots(session on, slot_spec spec, std::shared_ptr<local_slots> local,
                                               std::vector<free_slot> free, boot_clock::time_point asked) {
    slot_attempt result;
    const auto wait_for = [&](std::chrono::milliseconds time) {
        result.next = std::min(result.next.value_or(time), time);
    };
    std::optional<std::chrono::milliseconds> now;
    auto slot = free.begin();
    constexpr std::size_t most_at_once = 256;  // other requests of the client stand behind these reads
    for (std::size_t most = 1; slot != free.end(); most = std::min(most * 2, most_at_once)) {
        std::vector<free_slot> looked_at;
        std::shared_ptr<local_right> right;
        for (; slot != free.end() && looked_at.size() < most; ++slot) {
            if (!looked_at.empty() && !looked_at.back().used_before) break;  // that one may be had at once
            const auto rest = slot->used_before ? local->rest_of(slot->number, boot_clock::now()) : std::nullopt;
            if (rest) wait_for(std::chrono::ceil<std::chrono::milliseconds>(*rest));
            if (!rest && !right) right = local->take(slot->number);
            if (!rest && right) looked_at.push_back(*slot);
        }
        if (looked_at.empty()) break;
        const std::uint32_t first = looked_at.front().number;
        const slot_offers offers = co_await rested_slots(on.patient(), spec, local, std::move(looked_at), now);
        if (offers.next && *offers.next > std::chrono::milliseconds(0)) wait_for(*offers.next);
        for (const slot_offer& offer : offers.now) {
            if (offer.number != first) right = local->take(offer.number);
            if (!right) continue;
            result.claim = co_await try_rested_slot(on, spec, offer, std::move(right), asked, result.changed);
            result.refused = !result.claim;
            co_return result;
        }
        if (offers.next == std::chrono::milliseconds(0)) {
            result.refused = result.changed = true;
            break;
        }
    }
    co_return result;
}

// Null: all numbers are held, or rest.
asio::awaitable<claim_ptr> contend_for_slot(session on, slot_spec spec, if_contended when_contended) {
    const boot_clock::time_point asked = boot_clock::now();
    const session waits = on.patient();
    const std::shared_ptr<local_slots> local = co_await local_slots::of(on, spec.path);
    back_off pauses = toolbox(on).make_back_off();
    unsigned refusals = 0;
    for (bool second_look = false;;) {
        const one_shot_event released = local->next_release();
        const bool waiting = second_look && when_contended == if_contended::wait;
        const slot_listing seen = co_await list_slots(waits, spec.path, waiting ? look::and_watch : look::once);
        std::vector<free_slot> free = free_slots(seen.names, spec.n);
        spread(free, refusals, local->random());
        slot_attempt attempt;
        if (spec.rests())
            attempt = co_await try_rested_slots(on, spec, local, std::move(free), asked);
        else
            attempt = co_await try_free_slots(on, spec, local, std::move(free), asked);
        if (attempt.claim) co_return attempt.claim;
        if (attempt.refused) {
            ++refusals;
            if (attempt.changed) co_await pauses.pause();
            continue;
        }
        toolbox(on).remove_orphans("slots " + spec.path, spec.path,
                                   [n = spec.n](const std::string& name) { return slot_of(name, n).has_value(); });
        if (waiting) {
            co_await until_changed(seen.changes, released, attempt.next);
            refusals = 0;
        } else if (second_look) {
            co_return nullptr;
        } else if (when_contended == if_contended::give_up) {
            co_await waits.sync(spec.path);  // a server that lags behind still shows what is gone
        }
        second_look = true;
    }
}

asio::awaitable<std::optional<lock_guard>> take_slot(client zk, slot_spec spec, acquire_options how,
                                                     if_contended when_contended) {
    refuse_owner(how, spec.path, "no lock_owner can hold numbers: each guard has one of its own");
    const session on = co_await toolbox(zk).current_session("acquire", spec.path);
    for (;;) {
        const claim_ptr claim = co_await contend_for_slot(on, spec, when_contended);
        bool over = !claim;
        if (!over) over = co_await wait_until_covered(claim);
        if (over) co_return to_guard(claim, zk);
    }
}

}  // namespace

slots::slots(client zk, std::string path, std::uint32_t n, slots_options options)
    : lockable(std::move(zk), std::move(path)), n_(n), options_(std::move(options)) {
    check_directory("slots", on(), this->path());
    if (n < 1 || n > most)
        throw error(errc::invalid_argument, "slots", this->path(),
                    "there are 1 to " + std::to_string(most) + " numbers, not " + std::to_string(n));
}

lock_attempt slots::attempts(acquire_options how) const {
    slot_spec spec;
    spec.path = path();
    spec.n = n_;
    spec.data = how.data().value_or(options_.data());
    spec.entries = options_.acl();
    spec.quiet = options_.quiet();
    return [zk = on(), spec = std::move(spec), how = std::move(how)](if_contended when_contended) {
        return reported(errors_as_acquire(take_slot(zk, spec, how, when_contended), spec.path), zk, spec.path);
    };
}

}  // namespace zkasio

#include <zkasio/detail/requests/ephemeral_budget.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

namespace zkasio::detail {
namespace {

constexpr std::size_t sequence_digits = 10;

template <class F>
void for_each_create(const request& r, F f) {
    if (const auto* c = std::get_if<create_request>(&r)) {
        if (is_ephemeral(c->mode)) f(*c);
    } else if (const auto* m = std::get_if<multi_request>(&r)) {
        for (const multi_op& op : m->ops)
            if (const auto* one = std::get_if<create_request>(&op); one && is_ephemeral(one->mode)) f(*one);
    }
}

template <class F>
void for_each_removal(const request& r, F f) {
    if (const auto* d = std::get_if<remove_request>(&r)) {
        f(d->path);
    } else if (const auto* m = std::get_if<multi_request>(&r)) {
        for (const multi_op& op : m->ops)
            if (const auto* one = std::get_if<remove_request>(&op)) f(one->path);
    }
}

std::size_t path_bytes(const create_request& c) noexcept {
    return c.path.size() + (is_sequential(c.mode) ? sequence_digits : 0);
}

const std::string& path_of(const multi_op& op) {
    return std::visit([](const auto& o) -> const std::string& { return o.path; }, op);
}

// Otherwise an earlier operation, which was undone, may be why the node did not exist.
bool is_first_of_path(const multi_request& m, std::size_t i) {
    const auto last = m.ops.begin() + static_cast<std::ptrdiff_t>(i);
    return std::none_of(m.ops.begin(), last, [&](const multi_op& op) { return path_of(op) == path_of(*last); });
}

}  // namespace

std::size_t ephemeral_budget::cost_of_creates(const request& r) const {
    std::size_t bytes = 0;
    for_each_create(r, [&](const create_request& c) { bytes += cost_of(path_bytes(c)); });
    return bytes;
}

std::size_t ephemeral_budget::cost_of_removals(const request& r) const {
    std::size_t bytes = 0;
    for_each_removal(r, [&](const std::string& path) { bytes += nodes_.contains(path) ? cost_of(path.size()) : 0; });
    return bytes;
}

ephemeral_budget::directory& ephemeral_budget::directory_of(const std::string& path) {
    const std::string_view name = parent_path(path);
    if (const auto at = directories_.find(name); at != directories_.end()) return *at;
    if (directories_.size() > 2 * swept_ + 64) {
        std::erase_if(directories_, [](const directory& d) { return d.second.nodes == 0; });
        swept_ = directories_.size();
    }
    return *directories_.try_emplace(std::string(name)).first;
}

bool ephemeral_budget::is_used(const std::string& name) const {
    const auto at = directories_.find(name);
    return at != directories_.end() && at->second.nodes > 0;
}

bool ephemeral_budget::others_wait(const std::string& name) const {
    const auto at = directories_.find(name);
    return at != directories_.end() && at->second.nodes > at->second.held;
}

// Keeps `moving_`, and what waits for a directory without a contender of ours that waits.
template <class F>
void ephemeral_budget::change(directory& in, F f) {
    usage& d = in.second;
    const auto moves = [&d] { return d.waiting > 0 && d.held == 0; };
    const bool did_move = moves();
    f(d);
    moving_ += moves();
    moving_ -= did_move;
    if (d.nodes > d.held || waiting_.empty()) return;
    if (const auto all = waiting_.find(in.first); all != waiting_.end()) {
        auto entry = behind_.extract(all->second.front().ticket);
        if (!entry.empty()) first_.insert(std::move(entry));
    }
    has_news_ = true;
}

void ephemeral_budget::release(std::size_t bytes) noexcept {
    assert(used_ >= bytes);
    used_ -= bytes;
    has_news_ = has_news_ || bytes > 0;
    if (used_ < worth_a_warning / 2) warned_ = false;
    if (short_from_ > limit_ - limit_ / 2) short_from_ = std::min(short_from_, next_short());
}

bool ephemeral_budget::take_warning() noexcept {
    if (used_ < worth_a_warning || warned_) return false;
    return warned_ = true;
}

// ------------------------------------------------------------------------------------------------ requests

bool ephemeral_budget::has_room(const request& r, std::size_t bytes) const {
    if (bytes == 0 || used_ + bytes <= limit_) return true;
    return used_ + bytes - std::min(used_, cost_of_removals(r)) <= limit_;
}

std::size_t ephemeral_budget::step_without_room(const multi_request& m) const {
    std::size_t bytes = used_ - std::min(used_, cost_of_removals(m));
    for (std::size_t i = 0; i < m.ops.size(); ++i) {
        const auto* const c = std::get_if<create_request>(&m.ops[i]);
        if (!c || !is_ephemeral(c->mode)) continue;
        bytes += cost_of(path_bytes(*c));
        if (bytes > limit_) return i;
    }
    return m.ops.size();
}

bool ephemeral_budget::begin(const request& r, bool waits, share& its) {
    its = {0, nullptr, epoch_};
    const std::size_t bytes = cost_of_creates(r);
    if (!has_room(r, bytes)) return false;
    if (!nodes_.empty())
        for_each_removal(r, [this](const std::string& path) {
            if (const auto at = nodes_.find(path); at != nodes_.end()) turn(at->second, use::leaves);
        });
    if (bytes == 0) return true;
    used_ += bytes;
    its.bytes = bytes;
    for_each_create(r, [&](const create_request& c) {
        its.in = &directory_of(c.path);
        ++its.in->second.nodes;
        contenders_under_way_ += waits;
    });
    return true;
}

void ephemeral_budget::end(const request& r, bool waits, share& its, const reply& a, bool again) {
    const share was = std::exchange(its, {});
    const bool creates = was.bytes > 0;
    if (creates && was.epoch != epoch_) return;
    if (!creates && nodes_.empty() && maybe_made_.empty()) return;
    // What exists, or may exist, is counted before the reservation goes: the directory is never without a node.
    if (const auto* m = std::get_if<multi_request>(&r)) {
        for (std::size_t i = 0; i < m->ops.size(); ++i) {
            const multi_op& op = m->ops[i];
            const multi_result* const told = i < a.results.size() ? &a.results[i] : nullptr;
            if (const auto* c = std::get_if<create_request>(&op)) {
                if (creates && is_ephemeral(c->mode))
                    made_or_not(*c, directory_of(c->path), told ? told->path : std::string(), waits, a);
                continue;
            }
            if (a.code && told && told->code == zk_errc::no_node && is_first_of_path(*m, i)) gone(path_of(op));
            if (const auto* d = std::get_if<remove_request>(&op)) removed_or_not(d->path, a, again);
        }
    } else if (const auto* c = std::get_if<create_request>(&r)) {
        if (creates) made_or_not(*c, *was.in, a.path, waits, a);
    } else if (const auto* d = std::get_if<remove_request>(&r)) {
        if (a.code == zk_errc::no_node) gone(d->path);
        removed_or_not(d->path, a, again);
    } else if (a.sent) {
        // no answer
    } else if (std::holds_alternative<sync_request>(r)) {
        synced_ = synced_ || !a.code;
    } else if (const auto* l = std::get_if<children_request>(&r)) {
        if (synced_ && (!a.code || a.code == zk_errc::no_node)) listed(l->path, a.children);
    } else if (std::holds_alternative<get_request>(r) || std::holds_alternative<exists_request>(r)) {
        found_or_not(path_of(r), a);
    } else if (const auto* s = std::get_if<set_request>(&r)) {
        if (a.code == zk_errc::no_node) gone(s->path);
    }
    if (!creates) return;
    const bool is_one = std::holds_alternative<create_request>(r);
    for_each_create(r, [&](const create_request& c) {
        change(is_one ? *was.in : directory_of(c.path), [](usage& d) { --d.nodes; });
        contenders_under_way_ -= waits;
    });
    release(was.bytes);
}

// @param made the path in the answer; empty in the answers of servers before 3.5 to a transaction.
void ephemeral_budget::made_or_not(const create_request& c, directory& in, const std::string& made, bool waits,
                                   const reply& a) {
    if (a.code && !a.sent) return;
    if (!a.code) return exists(made.empty() ? c.path : made, in, waits ? use::waits : use::held);
    synced_ = false;
    if (!is_sequential(c.mode)) {
        exists(c.path, in, waits ? use::waits : use::held);
        return doubt(c.path);
    }
    maybe_made_.emplace(c.path, waits ? use::waits : use::held);
    contenders_under_way_ += waits;
    used_ += cost_of(path_bytes(c));
    ++in.second.nodes;
}

void ephemeral_budget::count(usage& in, use of, int more) {
    const auto n = static_cast<std::size_t>(more);
    in.nodes += n;
    if (of == use::waits) {
        in.waiting += n;
        waiting_nodes_ += n;
    } else if (of == use::held) {
        in.held += n;
    } else {
        leaving_nodes_ += n;
    }
}

void ephemeral_budget::exists(const std::string& path, directory& in, use of) {
    if (!nodes_.try_emplace(path, node{of, &in}).second) return;
    used_ += cost_of(path.size());
    change(in, [&](usage& d) { count(d, of, 1); });
}

void ephemeral_budget::turn(node& n, use into) {
    const use was = std::exchange(n.of, into);
    if (was == into) return;
    change(*n.in, [&](usage& d) {
        count(d, into, 1);
        count(d, was, -1);
    });
    has_news_ = true;
}

void ephemeral_budget::doubt(const std::string& path) {
    if (nodes_.contains(path)) doubtful_.insert(path);
}

void ephemeral_budget::removed_or_not(const std::string& path, const reply& a, bool again) {
    if (!a.code) return gone(path);
    const auto at = nodes_.find(path);
    if (again || at == nodes_.end() || at->second.of != use::leaves) return;
    turn(at->second, use::held);
    if (a.sent) doubt(path);
}

void ephemeral_budget::heard_gone(std::string_view path) {
    if (synced_ || !doubtful_.contains(path)) gone(path);
}

// A server that has not synced may not know yet of a create that was lost.
void ephemeral_budget::found_or_not(std::string_view path, const reply& a) {
    const auto doubt = doubtful_.find(path);
    if (doubt != doubtful_.end() && !synced_) return;
    const bool of_other = !a.code && a.stat.ephemeral_owner != session_;
    if (of_other || a.code == zk_errc::no_node) return gone(path);
    if (doubt != doubtful_.end() && !a.code) doubtful_.erase(doubt);
}

void ephemeral_budget::gone(std::string_view path) {
    if (nodes_.empty()) return;
    const auto at = nodes_.find(path);
    if (at == nodes_.end()) return;
    if (!doubtful_.empty())
        if (const auto doubt = doubtful_.find(path); doubt != doubtful_.end()) doubtful_.erase(doubt);
    const std::size_t bytes = cost_of(at->first.size());
    const node was = at->second;
    nodes_.erase(at);
    change(*was.in, [&](usage& d) { count(d, was.of, -1); });
    release(bytes);
}

std::list<request> ephemeral_budget::questions() const {
    std::list<request> all;
    if (doubtful_.empty() && to_list_.empty()) return all;
    all.emplace_back(sync_request{"/"});
    for (const std::string& parent : to_list_) all.emplace_back(children_request{parent});
    for (const std::string& path : doubtful_) all.emplace_back(exists_request{path});
    return all;
}

void ephemeral_budget::doubt_held() {
    for (const auto& [path, n] : nodes_)
        if (n.of == use::held) doubtful_.insert(path);
    for (const auto& [path, of] : maybe_made_) to_list_.emplace(parent_path(path));
    short_from_ = next_short();
}

std::size_t ephemeral_budget::next_short() const noexcept {
    const std::size_t left = limit_ - std::min(used_, limit_);
    return left <= limit_ / 8 ? std::numeric_limits<std::size_t>::max() : limit_ - left / 2;
}

bool ephemeral_budget::may_have_made(std::string_view path) const {
    const auto made = [path](const auto& lost) {
        return path.size() >= lost.first.size() + sequence_digits && path.starts_with(lost.first);
    };
    return nodes_.contains(path) || std::any_of(maybe_made_.begin(), maybe_made_.end(), made);
}

// Which of the lost creates of sequential nodes have been applied: their paths are prefixes of names.
void ephemeral_budget::listed(const std::string& parent, const std::vector<std::string>& names) {
    to_list_.erase(parent);
    const std::string below = join_path(parent, "");
    auto it = maybe_made_.lower_bound(below);
    if (it == maybe_made_.end() || !it->first.starts_with(below)) return;
    std::map<std::string, std::vector<std::string>> found;  // by prefix
    std::string prefix;
    for (const std::string& name : names) {
        if (name.size() < sequence_digits) continue;
        prefix.assign(below).append(name, 0, name.size() - sequence_digits);
        // Behind 2^31 - 1 come negative numbers: a '-' and ten digits.
        if (!maybe_made_.contains(prefix) && prefix.ends_with('-')) prefix.pop_back();
        if (!maybe_made_.contains(prefix)) continue;
        std::string path = join_path(parent, name);
        if (!nodes_.contains(path)) found[prefix].push_back(std::move(path));
    }
    while (it != maybe_made_.end() && it->first.starts_with(below)) {
        if (parent_path(it->first) != parent) {
            ++it;
            continue;
        }
        const std::size_t lost = maybe_made_.count(it->first);
        const std::vector<std::string>& made = found[it->first];
        if (made.size() > lost) {  // other sessions use the same names: it stays unknown
            std::advance(it, lost);
            continue;
        }
        for (std::size_t i = 0; i < lost; ++i) {
            const auto [path, of] = *it;
            it = maybe_made_.erase(it);
            directory& in = directory_of(path);
            if (i < made.size()) exists(made[i], in, of);
            contenders_under_way_ -= of == use::waits;
            change(in, [](usage& d) { --d.nodes; });
            release(cost_of(path.size() + sequence_digits));
        }
    }
}

// ---------------------------------------------------------------------------------------- contenders of a lock

ephemeral_budget::room ephemeral_budget::for_contender(const std::string& name, std::size_t path_bytes) const {
    const std::size_t then = used_ + cost_of(path_bytes + sequence_digits);
    if (then <= limit_ - limit_ / 4) return room::now;
    if (then <= limit_ && !others_wait(name)) return room::now;
    return some_may_leave(!others_wait(name)) ? room::later : room::never;
}

// A first contender whose room is taken by contenders behind a lock of this session might wait for itself: whoever
// holds that lock may be the one that asks.
bool ephemeral_budget::some_may_leave(bool is_first) const noexcept {
    return contenders_under_way_ > 0 || leaving_nodes_ > 0 || (is_first ? moving_ > 0 : waiting_nodes_ > 0);
}

std::size_t ephemeral_budget::for_claims(const std::string& name, std::size_t path_bytes) const {
    const std::size_t each = cost_of(path_bytes);
    const bool is_first = !is_used(name);
    const std::size_t n = used_ < limit_ / 2 ? (limit_ / 2 - used_) / each : 0;
    if (n > 0 || !is_first) return n;
    return has_room_for(each) || !some_may_leave(true) ? 1 : 0;
}

void ephemeral_budget::when_changed(std::string name, std::size_t path_bytes, std::function<void()> f) {
    const bool is_first = !others_wait(name);
    const std::uint64_t ticket = ++last_ticket_;
    std::deque<waiter>& all = waiting_[name];
    all.push_back({path_bytes, ticket, std::move(f)});
    if (all.size() == 1) (is_first ? first_ : behind_).emplace(ticket, std::move(name));
}

void ephemeral_budget::now_holds(const std::string& path) {
    const auto at = nodes_.find(path);
    if (at != nodes_.end() && at->second.of == use::waits) turn(at->second, use::held);
}

void ephemeral_budget::call_waiting() {
    has_news_ = false;
    const std::uint64_t epoch = epoch_;
    for (std::map<std::uint64_t, std::string>* const all : {&first_, &behind_}) {
        while (epoch == epoch_ && !all->empty()) {
            const std::string& name = all->begin()->second;
            if (all == &first_ && others_wait(name)) {  // no longer the first ones
                behind_.insert(all->extract(all->begin()));
                continue;
            }
            const auto at = waiting_.find(name);
            std::deque<waiter>& its = at->second;
            if (for_contender(name, its.front().path_bytes) == room::later) break;
            const std::function<void()> f = std::move(its.front().call);
            its.pop_front();
            auto entry = all->extract(all->begin());
            if (its.empty()) {
                waiting_.erase(at);
            } else {
                entry.key() = its.front().ticket;
                all->insert(std::move(entry));
            }
            f();  // may call when_changed() and begin()
        }
    }
    if (epoch != epoch_) return;
    for (const std::function<void()>& f : std::exchange(for_claims_, {})) f();  // may call when_released()
}

void ephemeral_budget::clear() {
    ++epoch_;
    limit_ = given_;
    used_ = 0;
    short_from_ = next_short();
    nodes_.clear();
    maybe_made_.clear();
    doubtful_.clear();
    to_list_.clear();
    directories_.clear();
    swept_ = 0;
    waiting_nodes_ = leaving_nodes_ = contenders_under_way_ = moving_ = 0;
    waiting_.clear();
    for_claims_.clear();
    first_.clear();
    behind_.clear();
    has_news_ = warned_ = synced_ = false;
}

}  // namespace zkasio::detail

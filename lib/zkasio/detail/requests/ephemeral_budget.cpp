#include <zkasio/detail/requests/ephemeral_budget.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>
#include <vector>

namespace zkasio::detail {
namespace {

constexpr std::size_t sequence_digits = 10;

template <class F>
void for_each_create(const request& r, F f) {
    if (const auto* c = std::get_if<create_request>(&r)) {
        if (is_ephemeral(c->mode)) f(*c, std::size_t(0));
    } else if (const auto* m = std::get_if<multi_request>(&r)) {
        for (std::size_t i = 0; i < m->ops.size(); ++i)
            if (const auto* one = std::get_if<create_request>(&m->ops[i]); one && is_ephemeral(one->mode)) f(*one, i);
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

}  // namespace

std::size_t ephemeral_budget::cost_of_creates(const request& r) const {
    std::size_t bytes = 0;
    for_each_create(r, [&](const create_request& c, std::size_t) { bytes += cost_of(path_bytes(c)); });
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

// Keeps `moving_`, and what waits for a directory without a node of ours.
template <class F>
void ephemeral_budget::change(directory& in, F f) {
    auto& [name, d] = in;
    const auto moves = [&d = d] { return d.waiting > 0 && d.held == 0; };
    const bool did_move = moves();
    f(d);
    moving_ += moves();
    moving_ -= did_move;
    if (d.nodes > 0) return;
    if (const auto all = waiting_.find(name); all != waiting_.end())
        first_.insert(first_.end(), all->second.size(), name);
    has_news_ = true;
}

void ephemeral_budget::release(std::size_t bytes) noexcept {
    assert(used_ >= bytes);
    used_ -= bytes;
    has_news_ = has_news_ || bytes > 0;
    if (used_ < worth_a_warning / 2) warned_ = false;
}

bool ephemeral_budget::take_warning() noexcept {
    if (used_ < worth_a_warning || warned_) return false;
    return warned_ = true;
}

// ------------------------------------------------------------------------------------------------ requests

bool ephemeral_budget::has_room(const request& r) const {
    const std::size_t bytes = cost_of_creates(r);
    return bytes == 0 || used_ + bytes <= limit_ + cost_of_removals(r);
}

bool ephemeral_budget::begin(const request& r, bool waits, share& its) {
    its = {0, nullptr, epoch_};
    const std::size_t bytes = cost_of_creates(r);
    if (bytes > 0 && used_ + bytes > limit_ + cost_of_removals(r)) return false;
    if (!nodes_.empty())
        for_each_removal(r, [this](const std::string& path) {
            if (const auto at = nodes_.find(path); at != nodes_.end()) turn(at->second, use::leaves);
        });
    if (bytes == 0) return true;
    used_ += bytes;
    its.bytes = bytes;
    for_each_create(r, [&](const create_request& c, std::size_t) {
        its.in = &directory_of(c.path);
        ++its.in->second.nodes;
        contenders_under_way_ += waits;
    });
    return true;
}

void ephemeral_budget::end(const request& r, bool waits, share& its, const reply& a) {
    const share was = std::exchange(its, {});
    if (was.bytes > 0) {
        if (was.epoch != epoch_) return;
        // What exists, or may exist, is counted before the reservation goes: the directory is never without a node.
        const auto* m = std::get_if<multi_request>(&r);
        for_each_create(r, [&](const create_request& c, std::size_t i) {
            directory& in = m ? directory_of(c.path) : *was.in;
            if (!a.code) {
                const bool is_named = m ? i < a.results.size() && !a.results[i].path.empty() : !a.path.empty();
                exists(!is_named ? c.path : m ? a.results[i].path : a.path, in, waits ? use::waits : use::held);
            } else if (a.sent && !is_sequential(c.mode)) {
                exists(c.path, in, use::held);
            } else if (a.sent) {
                maybe_made_.emplace(c.path, cost_of(path_bytes(c)));
                used_ += cost_of(path_bytes(c));
                ++in.second.nodes;
            }
            change(in, [](usage& d) { --d.nodes; });
            contenders_under_way_ -= waits;
        });
        release(was.bytes);
    }
    if (a.sent || (nodes_.empty() && maybe_made_.empty())) return;
    if (std::holds_alternative<sync_request>(r)) {
        synced_ = synced_ || !a.code;
    } else if (const auto* l = std::get_if<children_request>(&r)) {
        if (!a.code && synced_) listed(l->path, a.children);
    } else if (const auto* m = std::get_if<multi_request>(&r)) {
        for_each_removal(r, [&](const std::string& path) { removed_or_not(path, a); });
        for (std::size_t i = 0; a.code && i < std::min(m->ops.size(), a.results.size()); ++i)
            if (a.results[i].code == zk_errc::no_node && !std::holds_alternative<create_request>(m->ops[i]))
                gone(path_of(m->ops[i]));
    } else if (const auto* d = std::get_if<remove_request>(&r)) {
        removed_or_not(d->path, a);
        if (a.code == zk_errc::no_node) gone(d->path);
    } else if (std::holds_alternative<get_request>(r) || std::holds_alternative<exists_request>(r)) {
        const bool of_other = !a.code && a.stat.ephemeral_owner != session_;
        if (of_other || a.code == zk_errc::no_node) gone(path_of(r));
    } else if (const auto* s = std::get_if<set_request>(&r)) {
        if (a.code == zk_errc::no_node) gone(s->path);
    }
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

// A removal that is to be repeated still is one.
void ephemeral_budget::removed_or_not(const std::string& path, const reply& a) {
    if (!a.code) return gone(path);
    const auto at = nodes_.find(path);
    if (at == nodes_.end() || at->second.of != use::leaves || a.code == condition::retryable) return;
    turn(at->second, use::held);
}

void ephemeral_budget::gone(std::string_view path) {
    if (nodes_.empty()) return;
    const auto at = nodes_.find(path);
    if (at == nodes_.end()) return;
    const std::size_t bytes = cost_of(at->first.size());
    const node was = at->second;
    nodes_.erase(at);
    change(*was.in, [&](usage& d) { count(d, was.of, -1); });
    release(bytes);
}

bool ephemeral_budget::may_have_made(std::string_view path) const {
    const auto made = [path](const auto& lost) {
        return path.size() >= lost.first.size() + sequence_digits && path.starts_with(lost.first);
    };
    return nodes_.contains(path) || std::any_of(maybe_made_.begin(), maybe_made_.end(), made);
}

// Which of the lost creates of sequential nodes have been applied: their paths are prefixes of names.
void ephemeral_budget::listed(const std::string& parent, const std::vector<std::string>& names) {
    for (auto it = maybe_made_.begin(); it != maybe_made_.end();) {
        if (parent_path(it->first) != parent) {
            ++it;
            continue;
        }
        const auto [prefix, bytes] = *it;
        it = maybe_made_.erase(it);
        for (const std::string& name : names) {
            const std::string path = join_path(parent, name);
            if (path.size() == prefix.size() + sequence_digits && path.starts_with(prefix))
                exists(path, directory_of(path), use::held);
        }
        change(directory_of(prefix), [](usage& d) { --d.nodes; });
        release(bytes);
    }
}

// ---------------------------------------------------------------------------------------- contenders of a lock

ephemeral_budget::room ephemeral_budget::for_contender(const std::string& name, std::size_t path_bytes) const {
    const std::size_t then = used_ + cost_of(path_bytes + sequence_digits);
    if (then <= limit_ - limit_ / 4) return room::now;
    const bool is_first = !is_used(name);
    if (is_first && then <= limit_) return room::now;
    // A first contender whose room is taken by contenders behind a lock of this session might wait for itself: whoever
    // holds that lock may be the one that asks.
    const bool some_may_leave = contenders_under_way_ > 0 || leaving_nodes_ > 0 ||
                                (is_first ? moving_ > 0 : waiting_nodes_ > 0);
    return some_may_leave ? room::later : room::never;
}

void ephemeral_budget::when_changed(std::string name, std::size_t path_bytes, std::function<void()> f) {
    const bool is_first = !is_used(name);
    (is_first ? first_ : behind_).push_back(name);
    waiting_[std::move(name)].push_back({path_bytes, std::move(f)});
}

void ephemeral_budget::now_holds(const std::string& path) {
    const auto at = nodes_.find(path);
    if (at != nodes_.end() && at->second.of == use::waits) turn(at->second, use::held);
}

void ephemeral_budget::call_waiting() {
    has_news_ = false;
    const std::uint64_t epoch = epoch_;
    for (std::deque<std::string>* const all : {&first_, &behind_}) {
        while (epoch == epoch_ && !all->empty()) {
            const std::string name = all->front();
            const auto at = waiting_.find(name);
            if (at == waiting_.end()) {  // were called, from the other list
                all->pop_front();
                continue;
            }
            if (all == &first_ && is_used(name)) {  // no longer the first ones
                all->pop_front();
                behind_.push_back(name);
                continue;
            }
            if (for_contender(name, at->second.front().path_bytes) == room::later) break;
            all->pop_front();
            const std::function<void()> f = std::move(at->second.front().call);
            at->second.pop_front();
            if (at->second.empty()) waiting_.erase(at);
            f();  // may call when_changed() and begin()
        }
    }
}

void ephemeral_budget::clear() {
    ++epoch_;
    limit_ = given_;
    used_ = 0;
    nodes_.clear();
    maybe_made_.clear();
    directories_.clear();
    swept_ = 0;
    waiting_nodes_ = leaving_nodes_ = contenders_under_way_ = moving_ = 0;
    waiting_.clear();
    first_.clear();
    behind_.clear();
    has_news_ = warned_ = synced_ = false;
}

}  // namespace zkasio::detail

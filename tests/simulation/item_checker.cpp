#include "simulation/item_checker.hpp"

#include "simulation/simulation.hpp"

#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio::test {
namespace {

std::string only(const std::set<std::string>& places) { return places.empty() ? std::string() : *places.begin(); }

// In "<time>-<priority>-<number>" and in "queue-|<time>|<number>"; 0: the name tells none.
std::int64_t time_in(std::string_view name) {
    const std::size_t bar = name.find('|');
    if (bar != std::string_view::npos) name.remove_prefix(bar + 1);
    const std::size_t end = name.find_first_not_of("0123456789abcdefABCDEF");
    return std::stoll('0' + std::string(name.substr(0, end)), nullptr, 16);
}

std::string_view directory_of(const std::string& path) {
    return path.empty() ? std::string_view() : parent_path(path);
}

}  // namespace

std::string item_checker::id_in(const std::string& data) {
    const std::size_t begin = data.find('<'), end = data.find('>');
    if (begin == std::string::npos || end == std::string::npos) throw violation("data without an id: " + data);
    return data.substr(begin + 1, end - begin - 1);
}

// ------------------------------------------------------------------------------------------------- what users tell

void item_checker::was_put(const std::string& id) const {
    if (!items_.at(id).is_put) throw violation(id + " was not put");
}

void item_checker::was_not_put(const std::string& id) {
    item& i = items_.at(id);
    i.never = true;
    if (i.is_put) throw violation(id + " was put, and its put failed");
}

void item_checker::revived(const std::string& id, std::optional<bool> outcome) {
    item& i = items_.at(id);
    if (!outcome)
        ++i.unknown_revivals;
    else if (*outcome)
        ++i.told_revivals;
    if (i.told_revivals > i.revivals) throw violation(id + " was told to be put back, and was not");
}

item_checker::work::work(item_checker& checker, const delivery& what)
    : working_(checker.working_), at_(working_->insert(working_->end(), &what)) {
    const auto found = checker.claims_.find(claim_of(what));
    if (found == checker.claims_.end()) throw violation(what.item() + " is handed out without a claim");
    const claim& c = found->second;
    if (c.id != id_in(what.item())) throw violation(what.item() + " is handed out with the claim of " + c.id);
    if (c.attempt != what.attempt())
        throw violation(what.item() + " says attempt " + std::to_string(what.attempt()) + ", and it is number " +
                        std::to_string(c.attempt));
    checker.check();
}

// ----------------------------------------------------------------------------------------------- what the tree tells

void item_checker::committed(const sim_txn& txn) {
    std::map<std::string, std::string> touched;  // where the items were before
    for (const sim_change& c : txn.changes) {
        if (!is_place(parent_path(c.path))) continue;
        const std::string id = id_in(c.node.data);
        item& i = items_.at(id);
        touched.emplace(id, only(i.places));
        if (c.what == sim_change::kind::created) i.places.insert(c.path);
        if (c.what == sim_change::kind::removed) i.places.erase(c.path);
    }
    for (const auto& [id, from] : touched) moved(id, from, txn);
    claims_changed(txn);
}

void item_checker::moved(const std::string& id, const std::string& from, const sim_txn& txn) {
    item& i = items_.at(id);
    if (i.places.size() > 1) throw violation(id + " is in two places: " + from + ", " + *i.places.rbegin());
    const std::string to = only(i.places);
    if (from == to) return;
    const std::string_view left = directory_of(from), reached = directory_of(to);
    if (left.empty()) {
        check_put(id, i, to, txn);
        i.is_put = true;
    } else if (left == at_.items && reached.empty()) {
        check_done(id, from, txn);
        i.is_done = true;
    } else if (left == at_.items && reached == at_.dead) {
        check_death(id, i, from);
        ++deaths_;
    } else if (left == at_.later && reached == at_.items) {
        if (txn.time < i.due) throw violation(id + " is handed out before it is due");
    } else if (left == at_.dead && reached == at_.items) {
        if (++i.revivals > i.revivals_begun) throw violation(id + " was put back, and nobody has asked for it");
        i.claims = 0;
    } else {
        throw violation(id + " went from " + from + " to " + (to.empty() ? "nowhere" : to));
    }
}

void item_checker::check_put(const std::string& id, item& i, const std::string& path, const sim_txn& txn) const {
    if (i.is_put) throw violation(id + " was put twice");
    if (i.never) throw violation(id + " was put after its put had failed");
    if (parent_path(path) == at_.items && !at_.names_tell_times) {
        if (txn.time < i.due) throw violation(id + " was put without its delay");
        return;
    }
    const std::int64_t due = time_in(node_name(path));
    if (due < i.due) throw violation(id + " was put with a delay that is too short");
    i.due = due;
}

void item_checker::check_done(const std::string& id, const std::string& path, const sim_txn& txn) const {
    const auto held = held_.find(path);
    if (held == held_.end()) throw violation(id + " is lost: removed without a claim");
    const claim& c = claims_.at(held->second);
    if (c.session != txn.session) throw violation(id + " was removed by a session that has not claimed it");
    if (!done_.contains(held->second)) throw violation(id + " is lost: removed, and nobody has done it");
}

void item_checker::check_death(const std::string& id, const item& i, const std::string& path) const {
    const auto held = held_.find(path);
    if (held != held_.end() && rejected_.contains(held->second)) return;
    const bool is_last = most_deliveries_ > 0 && i.claims >= most_deliveries_;
    if (!is_last) throw violation(id + " died after " + std::to_string(i.claims) + " deliveries");
    // Its last consumer may have let the exception of the body tell.
    if (held != held_.end() && done_.contains(held->second)) throw violation(id + " was done, and died");
}

void item_checker::claims_changed(const sim_txn& txn) {
    std::map<std::string, const sim_change*> made;  // a dying item is claimed, and the claim ends at once
    for (const sim_change& c : txn.changes) {
        if (parent_path(c.path) != at_.claims) continue;
        const std::string item_path = join_path(at_.items, node_name(c.path));
        if (c.what == sim_change::kind::created) made[item_path] = &c;
        if (c.what != sim_change::kind::removed) continue;
        made.erase(item_path);
        const auto held = held_.find(item_path);
        if (held == held_.end()) continue;
        if (txn.session == 0 || (txn.ends_session && cut_short_now_)) cut_short_.insert(held->second);
        held_.erase(held);
    }
    for (const auto& [path, c] : made) {
        const sim_node* const node = ensemble_.tree().find(path);
        if (!node) throw violation("a claim without an item: " + path);
        const std::string id = id_in(node->data);
        item& i = items_.at(id);
        if (txn.time < i.due) throw violation(id + " is claimed before it is due");
        if (most_deliveries_ > 0 && i.claims >= most_deliveries_) throw violation(id + " is claimed too often");
        const claim_key key(c->node.stat.czxid, std::string(node_name(path)));
        claims_[key] = claim{id, ++i.claims, c->node.stat.ephemeral_owner};
        held_[path] = key;
    }
}

// ---------------------------------------------------------------------------------------------------------- checks

void item_checker::check() const {
    std::set<std::string> held;
    for (const delivery* d : *working_)
        if (d->held() && !cut_short_.contains(claim_of(*d)) && !held.insert(d->name()).second)
            throw violation(d->item() + " has two consumers");
}

bool item_checker::all_done() const {
    return std::all_of(items_.begin(), items_.end(),
                       [](const auto& i) { return i.second.is_done || !i.second.is_put; });
}

void item_checker::check_end() const {
    for (const auto& [id, i] : items_) {
        if (i.is_put && !i.is_done) throw violation(id + " is left");
        if (i.revivals > i.told_revivals + i.unknown_revivals) throw violation(id + " was put back, told was: not");
    }
    for (const std::string& directory : {at_.items, at_.later, at_.dead, at_.claims})
        if (ensemble_.tree().find(directory) && !ensemble_.tree().children(directory).empty())
            throw violation("something is left in " + directory);
    if (!working_->empty()) throw violation("a body has not ended");
}

}  // namespace zkasio::test

#include "simulation/candidate_checker.hpp"

#include "simulation/simulation.hpp"

#include <zkasio/path.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::test {
namespace {

std::string text_of(const candidate_status& s) {
    return std::string(to_string(s.state)) + ' ' + std::to_string(s.token.value()) + ' ' +
           std::string(to_string(s.reason));
}

// In the order in which a candidate comes to them.
std::int64_t rank_of(const candidate_status& s) {
    const int state = s.state == candidate_state::leading ? 0 : s.state == candidate_state::standing ? 1 : 2;
    return s.token.value() * 3 + state;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------- bodies

candidate_checker::body::body(candidate_checker& checker, candidate_ptr who, const leadership& leader)
    : bodies_(checker.bodies_),
      at_(bodies_->insert(bodies_->end(), {&leader, leader.token().value(), std::move(who)})) {
    if (!checker.nodes_.contains(at_->token)) throw violation(at_->who->id + " has a body in a term that never began");
}

// A guard that was lost and then released tells of the release only.
bool candidate_checker::is_lost(const running_body& b) const {
    if (is_loss(b.leader->reason()) || b.who->lost.contains(b.token)) return true;
    const candidate_status s = b.who->object ? b.who->object->status() : candidate_status();
    return s.token.value() == b.token && is_loss(s.reason);
}

// ----------------------------------------------------------------------------------------------------- the tree

void candidate_checker::committed(const sim_txn& txn) {
    if (txn.session == 0 && !txn.changes.empty()) operator_was_here_ = true;
    for (const sim_change& c : txn.changes) {
        if (parent_path(c.path) != candidates_directory) continue;
        node& n = nodes_[c.node.stat.czxid];
        if (c.what == sim_change::kind::created) n = {c.path, c.node.data, c.node.stat.ephemeral_owner};
        if (c.what != sim_change::kind::removed) continue;
        n.gone = txn.ends_session ? removal::with_session
                 : txn.session == 0 ? removal::by_operator : removal::by_itself;
        if (n.gone != removal::by_itself) continue;
        for (const running_body& b : *bodies_)
            if (b.token == c.node.stat.czxid && !is_lost(b)) throw violation(n.id + " has resigned under its body");
    }
}

bool candidate_checker::stands(std::int64_t token) const {
    const auto n = nodes_.find(token);
    return n != nodes_.end() && n->second.gone == removal::none;
}

std::vector<std::string> candidate_checker::nodes() const {
    std::vector<std::string> all;
    for (const auto& [token, n] : nodes_)
        if (n.gone == removal::none) all.push_back(n.path);
    return all;
}

const candidate_checker::node* candidate_checker::eldest() const {
    const auto first = std::find_if(nodes_.begin(), nodes_.end(),
                                    [](const auto& n) { return n.second.gone == removal::none; });
    return first == nodes_.end() ? nullptr : &first->second;
}

// -------------------------------------------------------------------------------------- what programs do, and hear

std::int64_t candidate_checker::gives_up(watched_candidate& who) {
    const auto term = who.object ? who.object->term() : nullptr;
    if (!term) return 0;
    who.given_up.insert(term->token().value());
    return term->token().value();
}

std::int64_t candidate_checker::closes(watched_candidate& who) {
    observe(who);
    who.closed = true;
    return gives_up(who);
}

void candidate_checker::has_given_up(const watched_candidate& who, std::int64_t token) const {
    if (token == 0) return;
    // A client that is cut off gives its session up before the servers do.
    if (stands(token) && !leases_end_) throw violation(who.id + " has resigned, and its node is there");
    if (who.terms.at(token)->held()) throw violation(who.id + " has resigned, and holds its term");
    for (const running_body& b : *bodies_)
        if (b.token == token && nodes_.at(token).gone == removal::by_itself && !is_lost(b))
            throw violation(who.id + " has resigned, and a body of its term runs");
}

void candidate_checker::told(watched_candidate& who, const candidate_status& now,
                             const candidate_status& when_asked) const {
    if (who.told && rank_of(now) <= rank_of(*who.told))
        throw violation(who.id + " tells \"" + text_of(now) + "\" after \"" + text_of(*who.told) + '"');
    if (rank_of(now) < rank_of(when_asked))
        throw violation(who.id + " tells \"" + text_of(now) + "\", asked when it was \"" + text_of(when_asked) + '"');
    check_reason(who, now);
    who.told = now;
}

void candidate_checker::check_reason(const watched_candidate& who, const candidate_status& now) const {
    const std::int64_t token = now.token.value();
    const bool has_reason = now.reason != loss_reason::none;
    if (has_reason != (token != 0 && now.state != candidate_state::leading))
        throw violation(who.id + " has a reason where there is none, or none: " + text_of(now));
    if (!has_reason) return;
    const removal gone = nodes_.at(token).gone;
    const bool has_cause = who.given_up.contains(token) ? now.reason == loss_reason::released
        : now.reason == loss_reason::session_expired
        ? gone == removal::with_session || operator_was_here_ || leases_end_
        : now.reason == loss_reason::node_deleted       ? gone != removal::none || operator_was_here_
        : now.reason == loss_reason::suspended          ? loses_with_connection_
        : now.reason == loss_reason::lease_ended        ? leases_end_
                                                        : false;
    if (!has_cause) throw violation(who.id + " gives a wrong reason: " + text_of(now));
}

// ------------------------------------------------------------------------------------------------------- checks

// A term that was first seen. Nodes of the same client that are leaving may stand before its node.
void candidate_checker::begins(watched_candidate& who, std::int64_t token) {
    who.terms.emplace(token, who.object->term());
    const auto mine = nodes_.find(token);
    if (mine == nodes_.end()) throw violation(who.id + " leads without a node");
    const bool is_first = std::none_of(nodes_.begin(), mine, [&](const auto& n) {
        return n.second.gone == removal::none && n.second.session != mine->second.session;
    });
    if (!is_first && !operator_was_here_) throw violation(who.id + " leads behind others");
    if (!is_first) doubted_.insert(token);
    if (!is_first || !stands(token)) return;
    if (token <= highest_token_)
        throw violation("the token " + std::to_string(token) + " was given after " + std::to_string(highest_token_));
    highest_token_ = token;
}

void candidate_checker::observe(watched_candidate& who) {
    const auto term = who.object ? who.object->term() : nullptr;
    const std::int64_t token = term ? term->token().value() : 0;
    const bool leads = who.object && who.object->leads();
    if (leads && who.closed) throw violation(who.id + " leads, and was closed");
    if (leads && token <= who.over) throw violation(who.id + " leads again in a term that has ended");
    if (who.object) {
        const candidate_status s = who.object->status();
        if ((s.state == candidate_state::leading) != (token != 0)) throw violation(who.id + " has another status");
        if (token != 0 && s.token.value() != token) throw violation(who.id + " has the status of another term");
        check_reason(who, s);
        if (is_loss(s.reason)) who.lost.insert(s.token.value());
    }
    if (who.leads != 0 && (!leads || token != who.leads)) who.over = who.leads;
    if (leads && token != who.leads) begins(who, token);
    who.leads = leads ? token : 0;
    for (const auto& [was, kept] : who.terms)
        if (kept->held() && nodes_.at(was).gone == removal::by_itself)
            throw violation(who.id + " holds a term after it has resigned");
}

// A candidate whose node has gone will learn it; a lease bounds how late, but does not end where no time passes.
void candidate_checker::check() {
    const watched_candidate* leader = nullptr;
    for (const candidate_ptr& who : candidates_) {
        observe(*who);
        if (who->leads == 0 || doubted_.contains(who->leads)) continue;
        if (!stands(who->leads) && leases_end_) throw violation(who->id + " leads longer than its lease lasts");
        if (!stands(who->leads)) continue;
        if (leader) throw violation(leader->id + " and " + who->id + " lead at the same time");
        leader = who.get();
    }
    if (!leader) return;
    for (const running_body& b : *bodies_)
        if (b.token != leader->leads && stands(b.token) && !is_lost(b))
            throw violation(leader->id + " leads, and a body of " + b.who->id + " runs");
}

void candidate_checker::check_quiet() {
    doubted_.clear();
    check();
    std::map<std::string, const watched_candidate*> by_id;
    for (const candidate_ptr& who : candidates_) {
        by_id[who->id] = who.get();
        if (who->reads && who->object && who->told != who->object->status())
            throw violation(who->id + " has told \"" + (who->told ? text_of(*who->told) : "nothing") +
                            "\", and it is \"" + text_of(who->object->status()) + '"');
    }
    for (const running_body& b : *bodies_)
        if (!b.stops && b.who->leads != b.token)
            throw violation("a body of " + b.who->id + " does not learn that its term has ended");
    std::set<std::string> standing;
    for (const auto& [token, n] : nodes_)
        if (n.gone == removal::none) standing.insert(n.id);
    // A body that runs under a lost term keeps all candidates of its client from taking a place.
    const auto waits_for = [&](const watched_candidate& who, const running_body& b) {
        const bool is_gone = is_lost(b) || nodes_.at(b.token).gone == removal::by_operator;
        return b.stops && (b.who.get() == &who || (b.who->client == who.client && is_gone));
    };
    for (const candidate_ptr& who : candidates_) {
        const bool waits = std::any_of(bodies_->begin(), bodies_->end(),
                                       [&](const running_body& b) { return waits_for(*who, b); });
        if (!who->closed && !waits && !standing.contains(who->id) && !operator_was_here_)
            throw violation(who->id + " does not stand");
    }
    const node* const first = eldest();
    if (!first) return;
    const watched_candidate& who = *by_id.at(first->id);
    const bool leads = who.leads != 0 && nodes_.at(who.leads).path == first->path;
    // It resigns when its bodies have ended, or leads when those under a lost term of the same client have.
    const bool waits_for_bodies = std::any_of(bodies_->begin(), bodies_->end(),
                                              [&](const running_body& b) { return waits_for(who, b); });
    // When its connection breaks right after the election, a leader whose node an operator deletes may hear of it only
    // from a heartbeat, and none is due. Candidates of the same client wait for it.
    const bool waits_for_heartbeat =
        connections_break_ && std::any_of(candidates_.begin(), candidates_.end(), [&](const candidate_ptr& other) {
            return other->client == who.client && other->leads != 0 &&
                   nodes_.at(other->leads).gone == removal::by_operator;
        });
    if (!leads && !waits_for_bodies && !waits_for_heartbeat) throw violation(who.id + " is first, and does not lead");
}

}  // namespace zkasio::test

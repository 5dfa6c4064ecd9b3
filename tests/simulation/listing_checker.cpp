#include "simulation/listing_checker.hpp"

#include "simulation/simulation.hpp"

#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <set>

namespace zkasio::test {
namespace {

constexpr std::string_view request = "__REVOKE__";

}  // namespace

void listing_checker::committed(const sim_txn& txn) {
    now_ = txn.zxid;
    for (const sim_change& c : txn.changes) {
        if (c.path == directory_ && c.what == sim_change::kind::data_set) read_note(c.node.data);
        if (parent_path(c.path) != directory_) continue;
        contender& it = contenders_[c.node.stat.czxid];
        if (c.what == sim_change::kind::created) it = {c.path, c.node.data, c.node.stat.ephemeral_owner, {}, {}};
        if (c.what == sim_change::kind::removed) it.gone = now_;
        if (c.what == sim_change::kind::data_set && c.node.data == request && !it.asked) it.asked = now_;
    }
}

void listing_checker::read_note(const std::string& data) {
    const directory_note note = directory_note::parse(data);
    for (auto& [token, c] : contenders_)
        if (!c.asked && note.revokes(node_name(c.path))) c.asked = now_;
}

bool listing_checker::stands(std::int64_t token) const {
    const auto found = contenders_.find(token);
    return found != contenders_.end() && !found->second.gone;
}

std::optional<std::int64_t> listing_checker::asked_at(std::int64_t token) const {
    return contenders_.at(token).asked;
}

void listing_checker::listed(const std::vector<contender_info>& all, std::int64_t since, bool lagging) const {
    std::set<std::int64_t> seen;
    for (const contender_info& c : all) {
        const std::int64_t token = c.token.value();
        const auto found = contenders_.find(token);
        if (found == contenders_.end()) throw violation(c.path + " is listed, and was never there");
        const contender& truth = found->second;
        const bool same = c.path == truth.path && c.session_id == truth.session &&
                          (c.data == truth.data || (truth.asked && c.data == request));
        if (!same) throw violation(c.path + " is not as it is listed");
        if (!seen.empty() && token <= *seen.rbegin()) throw violation(c.path + " is listed behind a later one");
        seen.insert(token);
        if (c.holds != (seen.size() == 1)) throw violation(c.path + " holds, or does not hold: this is wrong");
        if (c.revoke_requested && !truth.asked) throw violation(c.path + " was not asked to give way");
        if (lagging) continue;
        if (truth.gone && *truth.gone <= since) throw violation(c.path + " is listed, and was gone");
        // The note of the directory, which is read last, does not keep requests to contenders that have gone.
        if (!truth.gone && truth.asked && *truth.asked <= since && !c.revoke_requested)
            throw violation(c.path + " was asked to give way, which is not listed");
        if (c.holds) check_holder(c, since);
    }
    if (lagging) return;
    for (const auto& [token, c] : contenders_)
        if (token <= since && !c.gone && !seen.contains(token)) throw violation(c.path + " is not listed");
}

void listing_checker::check_holder(const contender_info& c, std::int64_t since) const {
    const auto mine = contenders_.find(c.token.value());
    std::int64_t first_since = std::max(since, mine->first);
    for (auto before = contenders_.begin(); before != mine; ++before) {
        if (!before->second.gone) throw violation(c.path + " is listed as the holder, behind " + before->second.path);
        first_since = std::max(first_since, *before->second.gone);
    }
    if (mine->second.gone && *mine->second.gone <= first_since)
        throw violation(c.path + " is listed as the holder, and was never first");
}

}  // namespace zkasio::test

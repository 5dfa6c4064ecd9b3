#include <zkasio/detail/seam/known_requests.hpp>

#include <algorithm>
#include <chrono>

namespace zkasio::detail {
namespace {

constexpr int enough_hang_ups = 2;
constexpr std::chrono::minutes longest_doubt(10);
constexpr std::chrono::hours longest_memory(1);
// In place of a server's name: all those of K3.
constexpr const char* all_others = "";

// What takes the place of the request; "": nothing does.
std::string_view stands_in(std::int32_t number) noexcept {
    switch (number) {
        case known_requests::opcode::create_with_stat: return "nodes are created with one more read each";
        case known_requests::opcode::remove_watches: return "watches that nobody needs stay until they fire";
        case known_requests::opcode::create_container:
            return "directories are persistent nodes, which nobody removes";
        default: return {};
    }
}

std::string_view name_of(std::int32_t number) noexcept {
    switch (number) {
        case known_requests::opcode::create_with_stat: return "create2";
        case known_requests::opcode::remove_watches: return "removeWatches";
        case known_requests::opcode::create_container: return "createContainer";
        case known_requests::opcode::create_ttl: return "createTTL";
        case 22: return "multiRead";
        case 103: return "getEphemerals";
        case 104: return "getAllChildrenNumber";
        case 106: return "addWatch";
        case 107: return "whoAmI";
        default: return {};
    }
}

}  // namespace

bool known_requests::has_refused(const std::string& server, std::int32_t number, time_point now) const {
    const auto at = refused_.find({server, number});
    return at != refused_.end() && now < at->second;
}

bool known_requests::lacks(const std::string& server, std::int32_t number, time_point now) const {
    const bool is_other = !is_zookeeper(server);
    if (is_other && (!tries_all_ || has_refused(all_others, number, now))) return true;
    if (has_refused(server, number, now) || has_refused(server, opcode::create_with_stat, now)) return true;
    const auto is_refused_create = [now](const auto& one) {
        const auto& [by, what] = one.first;
        return by != all_others && what == opcode::create_with_stat && now < one.second;
    };
    return number == opcode::create_with_stat && std::any_of(refused_.begin(), refused_.end(), is_refused_create);
}

void known_requests::greeted(const std::string& server, bool says_whether_read_only) {
    if (says_whether_read_only) {
        if (!others_.empty()) others_.erase(server);
        return;
    }
    others_.insert(server);
    if (tries_all_ || std::exchange(has_told_others_, true)) return;
    if (!news_.empty()) news_ += "; ";
    news_ += server + " is not a server of ZooKeeper's own: it gets only requests that all servers know, so " +
             std::string(stands_in(opcode::create_with_stat)) + ", " +
             std::string(stands_in(opcode::create_container)) + ", and " +
             std::string(stands_in(opcode::remove_watches)) + " (see client_options::try_all_requests())";
}

void known_requests::refuse(const std::string& server, std::int32_t number, time_point now) {
    std::erase_if(refused_, [now](const auto& one) { return one.second <= now; });
    refused_.insert_or_assign({server, number}, now + longest_memory);
}

void known_requests::answered(const std::string& server, std::int32_t number, bool is_known, time_point now) {
    if (!is_known) {
        refuse(server, number, now);
        return tell(server, number, true);
    }
    if (!refused_.empty()) refused_.erase({server, number});
    if (is_zookeeper(server)) return;
    answered_.insert(number);
    doubts_.erase(number);
    refused_.erase({all_others, number});
}

void known_requests::hung_up(const std::string& server, const std::set<std::int32_t>& opcodes, time_point now) {
    if (is_zookeeper(server)) return;
    for (const std::int32_t one : opcodes) {
        if (answered_.contains(one)) continue;
        doubt& d = doubts_[one];
        if (now - d.last >= longest_doubt) d.hang_ups = 0;
        d.last = now;
        if (++d.hang_ups < enough_hang_ups) continue;
        doubts_.erase(one);
        refuse(all_others, one, now);
        tell(server, one, false);
    }
}

void known_requests::tell(const std::string& server, std::int32_t number, bool has_answered) {
    if (!told_.insert(number).second) return;
    if (!news_.empty()) news_ += "; ";
    news_ += server + (has_answered ? " does not know" : ": connections end without an answer to") + " the request " +
             std::string(name_of(number)) + " (" + std::to_string(number) + ")";
    const std::string_view instead = stands_in(number);
    if (!instead.empty()) news_ += ": " + std::string(instead);
    if (has_answered && number == opcode::create_with_stat)  // K2
        news_ += ", " + std::string(stands_in(opcode::create_container)) + ", and " +
                 std::string(stands_in(opcode::remove_watches));
}

}  // namespace zkasio::detail

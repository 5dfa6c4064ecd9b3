#include "lock_view.hpp"

#include "duration.hpp"
#include "node_text.hpp"
#include "terminal.hpp"

#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

namespace zklock {
namespace {

using zkasio::lock_kind;
using zkasio::printable;

std::string field(const contender& c, const char* name) {
    const auto found = c.who.find(name);
    if (found == c.who.end()) return {};
    return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string side_of(const contender& c, directory_kind kind) {
    if (kind == directory_kind::shared_mutex) return c.side == lock_kind::shared ? "reads" : "writes";
    return kind == directory_kind::election ? "leads" : "holds";
}

nlohmann::ordered_json json_of(const contender& c) {
    nlohmann::ordered_json j;
    j["node"] = c.path;
    if (!c.who.is_null())
        for (const char* name : {"host", "pid", "user", "command"})
            if (c.who.contains(name)) j[name] = c.who[name];
    j["data"] = json_text(c.data);
    j["shared"] = c.side == lock_kind::shared;
    j["since_ms"] = c.created_ms;
    j["age_ms"] = age_of(c.created_ms).count();
    j["session"] = hex(c.session_id);
    j["token"] = c.token;
    j["revoke_requested"] = c.revoke_requested;
    if (c.proclaimed) j["proclaimed"] = *c.proclaimed;
    if (c.held) j["held_ms"] = c.held->count();
    if (c.held) j["held_at_least"] = c.held_at_least;
    return j;
}

// A duration that is shown each second, without milliseconds that jump.
std::string in_seconds(std::chrono::milliseconds d) {
    return to_text(std::chrono::duration_cast<std::chrono::seconds>(d));
}

std::string who_is(const contender& c) {
    if (c.who.is_null()) return c.data.empty() ? "(says nothing)" : printable(c.data);
    std::string text = field(c, "host");
    if (const std::string pid = field(c, "pid"); !pid.empty()) text += ", pid " + pid;
    if (const std::string user = field(c, "user"); !user.empty()) text += ", " + user;
    if (const std::string command = field(c, "command"); !command.empty()) text += ": " + command;
    return text.empty() ? printable(c.data) : printable(text);
}

}  // namespace

std::string describe(const contender& c) {
    const std::string asked = "(was asked to give it back)";
    if (!c.revoke_requested) return who_is(c);
    const bool overwritten = c.data == "__REVOKE__";  // what it said of itself
    return overwritten ? asked : who_is(c) + " " + asked;
}

nlohmann::ordered_json to_json(const lock_view& v) {
    nlohmann::ordered_json j;
    j["path"] = v.path;
    j["kind"] = name_of(v.kind);
    j["holders"] = nlohmann::ordered_json::array();
    j["waiters"] = nlohmann::ordered_json::array();
    for (const contender& c : v.contenders) j[c.holds ? "holders" : "waiters"].push_back(json_of(c));
    j["foreign"] = v.foreign;
    if (v.grants) {
        j["grants"] = v.grants->count;
        j["grants_per_second"] = v.grants->per_second;
        j["watched_ms"] = v.grants->watched.count();
    }
    return j;
}

std::string summary(const lock_view& v) {
    const std::string kind(name_of(v.kind));
    if (v.contenders.empty()) return kind;
    const std::size_t holding = v.holders().size();
    return kind + ", " + std::to_string(holding) + " and " + std::to_string(v.contenders.size() - holding) + " waiting";
}

std::string rate_text(const lock_view& v) {
    if (!v.grants) return {};
    char per_second[32];
    std::snprintf(per_second, sizeof(per_second), "%.1f", v.grants->per_second);
    return per_second + std::string(" grants/s, ") + std::to_string(v.grants->count) + " in " +
           in_seconds(v.grants->watched);
}

std::string held_text(const contender& c) {
    if (!c.held) return to_text(age_of(c.created_ms));
    return (c.held_at_least ? ">" : "") + in_seconds(*c.held);
}

std::string to_text(const lock_view& v) {
    std::string text = painted(colour::bold, printable(v.path)) + "  " + summary(v) + "\n";
    if (v.grants) text += "  " + rate_text(v) + "\n";
    for (const contender& c : v.contenders) {
        const std::string what = padded(c.holds ? side_of(c, v.kind) : "waits", 7);
        text += "  " + (c.holds ? painted(colour::green, what) : painted(colour::dim, what));
        text += padded(held_text(c), 8) + "  " + describe(c) + "\n         ";
        text += painted(colour::dim, printable(zkasio::node_name(c.path)) + "  session " + hex(c.session_id) +
                                          (c.held ? ", " + to_text(age_of(c.created_ms)) + " old" : "")) + "\n";
        if (c.proclaimed) text += "         proclaims " + printable(*c.proclaimed) + "\n";
        if (c.session_id == 0)
            text += "         " + painted(colour::red, "is not ephemeral: it never goes by itself") + "\n";
    }
    for (const std::string& name : v.foreign)
        text += "  " + painted(colour::yellow, "foreign") + "  " + printable(name) + "\n";
    return text;
}

}  // namespace zklock

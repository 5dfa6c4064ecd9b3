#include "lock_view.hpp"

#include "duration.hpp"
#include "node_text.hpp"
#include "terminal.hpp"

#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>

#include <algorithm>
#include <chrono>
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
    if (kind == directory_kind::read_write) return c.side == lock_kind::shared ? "reads" : "writes";
    return kind == directory_kind::election ? "leads" : "holds";
}

nlohmann::ordered_json json_of(const contender& c) {
    nlohmann::ordered_json j;
    j["node"] = c.path;
    if (!c.who.is_null())
        for (const char* name : {"host", "pid", "user", "command"})
            if (c.who.contains(name)) j[name] = c.who[name];
    j["data"] = c.data;
    j["shared"] = c.side == lock_kind::shared;
    j["since_ms"] = c.created_ms;
    j["age_ms"] = age_of(c.created_ms).count();
    j["session"] = hex(c.session_id);
    j["token"] = c.token;
    j["revoke_requested"] = c.revoke_requested;
    if (c.proclaimed) j["proclaimed"] = *c.proclaimed;
    return j;
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
    j["kind"] = to_string(v.kind);
    j["holders"] = nlohmann::ordered_json::array();
    j["waiters"] = nlohmann::ordered_json::array();
    for (const contender& c : v.contenders) j[c.holds ? "holders" : "waiters"].push_back(json_of(c));
    j["foreign"] = v.foreign;
    return j;
}

std::string to_text(const lock_view& v) {
    const auto holding = static_cast<std::size_t>(
        std::count_if(v.contenders.begin(), v.contenders.end(), [](const contender& c) { return c.holds; }));
    std::string text = painted(colour::bold, printable(v.path)) + "  " + std::string(to_string(v.kind));
    if (!v.contenders.empty())
        text += ", " + std::to_string(holding) + " and " + std::to_string(v.contenders.size() - holding) + " waiting";
    text += "\n";
    for (const contender& c : v.contenders) {
        const std::string what = padded(c.holds ? side_of(c, v.kind) : "waits", 7);
        text += "  " + (c.holds ? painted(colour::green, what) : painted(colour::dim, what));
        text += padded(to_text(age_of(c.created_ms)), 8) + "  " + describe(c) + "\n         ";
        text += painted(colour::dim, printable(zkasio::node_name(c.path)) + "  session " + hex(c.session_id)) + "\n";
        if (c.proclaimed) text += "         proclaims " + printable(*c.proclaimed) + "\n";
        if (c.session_id == 0)
            text += "         " + painted(colour::red, "is not ephemeral: it never goes by itself") + "\n";
    }
    for (const std::string& name : v.foreign)
        text += "  " + painted(colour::yellow, "foreign") + "  " + printable(name) + "\n";
    return text;
}

}  // namespace zklock

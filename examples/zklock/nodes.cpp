// get, set, create, rm, stat, acl: one node each; whoami.
#include "acl_text.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "input.hpp"
#include "node_text.hpp"
#include "question.hpp"
#include "terminal.hpp"

#include <zkasio/create_options.hpp>
#include <zkasio/error.hpp>
#include <zkasio/printable.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zklock {
namespace {

using zkasio::printable;

std::string field(const char* name, const std::string& value) {
    return painted(colour::dim, padded(name, 18)) + value + "\n";
}

std::string when(std::int64_t zxid, std::int64_t ms) { return to_text_time(ms) + "  by " + hex(zxid); }

std::string lines_of(const zkasio::node_stat& s) {
    std::string text = field("created", when(s.czxid, s.ctime));
    text += field("data changed", when(s.mzxid, s.mtime));
    text += field("children changed", "by " + hex(s.pzxid));
    text += field("version", std::to_string(s.version) + " (data), " + std::to_string(s.cversion) + " (children), " +
                                 std::to_string(s.aversion) + " (ACL)");
    text += field("data", std::to_string(s.data_length) + " bytes");
    text += field("children", std::to_string(s.num_children));
    text += field("ephemeral", s.ephemeral_owner == 0 ? "no" : "of session " + hex(s.ephemeral_owner));
    return text;
}

zkasio::create_mode mode_of(const node_options& o) {
    static const std::map<std::string, zkasio::create_mode> modes{
        {"persistent", zkasio::create_mode::persistent},
        {"sequential", zkasio::create_mode::persistent_sequential},
        {"container", zkasio::create_mode::container},
        {"ttl", zkasio::create_mode::persistent_ttl},
        {"sequential-ttl", zkasio::create_mode::persistent_sequential_ttl}};
    return modes.at(o.mode);
}

std::string data_of(const node_options& o) { return o.file.empty() ? o.value.value_or("") : read_file(o.file); }

}  // namespace

asio::awaitable<int> get_node(session s, node_options o) {
    const zkasio::node_data node = co_await s.zk.get(o.path);
    if (o.json) {
        nlohmann::ordered_json j;
        j["path"] = o.path;
        j["data"] = json_text(node.data);
        j["stat"] = to_json(node.stat);
        print(dump(j));
    } else if (output_is_terminal()) {
        print(printable_lines(node.data) + "\n");
    } else {
        print(node.data);  // byte by byte what is there, for whoever reads the pipe
    }
    co_return exit_code::ok;
}

asio::awaitable<int> set_node(session s, node_options o) {
    if (!o.value && o.file.empty()) {
        say("what to write? DATA, or --file");
        co_return exit_code::usage;
    }
    const zkasio::node_stat stat = co_await s.zk.set(o.path, data_of(o), o.version);
    if (output_is_terminal()) print("version " + std::to_string(stat.version) + "\n");
    co_return exit_code::ok;
}

asio::awaitable<int> create_node(session s, node_options o) {
    zkasio::create_options how;
    how.mode(mode_of(o)).ttl(o.ttl);
    if (!o.acl.empty()) how.acl(parse_acl(o.acl));
    if (o.parents) how.parents(zkasio::missing_parents::create_persistent);
    const zkasio::created made = co_await s.zk.create(o.path, data_of(o), how);
    print(printable(made.path) + "\n");
    warn_if_open(s, made.path, o.acl);
    co_return exit_code::ok;
}

asio::awaitable<int> remove_node(session s, node_options o) {
    if (!o.recursive) {
        co_await s.zk.remove(o.path, o.version);
        co_return exit_code::ok;
    }
    const auto there = co_await s.zk.exists(o.path);
    if (!there) throw zkasio::error(zkasio::zk_errc::no_node, "rm", o.path);
    if (there->num_children > 0 && !o.yes) {
        const std::string question = "Remove " + printable(o.path) + " and all below it (" +
                                     std::to_string(there->num_children) + " children)?";
        const answer a = co_await ask(question);
        if (a != answer::yes) co_return a == answer::no ? exit_code::refused : exit_code::usage;
    }
    co_await s.zk.remove_recursive(o.path);
    co_return exit_code::ok;
}

asio::awaitable<int> show_stat(session s, node_options o) {
    const auto stat = co_await s.zk.exists(o.path);
    if (!stat) throw zkasio::error(zkasio::zk_errc::no_node, "stat", o.path);
    print(o.json ? dump(to_json(*stat)) : lines_of(*stat));
    co_return exit_code::ok;
}

asio::awaitable<int> show_identities(session s, node_options o) {
    const std::vector<zkasio::acl_id> found = co_await s.zk.who_am_i();
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const zkasio::acl_id& one : found) {
        if (!o.json) {
            print(printable(one.scheme() + ':' + one.id()) + "\n");
            continue;
        }
        nlohmann::ordered_json entry;
        entry["scheme"] = one.scheme();
        entry["id"] = json_text(one.id());
        list.push_back(std::move(entry));
    }
    if (o.json) print(dump(list));
    co_return exit_code::ok;
}

asio::awaitable<int> show_acl(session s, node_options o) {
    if (!o.acl.empty()) co_await s.zk.set_acl(o.path, parse_acl(o.acl));
    const auto found = co_await s.zk.get_acl(o.path);
    for (const zkasio::acl_entry& e : found.acl) print(printable(to_text(e)) + "\n");
    co_return exit_code::ok;
}

}  // namespace zklock

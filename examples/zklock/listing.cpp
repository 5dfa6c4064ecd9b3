// ls, tree, watch: a node and what is below it.
#include "any_change.hpp"
#include "commands.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "node_text.hpp"
#include "terminal.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/watch.hpp>
#include <zkasio/watch_stream.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zklock {
namespace {

using zkasio::printable;

struct child {
    std::string name;
    zkasio::node_stat stat;
};

// The children with their stats, by name. Requests leave together, and those that go meanwhile are left out.
asio::awaitable<std::vector<child>> children_with_stats(zkasio::client zk, std::string path) {
    zkasio::node_children found = co_await zk.children(path);
    std::sort(found.names.begin(), found.names.end());
    std::vector<child> result;
    constexpr std::size_t window = 256;
    for (std::size_t begin = 0; begin < found.names.size(); begin += window) {
        const std::size_t end = std::min(begin + window, found.names.size());
        std::vector<zkasio::pending_data> reads;
        for (std::size_t i = begin; i < end; ++i)
            reads.push_back(zkasio::toolbox(zk).start_exists(zkasio::join_path(path, found.names[i])));
        for (std::size_t i = begin; i < end; ++i) {
            try {
                const zkasio::node_data node = co_await reads[i - begin].result();
                result.push_back({found.names[i], node.stat});
            } catch (const zkasio::error& e) {
                if (e.code() != zkasio::zk_errc::no_node) throw;
            }
        }
    }
    co_return result;
}

std::string long_line(const child& c) {
    std::string text = padded("v" + std::to_string(c.stat.version), 7);
    text += padded(std::to_string(c.stat.data_length) + " B", 10);
    text += padded(c.stat.num_children > 0 ? std::to_string(c.stat.num_children) + " children" : "", 15);
    text += padded(c.stat.mtime > 0 ? to_text(age_of(c.stat.mtime)) : "-", 9) + printable(c.name);
    if (c.stat.ephemeral_owner != 0) text += painted(colour::yellow, "  of session " + hex(c.stat.ephemeral_owner));
    return text + "\n";
}

asio::awaitable<void> print_tree(zkasio::client zk, std::string path, std::string indent, int depth) {
    const std::vector<child> children = co_await children_with_stats(zk, path);
    for (const child& c : children) {
        const bool last = &c == &children.back();
        std::string line = indent + (last ? "`-- " : "|-- ") + printable(c.name);
        if (c.stat.data_length > 0) line += painted(colour::dim, "  " + std::to_string(c.stat.data_length) + " B");
        if (c.stat.ephemeral_owner != 0) line += painted(colour::yellow, "  ephemeral");
        print(line + "\n");
        if (c.stat.num_children == 0 || depth == 1) continue;
        const std::string below = zkasio::join_path(path, c.name), deeper = indent + (last ? "    " : "|   ");
        co_await print_tree(zk, below, deeper, depth - 1);
    }
}

// What `watch` compares.
struct seen {
    std::optional<zkasio::node_stat> stat;
    std::vector<std::string> children;
};

asio::awaitable<seen> look(zkasio::client zk, std::string path, std::vector<zkasio::watch>& watches) {
    seen now;
    watches.clear();
    auto there = co_await zk.exists_and_watch(path);
    now.stat = there.value;
    watches.push_back(std::move(there.changes));
    if (!now.stat) co_return now;
    try {
        auto listed = co_await zk.children_and_watch(path);
        now.children = std::move(listed.value.names);
        watches.push_back(std::move(listed.changes));
        std::sort(now.children.begin(), now.children.end());
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::zk_errc::no_node) throw;  // its watch has fired already
    }
    co_return now;
}

void add_names(std::vector<std::string>& lines, const char* what, const std::string& path,
               const std::vector<std::string>& of, const std::vector<std::string>& without) {
    std::vector<std::string> names;
    std::set_difference(of.begin(), of.end(), without.begin(), without.end(), std::back_inserter(names));
    for (const std::string& n : names) lines.push_back(what + printable(zkasio::join_path(path, n)));
}

std::vector<std::string> changes(const std::string& path, const seen& before, const seen& now) {
    std::vector<std::string> lines;
    const bool anew = before.stat && now.stat && before.stat->czxid != now.stat->czxid;
    if (before.stat && (!now.stat || anew)) lines.push_back("removed " + printable(path));
    if (now.stat && (!before.stat || anew)) lines.push_back("created " + printable(path));
    if (before.stat && now.stat && !anew && before.stat->mzxid != now.stat->mzxid)
        lines.push_back("data " + printable(path) + " version " + std::to_string(now.stat->version));
    add_names(lines, "child-removed ", path, before.children, now.children);
    add_names(lines, "child-created ", path, now.children, before.children);
    return lines;
}

// The watch stands: no change is left out, unless a line says to look again.
asio::awaitable<int> watch_all_below(session s, node_options o) {
    static const std::vector<std::string> words{"created ", "removed ", "data ", "children ", "look-again "};
    const zkasio::watch_stream changes = co_await s.zk.add_watch(o.path, zkasio::watch_mode::recursive);
    say("watching " + printable(o.path) + " and all below it");
    for (int told = 0;;) {
        const zkasio::watched_event event = co_await changes.next();
        print(words.at(static_cast<std::size_t>(event.what)) + printable(event.path) + "\n");
        if (o.count > 0 && ++told == o.count) co_return exit_code::ok;
    }
}

}  // namespace

asio::awaitable<int> list_children(session s, node_options o) {
    if (!o.details && !o.json) {
        zkasio::node_children found = co_await s.zk.children(o.path);
        std::sort(found.names.begin(), found.names.end());
        std::string text;
        for (const std::string& name : found.names) text += printable(name) + "\n";
        print(text);
        co_return exit_code::ok;
    }
    const std::vector<child> children = co_await children_with_stats(s.zk, o.path);
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const child& c : children) {
        if (!o.json) {
            print(long_line(c));
            continue;
        }
        nlohmann::ordered_json entry;
        entry["name"] = c.name;
        entry["stat"] = to_json(c.stat);
        list.push_back(std::move(entry));
    }
    if (o.json) print(dump(list));
    co_return exit_code::ok;
}

asio::awaitable<int> show_tree(session s, node_options o) {
    if (o.how_many) {
        const std::size_t below = co_await s.zk.count_below(o.path);
        print(std::to_string(below) + "\n");
        co_return exit_code::ok;
    }
    const auto there = co_await s.zk.exists(o.path);
    if (!there) throw zkasio::error(zkasio::zk_errc::no_node, "tree", o.path);
    print(printable(o.path) + "\n");
    co_await print_tree(s.zk, o.path, "", o.depth);
    co_return exit_code::ok;
}

asio::awaitable<int> watch_node(session s, node_options o) {
    if (o.recursive) co_return co_await watch_all_below(std::move(s), std::move(o));
    std::vector<zkasio::watch> watches;
    seen before = co_await look(s.zk, o.path, watches);
    say("watching " + printable(o.path));
    for (int told = 0;;) {
        co_await any_changed_or_expired(watches);
        seen now = co_await look(s.zk, o.path, watches);
        const std::vector<std::string> lines = changes(o.path, before, now);
        for (const std::string& line : lines) {
            print(line + "\n");
            if (o.count > 0 && ++told == o.count) co_return exit_code::ok;
        }
        before = std::move(now);
    }
}

}  // namespace zklock

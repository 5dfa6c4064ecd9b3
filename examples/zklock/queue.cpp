// queue: what waits in a work queue, what has failed, and items from a shell.
#include "acl_text.hpp"
#include "commands.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "input.hpp"
#include "node_text.hpp"
#include "terminal.hpp"

#include <zkasio/printable.hpp>
#include <zkasio/queues/work_queue.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace zklock {
namespace {

using zkasio::printable;

std::int64_t ms_since_1970(std::chrono::system_clock::time_point t) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count();
}

zkasio::queue_layout layout_of(const queue_options& o) {
    using zkasio::queue_kind;
    using zkasio::queue_layout;
    switch (o.layout) {
        case queue_kind::kazoo_locking: return queue_layout::kazoo_locking();
        case queue_kind::kazoo: return queue_layout::kazoo();
        case queue_kind::curator: return queue_layout::curator(o.lock_path);
        case queue_kind::curator_priority: return queue_layout::curator_priority(o.lock_path);
        case queue_kind::curator_delay: return queue_layout::curator_delay(o.lock_path);
        case queue_kind::curator_id: return queue_layout::curator_id(o.lock_path);
        case queue_kind::curator_simple: return queue_layout::curator_simple();
    }
    return queue_layout::kazoo_locking();
}

asio::awaitable<void> list(zkasio::work_queue queue, queue_options o) {
    const zkasio::work_queue_info info = co_await queue.info();
    if (o.json) {
        nlohmann::ordered_json j;
        j["path"] = o.path;
        j["waiting"] = info.waiting;
        j["claimed"] = info.claimed;
        j["later"] = info.later;
        j["dead"] = info.dead;
        if (info.oldest) j["oldest_ms"] = info.oldest->count();
        print(dump(j));
    } else {
        const std::string oldest = info.oldest ? " (the oldest for " + to_text(*info.oldest) + ")" : std::string();
        print(printable(o.path) + "  " + std::to_string(info.waiting) + " waiting" + oldest + ", " +
              std::to_string(info.claimed) + " claimed, " + std::to_string(info.later) + " later, " +
              std::to_string(info.dead) + " dead\n");
    }
}

nlohmann::ordered_json to_json(const zkasio::dead_item& d) {
    nlohmann::ordered_json j;
    j["name"] = d.name;
    j["since"] = to_text_time(ms_since_1970(d.since));
    j["reason"] = json_text(d.reason);
    j["item"] = json_text(d.item);
    return j;
}

asio::awaitable<void> list_dead(zkasio::work_queue queue, bool as_json) {
    const std::vector<zkasio::dead_item> dead = co_await queue.dead();
    if (as_json) {
        auto all = nlohmann::ordered_json::array();
        for (const zkasio::dead_item& d : dead) all.push_back(to_json(d));
        print(dump(all));
        co_return;
    }
    for (const zkasio::dead_item& d : dead)
        print(painted(colour::bold, printable(d.name)) + "  " + to_text(age_of(ms_since_1970(d.since))) + "  " +
              printable(d.reason) + "\n    " + printable(d.item) + "\n");
}

asio::awaitable<int> revive(session s, zkasio::work_queue queue, queue_options o) {
    std::vector<std::string> names = o.names;
    if (o.all) {
        const std::vector<zkasio::dead_item> dead = co_await queue.dead();
        for (const zkasio::dead_item& d : dead) names.push_back(d.name);
    }
    int code = exit_code::ok;
    bool revived_any = false;
    for (const std::string& name : names) {
        const bool revived = co_await queue.revive(name);
        if (revived) {
            revived_any = true;
            continue;
        }
        say("there is no dead item " + printable(name) + " in " + printable(o.path));
        code = exit_code::refused;
    }
    if (revived_any) warn_if_open(s, o.path, o.acl);
    co_return code;
}

}  // namespace

asio::awaitable<int> use_queue(session s, queue_options o) {
    const zkasio::queue_layout layout = layout_of(o);
    zkasio::work_queue_options options;
    options.layout(layout);
    if (!o.acl.empty()) options.acl(parse_acl(o.acl));
    const zkasio::work_queue queue(s.zk, o.path, options);
    switch (o.action) {
        case queue_action::ls: co_await list(queue, o); break;
        case queue_action::dead: co_await list_dead(queue, o.json); break;
        case queue_action::revive: co_return co_await revive(s, queue, o);
        case queue_action::put: {
            if (!o.value && o.file.empty()) {
                say("what to put? ITEM, or --file");
                co_return exit_code::usage;
            }
            zkasio::put_options how;
            how.delay(o.delay);
            if (o.priority) how.priority(*o.priority);
            if (o.id) how.id(*o.id);
            std::string item = o.file.empty() ? *o.value : read_file(o.file);
            co_await queue.put(std::move(item), how);
            warn_if_open(s, o.path, o.acl);
            break;
        }
    }
    co_return exit_code::ok;
}

}  // namespace zklock

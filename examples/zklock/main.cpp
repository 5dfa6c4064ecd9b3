#include "commands.hpp"
#include "exit_code.hpp"
#include "options.hpp"
#include "session.hpp"
#include "signals.hpp"
#include "terminal.hpp"
#include "watchdog.hpp"

#include <exception>
#include <memory>
#include <optional>

namespace {

using zklock::verb;

zklock::task task_of(const zklock::options& o) {
    using zklock::session;
    switch (o.what) {
        case verb::run: return [&o](session s) { return run_command(s, o.run); };
        case verb::elect: return [&o](session s) { return elect(s, o.run); };
        case verb::locks: return [&o](session s) { return show_locks(s, o.locks); };
        case verb::break_lock: return [&o](session s) { return zklock::break_lock(s, o.locks); };
        case verb::revoke: return [&o](session s) { return revoke_lock(s, o.locks); };
        case verb::get: return [&o](session s) { return get_node(s, o.node); };
        case verb::set: return [&o](session s) { return set_node(s, o.node); };
        case verb::create: return [&o](session s) { return create_node(s, o.node); };
        case verb::rm: return [&o](session s) { return remove_node(s, o.node); };
        case verb::ls: return [&o](session s) { return list_children(s, o.node); };
        case verb::stat: return [&o](session s) { return show_stat(s, o.node); };
        case verb::acl: return [&o](session s) { return show_acl(s, o.node); };
        case verb::watch: return [&o](session s) { return watch_node(s, o.node); };
        case verb::tree: return [&o](session s) { return show_tree(s, o.node); };
        case verb::whoami: return [&o](session s) { return show_identities(s, o.node); };
        case verb::barrier: return [&o](session s) { return use_barrier(s, o.barrier); };
        case verb::counter: return [&o](session s) { return use_counter(s, o.counter); };
        case verb::queue: return [&o](session s) { return use_queue(s, o.queue); };
        case verb::doctor: return [&o](session s) { return examine(s, o.doctor, o.connection); };
        case verb::cost: return [&o](session s) { return show_cost(s, o.cost, o.connection); };
        case verb::bench: return [&o](session s) { return bench(s, o.bench, o.connection); };
    }
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    zklock::note_signals();
    int code = zklock::exit_code::ok;
    const std::optional<zklock::options> o = zklock::parse_options(argc, argv, code);
    if (!o) return code;
    try {
        set_colours(o->colours);
        const bool commands = o->what == verb::run || o->what == verb::elect;
        const bool keeps_nodes = commands || o->what == verb::bench || o->what == verb::counter ||
                                 o->what == verb::queue;
        std::unique_ptr<zklock::watchdog> killer;  // a fork: before there is a client
        if (commands && o->run.loss != zklock::on_loss::warn) killer = std::make_unique<zklock::watchdog>();
        return run_session(o->connection, task_of(*o), keeps_nodes, killer.get());
    } catch (...) {
        return zklock::report(std::current_exception());
    }
}

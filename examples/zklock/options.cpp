#include "options.hpp"

#include "acl_text.hpp"
#include "duration.hpp"
#include "exit_code.hpp"

#include <zkasio/printable.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace zklock {
namespace {

using milliseconds = std::chrono::milliseconds;

const auto is_path = [](const std::string& text) {
    return text.starts_with("/") ? std::string() : "a path begins with '/', not \"" + text + "\"";
};
const auto is_acl = [](const std::string& text) {
    try {
        parse_acl(text);
    } catch (const std::invalid_argument& e) {
        return std::string(e.what());
    }
    return std::string();
};

CLI::Option* duration_option(CLI::App& app, const std::string& name, std::function<void(milliseconds)> set,
                             const std::string& help) {
    const auto take = [set = std::move(set), name](const std::string& text) {
        const auto d = parse_duration(text);
        if (!d) throw CLI::ValidationError(name, "\"" + text + "\" is no duration: 500ms, 30s, 1m30s, 2h");
        set(*d);
    };
    return app.add_option_function<std::string>(name, take, help)->type_name("DURATION");
}

CLI::Option* duration_option(CLI::App& app, const std::string& name, milliseconds& to, const std::string& help) {
    return duration_option(app, name, [&to](milliseconds d) { to = d; }, help)->default_str(to_text(to));
}

CLI::Option* path_option(CLI::App& app, std::string& to, const std::string& help) {
    return app.add_option("PATH", to, help)->required()->check(is_path)->type_name("");
}

template <class Enum>
CLI::Option* enum_option(CLI::App& app, const std::string& name, Enum& to, const std::map<std::string, Enum>& values,
                         const std::string& help) {
    std::string list, initial;
    for (const auto& [text, value] : values) {
        list += (list.empty() ? "" : "|") + text;
        if (value == to) initial = text;
    }
    const auto take = [&to, values, name, list](const std::string& text) {
        const auto found = values.find(text);
        if (found == values.end()) throw CLI::ValidationError(name, "is " + list + ", not " + text);
        to = found->second;
    };
    return app.add_option_function<std::string>(name, take, help)->type_name(list)->default_str(initial);
}

// CLI11 does not know of what stands behind PATH.
class formatter_with_command final : public CLI::Formatter {
public:
    std::string make_usage(const CLI::App* app, std::string name) const override {
        std::string text = CLI::Formatter::make_usage(app, std::move(name));
        while (!text.empty() && text.back() == '\n') text.pop_back();
        return text + " [--] COMMAND [ARGUMENT]...\n";
    }
};

CLI::App& add_verb(CLI::App& app, options& o, verb v, const std::string& name, const std::string& help,
                   const std::string& examples) {
    CLI::App* const sub = app.add_subcommand(name, help);
    sub->fallthrough();
    sub->footer("Examples:\n" + examples);
    sub->callback([&o, v] { o.what = v; });
    return *sub;
}

void add_acl(CLI::App& app, std::string& acl) {
    app.add_option("--acl", acl, "of the nodes that are created: open, creator, or scheme:id:cdrwa,...")->check(is_acl);
}

void add_supervision(CLI::App& app, run_options& r) {
    enum_option<on_loss>(app, "--on-loss", r.loss,
                         {{"kill", on_loss::kill}, {"term", on_loss::term}, {"warn", on_loss::warn}},
                         "what becomes of COMMAND when the lock is lost");
    enum_option<on_revoke>(app, "--on-revoke", r.revoke,
                           {{"term", on_revoke::term}, {"kill", on_revoke::kill}, {"ignore", on_revoke::ignore}},
                           "what becomes of it when somebody asks for the lock back");
    duration_option(app, "--grace", r.grace, "between SIGTERM and SIGKILL, with --on-loss term");
    add_acl(app, r.acl);
    app.add_option("-c,--command", r.shell_command, "run TEXT in a shell ($SHELL), instead of COMMAND")
        ->type_name("TEXT");
    app.add_flag("-o,--close", r.close, "the lock ends with COMMAND, not with what that leaves running");
    app.add_option("--data", r.data, "what others see of us (host, pid, user and program as JSON)");
    app.formatter(std::make_shared<formatter_with_command>());
}

void add_run(CLI::App& app, options& o) {
    run_options& r = o.run;
    CLI::App& sub = add_verb(app, o, verb::run, "run", "run a command under a lock",
                             "  zklock run /locks/backup -- pg_dump -f /backup/db.sql db\n"
                             "  zklock run --no-wait /locks/cron/report -- ./report.sh || echo 'not our turn'\n"
                             "  zklock run -w 3 /locks/cron/report -c './report.sh > report.txt'    # as with flock\n"
                             "  zklock run -n -E 0 /locks/cron/report ./report.sh    # not our turn is no failure\n"
                             "  zklock run --shared --wait 30s /locks/index -- ./query.sh\n"
                             "  zklock run --semaphore 3 /locks/crawlers -- ./crawl.sh\n"
                             "  zklock run --on-loss term --session-timeout 30s /locks/db -- ./migrate.sh\n");
    path_option(sub, r.path, "of the lock; a directory of its own, made when it is missing");
    const auto kind = [&r](lock_type t) { return [&r, t](std::int64_t) { r.type = t; }; };
    auto* const kinds = sub.add_option_group("kind", "A mutex (Curator's InterProcessMutex), unless one of:");
    kinds->add_flag_function("-x,-e,--exclusive", kind(lock_type::exclusive), "a read-write lock, as a writer: alone");
    kinds->add_flag_function("-s,--shared", kind(lock_type::shared), "a read-write lock, as a reader: among readers");
    const auto permits = [&r](int n) {
        r.type = lock_type::semaphore;
        r.permits = n;
    };
    kinds->add_option_function<int>("--semaphore", permits, "one of N permits; everybody has to say the same N")
        ->check(CLI::Range(1, 1'000'000))->type_name("N");
    auto* const patience = sub.add_option_group("patience", "Waits for as long as it takes, unless one of:");
    duration_option(*patience, "-w,--wait,--timeout", [&r](milliseconds d) { r.wait = d; },
                    "so long, then exit status 121; a number alone is seconds; connecting counts, too, and "
                    "ends with status 123 after that time, but not before 2s");
    patience->add_flag_function("-n,--no-wait,--nonblock,--nb", [&r](std::int64_t) { r.wait = milliseconds(0); },
                                "not at all");
    sub.add_option("-E,--conflict-exit-code", r.conflict_code, "the status when the lock is not had, instead of 121")
        ->check(CLI::Range(0, 255))->type_name("N");
    sub.add_flag("--kazoo", r.kazoo_names, "name nodes as Python's kazoo does (without it: as Curator and go-zk)");
    add_supervision(sub, r);
}

void add_elect(CLI::App& app, options& o) {
    run_options& r = o.run;
    CLI::App& sub = add_verb(app, o, verb::elect, "elect", "run a command while we lead, again when we lead again",
                             "  zklock elect /services/scheduler/leader -- ./scheduler --active\n"
                             "  zklock elect --requeue /services/poller -- ./poll-once.sh\n");
    path_option(sub, r.path, "of the election; its nodes are those of Curator's LeaderLatch");
    sub.add_flag("--requeue", r.requeue, "when COMMAND has ended, stand again behind the others, instead of ending");
    sub.callback([&o] {
        o.what = verb::elect;
        o.run.type = lock_type::election;
    });
    add_supervision(sub, r);
}

void add_locks(CLI::App& app, options& o) {
    locks_options& l = o.locks;
    CLI::App& show = add_verb(app, o, verb::locks, "locks", "who holds a lock, and who waits for it",
                              "  zklock locks /locks/backup\n"
                              "  zklock locks --watch /locks/backup\n"
                              "  zklock locks -r /\n"
                              "  zklock locks -r --watch /locks\n"
                              "  zklock locks --json /locks/backup | jq -r .holders[].host\n");
    path_option(show, l.path, "of a lock, a semaphore or an election, whoever made it");
    show.add_flag("-r,--recursive", l.recursive, "all locks at and below PATH that somebody holds or waits for");
    show.add_flag("--json", l.json, "for programs");
    show.add_flag("--watch", l.watch, "go on, and show every change, and how often the lock is granted");
    CLI::App& cut = add_verb(app, o, verb::break_lock, "break", "take a lock away from its holder",
                             "  zklock break /locks/backup\n"
                             "  zklock break --yes --node _c_5a1e...-lock-0000000012 /locks/backup\n");
    cut.add_flag("-y,--yes", l.yes, "do not ask");
    CLI::App& ask = add_verb(app, o, verb::revoke, "revoke", "ask the holder of a lock to give it back",
                             "  zklock revoke /locks/backup    # `zklock run` then sends SIGTERM to its command\n"
                             "  zklock revoke --keep-data /locks/backup    # `zklock locks` still shows whose it is\n");
    ask.add_flag("--keep-data", l.keep_data,
                 "ask in the data of PATH, and keep those of the holder, who has to use zkasio 0.2 or later");
    for (CLI::App* one : {&cut, &ask}) {
        path_option(*one, l.path, "of the lock");
        one->add_option("--node", l.node, "this contender instead of the holder, by name or path");
    }
}

CLI::App& add_node_verb(CLI::App& app, options& o, verb v, const std::string& name, const std::string& help,
                        const std::string& examples) {
    CLI::App& sub = add_verb(app, o, v, name, help, examples);
    path_option(sub, o.node.path, "of the node");
    return sub;
}

void add_value(CLI::App& sub, node_options& n) {
    auto* const value = sub.add_option("DATA", n.value, "what to write")->type_name("");
    sub.add_option("-f,--file", n.file, "write what is in this file; \"-\" is the standard input")->excludes(value);
}

void add_reads(CLI::App& app, options& o) {
    node_options& n = o.node;
    add_node_verb(app, o, verb::get, "get", "the data of a node", "  zklock get /config/limits | jq .\n")
        .add_flag("--json", n.json, "data and stat, as JSON");
    CLI::App& ls = add_node_verb(app, o, verb::ls, "ls", "the children of a node",
                                 "  zklock ls /\n  zklock ls -l /services\n");
    ls.add_flag("-l,--long", n.details, "with version, size, number of children, age and owner");
    ls.add_flag("--json", n.json, "for programs");
    add_node_verb(app, o, verb::stat, "stat", "all that a server knows about a node", "  zklock stat /config\n")
        .add_flag("--json", n.json, "for programs");
    CLI::App& watch = add_node_verb(app, o, verb::watch, "watch", "a line for each change of a node or its children",
                                    "  zklock watch /config/limits | while read -r line; do ./reload.sh; done\n"
                                    "  zklock watch -r /services\n");
    watch.add_option("-n,--count", n.count, "end after so many changes")->check(CLI::NonNegativeNumber);
    watch.add_flag("-r,--recursive", n.recursive, "each change of the node and of all nodes below it");
    CLI::App& tree = add_node_verb(app, o, verb::tree, "tree", "a node and all below it",
                                   "  zklock tree --depth 2 /\n  zklock tree --count /services\n");
    auto* const depth = tree.add_option("--depth", n.depth, "no deeper than so many levels");
    depth->check(CLI::NonNegativeNumber);
    tree.add_flag("--count", n.how_many, "only how many nodes are below it")->excludes(depth);
    add_verb(app, o, verb::whoami, "whoami", "the identities that the servers know us by, as in ACLs",
             "  zklock whoami\n  zklock whoami --json | jq -r .[].id\n")
        .add_flag("--json", n.json, "for programs");
}

void add_writes(CLI::App& app, options& o) {
    node_options& n = o.node;
    CLI::App& set = add_node_verb(app, o, verb::set, "set", "write the data of a node",
                                  "  zklock set /config/limits '{\"rate\": 100}'\n"
                                  "  zklock set --version 7 -f limits.json /config/limits\n");
    add_value(set, n);
    set.add_option("--version", n.version, "only if the node has this version");
    CLI::App& create = add_node_verb(app, o, verb::create, "create", "create a node; its path is printed",
                                     "  zklock create --parents /config/limits '{}'\n"
                                     "  zklock create --mode sequential /queue/task- 'do it'\n"
                                     "  zklock create --mode ttl --ttl 1h /cache/x 1\n");
    add_value(create, n);
    create.add_option("--mode", n.mode, "of the node: no ephemeral one would outlive this command")
        ->check(CLI::IsMember({"persistent", "sequential", "container", "ttl", "sequential-ttl"}))
        ->type_name("MODE")->default_str("persistent");
    duration_option(create, "--ttl", [&n](milliseconds d) { n.ttl = d; }, "for the modes with a time to live");
    create.add_flag("-p,--parents", n.parents, "create what is missing above it, too");
    create.add_option("--acl", n.acl, "open, creator, read-only, or scheme:id:cdrwa,...")->check(is_acl);
    CLI::App& rm = add_node_verb(app, o, verb::rm, "rm", "remove a node", "  zklock rm -r --yes /old\n");
    rm.add_flag("-r,--recursive", n.recursive, "with all below it");
    rm.add_flag("-y,--yes", n.yes, "do not ask before removing more than one");
    rm.add_option("--version", n.version, "only if the node has this version");
    CLI::App& acl = add_node_verb(app, o, verb::acl, "acl", "who may do what with a node, and change that",
                                  "  zklock acl /config\n  zklock acl --set world:anyone:r,auth::cdrwa /config\n");
    acl.add_option("--set", n.acl, "open, creator, read-only, or scheme:id:cdrwa,...")->check(is_acl);
}

CLI::App& add_action(CLI::App& of, const std::string& name, std::string& path, std::function<void()> chosen,
                     const std::string& help) {
    CLI::App* const sub = of.add_subcommand(name, help);
    sub->fallthrough();
    sub->callback(std::move(chosen));
    path_option(*sub, path, "of the node");
    return *sub;
}

void add_structures(CLI::App& app, options& o) {
    barrier_options& b = o.barrier;
    CLI::App& barrier = add_verb(app, o, verb::barrier, "barrier", "a gate for any number of processes",
                                 "  zklock barrier set /deploy/gate\n"
                                 "  zklock barrier wait -w 10m /deploy/gate && ./start.sh\n"
                                 "  zklock barrier remove /deploy/gate\n");
    barrier.require_subcommand(1);
    const auto act = [&b](barrier_action a) { return [&b, a] { b.action = a; }; };
    add_acl(add_action(barrier, "set", b.path, act(barrier_action::set), "close it: the node is created"), b.acl);
    add_action(barrier, "remove", b.path, act(barrier_action::remove), "open it: the node is removed");
    CLI::App& wait = add_action(barrier, "wait", b.path, act(barrier_action::wait), "until it is open");
    duration_option(wait, "-w,--wait", [&b](milliseconds d) { b.wait = d; }, "so long, then exit status 121");

    counter_options& c = o.counter;
    CLI::App& counter = add_verb(app, o, verb::counter, "counter", "a number that every process may add to",
                                 "  zklock counter add /ids/invoices 1\n"
                                 "  zklock counter get --kazoo /jobs/done\n");
    counter.require_subcommand(1);
    CLI::App& get = add_action(counter, "get", c.path, [] {}, "the number; 0 where there is no node");
    CLI::App& add = add_action(counter, "add", c.path, [] {}, "add N, once; the new number is printed");
    add.add_option("N", c.delta, "may be negative")->required()->type_name("");
    add_acl(add, c.acl);
    for (CLI::App* const one : {&get, &add})
        one->add_flag("--kazoo", c.kazoo, "the number as text, as Python's kazoo (without it: as Curator, 8 bytes)");
}

const std::map<std::string, zkasio::queue_kind> queue_layouts = {
    {"kazoo-locking", zkasio::queue_kind::kazoo_locking},
    {"kazoo", zkasio::queue_kind::kazoo},
    {"curator", zkasio::queue_kind::curator},
    {"curator-priority", zkasio::queue_kind::curator_priority},
    {"curator-delay", zkasio::queue_kind::curator_delay},
    {"curator-id", zkasio::queue_kind::curator_id},
    {"curator-simple", zkasio::queue_kind::curator_simple},
};

void require_priority(const queue_options& q) {
    const bool any = !q.priority || q.layout == zkasio::queue_kind::curator_priority;
    if (!any && (*q.priority < 0 || *q.priority > 999))
        throw CLI::ValidationError("--priority", "from 0 to 999, except in the layout curator-priority");
}

void add_queue(CLI::App& app, options& o) {
    queue_options& q = o.queue;
    CLI::App& queue = add_verb(app, o, verb::queue, "queue", "a work queue: what waits, and what has failed",
                               "  zklock queue ls /jobs\n"
                               "  zklock queue put --priority 10 /jobs 'resize 4711'\n"
                               "  zklock queue dead /jobs\n"
                               "  zklock queue revive --all /jobs\n");
    queue.require_subcommand(1);
    const auto act = [&q](queue_action a) { return [&q, a] { q.action = a; }; };
    CLI::App& ls = add_action(queue, "ls", q.path, act(queue_action::ls), "how many items wait, and in which state");
    CLI::App& put = add_action(queue, "put", q.path, act(queue_action::put), "put an item, once");
    auto* const value = put.add_option("ITEM", q.value, "what to put")->type_name("");
    put.add_option("-f,--file", q.file, "put what is in this file; \"-\" is the standard input")->excludes(value);
    put.add_option("--priority", q.priority, "lower numbers are handed out first")
        ->type_name("N")->default_str("100");
    put.add_option("--id", q.id, "the item's id, in the layout curator-id")->type_name("TEXT");
    put.parse_complete_callback([&q] { require_priority(q); });
    duration_option(put, "--delay", q.delay, "hand it out this much later");
    CLI::App& dead = add_action(queue, "dead", q.path, act(queue_action::dead), "items that failed too often");
    CLI::App& revive = add_action(queue, "revive", q.path, act(queue_action::revive), "let dead items wait again");
    auto* const which = revive.add_option_group("which", "Which ones:");
    which->require_option(1);
    which->add_option("NAME", q.names, "as `zklock queue dead` shows them")->type_name("");
    which->add_flag("--all", q.all, "all that are dead");
    for (CLI::App* const one : {&ls, &dead}) one->add_flag("--json", q.json, "for programs");
    for (CLI::App* const one : {&put, &revive}) add_acl(*one, q.acl);
    for (CLI::App* const one : {&ls, &put, &dead, &revive}) {
        enum_option(*one, "--layout", q.layout, queue_layouts, "whose queue it is");
        one->add_option("--lock-path", q.lock_path, "where consumers of Curator's queue have their claims")
            ->check(is_path)->type_name("PATH");
    }
}

void add_checks(CLI::App& app, options& o) {
    CLI::App& doctor = add_verb(app, o, verb::doctor, "doctor", "what may be wrong with an ensemble and a path",
                                "  zklock doctor /locks\n");
    doctor.add_option("PATH", o.doctor.path, "look at this node, and what is directly below")
        ->check(is_path)->type_name("");
    doctor.add_flag("--json", o.doctor.json, "for programs");
    duration_option(doctor, "--stuck", o.doctor.stuck, "a holder who has not moved for so long is worth a line");
    CLI::App& cost = add_verb(app, o, verb::cost, "cost", "what stands there, and what it costs the servers",
                              "  zklock cost /locks\n");
    cost.add_option("PATH", o.cost.path, "look at this node, and all that are below")
        ->check(is_path)->type_name("");
    cost.add_flag("--json", o.cost.json, "for programs");
    CLI::App& bench = add_verb(app, o, verb::bench, "bench", "how fast locks are with this ensemble",
                               "  zklock bench --clients 8 --duration 10s /tmp\n");
    bench.add_option("PATH", o.bench.path, "work below this node, and leave nothing there")
        ->check(is_path)->type_name("");
    bench.add_option("--clients", o.bench.clients, "sessions that contend")->check(CLI::Range(1, 1'000));
    duration_option(bench, "--duration", o.bench.duration, "of each measurement");
    bench.add_flag("--json", o.bench.json, "for programs");
}

void add_common(CLI::App& app, options& o) {
    connection_options& c = o.connection;
    c.servers = "127.0.0.1:2181";
    app.add_option("--connect", c.servers, "the servers: host:port,host:port/chroot")->envname("ZK_HOSTS")
        ->type_name("HOSTS")->default_str(c.servers);
    duration_option(app, "--session-timeout", c.session_timeout, "what to ask the servers for");
    duration_option(app, "--connect-timeout", c.connect_timeout, "how long to try to reach one");
    app.add_option("--auth-file", c.auth_file, "a file with user:password lines, which only its owner may read")
        ->envname("ZKLOCK_AUTH_FILE")->type_name("FILE");
    app.add_option("--sasl-user", c.sasl_user, "by SASL: log in as this user, with the password in a file")
        ->envname("ZK_SASL_USER")->type_name("NAME");
    app.add_option("--sasl-password-file", c.sasl_password_file, "that file, which only its owner may read")
        ->envname("ZK_SASL_PASSWORD_FILE")->type_name("FILE");
    app.add_flag("--kerberos", c.kerberos, "by SASL: log in with the ticket that kinit has got")
        ->envname("ZK_KERBEROS");
    app.add_option("--tls-ca", c.tls_ca, "through TLS: a file with the certificates of who signs the servers'")
        ->envname("ZK_TLS_CA")->type_name("FILE");
    app.add_option("--tls-cert", c.tls_certificate, "through TLS: our certificate, for servers that want one")
        ->envname("ZK_TLS_CERT")->type_name("FILE");
    app.add_option("--tls-key", c.tls_key, "its private key, without a password")
        ->envname("ZK_TLS_KEY")->type_name("FILE");
    enum_option<when_to_colour>(app, "--color", o.colours,
                                {{"auto", when_to_colour::automatic},
                                 {"always", when_to_colour::always},
                                 {"never", when_to_colour::never}},
                                "colours (auto: on a terminal, unless NO_COLOR is set)");
    app.add_flag("--read-only", c.read_only, "while there is no quorum, read what one server has; it may be old");
    app.add_flag("-v,--verbose", c.verbose, "say what the connection does, and where in the queue we are");
}

using words = std::vector<std::string>;

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

// Whether the word that follows is the value of this option: "--wait", "-w" and "-vw", but not "--wait=3s" and "-w3".
bool takes_next(const CLI::App& verb, const std::string& option) {
    const auto takes_value = [&verb](const std::string& name) {
        const CLI::Option* found = verb.get_option_no_throw(name);
        if (!found && verb.get_parent()) found = verb.get_parent()->get_option_no_throw(name);
        return found && found->get_items_expected_max() > 0;
    };
    if (option.starts_with("--")) return takes_value(option);
    for (std::size_t i = 1; i < option.size(); ++i)
        if (takes_value({'-', option[i]})) return i + 1 == option.size();
    return false;
}

// The first word from there on that is no option, and no value of one; or "--".
words::iterator skip_options(const CLI::App& of, words::iterator at, words::iterator end) {
    while (at != end && is_option(*at) && *at != "--") {
        const bool two = takes_next(of, *at);
        ++at;
        if (two && at != end) ++at;
    }
    return at;
}

// Null: there is no command of that name.
const CLI::App* find_verb(const CLI::App& app, const std::string& name) {
    const auto found = app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; });
    return found.empty() ? nullptr : found.front();
}

// The name of our command: the first word that is no option.
words::iterator verb_in(const CLI::App& app, words& arguments) {
    return skip_options(app, arguments.begin(), arguments.end());
}

// What follows PATH, and "--" if it is there, belongs to COMMAND, options and all: the parser does not see it.
words split_command(const CLI::App& app, words& arguments) {
    const auto verb = verb_in(app, arguments);
    if (verb == arguments.end() || (*verb != "run" && *verb != "elect")) return {};
    const CLI::App& of = *find_verb(app, *verb);
    auto at = skip_options(of, verb + 1, arguments.end());
    if (at != arguments.end() && *at != "--") at = skip_options(of, at + 1, arguments.end());
    if (at == arguments.end()) return {};
    words command(*at == "--" ? at + 1 : at, arguments.end());
    arguments.erase(at, arguments.end());
    return command;
}

// How many letters have to be typed anew to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t corner = std::exchange(row[0], i);
        for (std::size_t k = 1; k <= b.size(); ++k) {
            const std::size_t replaced = corner + (a[i - 1] == b[k - 1] ? 0 : 1);
            corner = row[k];
            row[k] = std::min({replaced, row[k] + 1, row[k - 1] + 1});
        }
    }
    return row.back();
}

// Which command may be meant: by its name in flock, etcdctl, zkCli.sh and shells, or by one with a typing error in it.
std::string meant_by(const CLI::App& app, const std::string& word) {
    static const std::map<std::string, std::string> elsewhere{
        {"lock", "run"},         {"exec", "run"},     {"campaign", "elect"}, {"lead", "elect"},
        {"unlock", "break"},     {"who", "locks"},    {"status", "locks"},   {"put", "set"},
        {"write", "set"},        {"read", "get"},     {"cat", "get"},        {"del", "rm"},
        {"delete", "rm"},        {"remove", "rm"},    {"rmr", "rm -r"},      {"deleteall", "rm -r"},
        {"list", "ls"},          {"mkdir", "create"}, {"touch", "create"},   {"getAcl", "acl"},
        {"setAcl", "acl --set"}, {"check", "doctor"}, {"help", "--help"},    {"version", "--version"}};
    if (const auto found = elsewhere.find(word); found != elsewhere.end()) return found->second;
    if (word.starts_with("/")) return "run " + word;  // as with flock
    for (const CLI::App* const sub : app.get_subcommands([](const CLI::App*) { return true; }))
        if (distance(word, sub->get_name()) <= (word.size() > 3 ? 2U : 1U)) return sub->get_name();
    return {};
}

// Says so when the first word is no command of ours. @return whether it is one, or there are only options.
bool check_verb(const CLI::App& app, words& arguments) {
    const auto verb = verb_in(app, arguments);
    if (arguments.empty()) say("which command? `zklock --help` lists them");
    if (verb == arguments.end() || find_verb(app, *verb)) return !arguments.empty();
    const std::string meant = meant_by(app, *verb);
    say("there is no command \"" + zkasio::printable(*verb) + "\"" +
        (meant.empty() ? "; `zklock --help` lists them"
                       : ": do you mean `zklock " + zkasio::printable(meant) + "`?"));
    return false;
}

// The command in a shell that is `text`, as with flock -c.
words in_shell(const std::string& text) {
    const char* const shell = std::getenv("SHELL");
    return {shell && *shell ? shell : "/bin/sh", "-c", text};
}

// "--wait and --no-wait exclude each other: say one of them", or nothing.
std::string conflict_in(const CLI::App& verb) {
    const auto is_group = [](const CLI::App* sub) { return sub->get_name().empty(); };
    for (const CLI::App* const group : verb.get_subcommands(is_group)) {
        std::string given;
        int count = 0;
        for (const CLI::Option* const o : group->get_options())
            if (o->count() > 0) given += (count++ == 0 ? "--" : " and --") + o->get_lnames().front();
        if (count > 1) return given + " exclude each other: say one of them";
    }
    return {};
}

// What flock has, and a lock of many machines cannot have; with what to do instead. Nothing for other words.
std::string flock_hint(const words& unknown) {
    static const std::map<std::string, std::string> hints{
        {"-u", "a lock ends with the command that it was taken for; `zklock break` takes it from another one"},
        {"--unlock", "a lock ends with the command that it was taken for; `zklock break` takes it from another one"},
        {"-F", "zklock has to stay while the command runs: it keeps the lock"},
        {"--no-fork", "zklock has to stay while the command runs: it keeps the lock"}};
    for (const std::string& word : unknown)
        if (const auto found = hints.find(word); found != hints.end())
            return word + " is only for flock: " + found->second;
    return {};
}

// What zkCli.sh's create has, and ours has under another name or cannot have. Nothing for other words.
std::string create_hint(const words& unknown) {
    static const std::map<std::string, std::string> hints{
        {"-e", "an ephemeral node ends with the session that has created it, here with this command: "
               "`zklock run PATH COMMAND` has one while COMMAND runs"},
        {"-s", "say --mode sequential"},
        {"-c", "say --mode container"},
        {"-t", "say --mode ttl --ttl DURATION"}};
    for (const std::string& word : unknown)
        if (const auto found = hints.find(word); found != hints.end()) return word + ": " + found->second;
    return {};
}

// What is wrong with the command that `verb` is to run, or nothing.
std::string complete_command(run_options& r, const std::string& verb) {
    if (!r.shell_command.empty()) {
        if (!r.command.empty()) return "-c is the whole command: nothing follows PATH then";
        r.command = in_shell(r.shell_command);
    }
    return r.command.empty() ? "what is to be run? zklock " + verb + " PATH COMMAND [ARGUMENT]..." : "";
}

// What the command needs a quorum for, "writes"; empty for a command that --read-only allows.
std::string_view what_needs_quorum(const options& o) {
    switch (o.what) {
        case verb::run:
        case verb::elect: return "takes a lock";
        case verb::break_lock:
        case verb::revoke:
        case verb::set:
        case verb::create:
        case verb::rm:
        case verb::bench: return "writes";
        case verb::acl: return o.node.acl.empty() ? "" : "writes";
        case verb::counter: return o.counter.delta ? "writes" : "";
        case verb::barrier:
            return o.barrier.action == barrier_action::wait ? "must not answer from old data" : "writes";
        case verb::queue: return o.queue.action == queue_action::dead ? "needs a session" : "writes";
        case verb::doctor: return "asks the leader";
        case verb::whoami: return "asks for what such a server is not asked";
        case verb::watch: return o.node.recursive ? "with -r needs a watch that stands" : "";
        case verb::tree: return o.node.how_many ? "with --count asks for what such a server is not asked" : "";
        case verb::locks:
        case verb::get:
        case verb::ls:
        case verb::stat:
        case verb::cost: return "";
    }
    return "";
}

void check_read_only(const options& o, const CLI::App& of) {
    const std::string_view why_not = o.connection.read_only ? what_needs_quorum(o) : "";
    if (why_not.empty()) return;
    std::string command = "zklock " + of.get_name();
    for (const CLI::App* const action : of.get_subcommands()) command += " " + action->get_name();
    if (o.what == verb::acl) command += " --set";
    throw CLI::ValidationError("--read-only", "not for `" + command + "`, which " + std::string(why_not));
}

}  // namespace

std::optional<options> parse_options(int argc, char** argv, int& exit_code) {
    options o;
    CLI::App app{"Locks, elections and nodes of ZooKeeper, from a shell.", "zklock"};
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("zklock ") + ZKLOCK_VERSION);
    app.footer("`zklock COMMAND --help` has the options and examples of each; zklock(1) the rest.\n"
               "Exit status: that of what was run; else 1 refused, 120 usage, 121 not acquired, 122 lock lost,\n"
               "123 no connection, 125 other failures, 126 cannot execute, 127 not found, 128+N signal N.");
    add_common(app, o);
    add_run(app, o);
    add_elect(app, o);
    add_locks(app, o);
    add_reads(app, o);
    add_writes(app, o);
    add_structures(app, o);
    add_queue(app, o);
    add_checks(app, o);
    std::vector<std::string> arguments(argv + 1, argv + argc);
    exit_code = exit_code::usage;
    if (!check_verb(app, arguments)) return std::nullopt;
    o.run.command = split_command(app, arguments);
    const auto word = verb_in(app, arguments);
    const std::string name = word == arguments.end() ? "" : *word;
    const std::string help = "`zklock " + name + (name.empty() ? "" : " ") + "--help`";
    try {
        std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
        app.parse(arguments);
        const bool runs = o.what == verb::run || o.what == verb::elect;
        if (runs) {
            std::string wrong = conflict_in(*find_verb(app, name));
            if (wrong.empty()) wrong = complete_command(o.run, name);
            if (!wrong.empty()) throw CLI::ValidationError(wrong);
        }
        check_read_only(o, *find_verb(app, name));
    } catch (const CLI::Success& e) {  // --help, --version
        exit_code = app.exit(e) == 0 ? exit_code::ok : exit_code::failed;
        return std::nullopt;
    } catch (const CLI::ParseError& e) {
        std::string hint;
        if (name == "run" || name == "elect") hint = flock_hint(app.remaining(true));
        if (name == "create") hint = create_hint(app.remaining(true));
        say(zkasio::printable(hint.empty() ? e.what() : hint) + "; see " + help);
        return std::nullopt;
    }
    exit_code = exit_code::ok;
    return o;
}

}  // namespace zklock

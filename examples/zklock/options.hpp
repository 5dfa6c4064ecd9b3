#pragma once

#include "exit_code.hpp"
#include "supervise.hpp"
#include "terminal.hpp"

#include <zkasio/queues/work_queue.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zklock {

/// How to reach the servers, for all commands.
struct connection_options {
    std::string servers;  ///< --connect, $ZK_HOSTS, or 127.0.0.1:2181
    std::chrono::milliseconds session_timeout{10'000};
    std::chrono::milliseconds connect_timeout{10'000};
    std::string auth_file;
    std::string sasl_user, sasl_password_file;  ///< DIGEST-MD5 if there is a user
    bool kerberos = false;
    std::string tls_ca, tls_certificate, tls_key;  ///< files; through TLS if one of them is given
    bool read_only = false;  ///< see zkasio::client_options::read_only(); only for commands that only read
    bool verbose = false;
};

inline bool through_tls(const connection_options& c) {
    return !c.tls_ca.empty() || !c.tls_certificate.empty() || !c.tls_key.empty();
}

enum class lock_type { mutex, exclusive, shared, semaphore, election };

struct run_options {
    std::string path;
    lock_type type = lock_type::mutex;
    int permits = 1;  ///< of a semaphore
    bool kazoo_names = false;
    std::optional<std::chrono::milliseconds> wait;  ///< none: for as long as it takes
    int conflict_code = exit_code::not_acquired;    ///< when `wait` is over
    bool close = false;  ///< the lock ends with the command itself, not with all that it leaves running
    on_loss loss = on_loss::kill;
    on_revoke revoke = on_revoke::term;
    std::chrono::milliseconds grace{5'000};
    std::string acl, data;
    bool requeue = false;  ///< elect: stand again when the command has ended
    std::string shell_command;  ///< -c: what a shell runs, instead of `command`
    std::vector<std::string> command;
};

struct locks_options {
    std::string path;
    bool recursive = false, json = false, watch = false;
    std::string node;  ///< break, revoke: this one instead of the holder
    bool keep_data = false;  ///< revoke: the request leaves the data of the contender's node as they are
    bool yes = false;
};

struct node_options {
    std::string path;
    std::optional<std::string> value;
    std::string file;  ///< take the data from there; "-" is the standard input
    std::int32_t version = -1;
    std::string mode = "persistent", acl;
    std::chrono::milliseconds ttl{0};
    bool json = false, parents = false, recursive = false, yes = false, details = false;
    int depth = 0;  ///< 0: no limit
    int count = 0;  ///< 0: no limit
    bool how_many = false;  ///< tree: only the number of nodes below
};

enum class barrier_action { set, remove, wait };

struct barrier_options {
    std::string path;
    barrier_action action = barrier_action::wait;
    std::optional<std::chrono::milliseconds> wait;  ///< none: for as long as it takes
    std::string acl;
};

struct counter_options {
    std::string path;
    std::optional<std::int64_t> delta;  ///< none: show the number
    bool kazoo = false;
    std::string acl;
};

enum class queue_action { ls, put, dead, revive };

struct queue_options {
    std::string path;
    queue_action action = queue_action::ls;
    std::optional<std::string> value;
    std::string file;  ///< take the item from there; "-" is the standard input
    zkasio::queue_kind layout = zkasio::queue_kind::kazoo_locking;
    std::string lock_path;
    std::optional<int> priority;
    std::optional<std::string> id;
    std::chrono::milliseconds delay{0};
    std::vector<std::string> names;  ///< revive: these
    std::string acl;
    bool all = false, json = false;
};

struct doctor_options {
    std::string path = "/";
    bool json = false;
    std::chrono::milliseconds stuck{3'600'000};
};

struct cost_options {
    std::string path = "/";
    bool json = false;
};

struct bench_options {
    std::string path = "/";
    std::chrono::milliseconds duration{2'000};
    int clients = 4;
    bool json = false;
};

enum class verb {
    run, elect, locks, break_lock, revoke, get, set, create, rm, ls, stat, acl, watch, tree, whoami, barrier,
    counter, queue, doctor, cost, bench
};

struct options {
    verb what = verb::ls;
    connection_options connection;
    when_to_colour colours = when_to_colour::automatic;
    run_options run;
    locks_options locks;
    node_options node;
    barrier_options barrier;
    counter_options counter;
    queue_options queue;
    doctor_options doctor;
    cost_options cost;
    bench_options bench;
};

/// The command line, or nothing when it only asked for help or is not right: that has been said then, and `exit_code`
/// is what to end with.
std::optional<options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace zklock

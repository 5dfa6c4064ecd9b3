// The C library behind the seam. It is the only file that sees <zookeeper/zookeeper.h>, and it exists to live with
// that library's habits; "fact N" refers to the list in docs/c-client.md.

#include <zkasio/detail/backend.hpp>
#include <zkasio/detail/fork_mark.hpp>
#include <zkasio/detail/random_engine.hpp>
#include <zkasio/detail/tunnel.hpp>
#include <zkasio/path.hpp>

#include <zookeeper/zookeeper.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zkasio::detail {
namespace {

class c_backend;

// Fact 28: the library has process-wide statics (xid, log buffer, address text), so handles on different threads
// take turns. Also tells callbacks, which carry no context but the operation's id, whose they are.
//
// The listener is never called while one of these exists: what it does may call the library again, for this handle or
// for another one, or take its time.
class library_call {
public:
    explicit library_call(c_backend& b) : lock_(mutex()), outer_(current) { current = &b; }

    /// A child process gets the mutex free, whatever the other threads of its parent were doing.
    static void survive_fork() {
        static const int registered =
            ::pthread_atfork([] { mutex().lock(); }, [] { mutex().unlock(); }, [] { mutex().unlock(); });
        (void)registered;
    }
    ~library_call() { current = outer_; }
    library_call(const library_call&) = delete;
    library_call& operator=(const library_call&) = delete;

    static inline thread_local c_backend* current = nullptr;

private:
    static std::mutex& mutex() {
        static std::mutex m;
        return m;
    }
    std::lock_guard<std::mutex> lock_;
    c_backend* outer_;
};

// ---------------------------------------------------------------------------------------------- conversions

std::error_code to_code(int rc) {
    if (rc == ZOK) return {};
    if (rc == ZSESSIONEXPIRED) return errc::session_expired;
    if (rc == ZCLOSING) return errc::client_closed;
    return static_cast<zk_errc>(rc);
}

// Fact 13. Not of to_code(), which has made other codes of some.
bool outcome_unknown(int rc) { return make_error_code(static_cast<zk_errc>(rc)) == condition::outcome_unknown; }

node_stat to_stat(const ::Stat& s) {
    node_stat r;
    r.czxid = s.czxid;
    r.mzxid = s.mzxid;
    r.pzxid = s.pzxid;
    r.ctime = s.ctime;
    r.mtime = s.mtime;
    r.ephemeral_owner = s.ephemeralOwner;
    r.version = s.version;
    r.cversion = s.cversion;
    r.aversion = s.aversion;
    r.data_length = s.dataLength;
    r.num_children = s.numChildren;
    return r;
}

int to_flags(create_mode m) {
    switch (m) {
        case create_mode::persistent: return ZOO_PERSISTENT;
        case create_mode::ephemeral: return ZOO_EPHEMERAL;
        case create_mode::persistent_sequential: return ZOO_PERSISTENT_SEQUENTIAL;
        case create_mode::ephemeral_sequential: return ZOO_EPHEMERAL_SEQUENTIAL;
        case create_mode::container: return ZOO_CONTAINER;
        case create_mode::persistent_ttl: return ZOO_PERSISTENT_WITH_TTL;
        case create_mode::persistent_sequential_ttl: return ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL;
    }
    return ZOO_PERSISTENT;
}

// The library only reads it, and only during the call.
class c_acl {
public:
    explicit c_acl(const acl& entries) {
        for (const acl_entry& e : entries)
            entries_.push_back(
                {static_cast<int32_t>(e.granted()),
                 {const_cast<char*>(e.who().scheme().c_str()), const_cast<char*>(e.who().id().c_str())}});
        vector_ = {static_cast<int32_t>(entries_.size()), entries_.data()};
    }
    ACL_vector* get() { return &vector_; }

private:
    std::vector<ACL> entries_;
    ACL_vector vector_{};
};

acl to_acl(const ACL_vector& v) {
    acl result;
    for (int32_t i = 0; i < v.count; ++i)
        result.emplace_back(static_cast<permission>(v.data[i].perms), acl_id(v.data[i].id.scheme, v.data[i].id.id));
    return result;
}

std::vector<std::string> to_names(const String_vector& v) {
    return {v.data, v.data + v.count};
}

const void* as_data(op_id id) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(id)); }
op_id as_id(const void* data) { return static_cast<op_id>(reinterpret_cast<std::uintptr_t>(data)); }

// As the library wants them: IPv6 addresses without brackets, each endpoint once.
std::string join(const std::vector<server_address>& servers) {
    std::string hosts;
    std::set<std::string> known;
    for (const server_address& s : servers)
        if (known.insert(endpoint_of(s)).second)
            hosts += (hosts.empty() ? "" : ",") + s.address + ':' + std::to_string(s.port);
    return hosts;
}

// Without the ports.
std::set<std::string> addresses(const std::vector<server_address>& servers) {
    std::set<std::string> result;
    for (const server_address& s : servers) result.insert(s.address);
    return result;
}

std::set<std::string> endpoints(const std::vector<server_address>& servers) {
    std::set<std::string> result;
    for (const server_address& s : servers) result.insert(endpoint_of(s));
    return result;
}

// A multi keeps the addresses of its operations' buffers until the answer comes.
struct multi_call {
    std::vector<zoo_op_t> ops;
    std::vector<zoo_op_result_t> results;
    std::vector<std::string> created_paths;
    std::vector<::Stat> stats;
    std::vector<c_acl> acls;
};

/// The library draws from drand48() whether to leave for a server that has been added, and nobody seeds that: all
/// clients would leave at once. As long as this exists it is seeded; then the program's own sequence goes on, as if
/// nothing had been drawn.
class seeded_drand48 {
public:
    seeded_drand48() {
        const std::uint64_t bits = random_engine()();
        std::array<unsigned short, 3> seed{};
        for (std::size_t i = 0; i < seed.size(); ++i) seed[i] = static_cast<unsigned short>(bits >> 16 * i);
        std::memcpy(before_.data(), ::seed48(seed.data()), sizeof before_);
    }
    ~seeded_drand48() { ::seed48(before_.data()); }
    seeded_drand48(const seeded_drand48&) = delete;
    seeded_drand48& operator=(const seeded_drand48&) = delete;

private:
    std::array<unsigned short, 3> before_{};
};

/// A descriptor that reads as end of file and refuses writes.
class dead_descriptor {
public:
    dead_descriptor() {
        std::array<int, 2> pair{-1, -1};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) == 0) {
            fd_ = pair[0];
            ::close(pair[1]);
        }
    }
    ~dead_descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    dead_descriptor(const dead_descriptor&) = delete;
    dead_descriptor& operator=(const dead_descriptor&) = delete;

    void replace(int victim) const {
        if (fd_ < 0 || ::dup3(fd_, victim, O_CLOEXEC) < 0) ::shutdown(victim, SHUT_RDWR);
    }

private:
    int fd_ = -1;
};

// "::1:2181", "[::1:2181]" or "[::1]:2181", as the build likes it; an IPv4 address without any.
std::string with_brackets(std::string_view server) {
    if (server.starts_with('[') && server.ends_with(']')) server = server.substr(1, server.size() - 2);
    const std::size_t colon = server.rfind(':');
    if (server.starts_with('[') || colon == server.npos || server.find(':') == colon) return std::string(server);
    return '[' + std::string(server.substr(0, colon)) + ']' + std::string(server.substr(colon));
}

constexpr int handshake_bytes = 40;  // of the shortest handshake answer (without the read-only flag)
constexpr int longest_handshake_bytes = 41;

// Of no other request: the library counts its own up from the time of day, and the protocol has given away some down to
// -9.
constexpr std::int32_t goodbye_xid = -100;
constexpr std::size_t goodbye_answer_bytes = 20;  // length, xid, zxid, error

std::int32_t int_at(const void* bytes, std::size_t at) {
    std::uint32_t v = 0;
    std::memcpy(&v, static_cast<const char*>(bytes) + at, sizeof v);
    return static_cast<std::int32_t>(ntohl(v));
}

// What a server does that has no quorum, has maxClientCnxns connections from here already, or speaks TLS on this port.
constexpr std::string_view hung_up =
    "hung up instead of answering (not serving, too many connections, or it expects TLS)";
constexpr std::string_view hung_up_behind_tls = "hung up instead of answering (not serving, or too many connections)";

}  // namespace

// ------------------------------------------------------------------------------------------------- the class
namespace {

class c_backend final : public backend {
public:
    explicit c_backend(backend_listener& listener) : listener_(listener) {
        static const bool once = [] {
            zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);  // fact 29
            zoo_deterministic_conn_order(1);          // fact 2: else it reseeds the process's random()
            library_call::survive_fork();
            return true;
        }();
        (void)once;
    }
    ~c_backend() override { close(); }

    void open(const open_params& p) override;
    bool has_socket() const override {
        return usable() && zoo_state(zh_) != 0 && zoo_state(zh_) != ZOO_NOTCONNECTED_STATE;
    }
    bool handshake_sent() const override { return zh_ && zoo_state(zh_) == ZOO_ASSOCIATING_STATE; }
    bool accepted() const override {
        return handshake_sent() || (tunnel_ && tunnel_->at() == tunnel::stage::handshake);
    }
    interest next_interest() override;
    bool is_to_be_secured() const override { return usable() && tunnel_ && tunnel_->is_to_be_secured(); }
    void secure(channel_maker make) override {
        if (tunnel_) tunnel_->secure(std::move(make));
    }
    drain_result process(bool readable, bool writable) override;
    std::error_code submit(op_id id, const request& r) override;
    bool is_settled() const override;
    void begin_batch() override;
    void end_batch() override;
    void abort_connection() override;
    void set_servers(const std::vector<server_address>& servers) override;
    backend_traits traits() const override;
    void forget_watch(const std::string& path, watch_kind kind) override;
    std::int64_t session_id() const override { return zh_ ? zoo_client_id(zh_)->client_id : 0; }
    std::string session_password() const override {
        return zh_ ? std::string(zoo_client_id(zh_)->passwd, sizeof(clientid_t::passwd)) : std::string();
    }
    std::chrono::milliseconds session_timeout() const override {
        return std::chrono::milliseconds(zh_ ? zoo_recv_timeout(zh_) : 0);
    }
    std::string last_failure() const override { return last_failure_; }
    std::string attempt() const override;
    std::string current_server() const override;
    bool send_goodbye() override;
    goodbye_result answer_to_goodbye() override;
    interest goodbye_interest() const override { return network_interest(); }
    void close() override;

private:
    struct sink;  // the C callbacks
    friend struct sink;

    std::error_code send(op_id id, const create_request& r);
    std::error_code send(op_id id, const remove_request& r);
    std::error_code send(op_id id, const set_request& r);
    std::error_code send(op_id id, const exists_request& r);
    std::error_code send(op_id id, const get_request& r);
    std::error_code send(op_id id, const children_request& r);
    std::error_code send(op_id id, const sync_request& r);
    std::error_code send(op_id id, const get_acl_request& r);
    std::error_code send(op_id id, const set_acl_request& r);
    std::error_code send(op_id id, const get_config_request& r);
    std::error_code send(op_id id, const reconfig_request& r);
    std::error_code send(op_id id, const add_auth_request& r);
    std::error_code send(op_id id, const multi_request& r);
    std::error_code send(op_id id, const remove_watch_request& r);

    void take_next_server();
    int library_interest(int& fd, int& events, timeval& tv);
    int library_process(int events);
    // There is a handle, its session is not over, and it is not a forked child's copy of its parent's.
    bool usable() const { return zh_ && !made_here_.forked() && !is_unrecoverable(zh_); }
    bool connected() const { return zh_ && zoo_state(zh_) == ZOO_CONNECTED_STATE; }
    void adopt_descriptor(int fd);
    bool dig_tunnel();
    bool tunnel_is_open();
    void send_through_tunnel();
    interest network_interest() const;
    enum class handshake { incomplete, good, bad, tls, failed };
    handshake look_at_handshake();
    handshake wait_for_last_byte();
    handshake hung_up_in_between() const;
    int read_failure_ = 0;  // with handshake::failed
    drain_result read_packets();
    void cure_poison();
    bool explain(std::string_view log_text);
    void abandon();
    void fail_connection();
    link_state link() const;
    void tell_news();
    void report();
    const server_address* server_at(const std::string& endpoint) const;
    std::string named(const std::string& endpoint) const;
    void fail(std::string why) { last_failure_ = std::move(why); }
    void cork(bool on);

    // What the callbacks have brought: for the listener, once the library has been left.
    struct reply_news {
        explicit reply_news(op_id i) : id(i) {}
        op_id id;
        reply what;
    };
    struct node_news {
        node_event what;
        std::string path;
    };
    struct log_line {
        std::string text;
    };
    using news = std::variant<reply_news, node_news, log_line>;

    backend_listener& listener_;
    zhandle_t* zh_ = nullptr;
    dead_descriptor dead_;
    int fd_ = -1;            // the library's own descriptor: never registered anywhere (fact 3)
    ino_t inode_ = 0;        // which socket that is (numbers are reused at once)
    std::uint64_t connection_ = 0;
    link_state reported_ = link_state::disconnected;
    std::size_t outstanding_ = 0;
    bool corked_ = false;
    bool in_batch_ = false;
    bool wants_write_ = false;
    fork_mark made_here_;
    bool ending_connection_ = false;  // on purpose: what the library says about that is of no interest
    bool telling_ = false;            // the listener is being called
    std::vector<news> news_;
    std::string last_failure_;
    std::string endpoint_;  // of the server that the current connection, or the last one, is to,
    std::string server_;    // and the same with its name, for messages
    std::string tried_;     // the last one of them that was tried, or is about to be
    std::vector<server_address> servers_;
    std::map<std::string, std::size_t> refused_names_;  // how often a tunnel to this endpoint did not open
    bool secured_ = false;
    std::unique_ptr<tunnel> tunnel_;  // behind fd_, if secured_
    std::unordered_map<op_id, std::unique_ptr<multi_call>> multis_;
    std::string last_bytes_;  // that have come since the goodbye: as many as its answer has
};

// The callbacks. They come only from within a library_call, they must not throw through C frames, and they only
// keep the result (fact 14): see c_backend::tell_news().
struct c_backend::sink {
    // `decode` may find no memory for what has come.
    template <class Decode>
    static void complete(int rc, const void* data, Decode decode) noexcept {
        c_backend* self = library_call::current;
        if (self->outstanding_ > 0) --self->outstanding_;
        reply& r = std::get<reply_news>(self->news_.emplace_back(std::in_place_type<reply_news>, as_id(data))).what;
        r.code = to_code(rc);
        r.sent = outcome_unknown(rc);
        try {
            decode(r);
        } catch (const std::exception&) {
            r = reply{};
            r.code = std::make_error_code(std::errc::not_enough_memory);
            r.sent = true;
        }
    }
    static void on_void(int rc, const void* data) noexcept {
        complete(rc, data, [](reply&) {});
    }
    static void on_auth(int rc, const ::Stat*, const void* data) noexcept {
        complete(rc == ZNONODE || rc == ZNOAUTH ? static_cast<int>(ZOK) : rc, data, [](reply&) {});
    }
    static void on_stat(int rc, const ::Stat* s, const void* data) noexcept {
        complete(rc, data, [&](reply& r) {
            if (rc == ZOK && s) r.stat = to_stat(*s);
        });
    }
    static void on_data(int rc, const char* value, int length, const ::Stat* s, const void* data) noexcept {
        complete(rc, data, [&](reply& r) {
            if (rc == ZOK && s) r.stat = to_stat(*s);
            if (rc == ZOK && value && length > 0) r.data.assign(value, static_cast<std::size_t>(length));
        });
    }
    static void on_strings(int rc, const String_vector* names, const ::Stat* s, const void* data) noexcept {
        complete(rc, data, [&](reply& r) {
            if (rc == ZOK && names) r.children = to_names(*names);
            if (rc == ZOK && s) r.stat = to_stat(*s);
        });
    }
    static void on_string(int rc, const char* value, const void* data) noexcept {
        complete(rc, data, [&](reply& r) {
            if (rc == ZOK && value) r.path = value;
        });
    }
    static void on_string_stat(int rc, const char* value, const ::Stat* s, const void* data) noexcept {
        complete(rc, data, [&](reply& r) {
            if (rc == ZOK && value) r.path = value;
            if (rc == ZOK && s) r.stat = to_stat(*s);
        });
    }
    static void on_acl(int rc, ACL_vector* v, ::Stat* s, const void* data) noexcept {
        complete(rc, data, [&](reply& r) {
            if (rc == ZOK && v) r.acl = to_acl(*v);
            if (rc == ZOK && s) r.stat = to_stat(*s);
        });
    }
    static void on_multi(int rc, const void* data) noexcept {
        complete(rc, data, [&](reply& r) {
            const auto call = library_call::current->multis_.extract(as_id(data));
            if (call.empty()) return;
            const multi_call& c = *call.mapped();
            for (std::size_t i = 0; i < c.ops.size(); ++i) {
                multi_result result;
                result.code = to_code(c.results[i].err);
                if (rc == ZOK && c.ops[i].type == ZOO_CREATE_OP) result.path = c.created_paths[i].c_str();
                if (rc == ZOK && c.ops[i].type == ZOO_SETDATA_OP) result.stat = to_stat(c.stats[i]);
                r.results.push_back(std::move(result));
            }
        });
    }
    // Fact 17: one watcher function with one context for everything. Session events are ignored here: report()
    // looks at the handle's state, which is also right when the library forgets to tell (fact 10).
    static void on_watch(zhandle_t*, int type, int, const char* path, void* context) noexcept {
        auto& news = static_cast<c_backend*>(context)->news_;
        if (!path) return;
        if (type == ZOO_CREATED_EVENT) news.emplace_back(node_news{node_event::created, path});
        if (type == ZOO_DELETED_EVENT) news.emplace_back(node_news{node_event::removed, path});
        if (type == ZOO_CHANGED_EVENT) news.emplace_back(node_news{node_event::data_changed, path});
        if (type == ZOO_CHILD_EVENT) news.emplace_back(node_news{node_event::children_changed, path});
    }
    static void on_log(const char* message) noexcept {
        c_backend* self = library_call::current;
        if (!self || !message || self->ending_connection_) return;
        // The core logs the reasons of failures itself; and it is not so that a delay follows, see next_interest().
        if (self->explain(message) || std::strstr(message, "Delaying connection")) return;
        self->news_.emplace_back(log_line{message});
    }
};

// The library tells the reason of a failure nowhere but in its log: "...: Socket 127.0.0.1:2181 zk retcode=-4,
// errno=111(Connection refused): server refused ...", in other builds with the address in brackets.
bool c_backend::explain(std::string_view text) {
    constexpr std::string_view code_is = " zk retcode=";
    const std::size_t address = text.find("Socket "), code = text.find(code_is), number = text.find("errno=");
    if (address == text.npos || code == text.npos || number == text.npos) return false;
    const std::string who = with_brackets(text.substr(address + 7, code - address - 7));
    tried_ = who;
    const std::size_t open = text.find('(', number), end = text.find("): ", number);
    if (open == text.npos || end == text.npos) return false;
    std::string_view why = text.substr(open + 1, end - open - 1);
    // Of the other codes, errno is whatever failed last.
    const int rc = std::atoi(std::string(text.substr(code + code_is.size(), 8)).c_str());
    if (rc == ZSESSIONEXPIRED || rc == ZAUTHFAILED) return true;  // no failure of the connection
    if (rc == ZOPERATIONTIMEOUT && reported_ != link_state::connected) return fail(attempt()), true;
    if (rc == ZOPERATIONTIMEOUT) why = "no answer for two thirds of the session timeout";
    if (rc == ZRUNTIMEINCONSISTENCY) why = "its answers are out of step with the requests";
    // What the library makes of an end of file. The words for it are in the program's language.
    const int failure = std::atoi(std::string(text.substr(number + 6, open - number - 6)).c_str());
    if (rc == ZCONNECTIONLOSS && (failure == EHOSTDOWN || (tunnel_ && failure == EPIPE)))
        why = reported_ == link_state::connected ? "closed by the server" : tunnel_ ? hung_up_behind_tls : hung_up;
    if (tunnel_ && !tunnel_->failure().empty()) why = tunnel_->failure();
    fail(named(who) + ": " + std::string(why));
    return true;
}

// ------------------------------------------------------------------------------------------ open and connect

void c_backend::open(const open_params& p) {
    servers_ = p.servers;
    secured_ = p.secured;
    const std::string hosts = join(servers_) + p.chroot;

    clientid_t id{};
    id.client_id = p.session_id;
    if (p.session_id != 0)
        std::memcpy(id.passwd, p.session_password.data(), std::min(p.session_password.size(), sizeof(id.passwd)));

    // Outside the library's mutex: nothing here touches a static, and the resolver inside may take its time.
    c_backend* const outer = std::exchange(library_call::current, this);
    zh_ = zookeeper_init2(hosts.c_str(), &sink::on_watch, static_cast<int>(p.session_timeout.count()),
                          p.session_id ? &id : nullptr, this, ZOO_NO_LOG_CLIENTENV, &sink::on_log);
    library_call::current = outer;
    if (!zh_) throw error(std::error_code(errno, std::generic_category()), "connect", {}, hosts);
    zoo_set_servers_resolution_delay(zh_, -1);  // fact 1: else it resolves on every zookeeper_interest()

    // Without a connection this calls nobody back.
    const library_call guard(*this);
    for (const add_auth_request& a : p.auth)
        zoo_add_auth(zh_, a.scheme.c_str(), a.credential.data(), static_cast<int>(a.credential.size()), nullptr,
                     nullptr);
}

// By the name that is its turn: a server that goes by several may have a certificate for one of them only. Null: it is
// not in the list.
const server_address* c_backend::server_at(const std::string& endpoint) const {
    std::vector<const server_address*> names;
    for (const server_address& s : servers_)
        if (endpoint_of(s) == endpoint) names.push_back(&s);
    const auto refused = refused_names_.find(endpoint);
    if (names.empty()) return nullptr;
    return names[refused == refused_names_.end() ? 0 : refused->second % names.size()];
}

// What the user calls a server, behind where it is.
std::string c_backend::named(const std::string& endpoint) const {
    const server_address* const server = server_at(endpoint);
    return server ? to_string(*server) : endpoint;
}

// Behind a failure the library goes on by two, one step when it notices and one when it connects: of an even number of
// servers it would try every other one only. So it is led to where its next step is to the one behind the last one.
void c_backend::take_next_server() {
    constexpr int failed = 0;
    const std::size_t listed = endpoints(servers_).size();
    if (zoo_state(zh_) != failed || listed < 2) return;
    const library_call guard(*this);
    const auto step = [this] {
        zoo_cycle_next_server(zh_);
        return with_brackets(zoo_get_current_server(zh_));
    };
    // A list that is new comes first, new and old servers apart.
    for (std::size_t steps = 2 * listed; step() != tried_ && steps > 0; --steps) {
    }
    tried_ = step();
    for (std::size_t i = 1; i < listed; ++i) step();
}

int c_backend::library_interest(int& fd, int& events, timeval& tv) {
    fd = -1;  // fact 5: outputs are untouched, or stale, unless the call succeeds
    events = 0;
    tv = {0, 0};
    const library_call guard(*this);
    const int rc = zookeeper_interest(zh_, &fd, &events, &tv);
    if (rc != ZOK) fd = -1;
    return rc;
}

int c_backend::library_process(int events) {
    const library_call guard(*this);
    return zookeeper_process(zh_, events);
}

interest c_backend::next_interest() {
    if (!usable()) return {};
    cure_poison();  // the library is about to connect again
    take_next_server();
    const bool was_connected = connected();
    int fd = -1, events = 0;
    timeval tv{};
    int rc = library_interest(fd, events, tv);
    // After a round through the list the library would wait for T/60, on top of the pause that was made already.
    if (rc == ZOK && fd < 0) rc = library_interest(fd, events, tv);
    if (rc != ZOK && connected()) {
        // Fact 6: a ping that could not be sent leaves a dead connection that says it is alive. Reading finds out.
        while (library_process(ZOOKEEPER_READ) == ZOK) {
        }
    }
    if (!was_connected || !connected() || fd != fd_) adopt_descriptor(rc == ZOK ? fd : -1);
    if (secured_ && fd_ >= 0 && !tunnel_) {  // it could not be dug
        fail_connection();
        tv = {0, 0};
    }
    wants_write_ = fd_ >= 0 && (events & ZOOKEEPER_WRITE) != 0;
    send_through_tunnel();  // a ping
    report();
    // The listener may have changed all that.
    interest result = network_interest();
    result.timeout = std::chrono::milliseconds(tv.tv_sec * 1000 + tv.tv_usec / 1000);
    return result;
}

interest c_backend::network_interest() const {
    interest i;
    i.connection = connection_;
    i.descriptor = tunnel_ ? tunnel_->descriptor() : fd_;
    i.read = fd_ >= 0;
    // A tunnel that is not open takes nothing from the library; one that is waits itself when the network is full.
    i.write = fd_ >= 0 && wants_write_ && (!tunnel_ || tunnel_->at() == tunnel::stage::open);
    if (tunnel_ && tunnel_->wants_write()) i.write = true;
    return i;
}

void c_backend::adopt_descriptor(int fd) {
    struct ::stat info {};
    if (fd >= 0 && ::fstat(fd, &info) != 0) fd = -1;
    if (fd == fd_ && (fd < 0 || info.st_ino == inode_)) return;
    fd_ = fd;
    inode_ = info.st_ino;
    corked_ = false;
    ++connection_;
    tunnel_.reset();
    if (fd < 0) return;
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // fact 4
    if (const library_call guard(*this); const char* server = zoo_get_current_server(zh_)) {
        tried_ = endpoint_ = with_brackets(server);
        server_ = named(endpoint_);
    }
    if (secured_ && !dig_tunnel()) return;
    // Wake up only for a whole handshake answer, so that it can be looked at before the library believes it.
    ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &handshake_bytes, sizeof handshake_bytes);
}

// The library has only begun to connect: it writes when it is told that the socket is writable, see process().
bool c_backend::dig_tunnel() {
    const server_address* const server = server_at(endpoint_);
    if (zoo_state(zh_) != ZOO_CONNECTING_STATE || !server) {
        fail(server_ + ": TLS: the connection stood before it could be secured");
        return false;
    }
    try {
        tunnel_ = tunnel::behind(fd_, server->host);
    } catch (const std::exception& e) {
        fail(server_ + ": TLS: " + e.what());
        return false;
    }
    struct ::stat info {};
    if (::fstat(fd_, &info) == 0) inode_ = info.st_ino;
    return true;
}

// With what has come for the library. When the tunnel fails before it is open, the library would not notice.
bool c_backend::tunnel_is_open() {
    tunnel_->receive();
    if (tunnel_->at() == tunnel::stage::open) return true;
    if (!tunnel_->failure().empty()) {
        ++refused_names_[endpoint_];
        fail(server_ + ": " + tunnel_->failure());
        fail_connection();
    }
    return false;
}

void c_backend::send_through_tunnel() {
    if (tunnel_ && usable()) tunnel_->send();
}

// Fact 31: the library takes any 41 bytes for a handshake answer, and a wrong session id in it for an expiry.
c_backend::handshake c_backend::look_at_handshake() {
    std::array<unsigned char, longest_handshake_bytes> answer{};
    const ssize_t n = ::recv(fd_, answer.data(), answer.size(), MSG_PEEK | MSG_DONTWAIT);
    constexpr unsigned char tls_alert = 0x15, tls_major = 3;
    if (n >= 2 && answer[0] == tls_alert && answer[1] == tls_major) return handshake::tls;
    if (n > 0 && n < handshake_bytes) return hung_up_in_between();
    if (n == 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
        return handshake::good;  // the library notices
    if (n < 0) {  // told only once: the library would take the connection for one that was closed
        read_failure_ = errno;
        return handshake::failed;
    }
    const auto field = [&](std::size_t at) { return int_at(answer.data(), at); };
    constexpr std::int32_t day_ms = 24 * 3600 * 1000;
    const std::int32_t length = field(0), version = field(4), timeout = field(8), password = field(20);
    const bool no_session = field(12) == 0 && field(16) == 0;
    const bool plausible = (length == 36 || length == 37) && version == 0 && password == 16 && timeout >= 0 &&
                           timeout <= day_ms && (timeout > 0) == !no_session;
    // "No session" is how a server says that ours has expired; we must have one for that.
    if (!plausible || (no_session && session_id() == 0)) return handshake::bad;
    return n < 4 + length ? wait_for_last_byte() : handshake::good;
}

// The library would take the 40 bytes, and nothing would wake it for the one that is left.
c_backend::handshake c_backend::wait_for_last_byte() {
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &longest_handshake_bytes, sizeof longest_handshake_bytes);
    return hung_up_in_between();
}

// With what has come so far of an answer.
c_backend::handshake c_backend::hung_up_in_between() const {
    pollfd p{fd_, POLLRDHUP, 0};
    return ::poll(&p, 1, 0) > 0 ? handshake::bad : handshake::incomplete;
}

drain_result c_backend::process(bool readable, bool writable) {
    if (fd_ < 0 || !usable()) return drain_result::drained;
    drain_result result = drain_result::drained;
    if (tunnel_) {
        if (!tunnel_is_open()) return report(), drain_result::drained;
        readable = writable = true;  // what is ready is the network
    }
    int rc = ZOK;
    if (writable && wants_write_) rc = library_process(ZOOKEEPER_WRITE);
    // While it connects, the library is not ready to read, although it does not refuse to.
    if (readable && rc == ZOK && zoo_state(zh_) != ZOO_CONNECTING_STATE) {
        const handshake answer = zoo_state(zh_) == ZOO_ASSOCIATING_STATE ? look_at_handshake() : handshake::good;
        if (answer == handshake::incomplete) {
            // the rest will wake us
        } else if (answer != handshake::good) {
            fail(server_ + ": " + (answer == handshake::tls      ? "expects TLS"
                                   : answer == handshake::failed ? std::generic_category().message(read_failure_)
                                                                 : "not a ZooKeeper server"));
            fail_connection();
        } else {
            result = read_packets();
        }
    }
    if (usable()) cure_poison();
    send_through_tunnel();
    if (tunnel_ && tunnel_->holds_back()) result = drain_result::more;
    report();
    return result;
}

drain_result c_backend::read_packets() {
    constexpr int fair_share = 256;  // fact 8
    const bool was_connected = connected();
    const std::uint64_t connection = connection_;
    for (int packet = 0; packet < fair_share; ++packet) {
        const int rc = library_process(ZOOKEEPER_READ);
        if (!was_connected) {
            if (zoo_state(zh_) == ZOO_READONLY_STATE) {
                fail(server_ + ": read-only server");
                fail_connection();
            } else if (connected()) {
                const int any = 1;
                ::setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &any, sizeof any);
                if (tunnel_) return drain_result::more;
            }
            return drain_result::drained;  // whatever else has come will wake us again
        }
        tell_news();
        const bool same = usable() && connection == connection_ && connected();
        // What else has come will wake us again, unless it has left the network already.
        if (rc != ZOK || !same || (outstanding_ == 0 && !tunnel_)) return drain_result::drained;
    }
    return drain_result::more;
}

link_state c_backend::link() const {
    const int state = zh_ ? zoo_state(zh_) : 0;
    return state == ZOO_CONNECTED_STATE         ? link_state::connected
           : state == ZOO_EXPIRED_SESSION_STATE ? link_state::expired
           : state == ZOO_AUTH_FAILED_STATE     ? link_state::auth_failed
                                                : link_state::disconnected;
}

// Outside of the library, in the order in which it came. What the listener does about it may bring more, which is told
// by the outermost of these calls.
void c_backend::tell_news() {
    if (made_here_.forked()) return news_.clear();
    if (news_.empty() || std::exchange(telling_, true)) return;
    for (std::size_t i = 0; i < news_.size(); ++i) {
        news item = std::move(news_[i]);
        if (auto* a = std::get_if<reply_news>(&item)) listener_.on_reply(a->id, std::move(a->what));
        if (const auto* n = std::get_if<node_news>(&item)) listener_.on_node_event(n->what, n->path);
        if (const auto* l = std::get_if<log_line>(&item)) listener_.on_log(l->text);
    }
    news_.clear();
    telling_ = false;
}

// Tells the listener all that has happened, and then whether the link has changed. Last in each entry point.
void c_backend::report() {
    if (telling_) return;
    tell_news();
    while (!made_here_.forked() && link() != reported_) {
        reported_ = link();
        if (reported_ == link_state::connected) last_failure_.clear();
        if (reported_ == link_state::expired || reported_ == link_state::auth_failed) adopt_descriptor(-1);
        telling_ = true;
        listener_.on_link(reported_);
        telling_ = false;
        tell_news();
    }
}

// ----------------------------------------------------------------------------------------- ending connections

// The library notices a dead connection by itself, and cleans up properly when it does: so give it one. The number
// stays the same, what is behind it becomes a socket without a peer. In particular nothing that is already in the
// old socket's buffer can be read any more.
void c_backend::fail_connection() {
    ending_connection_ = true;
    for (int attempt = 0; attempt < 4 && zoo_state(zh_) != 0 && !is_unrecoverable(zh_); ++attempt) {
        int fd = fd_;
        if (zoo_state(zh_) == ZOO_NOTCONNECTED_STATE || fd < 0) {
            int events = 0;
            timeval tv{};
            library_interest(fd, events, tv);
            if (fd < 0) continue;
        }
        dead_.replace(fd);
        library_process(ZOOKEEPER_READ | ZOOKEEPER_WRITE);
        if (zoo_state(zh_) != 0) library_process(ZOOKEEPER_READ);
    }
    ending_connection_ = false;
    adopt_descriptor(-1);
}

// Fact 10: a send that fails closes the socket but keeps what is queued, and what was half sent, for the next
// connection. Failing that next connection before anything was sent on it empties the queues.
void c_backend::cure_poison() {
    if (reported_ == link_state::connected && zoo_state(zh_) == ZOO_NOTCONNECTED_STATE) {
        adopt_descriptor(-1);
        fail_connection();
    }
}

void c_backend::abort_connection() {
    if (!usable()) return;
    fail(attempt());
    fail_connection();
    report();
}

// Fact 23: it sets all its watches again in one request after a reconnect.
backend_traits c_backend::traits() const {
    backend_traits t;
    t.watched_path_bytes = 900'000;
    return t;
}

void c_backend::set_servers(const std::vector<server_address>& servers) {
    if (!usable()) return;
    if (endpoints(servers) == endpoints(servers_)) {  // only their names are other ones
        servers_ = servers;
        return;
    }
    const std::string hosts = join(servers);
    std::optional<seeded_drand48> fair(std::in_place);
    {
        const library_call guard(*this);
        // It compares addresses without their ports and ignores a list that looks the same to it. A list that
        // cannot look the same makes it forget the old one.
        if (addresses(servers) == addresses(servers_)) zoo_set_servers(zh_, "127.255.255.254:1");
        zoo_set_servers(zh_, hosts.c_str());
    }
    refused_names_.clear();
    servers_ = servers;
    // It leaves also one of several, by chance, when the list has grown; and always by the way around above.
    const bool listed = std::any_of(servers.begin(), servers.end(),
                                    [&](const server_address& s) { return endpoint_of(s) == endpoint_; });
    if (reported_ == link_state::connected && !connected())
        fail(server_ + ": left, for " +
             (listed ? "the list of servers has changed" : "it is not in the new list of servers"));
    cure_poison();
    fair.reset();
    report();
}

// ------------------------------------------------------------------------------------------------- operations

// Only as long as the library is connected is the number the library's: once it has closed its socket, anybody in the
// process may have got it.
void c_backend::cork(bool on) {
    if (corked_ == on || fd_ < 0 || tunnel_ || !connected()) return;
    const int value = on;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_CORK, &value, sizeof value);
    corked_ = on;
}

void c_backend::begin_batch() {
    in_batch_ = true;
    if (usable()) cork(true);
}

bool c_backend::is_settled() const { return news_.empty() && connected(); }

void c_backend::end_batch() {
    in_batch_ = false;
    if (usable()) cork(false);
    send_through_tunnel();
    report();
}

std::error_code c_backend::submit(op_id id, const request& r) {
    if (!zh_) return errc::client_closed;
    if (made_here_.forked()) return errc::forked;
    if (is_unrecoverable(zh_)) return errc::session_expired;  // fact 16: zoo_amulti would crash
    // Lost by an earlier one that nobody was told of yet. The library would take this one, and keep it for the next
    // connection.
    const std::error_code not_now = std::make_error_code(std::errc::resource_unavailable_try_again);
    if (!connected()) return not_now;
    if (const auto* auth = std::get_if<add_auth_request>(&r); auth && !auth->known) {
        // The library puts it at the front of its queue, also in front of the rest of a half-sent request.
        int fd = -1, events = 0;
        timeval tv{};
        library_interest(fd, events, tv);
        if ((events & ZOOKEEPER_WRITE) || !connected()) return not_now;
    }
    std::error_code code;
    int send_failure = 0;
    {
        const library_call guard(*this);
        errno = 0;
        code = std::visit([&](const auto& req) { return send(id, req); }, r);
        send_failure = errno;
    }
    if (!code) ++outstanding_;
    if (!in_batch_) send_through_tunnel();
    if (zoo_state(zh_) == ZOO_NOTCONNECTED_STATE) {
        const bool closed = send_failure == EPIPE || send_failure == 0;
        const bool told = tunnel_ && !tunnel_->failure().empty();
        fail(server_ + ": " +
             (told     ? tunnel_->failure()
              : closed ? std::string("closed by the server")
                       : std::generic_category().message(send_failure)));
    }
    cure_poison();
    return code;
}

std::error_code c_backend::send(op_id id, const create_request& r) {
    c_acl acl(r.acl);
    const auto length = static_cast<int>(r.data.size());
    if (has_ttl(r.mode))
        return to_code(zoo_acreate2_ttl(zh_, r.path.c_str(), r.data.data(), length, acl.get(), to_flags(r.mode),
                                        r.ttl.count(), &sink::on_string_stat, as_data(id)));
    return to_code(zoo_acreate2(zh_, r.path.c_str(), r.data.data(), length, acl.get(), to_flags(r.mode),
                                &sink::on_string_stat, as_data(id)));
}
std::error_code c_backend::send(op_id id, const remove_request& r) {
    return to_code(zoo_adelete(zh_, r.path.c_str(), r.version, &sink::on_void, as_data(id)));
}
std::error_code c_backend::send(op_id id, const set_request& r) {
    return to_code(zoo_aset(zh_, r.path.c_str(), r.data.data(), static_cast<int>(r.data.size()), r.version,
                            &sink::on_stat, as_data(id)));
}
std::error_code c_backend::send(op_id id, const exists_request& r) {
    return to_code(zoo_awexists(zh_, r.path.c_str(), r.watch ? &sink::on_watch : nullptr, this, &sink::on_stat,
                                as_data(id)));
}
std::error_code c_backend::send(op_id id, const get_request& r) {
    return to_code(
        zoo_awget(zh_, r.path.c_str(), r.watch ? &sink::on_watch : nullptr, this, &sink::on_data, as_data(id)));
}
std::error_code c_backend::send(op_id id, const children_request& r) {
    return to_code(zoo_awget_children2(zh_, r.path.c_str(), r.watch ? &sink::on_watch : nullptr, this,
                                       &sink::on_strings, as_data(id)));
}
std::error_code c_backend::send(op_id id, const sync_request& r) {
    return to_code(zoo_async(zh_, r.path.c_str(), &sink::on_string, as_data(id)));
}
std::error_code c_backend::send(op_id id, const get_acl_request& r) {
    return to_code(zoo_aget_acl(zh_, r.path.c_str(), &sink::on_acl, as_data(id)));
}
std::error_code c_backend::send(op_id id, const set_acl_request& r) {
    c_acl acl(r.acl);
    return to_code(zoo_aset_acl(zh_, r.path.c_str(), r.version, acl.get(), &sink::on_void, as_data(id)));
}
std::error_code c_backend::send(op_id id, const get_config_request& r) {
    return to_code(zoo_awgetconfig(zh_, r.watch ? &sink::on_watch : nullptr, this, &sink::on_data, as_data(id)));
}
std::error_code c_backend::send(op_id id, const reconfig_request& r) {
    const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
    return to_code(zoo_areconfig(zh_, text(r.joining), text(r.leaving), text(r.members), r.from_version,
                                 &sink::on_data, as_data(id)));
}
std::error_code c_backend::send(op_id id, const add_auth_request& r) {
    // The library completes all that it has added as soon as the answer to one of them arrives. A server answers in
    // order and hangs up after a refusal; so what says that this one was accepted is the answer to a request behind it.
    if (!r.known) {
        const int rc = zoo_add_auth(zh_, r.scheme.c_str(), r.credential.data(), static_cast<int>(r.credential.size()),
                                    nullptr, nullptr);
        if (rc != ZOK) return to_code(rc);
    }
    return to_code(zoo_awexists(zh_, "/", nullptr, nullptr, &sink::on_auth, as_data(id)));
}
std::error_code c_backend::send(op_id id, const remove_watch_request& r) {
    // Fact 19: the completion argument is the function itself, cast to a pointer to a function pointer.
    return to_code(zoo_aremove_all_watches(
        zh_, r.path.c_str(), r.kind == watch_kind::children ? ZWATCHTYPE_CHILD : ZWATCHTYPE_DATA, 0,
        reinterpret_cast<void_completion_t*>(&sink::on_void), as_data(id)));
}

std::error_code c_backend::send(op_id id, const multi_request& r) {
    const std::size_t n = r.ops.size();
    for (const multi_op& op : r.ops) {  // fact 16: the library ends the process
        const auto* c = std::get_if<create_request>(&op);
        if (c && (c->mode == create_mode::container || has_ttl(c->mode))) return zk_errc::unimplemented;
        const std::string_view path = std::visit([](const auto& step) { return std::string_view(step.path); }, op);
        const bool good =
            c && is_sequential(c->mode) ? path_problem(c->path + '0').empty() : path_problem(path).empty();
        if (!good) return zk_errc::bad_arguments;
    }

    auto call = std::make_unique<multi_call>();
    call->ops.resize(n);
    call->results.resize(n);
    call->created_paths.resize(n);
    call->stats.resize(n);
    call->acls.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        if (const auto* c = std::get_if<create_request>(&r.ops[i])) {
            call->created_paths[i].resize(c->path.size() + 16);
            call->acls.emplace_back(c->acl);
            zoo_create_op_init(&call->ops[i], c->path.c_str(), c->data.data(), static_cast<int>(c->data.size()),
                               call->acls.back().get(), to_flags(c->mode), call->created_paths[i].data(),
                               static_cast<int>(call->created_paths[i].size()));
        } else if (const auto* s = std::get_if<set_request>(&r.ops[i])) {
            zoo_set_op_init(&call->ops[i], s->path.c_str(), s->data.data(), static_cast<int>(s->data.size()),
                            s->version, &call->stats[i]);
        } else if (const auto* d = std::get_if<remove_request>(&r.ops[i])) {
            zoo_delete_op_init(&call->ops[i], d->path.c_str(), d->version);
        } else if (const auto* k = std::get_if<check_op>(&r.ops[i])) {
            zoo_check_op_init(&call->ops[i], k->path.c_str(), k->version);
        }
    }
    const int rc = zoo_amulti(zh_, static_cast<int>(n), call->ops.data(), call->results.data(), &sink::on_multi,
                              as_data(id));
    if (rc == ZOK) multis_.emplace(id, std::move(call));
    return to_code(rc);
}

void c_backend::forget_watch(const std::string& path, watch_kind kind) {
    if (!zh_ || made_here_.forked()) return;
    const library_call guard(*this);
    zoo_aremove_all_watches(zh_, path.c_str(), kind == watch_kind::children ? ZWATCHTYPE_CHILD : ZWATCHTYPE_DATA, 1,
                            reinterpret_cast<void_completion_t*>(&sink::on_void), nullptr);
}

std::string c_backend::current_server() const { return server_; }

std::string c_backend::attempt() const {
    if (zh_ && zoo_state(zh_) == ZOO_ASSOCIATING_STATE)
        return server_ + ": accepts the connection and does not answer (not a ZooKeeper server, or one that hangs)";
    if (tunnel_ && tunnel_->at() == tunnel::stage::handshake)
        return server_ + ": accepts the connection and does not go on with the TLS handshake";
    return server_ + ": no answer to the attempt to connect";
}

// ----------------------------------------------------------------------------------------------------- closing

// Fact 20: zookeeper_close() would wait, blocking, for seconds. The goodbye is written here instead, its answer is
// never shown to the library (which would abort on it), and the library is closed when it has no connection.
bool c_backend::send_goodbye() {
    if (!usable() || !connected() || fd_ < 0) return false;
    int fd = -1, events = 0;
    timeval tv{};
    if (library_interest(fd, events, tv) != ZOK || (events & ZOOKEEPER_WRITE) != 0 || !connected()) return false;
    wants_write_ = false;  // goodbye_interest()
    const std::array<std::uint32_t, 3> packet{htonl(8), htonl(static_cast<std::uint32_t>(goodbye_xid)),
                                              htonl(static_cast<std::uint32_t>(-11))};
    const bool sent = ::send(fd_, packet.data(), sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                      static_cast<ssize_t>(sizeof packet);
    send_through_tunnel();
    return sent;
}

// A server hangs up behind its answer. One that hangs up without has lost its leader, or is being stopped: the session
// lives.
goodbye_result c_backend::answer_to_goodbye() {
    std::array<char, 4096> scratch;
    ssize_t n = 0;
    do {
        send_through_tunnel();
        if (tunnel_) tunnel_->receive();
        while ((n = ::recv(fd_, scratch.data(), scratch.size(), MSG_DONTWAIT)) > 0) {
            last_bytes_.append(scratch.data(), static_cast<std::size_t>(n));
            if (last_bytes_.size() > goodbye_answer_bytes)
                last_bytes_.erase(0, last_bytes_.size() - goodbye_answer_bytes);
        }
    } while (tunnel_ && tunnel_->holds_back());
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return goodbye_result::none_yet;
    const auto field = [&](std::size_t at) { return int_at(last_bytes_.data(), at); };
    const bool answered = last_bytes_.size() == goodbye_answer_bytes && field(0) == goodbye_answer_bytes - 4 &&
                          field(4) == goodbye_xid && field(16) == ZOK;
    return answered ? goodbye_result::session_over : goodbye_result::connection_lost;
}

void c_backend::close() {
    if (!zh_) return;
    if (made_here_.forked())
        abandon();
    else if (!is_unrecoverable(zh_))
        fail_connection();
    ending_connection_ = true;
    c_backend* const outer = std::exchange(library_call::current, this);
    zookeeper_close(std::exchange(zh_, nullptr));
    library_call::current = outer;
    fd_ = -1;
    tunnel_.reset();
    multis_.clear();
    tell_news();
}

// In a child process: the connection is its parent's, and only this process's copy of the descriptor may be closed.
void c_backend::abandon() {
    const int state = zoo_state(zh_);
    if (fd_ < 0 || is_unrecoverable(zh_) || state == 0 || state == ZOO_NOTCONNECTED_STATE) return;
    fail_connection();
}

}  // namespace

std::unique_ptr<backend> make_c_backend(backend_listener& listener) { return std::make_unique<c_backend>(listener); }

}  // namespace zkasio::detail

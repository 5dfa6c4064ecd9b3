// The part of c_backend that gives the library its list of servers, and chooses the next server.

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/connection/c_backend.hpp>
#include <zkasio/detail/connection/nearer_server.hpp>
#include <zkasio/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

namespace zkasio::detail {
namespace {

// The servers as the library expects them: IPv6 addresses without brackets, each endpoint once.
std::string join(const std::vector<server_address>& servers) {
    std::string hosts;
    std::set<std::string> known;
    for (const server_address& s : servers)
        if (known.insert(endpoint_of(s)).second)
            hosts += (hosts.empty() ? "" : ",") + s.address + ':' + std::to_string(s.port);
    return hosts;
}

// The addresses without the ports.
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

/// The library draws from drand48() whether to leave for an added server, and does not seed it: all clients would leave
/// at once. While this object exists, drand48() is seeded; then the program's own sequence goes on as if no number had
/// been drawn.
class seeded_drand48 {
public:
    /// @param stays the next number is the largest, with which the library does not leave.
    explicit seeded_drand48(bool stays) {
        // drand48: next = (0x5DEECE66D * seed + 0xB) mod 2^48. The other factor is the inverse of this one.
        constexpr std::uint64_t largest = (0xFFFFFFFFFFFFu - 0xBu) * 0xDFE05BCB1365u;
        const std::uint64_t bits = stays ? largest : random_engine()();
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

// Whether some of them are preferred to others.
bool has_ranks(const std::vector<server_address>& servers) {
    std::set<int> ranks;
    for (const server_address& s : servers)
        if (s.rank != server_address::last_rank) ranks.insert(s.rank);
    return ranks.size() > 1;
}

}  // namespace

std::string with_brackets(std::string_view server) {
    if (server.starts_with('[') && server.ends_with(']')) server = server.substr(1, server.size() - 2);
    const std::size_t colon = server.rfind(':');
    if (server.starts_with('[') || colon == server.npos || server.find(':') == colon) return std::string(server);
    return '[' + std::string(server.substr(0, colon)) + ']' + std::string(server.substr(colon));
}

void c_backend::open(const open_params& p) {
    servers_ = p.servers;
    secured_ = p.secured;
    read_only_ = p.read_only;
    chroot_ = p.chroot;
    if (p.known) known_ = p.known;
    const std::string hosts = join(servers_) + p.chroot;

    clientid_t id{};
    id.client_id = p.session_id;
    if (p.session_id != 0)
        std::memcpy(id.passwd, p.session_password.data(), std::min(p.session_password.size(), sizeof(id.passwd)));

    // Outside the library's mutex: nothing here touches a static, and the resolver inside may take its time.
    c_backend* const outer = std::exchange(library_call::current, this);
    zh_ = zookeeper_init2(hosts.c_str(), &sink::on_watch, static_cast<int>(p.session_timeout.count()),
                          p.session_id ? &id : nullptr, this, ZOO_NO_LOG_CLIENTENV | (read_only_ ? ZOO_READONLY : 0),
                          &sink::on_log);
    library_call::current = outer;
    if (!zh_) throw error(std::error_code(errno, std::generic_category()), "connect", {}, hosts);
    round_ = next_round(servers_, {});
    if (!servers_.empty()) std::erase(round_, endpoint_of(servers_.front()));  // is tried first
    zoo_set_servers_resolution_delay(zh_, -1);  // fact 1: or the library resolves on every zookeeper_interest()

    // Without a connection, zoo_add_auth() does not call back.
    const library_call guard(*this);
    has_credentials_ = !p.auth.empty();
    refused_ = false;
    for (const add_auth_request& a : p.auth)
        zoo_add_auth(zh_, a.scheme.c_str(), a.credential.data(), static_cast<int>(a.credential.size()), nullptr,
                     nullptr);
}

// The server at the endpoint, with that of its names whose turn it is: a server with several names may have a
// certificate, or a principal, for only one of them.
// Null: the endpoint is not in the list.
const server_address* c_backend::server_at(const std::string& endpoint) const {
    std::vector<const server_address*> names;
    for (const server_address& s : servers_)
        if (endpoint_of(s) == endpoint) names.push_back(&s);
    const auto refused = refused_names_.find(endpoint);
    if (names.empty()) return nullptr;
    return names[refused == refused_names_.end() ? 0 : refused->second % names.size()];
}

// The endpoint, followed by the server's name as the user gave it.
std::string c_backend::named(const std::string& endpoint) const {
    const server_address* const server = server_at(endpoint);
    return server ? to_string(*server) : endpoint;
}

// After a failure the library advances by two servers, one step when it notices and one when it connects: of an even
// number it would try only every other one. So its next step is made to lead to the server whose turn it is.
void c_backend::take_next_server() {
    constexpr int failed = 0;
    if (zoo_state(zh_) != failed || servers_.size() < 2) return;
    const std::size_t listed = endpoints(servers_).size();
    if (listed < 2) return;
    if (round_.empty()) round_ = next_round(servers_, tried_);
    tried_ = round_.front();
    round_.erase(round_.begin());
    const library_call guard(*this);
    const auto step = [this] {
        zoo_cycle_next_server(zh_);
        return with_brackets(zoo_get_current_server(zh_));
    };
    // After a new list, the library goes through new and old servers apart first.
    for (std::size_t i = 0; i < 2 * listed; ++i) step();
    for (std::size_t steps = listed; step() != tried_ && steps > 0; --steps) {
    }
    for (std::size_t i = 1; i < listed; ++i) step();
}

// If the other one does not take the client, the one that did is the next.
void c_backend::move_to(const server_address& to) {
    if (!usable()) return;
    const std::vector<std::string> first{endpoint_of(to), endpoint_};
    round_ = next_round(servers_, tried_);
    std::erase_if(round_, [&](const std::string& s) { return s == first[0] || s == first[1]; });
    round_.insert(round_.begin(), first.begin(), first.end());
    fail(server_ + ": left, as " + to_string(to) + " is nearer, and up");
    left_by_us_ = true;
    fail_connection();
    report();
}

void c_backend::begin_round() { round_.clear(); }

int c_backend::current_rank() const {
    const server_address* const server = server_at(endpoint_);
    return server ? server->rank : 0;
}

void c_backend::set_servers(const std::vector<server_address>& servers) {
    if (!usable()) return;
    if (endpoints(servers) == endpoints(servers_)) {  // only their names, or their ranks, have changed
        servers_ = servers;
        round_.clear();
        return;
    }
    const std::string hosts = join(servers);
    // Who prefers servers moves when a nearer one has shown that it is up, see client_options::prefer().
    std::optional<seeded_drand48> fair(std::in_place, has_ranks(servers));
    {
        const library_call guard(*this);
        // The library compares addresses without their ports, and ignores a list that looks the same. A list that
        // cannot look the same makes the library forget the old one.
        if (addresses(servers) == addresses(servers_)) zoo_set_servers(zh_, "127.255.255.254:1");
        zoo_set_servers(zh_, hosts.c_str());
    }
    refused_names_.clear();
    refusing_.clear();
    servers_ = servers;
    round_.clear();
    // The library may also leave a server of the new list: by chance when the list has grown, always after the detour.
    const bool listed = std::any_of(servers.begin(), servers.end(),
                                    [&](const server_address& s) { return endpoint_of(s) == endpoint_; });
    if (reported_ == link_state::connected && !connected()) {
        left_by_us_ = true;
        fail(server_ + ": left, for " +
             (listed ? "the list of servers has changed" : "it is not in the new list of servers"));
    }
    cure_poison();
    fair.reset();
    report();
}

std::string c_backend::current_server() const { return server_; }

std::string c_backend::attempt() const {
    if (const std::string awaited = tunnel_ && tunnel_->channel() ? tunnel_->channel()->awaits() : ""; !awaited.empty())
        return server_ + ": " + awaited;
    if (zh_ && zoo_state(zh_) == ZOO_ASSOCIATING_STATE)
        return server_ + ": accepts the connection and does not answer (not a ZooKeeper server, or one that hangs)";
    if (tunnel_ && tunnel_->at() == tunnel::stage::handshake)
        return server_ + ": accepts the connection and does not go on with the TLS handshake";
    return server_ + ": no answer to the attempt to connect";
}

}  // namespace zkasio::detail

#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/seam/request.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio::detail {

/// What a client has learnt of the requests that not all servers know: those of ZooKeeper's versions since 3.5. Pure.
/// It outlives the sessions of the client, since a server that does not know a request may end the session with it.
///
/// - K1: a server that has said "unimplemented" to a request is not asked for it again for a day: servers are upgraded.
/// - K2: the create that answers with a stat is the oldest of these requests: who has refused it knows none of them.
/// - K3: some servers hang up at a request that they do not know, without an answer. When two connections have ended
///   with the request unanswered, and no server has ever answered one of its kind, no server knows it.
/// - K4: after K3, a request that others can stand for (stands_in()) is not sent again. The connections may have broken
///   by chance: any other request is tried again, after ten minutes, and then after twice the pause before, a day at
///   most.
/// - K5: servers of ZooKeeper since 3.4 say in their answer to the handshake whether they are read-only. One that does
///   not, such as ClickHouse Keeper, may end the session with the connection: unless it was said that all requests are
///   to be tried, none of these is sent there.
class known_requests {
public:
    using time_point = boot_clock::time_point;

    /// Those that the rules are about.
    struct opcode {
        enum number : std::int32_t {
            none = 0,
            create_with_stat = 15,
            remove_watches = 18,
            create_container = 19,
            create_ttl = 21,
        };
    };

    /// opcode::none: every server knows the request.
    static std::int32_t number_of(const request& r) noexcept;

    /// False: lacks() is, whatever it is asked.
    bool has_doubts() const noexcept { return !refused_.empty() || !doubts_.empty() || !others_.empty(); }
    /// Whether the server is one of K5.
    bool is_cautious(const std::string& server) const { return !tries_all_ && others_.contains(server); }
    /// Whether the request would be sent in vain.
    bool lacks(const std::string& server, std::int32_t number, time_point now) const;

    void try_all(bool on) noexcept { tries_all_ = on; }
    /// A server has answered a handshake.
    void greeted(const std::string& server, bool says_whether_read_only);
    /// A server has answered.
    void answered(const std::string& server, std::int32_t number, bool is_known, time_point now);
    /// The server has ended a connection, and these requests were unanswered.
    void hung_up(const std::string& server, const std::set<std::int32_t>& opcodes, time_point now);

    /// What to log; "": nothing. Each request is told of once, and that there is a server of K5.
    std::string take_news() { return std::exchange(news_, {}); }

private:
    struct doubt {
        int hang_ups = 0;
        time_point until{};  // once there are enough
    };
    void tell(const std::string& server, std::int32_t number, bool has_answered);

    std::map<std::pair<std::string, std::int32_t>, time_point> refused_;  // until then
    std::map<std::int32_t, doubt> doubts_;
    std::set<std::int32_t> answered_;  // by some server
    std::set<std::string> others_;           // servers that are not ZooKeeper's
    bool tries_all_ = false, has_told_others_ = false;
    std::set<std::int32_t> told_;
    std::string news_;
};

}  // namespace zkasio::detail

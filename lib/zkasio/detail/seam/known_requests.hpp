#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/seam/request.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace zkasio::detail {

/// What a client has learnt of the requests that not all servers know: those of ZooKeeper's versions since 3.5. Pure.
/// It outlives the sessions of the client, since a server that does not know a request may end the session with it.
/// What is virtual is called by the servers in memory as well, which of a shared library see no function.
///
/// - K1: a server that has said "unimplemented" to a request is not asked for it again for an hour: servers are
///   upgraded, and addresses change hands. The others are not asked for the create that answers with a stat either: a
///   refusal may cost a connection, and would meet the same create at one server after another.
/// - K2: the create that answers with a stat is the oldest of these requests: a server that has refused it knows none
///   of them.
/// - K3: servers of ZooKeeper since 3.4 say in their answer to the handshake whether they are read-only, and answer
///   each request that they do not know. A server that does not say so, such as ClickHouse Keeper, may hang up instead,
///   and end the session with the connection: it is sent none of these requests, unless all are to be tried.
/// - K4: then, if two connections to such servers have ended within ten minutes while the request was unanswered, and
///   none of these servers has ever answered one of its kind, all of them count as having refused it (K1). The end of a
///   connection to a server of ZooKeeper says nothing.
class known_requests {
public:
    using time_point = boot_clock::time_point;

    known_requests() = default;
    known_requests(const known_requests&) = delete;
    known_requests& operator=(const known_requests&) = delete;
    virtual ~known_requests() = default;

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
    static std::int32_t number_of(const request& r) noexcept {
        if (const auto* const c = std::get_if<create_request>(&r))
            return c->mode == create_mode::container ? opcode::create_container
                   : has_ttl(c->mode)                ? opcode::create_ttl
                                                     : opcode::create_with_stat;
        if (std::holds_alternative<remove_watch_request>(r)) return opcode::remove_watches;
        return std::visit(
            []<class Row>(const Row&) -> std::int32_t {
                if constexpr (requires { Row::opcode; })
                    return Row::opcode;
                else
                    return opcode::none;
            },
            r);
    }

    /// False: lacks() is, whatever it is asked.
    bool has_doubts() const noexcept { return !refused_.empty() || !others_.empty(); }
    /// False: the server is one of K3.
    bool is_zookeeper(const std::string& server) const { return !others_.contains(server); }
    /// Whether the request would be sent in vain.
    virtual bool lacks(const std::string& server, std::int32_t number, time_point now) const;

    void try_all(bool on) noexcept { tries_all_ = on; }
    /// A server has answered a handshake.
    virtual void greeted(const std::string& server, bool says_whether_read_only);
    /// A server has answered.
    virtual void answered(const std::string& server, std::int32_t number, bool is_known, time_point now);
    /// The server has ended a connection, and these requests were unanswered.
    virtual void hung_up(const std::string& server, const std::set<std::int32_t>& opcodes, time_point now);

    bool has_news() const noexcept { return !news_.empty(); }
    /// What to log; "": nothing. Each request is told of once, and that there is a server of K3.
    std::string take_news() { return std::exchange(news_, {}); }

private:
    struct doubt {
        int hang_ups = 0;
        time_point last{};
    };
    bool has_refused(const std::string& server, std::int32_t number, time_point now) const;
    void refuse(const std::string& server, std::int32_t number, time_point now);
    void tell(const std::string& server, std::int32_t number, bool has_answered);

    std::map<std::pair<std::string, std::int32_t>, time_point> refused_;  // until then; see all_others
    std::map<std::int32_t, doubt> doubts_;                                // K4
    std::set<std::int32_t> answered_;                                     // by some server of K3
    std::set<std::string> others_;                                        // servers of K3
    bool tries_all_ = false, has_told_others_ = false;
    std::set<std::int32_t> told_;
    std::string news_;
};

}  // namespace zkasio::detail

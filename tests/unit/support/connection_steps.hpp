#pragma once

#include "support/scripted_connection.hpp"

#include <zkasio/types.hpp>

#include <string>
#include <system_error>
#include <utility>

namespace zkasio::test {

/// A stat whose values are all different.
inline node_stat some_stat() {
    node_stat s;
    s.czxid = 0x100000001, s.mzxid = 0x200000002, s.pzxid = 0x300000003, s.ctime = 1'700'000'000'001;
    s.mtime = 1'700'000'000'002, s.ephemeral_owner = 0x123456789abcdef, s.version = 4, s.cversion = 5, s.aversion = 6;
    s.data_length = 7, s.num_children = 8;
    return s;
}

/// The one reply to a request with this number; it is forgotten.
inline detail::reply only_reply(connection& c, detail::op_id id) {
    drive(*c.b, [&] { return c.seen.replies.contains(id); });
    REQUIRE(c.seen.replies.size() == 1);
    REQUIRE(c.seen.replies[id].size() == 1);
    detail::reply r = std::move(c.seen.replies[id].front());
    c.seen.replies.clear();
    return r;
}

inline void submit(connection& c, detail::op_id id, const detail::request& r) {
    const std::error_code refused = c.b->submit(id, r);
    REQUIRE_FALSE(refused);
    c.b->end_batch();
}

/// What the server is asked by this request.
inline scripted_server::packet asked_by(connection& c, detail::op_id id, const detail::request& r) {
    submit(c, id, r);
    return c.server.read_packet();
}

/// Accepts the connection that the backend attempts, and takes its handshake.
inline void take_handshake(connection& c) {
    drive(*c.b, [&] { return c.b->has_socket(); });
    turn_of(*c.b, false, true);
    c.server.take_handshake();
}

/// Until the first attempt to connect has ended.
inline void until_failed(connection& c) {
    drive(*c.b, [&] { return !c.b->last_failure().empty(); });
}

/// What is said of a server that hangs up instead of answering the handshake.
inline const std::string hung_up =
    ": hung up instead of answering (not serving, too many connections, or it expects TLS)";

}  // namespace zkasio::test

#pragma once

#include <cstdint>

namespace zkasio::testing {

/// What clients have asked of the servers of a fake_ensemble, and what the servers have told them: counts that only
/// rise. The difference of two moments is the cost of what happened between them.
///
/// Requests are counted when a server carries them out. A read that sets a watch is a read; the frame with which a
/// client sets its watches again after a reconnect is one request. Bytes are those of the frames, without TCP and TLS,
/// estimated within some bytes for each frame. Pings do not exist in a fake_ensemble: an idle client reads instead.
struct traffic {
    std::uint64_t connections = 0;  ///< handshakes that a server has answered
    std::uint64_t requests = 0;     ///< all of them, the goodbye of a session included
    std::uint64_t writes = 0;       ///< of these: what the ensemble orders, also transactions that are refused
    std::uint64_t listings = 0;     ///< of these: children()
    std::uint64_t bytes_in = 0;     ///< from clients, of requests
    std::uint64_t bytes_out = 0;    ///< to clients, of answers and events
    std::uint64_t events = 0;       ///< fired watches of which a client was told

    /// Reads of any kind, listings and sync() included.
    std::uint64_t reads() const noexcept { return requests - writes; }

    traffic& operator+=(const traffic& other) noexcept {
        connections += other.connections;
        requests += other.requests;
        writes += other.writes;
        listings += other.listings;
        bytes_in += other.bytes_in;
        bytes_out += other.bytes_out;
        events += other.events;
        return *this;
    }
    /// What has come since `earlier`, a value of the same ensemble.
    traffic since(const traffic& earlier) const noexcept {
        traffic result;
        result.connections = connections - earlier.connections;
        result.requests = requests - earlier.requests;
        result.writes = writes - earlier.writes;
        result.listings = listings - earlier.listings;
        result.bytes_in = bytes_in - earlier.bytes_in;
        result.bytes_out = bytes_out - earlier.bytes_out;
        result.events = events - earlier.events;
        return result;
    }
};

}  // namespace zkasio::testing

#pragma once

namespace zklock {

/// What zklock ends with, unless it is the status of a command that it has run. Above 119, where commands rarely have
/// statuses of their own; the last three are what shells, env and timeout use.
namespace exit_code {
inline constexpr int ok = 0;
inline constexpr int refused = 1;          ///< the servers say no: no node, no permission; or doctor, cost find faults
inline constexpr int usage = 120;          ///< the command line
inline constexpr int not_acquired = 121;   ///< somebody else has the lock, and the time to wait is over
inline constexpr int lost = 122;           ///< the lock was lost while the command ran
inline constexpr int not_connected = 123;  ///< no server answers, or the session has expired
inline constexpr int failed = 125;         ///< anything else that zklock could not do
inline constexpr int cannot_execute = 126;
inline constexpr int not_found = 127;
inline constexpr int signalled = 128;      ///< plus the signal's number
}  // namespace exit_code

}  // namespace zklock

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What the coordinator and its workers have in common: nodes in ZooKeeper, and lines of text over pipes.
namespace demo {

/// The nodes of one run. The ledger's data is the token of its last writer, its version counts the commits; a tally's
/// version counts the commits of one worker.
struct nodes {
    std::string root;
    std::string lock() const { return root + "/lock"; }
    std::string ledger() const { return root + "/ledger"; }
    /// What is raced for: nobody writes under it.
    std::string race(std::string_view kind) const { return root + "/race-" + std::string(kind); }
    std::string tally(const std::string& worker) const { return root + "/" + worker; }
};

/// To a worker.
namespace command {
inline constexpr std::string_view go = "go";      ///< contend
inline constexpr std::string_view hold = "hold";  ///< who gets the lock next keeps it until it is cancelled
/// Leave the queue, and contend for another lock with nothing to do under it, until `halt`: its kind.
inline constexpr std::string_view race = "race";
inline constexpr std::string_view halt = "halt";  ///< leave the queue
inline constexpr std::string_view stop = "stop";  ///< leave the queue and end; the end of the input means the same
}  // namespace command

/// From a worker: a word, and mostly something behind it.
namespace event {
inline constexpr std::string_view ready = "ready";                    ///< session timeout in ms
inline constexpr std::string_view acquired = "acquired";              ///< an acquisition
inline constexpr std::string_view uncertain = "uncertain";            ///< a commit whose answer was not seen
inline constexpr std::string_view violation = "violation";            ///< somebody else wrote while we held the lock
inline constexpr std::string_view holding = "holding";                ///< token
inline constexpr std::string_view body_cancelled = "body-cancelled";  ///< reason
inline constexpr std::string_view commit_refused = "commit-refused";  ///< by the guard
inline constexpr std::string_view server_refused = "server-refused";  ///< the same transaction, sent regardless
inline constexpr std::string_view accepted = "accepted";              ///< a late commit that should have been refused
inline constexpr std::string_view raced = "raced";                    ///< how often it got the lock of a race
inline constexpr std::string_view note = "note";                      ///< for the reader
}  // namespace event

/// The locks that are raced for.
inline constexpr std::string_view race_kinds[] = {"mutex", "cohort_mutex"};

/// One time that a worker got the lock, and committed.
struct acquisition {
    std::int64_t token = 0;
    std::int32_t position = 0;  ///< among all commits: the ledger's version afterwards
    std::chrono::microseconds waited{};
};

std::string to_text(const acquisition& a);
std::optional<acquisition> to_acquisition(std::string_view text);

/// "word rest of the line"
struct message {
    std::string word, rest;
};
message to_message(std::string_view line);

/// 0 if it is no number.
std::int64_t to_number(std::string_view text);

}  // namespace demo

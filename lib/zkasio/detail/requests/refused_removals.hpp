#pragma once

#include <zkasio/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace zkasio::detail {

/// The removals of this session's own nodes that an ACL has refused (zk_errc::no_auth), and when each is asked for
/// again: as long as the session lives. Pure bookkeeping, on the strand; the caller sends the requests.
///
/// Whether a node may be removed is for the ACL of its directory to say. So of each directory one removal is asked for
/// at a time, at growing intervals, until one is not refused; then all others follow. What refused removals cost the
/// servers depends on the number of directories, not of nodes, and is bounded for these, too.
class refused_removals {
public:
    using time_point = boot_clock::time_point;
    /// Asks for the removal, and calls its argument with the outcome, once; or never, if the client is closing.
    using attempt = std::function<void(std::function<void(std::error_code)>)>;

    struct removal {
        std::string path;
        attempt ask;  ///< null: a request that removes the node
        std::uint64_t epoch = 0;
    };

    static constexpr std::size_t most_at_once = 64;  ///< under way, so that no other request waits behind thousands
    /// Between two removals in directories in which the last one was refused.
    static constexpr std::chrono::milliseconds least_gap{100};

    /// The removal was refused. @param random in [0, 1), as below.
    void add(std::string path, attempt ask, time_point now, double random);
    /// The next removal to be asked for now, which is under way then. Nothing: none.
    std::optional<removal> next(time_point now);
    /// The answer to a removal of next().
    void ended(removal r, std::error_code how, time_point now, double random);
    /// When next() has something; time_point::max(): not before ended().
    time_point due() const noexcept;
    /// The client may have got the permission: all are asked for soon.
    void hurry(time_point now);
    /// The session is over.
    void clear() noexcept;

private:
    struct directory {
        std::deque<removal> waiting;
        std::size_t under_way = 0;
        int refusals = 0;  // in a row; 0: the last removal was not refused
        time_point not_before{};
        std::uint64_t ticket = 0;  // of its place in order_; 0: has none
    };
    using directories = std::unordered_map<std::string, directory>;
    static std::string name_of(const removal& r);
    directory& of(const removal& r) { return directories_[name_of(r)]; }
    void pause(directory& d, time_point now, double random);
    void set_place(directory& d);
    void take_place(directory& d);

    directories directories_;
    std::map<std::pair<time_point, std::uint64_t>, directory*> order_;  // those of which one may be asked for
    std::uint64_t last_ticket_ = 0, epoch_ = 1;
    std::size_t under_way_ = 0;
    time_point no_probe_before_{};
};

}  // namespace zkasio::detail

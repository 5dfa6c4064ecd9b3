#pragma once

#include "simulation/sim_names.hpp"

#include <zkasio/locks/contender_info.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::test {

/// Knows what became of each contender of one lock with a queue, and of the requests to give way. Throws `violation`
/// when a listing does not fit.
///
/// What is listed was there at some time of the call, and, where servers do not lag, all is listed that was there all
/// the time. The first is the holder: nothing stood before it at some time of the call.
class listing_checker {
public:
    explicit listing_checker(std::string directory) : directory_(std::move(directory)) {}

    void committed(const sim_txn& txn);
    /// @param since the zxid at the begin of the call
    void listed(const std::vector<contender_info>& all, std::int64_t since, bool lagging) const;

    bool stands(std::int64_t token) const;
    /// Since which zxid this contender is asked to give way; nothing: it is not.
    std::optional<std::int64_t> asked_at(std::int64_t token) const;
    std::int64_t now() const noexcept { return now_; }

private:
    struct contender {
        std::string path, data;
        std::int64_t session = 0;
        std::optional<std::int64_t> gone, asked;  // zxids
    };
    void read_note(const std::string& data);
    void check_holder(const contender_info& c, std::int64_t since) const;

    const std::string directory_;
    std::map<std::int64_t, contender> contenders_;  // all that there were, by czxid
    std::int64_t now_ = 0;
};

}  // namespace zkasio::test

#pragma once

#include "simulation/sim_names.hpp"

#include <zkasio/config/config_value.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zkasio::test {

/// The states of one node, whose data are the ids of the changes that were made, each followed by a blank. An operator
/// may also write the word "nonsense".
///
/// Each write of a client adds one change to what was there, and no change is made twice. A change that was told to be
/// made is, and one that was told not to be never is.
class value_history {
public:
    explicit value_history(std::string path) : path_(std::move(path)) {}

    static bool is_readable(const std::string& text) { return text.find("nonsense") == std::string::npos; }

    void committed(const sim_txn& txn);

    // ------------------------------------------------------------------------------------ what writers are told
    void was_made(const std::string& id) const;
    /// The version that the change was told to have led to, and, if told, the zxid.
    void was_made(const std::string& id, std::int32_t version, std::optional<std::int64_t> zxid) const;
    void was_not_made(const std::string& id);

    // ------------------------------------------------------------------------------------ what readers are told
    /// The first state, from number `from` on, that is told by `snapshot`; throws if there is none.
    std::size_t find(const config_snapshot<std::string>& snapshot, std::size_t from, const std::string& reader) const;
    std::size_t newest() const noexcept { return states_.size() - 1; }

private:
    struct state {
        std::int32_t version = no_node_version;
        std::string text;
    };
    struct made {
        std::int32_t version;
        std::int64_t zxid;
    };
    bool tells(const config_snapshot<std::string>& snapshot, const state& s) const;

    const std::string path_;
    std::vector<state> states_{state()};
    std::string good_;  // the last text that can be read
    std::map<std::string, made> made_;
    std::set<std::string> never_;
};

}  // namespace zkasio::test

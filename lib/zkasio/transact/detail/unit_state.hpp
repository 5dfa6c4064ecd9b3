#pragma once

#include <zkasio/error.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>
#include <zkasio/transact/detail/unit_record.hpp>
#include <zkasio/transact/unit.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace zkasio::transact_detail {

/// Nodes whose missing parents have to be read as well, see unit_record::refusal::no_parent.
using orphans = std::set<std::string>;

/// The implementation of a unit.
struct unit_state {
    unit_state(session s, std::shared_ptr<const orphans> o) : on(std::move(s)), with_parents(std::move(o)) {}

    /// Sends the request for a node that is not known yet; unit::get() takes the answer.
    void read_ahead(const std::string& path) {
        if (!record.view(path) && !ahead.contains(path)) ahead.emplace(path, toolbox(on).start_get(path));
    }

    const session on;  // a session::patient()
    const std::shared_ptr<const orphans> with_parents;
    unit_record record;
    std::map<std::string, pending_data> ahead;
    bool ended = false;                 // the body has returned
    std::optional<error> session_over;  // the failure of a read, because the session is over
};

}  // namespace zkasio::transact_detail

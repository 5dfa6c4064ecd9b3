#pragma once

#include <zkasio/recipe/one_shot_event.hpp>

#include <string>
#include <utility>

namespace zkasio::lock_detail {

/// Of several locks that are worth something only together (see contend_for_all()): the first whose node was lost.
struct loss_report {
    explicit loss_report(one_shot_event h) : happened(std::move(h)) {}
    /// On the strand. Only the first call counts.
    void tell(const std::string& node) {
        if (!path.empty()) return;
        path = node;
        happened.fire();
    }
    one_shot_event happened;
    std::string path;  // written once, on the strand, before `happened` is fired
};

}  // namespace zkasio::lock_detail

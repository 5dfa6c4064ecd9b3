#pragma once

#include <zkasio/recipe/one_shot_event.hpp>

#include <string>
#include <utility>

namespace zkasio::lock_detail {

/// The first loss among several locks that are only useful together, see contend_for_all().
struct loss_report {
    explicit loss_report(one_shot_event h) : happened(std::move(h)) {}
    /// On the strand. Only the first call has an effect.
    void tell(const std::string& node) {
        if (!path.empty()) return;
        path = node;
        happened.fire();
    }
    one_shot_event happened;
    std::string path;  // of the first lost lock's node; written once, on the strand, before `happened` is fired
};

}  // namespace zkasio::lock_detail

#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>

#include <optional>
#include <string>
#include <utility>

namespace zkasio {

/// Whether the node of a recipe that stands in each session, such as a member or a candidate, is to wait for room in
/// client_options::ephemeral_budget(): once it has stood, its user relies on it, and locks that wait may have taken the
/// room of a new session first. Before, its user is told. On the strand. For writers of recipes.
class room_to_stand {
public:
    /// @param what stands, for the log: "candidate". @param path of the node.
    room_to_stand(std::string what, std::string path) : what_(std::move(what)), path_(std::move(path)) {}

    bool has_stood() const noexcept { return has_stood_; }
    /// It stands now, or has stood until now.
    void stands() noexcept {
        has_stood_ = true;
        pauses_.reset();
    }

    /// Whether `failed`, the end of an attempt to stand, is a reason to pause and to try again.
    bool is_waited_for(const error& failed) const noexcept {
        return has_stood_ && failed.code() == errc::too_many_ephemerals;
    }
    /// The pauses between attempts without room. Warns when they begin.
    back_off& pauses(const session& on) {
        if (pauses_) return *pauses_;
        log_warning(on,
                    what_ + " " + path_ +
                        " waits for room to stand again: too many ephemeral nodes in this session, see "
                        "client_options::ephemeral_budget()",
                    {{"path", path_}});
        return pauses_.emplace(toolbox(on).make_back_off());
    }

private:
    const std::string what_, path_;
    bool has_stood_ = false;
    std::optional<back_off> pauses_;  // none: it stands, or has not met a full budget yet
};

}  // namespace zkasio

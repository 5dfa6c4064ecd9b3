#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/session.hpp>

namespace zkasio {

/// A hold as a view of its client has it, see client::rooted(): with the paths of the view of `on`, a session of the
/// same client. Does not end the hold.
class ZKASIO_EXPORT hold_in_view {
public:
    hold_in_view(const session_hold& of, const session& on);
    hold_in_view(const hold_in_view&) = delete;
    hold_in_view& operator=(const hold_in_view&) = delete;
    ~hold_in_view();
    const session_hold& hold() const noexcept { return hold_; }

private:
    session_hold hold_;
};

}  // namespace zkasio

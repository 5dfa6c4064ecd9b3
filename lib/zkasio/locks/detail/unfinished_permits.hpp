#pragma once

#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::lock_detail {

/// The permits below one directory that a session has lost and given back while bodies still run under them. Only this
/// session's requests count these permits as taken: other clients may acquire them. On the strand, but for now().
class unfinished_permits final : public session_local {
public:
    explicit unfinished_permits(session on) : on_(std::move(on)), fewer_(toolbox(on_).make_one_shot_event()) {}

    static std::shared_ptr<unfinished_permits> of(const session& on, const std::string& directory);
    void add(std::size_t n) { count_ += n; }
    void subtract(std::size_t n);

    struct reading {
        reading(std::size_t n, one_shot_event f) : count(n), fewer(std::move(f)) {}
        std::size_t count;
        one_shot_event fewer;  ///< fired when `count` has become smaller
    };
    /// From any executor.
    static asio::awaitable<reading> now(session on, std::string directory);

    void session_over(std::error_code) noexcept override { fewer_.fire(); }

private:
    session on_;
    std::size_t count_ = 0;
    one_shot_event fewer_;
};

}  // namespace zkasio::lock_detail

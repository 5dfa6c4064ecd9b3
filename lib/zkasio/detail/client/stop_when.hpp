#pragma once

#include <zkasio/detail/base/run_cancellable.hpp>
#include <zkasio/detail/client/core.hpp>

#include <functional>

namespace zkasio::detail {

/// Cancels the body when `on` is fired and `really(reply)` is true. The returned function ends the wait for `on`.
disarm_function stop_when(std::shared_ptr<core> c, one_shot_ptr on, std::shared_ptr<body_run> run,
                          std::function<bool(const reply&)> really);

}  // namespace zkasio::detail

#include <zkasio/queues/work_queue_options.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio {
namespace {

std::string checked(std::string lock_path) {
    if (!lock_path.empty()) require_path("queue_layout", lock_path);
    return lock_path;
}

}  // namespace

queue_layout queue_layout::curator(std::string lock_path) {
    return queue_layout(queue_kind::curator, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_priority(std::string lock_path) {
    return queue_layout(queue_kind::curator_priority, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_delay(std::string lock_path) {
    return queue_layout(queue_kind::curator_delay, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_id(std::string lock_path) {
    return queue_layout(queue_kind::curator_id, checked(std::move(lock_path)));
}

namespace {

[[noreturn]] void refuse_option(const char* operation, const char* why) {
    throw error(errc::invalid_argument, operation, {}, why);
}

constexpr std::chrono::milliseconds longest_delay = std::chrono::hours(24 * 366 * 100);

}  // namespace

put_options& put_options::delay(any_duration d) {
    const std::chrono::milliseconds time = d;
    if (time < time.zero() || time > longest_delay) refuse_option("put", "a delay is from 0 to 100 years");
    delay_ = time;
    return *this;
}

work_queue_options& work_queue_options::most_deliveries(int n) {
    if (n < 0) refuse_option("work_queue", "a number of deliveries is not negative");
    most_deliveries_ = n;
    return *this;
}

consume_options& consume_options::parallel(std::size_t n) {
    if (n == 0) refuse_option("consume", "at least one item is worked on at a time");
    parallel_ = n;
    return *this;
}

consume_options& consume_options::pause(any_duration first, any_duration longest) {
    const std::chrono::milliseconds one = first, most = longest;
    if (std::min(one, most) < one.zero()) refuse_option("consume", "a pause is not negative");
    first_pause_ = one;
    longest_pause_ = most;
    return *this;
}

std::chrono::milliseconds consume_options::pause_after(int attempt) const noexcept {
    std::chrono::milliseconds pause = first_pause_;
    for (int i = 1; i < attempt && pause < longest_pause_ && pause.count() > 0; ++i)
        pause = pause > longest_pause_ / 2 ? longest_pause_ : 2 * pause;
    return std::min(pause, longest_pause_);
}

}  // namespace zkasio

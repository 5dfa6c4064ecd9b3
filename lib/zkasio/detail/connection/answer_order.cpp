#include <zkasio/detail/connection/answer_order.hpp>

namespace zkasio::detail {
namespace {

// Pings, credentials, watches that are set again, and notifications: numbers that the protocol has reserved. The
// library looks for no request when one of these comes.
bool is_reserved(std::int32_t number) noexcept { return number == -1 || number == -2 || number == -4 || number == -8; }

}  // namespace

void answer_order::sent(std::span<const char> bytes) {
    requests_.cut(bytes, [this](const frame_cutter::head& request) {
        if (!request.first && !is_reserved(request.number)) unanswered_.push_back(request.number);
        return true;
    });
}

const char* answer_order::received(std::span<const char> bytes) {
    if (!wrong_) answers_.cut(bytes, [this](const frame_cutter::head& answer) { return !(wrong_ = judge(answer)); });
    return wrong_;
}

const char* answer_order::judge(const frame_cutter::head& answer) {
    constexpr std::uint32_t header = 16;  // a number, a transaction, a code
    if (answer.length > largest) return "it sends a frame of more than 128 MiB";
    if (answer.first) return nullptr;
    if (answer.length < header) return "it sends a frame that is too short for an answer";
    if (is_reserved(answer.number)) return nullptr;
    if (unanswered_.empty() || unanswered_.front() != answer.number)
        return "its answers are out of step with the requests";
    unanswered_.pop_front();
    return nullptr;
}

}  // namespace zkasio::detail

#include <zkasio/detail/connection/answer_order.hpp>

#include <zkasio/detail/connection/own_frames.hpp>

#include <algorithm>

namespace zkasio::detail {
namespace {

// Numbers that the protocol has reserved.
constexpr std::int32_t notification = -1, ping = -2, credential = -4, watches = -8;

}  // namespace

void answer_order::sent(std::span<const char> bytes) {
    requests_.cut(bytes, [this](const frame_cutter::head& asked) {
        if (!asked.number || *asked.number == ping || *asked.number == watches) return true;
        if (*asked.number == credential)
            ++credentials_;
        else
            unanswered_.push_back(*asked.number);
        return true;
    });
}

answer_order::verdict answer_order::received(std::span<const char> bytes) {
    if (wrong_) return {0, wrong_};
    const std::size_t good =
        answers_.cut(bytes, [this](const frame_cutter::head& answer) { return !(wrong_ = judge(answer)); });
    return {good, wrong_};
}

const char* answer_order::judge(const frame_cutter::head& answer) {
    if (answer.number) return judge_number(*answer.number);
    constexpr std::uint32_t header = 16;  // a number, a transaction, a code
    // The answer of old servers, that of new ones, and the refusal of a server without a quorum.
    const bool is_handshake = answer.length == 36 || answer.length == 37 || answer.length == header;
    constexpr std::uint32_t tls_alert = 0x1503;  // its type, and the major version
    if (answer.first && answer.length >> 16 == tls_alert) return "expects TLS";
    if (answer.first) return is_handshake ? nullptr : "not a ZooKeeper server";
    if (answer.length > largest) return "it sends a frame of more than 128 MiB";
    return answer.length < header ? "it sends a frame that is too short for an answer" : nullptr;
}

// The library looks for no request when a notification, a ping or the answer about watches comes.
const char* answer_order::judge_number(std::int32_t number) {
    constexpr const char* out_of_step = "its answers are out of step with the requests";
    if (number == notification || number == ping || number == watches) return nullptr;
    if (number == credential) return credentials_ == 0 ? out_of_step : (--credentials_, nullptr);
    const bool in_turn = !unanswered_.empty() && unanswered_.front() == number;
    // A server that does not know a request of ours says so out of turn: c_backend_own.cpp judges.
    const auto at = in_turn ? unanswered_.begin() : std::find(unanswered_.begin(), unanswered_.end(), number);
    if (at == unanswered_.end() || (!in_turn && !is_own_number(number))) return out_of_step;
    unanswered_.erase(at);
    return nullptr;
}

}  // namespace zkasio::detail

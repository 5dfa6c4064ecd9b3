// Which bytes of a server the C library may read.

#include "support/catch.hpp"

#include <zkasio/detail/connection/answer_order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

using zkasio::detail::answer_order;

namespace {

std::string four_bytes(std::int64_t n) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(n >> shift & 0xff));
    return bytes;
}

std::string frame(const std::string& body) { return four_bytes(static_cast<std::int64_t>(body.size())) + body; }
std::string of_number(std::int32_t number, std::size_t more = 12) {
    return frame(four_bytes(number) + std::string(more, 'x'));
}

// What is wrong with the answers, "" for nothing, when each comes after all requests; in pieces of that many bytes.
std::string wrong_with(const std::string& requests, const std::string& answers, std::size_t piece) {
    answer_order order;
    for (std::size_t at = 0; at < requests.size(); at += piece)
        order.sent(std::span(requests).subspan(at, std::min(piece, requests.size() - at)));
    const char* wrong = nullptr;
    for (std::size_t at = 0; at < answers.size(); at += piece)
        wrong = order.received(std::span(answers).subspan(at, std::min(piece, answers.size() - at))).wrong;
    return wrong ? wrong : "";
}

const std::string opening = frame("a request for a session, of any length");
const std::string welcome = frame(std::string(37, 'x'));

}  // namespace

TEST_CASE("answers in the order of the requests are let through, in pieces of any size") {
    const std::size_t piece = GENERATE(1u, 2u, 3u, 4u, 5u, 7u, 8u, 16u, 1000u);
    CHECK(wrong_with("", welcome, piece) == "");
    CHECK(wrong_with(opening + of_number(5) + of_number(6), welcome + of_number(5) + of_number(6, 500), piece) == "");
    // Numbers that the protocol has reserved come at any time: a notification, a ping, credentials, watches.
    const std::string ping = of_number(-2), watches = of_number(-8), auth = of_number(-4, 50);
    CHECK(wrong_with(opening + auth + watches + of_number(5) + ping,
                     welcome + ping + of_number(-1, 90) + of_number(5) + watches + auth, piece) == "");
    CHECK(wrong_with(opening, frame(std::string(36, 'x')), piece) == "");
    CHECK(wrong_with(opening, frame(std::string(16, 'x')), piece) == "");
    // The library begins again with small numbers.
    CHECK(wrong_with(opening + of_number(0x7fffffff) + of_number(1), welcome + of_number(0x7fffffff) + of_number(1),
                     piece) == "");
}

TEST_CASE("answers without a request, in another order, or of an incredible length are not let through") {
    const std::size_t piece = GENERATE(1u, 3u, 4u, 8u, 1000u);
    constexpr int first = 1'700'000'005;  // the library's
    const std::string out_of_step = "its answers are out of step with the requests";
    const std::string requests = opening + of_number(first) + of_number(first + 1);
    CHECK(wrong_with(opening, welcome + of_number(first), piece) == out_of_step);
    CHECK(wrong_with(requests, welcome + of_number(first + 1), piece) == out_of_step);
    CHECK(wrong_with(requests, welcome + of_number(first) + of_number(first), piece) == out_of_step);
    CHECK(wrong_with(requests, welcome + of_number(first) + of_number(first + 1) + of_number(first + 2), piece) == out_of_step);
    CHECK(wrong_with(requests, welcome + of_number(-3), piece) == out_of_step);
    const std::string too_short = "it sends a frame that is too short for an answer";
    CHECK(wrong_with(requests, welcome + of_number(first, 11), piece) == too_short);
    CHECK(wrong_with(requests, welcome + four_bytes(0), piece) == too_short);
    const std::string too_long = "it sends a frame of more than 128 MiB";
    CHECK(wrong_with(requests, welcome + four_bytes(answer_order::largest + 1), piece) == too_long);
    CHECK(wrong_with(requests, welcome + four_bytes(-1), piece) == too_long);
    for (const int length : {0, 1, 15, 17, 35, 38, 1000})
        CHECK(wrong_with(opening, four_bytes(length), piece) == "not a ZooKeeper server");
    // Credentials are answered once, and not to who has sent none: the library would look for them.
    const std::string credential = of_number(-4, 50);
    CHECK(wrong_with(requests, welcome + credential, piece) == out_of_step);
    CHECK(wrong_with(requests + credential, welcome + credential, piece) == "");
    CHECK(wrong_with(requests + credential, welcome + credential + credential, piece) == out_of_step);
    CHECK(wrong_with(requests, welcome + four_bytes(answer_order::largest) + four_bytes(first), piece) == "");
    // What was wrong stays so, whatever follows.
    CHECK(wrong_with(requests, welcome + of_number(first + 1) + of_number(first), piece) == out_of_step);
    // A request of ours that the server does not know is refused before all others are answered.
    const std::string with_ours = requests + of_number(7);
    CHECK(wrong_with(with_ours, welcome + of_number(7), piece) == "");
    CHECK(wrong_with(with_ours, welcome + of_number(7) + of_number(first) + of_number(7), piece) == out_of_step);
    CHECK(wrong_with(requests, welcome + of_number(7), piece) == out_of_step);
}

TEST_CASE("what is in front of a wrong answer is in order") {
    answer_order order;
    order.sent(std::span(opening));
    const std::string request = of_number(5);
    order.sent(std::span(request));
    const std::string first = welcome + of_number(5), text = first + of_number(6);
    CHECK(order.received(std::span(text)).good == first.size());
    CHECK(order.received(std::span(text)).good == 0);

    answer_order another;  // the head of the wrong answer comes in two pieces
    another.sent(std::span(opening));
    CHECK(another.received(std::span(welcome)).good == welcome.size());
    const std::string wrong = of_number(6);
    const auto length_alone = another.received(std::span(wrong).first(6));
    CHECK((length_alone.good == 6 && !length_alone.wrong));
    const auto with_number = another.received(std::span(wrong).subspan(6));
    CHECK((with_number.good == 0 && with_number.wrong));
}

TEST_CASE("a server that expects TLS is told from those that are no ZooKeeper servers") {
    answer_order order;
    const std::string alert("\x15\x03\x03\0\x02\x02\x50", 7);
    const answer_order::verdict seen = order.received(alert);
    CHECK(seen.good == 0);
    CHECK(std::string(seen.wrong) == "expects TLS");
}

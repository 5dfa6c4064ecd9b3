// The bytes of a connection as `answer_order` sees them. The first two bytes are the size of the library's part; the
// rest of the text are the server's. In which pieces they come makes no difference.
#include "fuzz/fuzz.hpp"

#include <zkasio/detail/connection/answer_order.hpp>

#include <algorithm>
#include <span>

namespace {

using namespace zkasio::fuzz;
using zkasio::detail::answer_order;

struct verdict {
    std::string wrong;
    std::size_t good = 0;
};

verdict verdict_on(std::string_view requests, std::string_view answers, std::size_t piece) {
    answer_order order;
    for (; !requests.empty(); requests.remove_prefix(std::min(piece, requests.size())))
        order.sent(std::span(requests).first(std::min(piece, requests.size())));
    const std::size_t all = answers.size();
    std::string wrong;
    std::size_t good = 0;
    for (; !answers.empty(); answers.remove_prefix(std::min(piece, answers.size()))) {
        const answer_order::verdict now = order.received(std::span(answers).first(std::min(piece, answers.size())));
        require(wrong.empty() || (now.wrong && wrong == now.wrong && now.good == 0), "what is wrong stays so");
        if (now.wrong) wrong = now.wrong;
        good += now.good;
    }
    require(!wrong.empty() || good == all, "what is in order may be read");
    return {wrong, good};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::size_t length = std::min<std::size_t>(data[0] * 256u + data[1], size - 2);
    const std::string_view text = view(data, size).substr(2);
    const std::string_view requests = text.substr(0, length), answers = text.substr(length);
    const verdict whole = verdict_on(requests, answers, size);
    for (const std::size_t piece : {1u, 3u, 4u, 8u, 13u}) {
        const verdict in_pieces = verdict_on(requests, answers, piece);
        require(in_pieces.wrong == whole.wrong, "pieces make no difference", whole.wrong);
        // Of the head of a wrong frame, 7 bytes may have come before.
        require(whole.good <= in_pieces.good && in_pieces.good <= whole.good + 7, "nothing more is read", whole.wrong);
    }
    return 0;
}

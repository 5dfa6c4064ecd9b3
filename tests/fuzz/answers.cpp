// The bytes of a connection as `answer_order` sees them. The first two bytes are the size of the library's part; the
// rest of the text are the server's. In which pieces they come makes no difference.
#include "fuzz/fuzz.hpp"

#include <zkasio/detail/connection/answer_order.hpp>

#include <algorithm>
#include <span>

namespace {

using namespace zkasio::fuzz;
using zkasio::detail::answer_order;

std::string wrong_with(std::string_view requests, std::string_view answers, std::size_t piece) {
    answer_order order;
    for (; !requests.empty(); requests.remove_prefix(std::min(piece, requests.size())))
        order.sent(std::span(requests).first(std::min(piece, requests.size())));
    std::string wrong;
    for (; !answers.empty(); answers.remove_prefix(std::min(piece, answers.size())))
        if (const char* const now = order.received(std::span(answers).first(std::min(piece, answers.size()))).wrong) {
            require(wrong.empty() || wrong == now, "what is wrong stays so");
            wrong = now;
        } else {
            require(wrong.empty(), "what is wrong stays wrong");
        }
    return wrong;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::size_t length = std::min<std::size_t>(data[0] * 256u + data[1], size - 2);
    const std::string_view text = view(data, size).substr(2);
    const std::string_view requests = text.substr(0, length), answers = text.substr(length);
    const std::string whole = wrong_with(requests, answers, size);
    for (const std::size_t piece : {1u, 3u, 4u, 8u, 13u})
        require(wrong_with(requests, answers, piece) == whole, "pieces make no difference", whole);
    return 0;
}

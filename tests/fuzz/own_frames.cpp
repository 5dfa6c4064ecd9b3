// The answers to our own requests, and events, as `own_frames` reads them. The first byte says which request was asked,
// the second how many reads it had; the rest is the frame.
#include "fuzz/fuzz.hpp"

#include <zkasio/detail/connection/own_frames.hpp>

#include <optional>
#include <vector>

namespace {

using namespace zkasio::fuzz;
using namespace zkasio::detail;

request asked_by(unsigned kind, std::size_t reads) {
    multi_read_request several;
    several.reads.assign(reads, get_request{"/a"});
    switch (kind % 6) {
        case 0: return several;
        case 1: return who_am_i_request{};
        case 2: return ephemerals_request{"/a"};
        case 3: return count_below_request{"/a"};
        case 4: return add_watch_request{"/a", true};
        default: return remove_added_watch_request{"/a"};
    }
}

void check_event(const std::vector<char>& frame, std::string_view chroot, std::string_view text) {
    std::optional<told_change> change;
    const char* const wrong = read_event(frame, chroot, change);
    require(!wrong || !change, "a wrong event tells of nothing", text);
    require(!change || change->zxid >= 0, "a zxid, or none", text);
    require(!change || (change->path.starts_with('/') && change->path.size() <= frame.size()), "a path", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::string_view text = view(data, size).substr(2);
    const std::vector<char> frame(text.begin(), text.end());  // a read beyond its end is seen
    const request asked = asked_by(data[0], data[1]);
    for (const std::string_view chroot : {"", "/app"}) {
        reply r;
        const char* const wrong = read_own_answer(own_question_of(asked), frame, chroot, r);
        require(!r.sent, "an answer is no unknown outcome", text);
        if (!wrong && !r.code && std::holds_alternative<multi_read_request>(asked))
            require(r.results.size() == data[1], "a result for each read", text);
        std::size_t bytes = 0;
        for (const multi_result& one : r.results) {
            bytes += 9 + one.data.size();
            for (const std::string& name : one.children) bytes += 4 + name.size();
        }
        for (const std::string& path : r.children) {
            bytes += 4 + path.size();
            require(path.starts_with('/'), "paths are absolute", path);
        }
        for (const zkasio::acl_entry& who : r.acl) bytes += 8 + who.who().scheme().size() + who.who().id().size();
        require(wrong || bytes <= frame.size() + 8, "nothing is told that was not sent", text);
        require(r.stat.num_children >= 0 || wrong, "a count", text);
        check_event(frame, chroot, text);
    }
    return 0;
}

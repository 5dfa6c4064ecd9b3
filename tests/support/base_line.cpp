#include "support/base_line.hpp"

#include "support/pace.hpp"
#include "support/surroundings.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <thread>

namespace zkasio::test {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool is_alone = false;  // sanitizers have threads and pipes of their own
#else
constexpr bool is_alone = true;
#endif

// What they refer to, sorted. A socket or a pipe has a number that no other has.
std::vector<std::string> open_descriptors() {
    std::vector<std::string> all;
    if (!is_alone || !surroundings::current().has_real_time()) return all;  // a virtual clock has descriptors
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // the directory's own
        std::string target = std::filesystem::read_symlink(entry, gone);
        if (gone || target.find("/proc/") != std::string::npos) continue;
        if (const auto at = target.find(" (deleted)"); at != std::string::npos) target.resize(at);
        all.push_back(std::move(target));
    }
    std::sort(all.begin(), all.end());
    return all;
}

std::size_t threads() {
    if (!is_alone) return 1;
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += "\n    " + line;
    return text;
}

}  // namespace

base_line::base_line(bool with_servers)
    : descriptors_(open_descriptors()), threads_(threads()), with_servers_(with_servers) {}

std::string base_line::left_behind() const {
    const bool has_own_server = surroundings::current().has_own_server();  // with a thread, and pipes
    const auto give_up = std::chrono::steady_clock::now() + paced(10s);
    for (;;) {
        std::string left;
        std::vector<std::string> more, now = open_descriptors();
        std::set_difference(now.begin(), now.end(), descriptors_.begin(), descriptors_.end(),
                            std::back_inserter(more));
        if (!more.empty() && !has_own_server) left += "\n  descriptors:" + joined(more);
        if (const std::size_t n = threads(); n > threads_ && !has_own_server)
            left += "\n  threads: " + std::to_string(n - threads_);
        std::vector<std::string> kept;
        if (with_servers_) kept = surroundings::current().kept_by_servers();
        if (!kept.empty()) left += "\n  kept by the servers:" + joined(kept);
        const bool may_change = surroundings::current().has_real_time() && std::chrono::steady_clock::now() < give_up;
        if (left.empty() || !may_change) return left;
        std::this_thread::sleep_for(20ms);
    }
}

}  // namespace zkasio::test

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace zkasio::detail {

/// Cuts a stream of bytes into ZooKeeper's frames: a length of four bytes, and as many bytes. Tells of each frame its
/// length and the request number that it begins with; of the first frame, which has none, the length only.
class frame_cutter {
public:
    struct head {
        bool first;
        std::uint32_t length;
        std::int32_t number;  ///< 0 of the first frame
    };
    /// Calls `told(head)` for each frame as soon as its head is there; false from it: ends the call. Returns false then.
    template <class Told>
    bool cut(std::span<const char> bytes, Told told) {
        while (!bytes.empty()) {
            if (rest_ > 0) {
                const std::size_t n = rest_ < bytes.size() ? static_cast<std::size_t>(rest_) : bytes.size();
                rest_ -= n;
                bytes = bytes.subspan(n);
                continue;
            }
            head_[filled_++] = static_cast<unsigned char>(bytes.front());
            bytes = bytes.subspan(1);
            if (filled_ < (first_ ? 4 : 8)) continue;
            const head h{first_, big_endian(0), first_ ? 0 : static_cast<std::int32_t>(big_endian(4))};
            filled_ = 0;
            if (!told(h)) return false;
            rest_ = h.length - (first_ ? 0 : 4);
            first_ = false;
        }
        return true;
    }

private:
    std::uint32_t big_endian(std::size_t at) const noexcept {
        return std::uint32_t{head_[at]} << 24 | std::uint32_t{head_[at + 1]} << 16 | std::uint32_t{head_[at + 2]} << 8 |
               std::uint32_t{head_[at + 3]};
    }

    std::array<unsigned char, 8> head_{};
    std::size_t filled_ = 0;
    std::uint64_t rest_ = 0;  // bytes of the frame that follow
    bool first_ = true;
};

/// Whether a server answers the requests of one connection, each once and in their order, in frames of a credible
/// length: what the C library takes for granted. It ends the process for an answer without a request (an assertion),
/// and allocates the length that a frame claims before any byte of the frame has come.
class answer_order {
public:
    /// The largest answer that a connection survives. Java's client survives 1 MiB unless it is told otherwise.
    static constexpr std::uint32_t largest = 128 << 20;

    /// @param bytes of the library, in their order, before they leave.
    void sent(std::span<const char> bytes);
    /// @param bytes of the server, in their order, before the library gets them. Returns what is wrong with them, which
    /// stays wrong, or nullptr.
    const char* received(std::span<const char> bytes);

private:
    const char* judge(const frame_cutter::head& answer);

    frame_cutter requests_, answers_;
    std::deque<std::int32_t> unanswered_;
    const char* wrong_ = nullptr;
};

}  // namespace zkasio::detail

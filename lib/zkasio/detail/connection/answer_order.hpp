#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

namespace zkasio::detail {

/// Cuts a stream of bytes into ZooKeeper's frames: a length of four bytes, and as many bytes, which begin with the
/// number of a request in all frames but the first.
class frame_cutter {
public:
    struct head {
        bool first;
        std::uint32_t length;
        std::optional<std::int32_t> number;
    };

    /// Calls `told(head)` of each frame as soon as its length is there, and again when the number is, which the first
    /// frame has not. False from it ends the call, and nothing more is to be cut then.
    /// @return how many of the bytes lie in front of the frame that was refused: all, if none was.
    template <class Told>
    std::size_t cut(std::span<const char> bytes, Told told) {
        std::size_t begun = 0;  // where the head begins, or where these bytes begin in it
        for (std::size_t at = 0; at < bytes.size();) {
            if (rest_ > 0) {
                const std::size_t left = bytes.size() - at, n = rest_ < left ? static_cast<std::size_t>(rest_) : left;
                rest_ -= n;
                at += n;
                begun = at;
                continue;
            }
            head_[filled_++] = static_cast<unsigned char>(bytes[at++]);
            if (filled_ != 4 && filled_ != 8) continue;
            head h{first_, big_endian(0), std::nullopt};
            if (filled_ == 8) h.number = static_cast<std::int32_t>(big_endian(4));
            if (!told(h)) return begun;
            if (filled_ == 4 && !first_) continue;
            const std::uint32_t seen = first_ ? 0 : 4;
            rest_ = h.length < seen ? 0 : h.length - seen;
            filled_ = 0;
            first_ = false;
            begun = at;
        }
        return bytes.size();
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
/// length: what the C library takes for granted. It ends the process for an answer without a request (an assertion, or
/// credentials that are not there), and allocates the length that a frame claims before any byte of the frame has come.
class answer_order {
public:
    /// The largest answer that a connection survives. Java's client survives 1 MiB unless it is told otherwise.
    static constexpr std::uint32_t largest = 128 << 20;

    struct verdict {
        std::size_t good;   ///< so many bytes are in order
        const char* wrong;  ///< what is wrong with those behind; nullptr: nothing is
    };

    /// @param bytes of the library, in their order, before they leave.
    void sent(std::span<const char> bytes);
    /// @param bytes of the server, in their order, before the library gets them. What is wrong once stays wrong.
    verdict received(std::span<const char> bytes);

private:
    const char* judge(const frame_cutter::head& answer);
    const char* judge_number(std::int32_t number);

    frame_cutter requests_, answers_;
    std::deque<std::int32_t> unanswered_;
    std::size_t credentials_ = 0;  // requests to authenticate that are unanswered
    const char* wrong_ = nullptr;
};

}  // namespace zkasio::detail

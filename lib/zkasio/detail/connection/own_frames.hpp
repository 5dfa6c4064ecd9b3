#pragma once

#include <zkasio/detail/seam/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The requests that the C library does not know, and their answers, as bytes of ZooKeeper's protocol. Pure. Nothing
/// here reads beyond the bytes that it is given, and no count or length that they claim is believed before as many
/// bytes are there.
namespace zkasio::detail {

/// The numbers of our own requests: 1 to this one, and again from 1. The library's begin at the time of day and count
/// up, step over the reserved ones and begin at the time of day again: they never meet these.
inline constexpr std::int32_t largest_own_number = 1 << 20;

constexpr bool is_own_number(std::int32_t number) noexcept { return number >= 1 && number <= largest_own_number; }
constexpr std::int32_t own_number_after(std::int32_t number) noexcept {
    return number < largest_own_number ? number + 1 : 1;
}

/// What has to be known of a request to understand its answer.
struct own_question {
    std::int32_t opcode = 0;
    std::size_t steps = 0;  ///< of a multi_read
};

/// Of a request that is_own().
own_question own_question_of(const request& r) noexcept;

/// The whole frame of a request that is_own(), with its length in front.
/// @param chroot in front of all paths; "": none.
std::string own_frame(std::int32_t number, const request& r, std::string_view chroot);

/// Puts the server's answer into `answer`.
/// @param frame without its length: a number, a transaction, a code, and the body.
/// @return what is wrong with the frame; nullptr: nothing is.
const char* read_own_answer(const own_question& asked, std::span<const char> frame, std::string_view chroot,
                            reply& answer);

struct told_change {
    node_event what;
    std::string path;
    std::int64_t zxid = 0;  // of the change; 0: the server does not say (before ZooKeeper 3.9)
};
/// What the frame of a watch says, the frame again without its length.
/// @param change nothing: the event is of no node, or of none below the chroot.
/// @return what is wrong with the frame; nullptr: nothing is.
const char* read_event(std::span<const char> frame, std::string_view chroot, std::optional<told_change>& change);

}  // namespace zkasio::detail

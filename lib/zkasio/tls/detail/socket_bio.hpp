#pragma once

#include <openssl/types.h>

#include <memory>

namespace zkasio::detail {

/// OpenSSL's way to a socket, instead of its own: that one raises SIGPIPE, and does not tell an end of file from an
/// error.
struct socket_end {
    explicit socket_end(int fd) : descriptor(fd) {}
    int descriptor;
    bool read_to_end = false;
    int failure = 0;  ///< errno of the read or write that failed for good
};

struct bio_deleter {
    void operator()(BIO* b) const noexcept;
};
using bio_ptr = std::unique_ptr<BIO, bio_deleter>;

/// @param end outlives it. Null: no memory.
bio_ptr make_socket_bio(socket_end& end);

}  // namespace zkasio::detail

#pragma once

#include <openssl/types.h>

#include <memory>

namespace zkasio::detail {

/// The socket that OpenSSL reads and writes, in place of OpenSSL's own socket BIO. The latter raises SIGPIPE, and does
/// not tell an end of file from an error.
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

/// @param end outlives the BIO. Null: no memory.
bio_ptr make_socket_bio(socket_end& end);

}  // namespace zkasio::detail

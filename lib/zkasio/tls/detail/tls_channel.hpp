#pragma once

#include <zkasio/detail/seam/secure_channel.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace zkasio::detail {

/// The TLS of one client. From any thread.
class tls_security final : public transport_security {
public:
    explicit tls_security(tls_options o) : options_(std::move(o)) {}
    channel_maker prepare() const override;

private:
    tls_options options_;
};

/// Keeps one context for all connections until one of the files changes: OpenSSL 3 takes a tenth of a second to read
/// the system's certificates. From any thread.
class context_of_files {
public:
    /// Throws zkasio::error, as get() does.
    explicit context_of_files(tls_files files);
    tls_options::context_ptr get();

private:
    struct mark {
        dev_t device = 0;
        ino_t inode = 0;
        std::int64_t size = 0, seconds = 0, nanoseconds = 0;  // the time: ctime, which cannot be set back
        bool operator==(const mark&) const = default;
    };
    static mark mark_of(const std::string& file);
    std::vector<mark> marks() const;

    tls_files files_;
    std::mutex mutex_;
    tls_options::context_ptr context_;  // guarded by the mutex
    std::vector<mark> read_;            // guarded by the mutex: the files' marks when `context_` was made
};

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

/// One connection through OpenSSL. Sends no close_notify when the connection ends: ZooKeeper's servers do not wait for
/// one, and end a session by ZooKeeper's own protocol.
class tls_channel final : public secure_channel {
public:
    /// Throws std::runtime_error.
    tls_channel(int descriptor, tls_options::context_ptr context, const std::string& name, tls_verification v);

    progress handshake() override;
    transfer read(std::span<char> to) override;
    transfer write(std::span<const char> from) override;
    std::string failure() const override { return failure_; }

private:
    struct deleter {
        void operator()(SSL* s) const noexcept;
    };
    void expect(const std::string& name);
    progress after(int result);
    progress whom_it_is_with();
    std::string reason() const;
    std::string hint(int why) const;
    std::string unverified(long result) const;

    tls_options::context_ptr context_;  // kept: OpenSSL counts references to its own part, but Asio frees the rest
    socket_end end_;
    std::unique_ptr<SSL, deleter> ssl_;
    std::string expected_name_, failure_;
    bool verified_ = true;
};

}  // namespace zkasio::detail

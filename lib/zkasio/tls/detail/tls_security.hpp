#pragma once

#include <zkasio/detail/seam/secure_channel.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace zkasio::detail

#pragma once

#include <zkasio/tls/tls_options.hpp>

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace zkasio::detail {

/// One context for all connections until one of the files is another one: to read the system's certificates takes
/// OpenSSL 3 a tenth of a second. From any thread.
class context_of_files {
public:
    /// Throws zkasio::error, as get() does.
    explicit context_of_files(tls_files files);
    tls_options::context_ptr get();

private:
    struct mark {
        dev_t device = 0;
        ino_t inode = 0;
        std::int64_t size = 0, seconds = 0, nanoseconds = 0;  // when it was changed: nobody can set that back
        bool operator==(const mark&) const = default;
    };
    static mark mark_of(const std::string& file);
    std::vector<mark> marks() const;

    tls_files files_;
    std::mutex mutex_;
    tls_options::context_ptr context_;  // guarded
    std::vector<mark> read_;            // guarded: what the files were when it was made
};

}  // namespace zkasio::detail

#include <zkasio/tls/detail/tls_security.hpp>

#include <zkasio/tls/detail/tls_channel.hpp>

#include <openssl/x509.h>

#include <stdlib.h>
#include <sys/stat.h>

#include <stdexcept>
#include <utility>

namespace zkasio::detail {

channel_maker tls_security::prepare() const {
    tls_options::context_ptr context = options_.source()();
    if (!context) throw std::runtime_error("TLS: the function that makes a context has made none");
    return [context = std::move(context), name = options_.server_name(),
            verification = options_.verification()](int descriptor, const std::string& host) {
        return std::make_unique<tls_channel>(descriptor, context, name.empty() ? host : name, verification);
    };
}

context_of_files::context_of_files(tls_files files) : files_(std::move(files)) { get(); }

tls_options::context_ptr context_of_files::get() {
    const std::lock_guard lock(mutex_);
    // Before the files are read: a change during the reading is seen the next time.
    std::vector<mark> now = marks();
    if (!context_ || now != read_) {
        context_ = make_tls_context(files_);
        read_ = std::move(now);
    }
    return context_;
}

context_of_files::mark context_of_files::mark_of(const std::string& file) {
    struct ::stat s {};
    if (file.empty() || ::stat(file.c_str(), &s) != 0) return {};
    return {s.st_dev, s.st_ino, s.st_size, s.st_ctim.tv_sec, s.st_ctim.tv_nsec};
}

std::vector<context_of_files::mark> context_of_files::marks() const {
    const char* const named = ::secure_getenv(::X509_get_default_cert_file_env());  // where OpenSSL looks
    const std::string ca = !files_.ca().empty() ? files_.ca() : named ? named : ::X509_get_default_cert_file();
    return {mark_of(ca), mark_of(files_.chain()), mark_of(files_.key())};
}

}  // namespace zkasio::detail

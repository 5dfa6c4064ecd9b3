#include <zkasio/tls/detail/socket_bio.hpp>

#include <openssl/bio.h>

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

namespace zkasio::detail {
namespace {

socket_end& end_of(BIO* b) { return *static_cast<socket_end*>(::BIO_get_data(b)); }

// Takes the result `n` of recv() or send().
int transferred(BIO* b, ssize_t n, bool reading) {
    if (n >= 0) return static_cast<int>(n);
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        end_of(b).failure = errno;
    else if (reading)
        BIO_set_retry_read(b);
    else
        BIO_set_retry_write(b);
    return -1;
}

int read(BIO* b, char* to, int room) {
    BIO_clear_retry_flags(b);
    const ssize_t n = ::recv(end_of(b).descriptor, to, static_cast<std::size_t>(room), MSG_DONTWAIT);
    if (n == 0 && room > 0) end_of(b).read_to_end = true;
    return transferred(b, n, true);
}

int write(BIO* b, const char* from, int size) {
    BIO_clear_retry_flags(b);
    return transferred(b, ::send(end_of(b).descriptor, from, static_cast<std::size_t>(size),
                                 MSG_NOSIGNAL | MSG_DONTWAIT), false);
}

long control(BIO* b, int what, long, void*) {
    if (what == BIO_CTRL_EOF) return end_of(b).read_to_end;
    return what == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
        BIO_METHOD* const m = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "zkasio socket");
        if (m) {
            ::BIO_meth_set_read(m, &read);
            ::BIO_meth_set_write(m, &write);
            ::BIO_meth_set_ctrl(m, &control);
        }
        return m;
    }();
    return made;
}

}  // namespace

void bio_deleter::operator()(BIO* b) const noexcept { ::BIO_free(b); }

bio_ptr make_socket_bio(socket_end& end) {
    bio_ptr b(method() ? ::BIO_new(method()) : nullptr);
    if (!b) return b;
    ::BIO_set_data(b.get(), &end);
    ::BIO_set_init(b.get(), 1);
    return b;
}

}  // namespace zkasio::detail

#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/types.hpp>

#include <zookeeper/zookeeper.h>

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

// Outside of all namespaces, for the name is the same in all copies of zkasio that a process may have, `zkasio` and
// `boost_zkasio` among them. They share what the linker finds first, as they share the C library. (A copy that hides
// its symbols, or whose program does not export its own, has a state of its own.)
extern "C" {

struct zkasio_c_library_1 {
    /// Fact 28: the library has process-wide statics (xid, log buffer, address text), so handles take turns.
    std::mutex mutex;
    /// Of request_numbers.cpp: requests that may follow without another look at their numbers.
    std::int64_t numbers_left = 0;
    /// How many may follow a look that fails. 0: there was no request yet.
    std::int64_t until_next_look = 0;

    /// Handlers for pthread_atfork(). A child process gets an unlocked mutex, even if another thread of its parent has
    /// locked the mutex during fork(). Each copy registers handlers of its own, which go when the copy is unloaded.
    void before_fork() {
        if (forking_thread.load(std::memory_order_relaxed) != ::pthread_self()) {
            mutex.lock();
            forking_thread.store(::pthread_self(), std::memory_order_relaxed);
        }
        ++handlers_under_way;
    }
    void after_fork() {
        if (--handlers_under_way > 0) return;
        forking_thread.store({}, std::memory_order_relaxed);
        mutex.unlock();
    }

private:
    std::atomic<pthread_t> forking_thread{};  // only this thread finds its own number here
    int handlers_under_way = 0;
};

[[gnu::visibility("default"), gnu::noinline]] inline zkasio_c_library_1* zkasio_the_c_library_1() {
    static zkasio_c_library_1 one;
    return &one;
}

}

/// Conversions between the types of the C library and those of zkasio.
namespace zkasio::detail {

std::error_code to_code(int rc);
/// Fact 13. Takes the library's code, because to_code() maps some codes to others.
bool outcome_unknown(int rc);
node_stat to_stat(const ::Stat& s);
int to_flags(create_mode m);
/// Nothing: a string is null, as in an answer that is shorter than it says. The library does not look at that.
std::optional<acl> to_acl(const ACL_vector& v);
std::optional<std::vector<std::string>> to_names(const String_vector& v);

/// An ACL for the library, which only reads it, and only during the call.
class c_acl {
public:
    explicit c_acl(const acl& entries) {
        for (const acl_entry& e : entries)
            entries_.push_back(
                {static_cast<int32_t>(e.granted()),
                 {const_cast<char*>(e.who().scheme().c_str()), const_cast<char*>(e.who().id().c_str())}});
        vector_ = {static_cast<int32_t>(entries_.size()), entries_.data()};
    }
    ACL_vector* get() { return &vector_; }

private:
    std::vector<ACL> entries_;
    ACL_vector vector_{};
};

/// The library keeps the number of a request as the context of its callback.
inline const void* as_data(op_id id) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(id)); }
inline op_id as_id(const void* data) { return static_cast<op_id>(reinterpret_cast<std::uintptr_t>(data)); }

}  // namespace zkasio::detail

#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/types.hpp>

#include <zookeeper/zookeeper.h>

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

/// Conversions between the types of the C library and those of zkasio.
namespace zkasio::detail {

std::error_code to_code(int rc);
/// Fact 13. Takes the library's code, because to_code() maps some codes to others.
bool outcome_unknown(int rc);
node_stat to_stat(const ::Stat& s);
int to_flags(create_mode m);
acl to_acl(const ACL_vector& v);
std::vector<std::string> to_names(const String_vector& v);

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

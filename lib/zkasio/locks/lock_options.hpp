#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <string>
#include <utility>

namespace zkasio {

/// What the options of all kinds of lock have in common. @tparam Options the kind's own, which the setters return.
template <class Options>
class lock_options {
public:
    /// Written into the lock's node, for operators and contender_info to read: a host name, say.
    Options& data(bytes d) { data_ = std::move(d).take(); return self(); }
    /// Of the lock's node and of directories created for it (open_acl()). Must let this client read and remove it, and
    /// everybody who contends for the lock read it: servers do not tell of the end of a node that one may not read.
    Options& acl(zkasio::acl a) { acl_ = std::move(a); return self(); }

    const std::string& data() const noexcept { return data_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

protected:
    lock_options() {}
    Options& self() noexcept { return static_cast<Options&>(*this); }

private:
    std::string data_;
    zkasio::acl acl_ = open_acl();
};

/// The same for locks whose nodes queue in a directory.
template <class Options>
class queue_options : public lock_options<Options> {
public:
    /// How the nodes are named (Curator's way).
    Options& names(name_scheme n) { names_ = std::move(n); return this->self(); }

    const name_scheme& names() const noexcept { return names_; }

protected:
    queue_options() {}

private:
    name_scheme names_ = name_scheme::curator();
};

}  // namespace zkasio

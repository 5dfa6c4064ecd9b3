#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <string>
#include <utility>

namespace zkasio {

/// The options that all kinds of lock have in common. @tparam Options the kind's own, which the setters return.
template <class Options>
class lock_options {
public:
    /// Written into the lock's node, for operators and contender_info to read: a host name, say.
    Options& data(bytes d) { data_ = std::move(d).take(); return self(); }
    /// Of the lock's node and of directories created for it (client_options::default_acl()). Must let this client read
    /// and remove the node, and every contender read it: servers do not report the end of a node to a client that may
    /// not read it.
    Options& acl(zkasio::acl a) { acl_ = std::move(a); return self(); }

    const std::string& data() const noexcept { return data_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

protected:
    lock_options() {}
    Options& self() noexcept { return static_cast<Options&>(*this); }

private:
    std::string data_;
    zkasio::acl acl_ = default_acl();
};

/// The options of locks whose nodes queue in a directory.
template <class Options>
class queue_options : public lock_options<Options> {
public:
    /// The naming of the nodes (default: Curator's).
    Options& names(name_scheme n) { names_ = std::move(n); return this->self(); }

    const name_scheme& names() const noexcept { return names_; }

protected:
    queue_options() {}

private:
    name_scheme names_ = name_scheme::curator();
};

}  // namespace zkasio

#pragma once

#include "options.hpp"

#include <zkasio/client.hpp>
#include <zkasio/locks/lockable.hpp>

#include <memory>
#include <string>

namespace zklock {

/// The lock that the options of `run` name, with the data that tells who holds it.
std::unique_ptr<zkasio::lockable> choose_lock(const zkasio::client& zk, const run_options& o);

/// What contenders write into their nodes, as JSON: host, pid, user and the program's name. (Not its arguments: they
/// may be secret, and everybody can read nodes.)
std::string who_we_are(const run_options& o);

/// What to say when the children of `path` are no contenders for that kind of lock.
std::string kind_hint(const run_options& o);

}  // namespace zklock

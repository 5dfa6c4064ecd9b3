#include "lock_choice.hpp"

#include "acl_text.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <nlohmann/json.hpp>

#include <array>

#include <pwd.h>
#include <unistd.h>

namespace zklock {
namespace {

zkasio::name_scheme names_of(const run_options& o) {
    return o.kazoo_names ? zkasio::name_scheme::kazoo() : zkasio::name_scheme::curator();
}

template <class Options>
Options with_identity(Options options, const run_options& o) {
    options.data(o.data.empty() ? who_we_are(o) : o.data);
    if (!o.acl.empty()) options.acl(parse_acl(o.acl));
    return options;
}

}  // namespace

std::unique_ptr<zkasio::lockable> choose_lock(const zkasio::client& zk, const run_options& o) {
    if (o.type == lock_type::semaphore) {
        const zkasio::semaphore s(zk, o.path, zkasio::permits::fixed(o.permits),
                                  with_identity(zkasio::semaphore_options(), o));
        return std::make_unique<zkasio::permit_request>(s.request());
    }
    if (o.type == lock_type::mutex)
        return std::make_unique<zkasio::mutex>(
            zk, o.path, with_identity(zkasio::mutex_options().names(names_of(o)), o));
    const zkasio::shared_mutex both(zk, o.path,
                                    with_identity(zkasio::shared_mutex_options().names(names_of(o)), o));
    return std::make_unique<zkasio::shared_mutex_side>(
        both.as(o.type == lock_type::shared ? zkasio::lock_kind::shared : zkasio::lock_kind::exclusive));
}

std::string who_we_are(const run_options& o) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
    nlohmann::ordered_json who{{"host", host.data()}, {"pid", ::getpid()}};
    if (const passwd* const user = ::getpwuid(::getuid())) who["user"] = user->pw_name;
    if (!o.command.empty()) who["command"] = o.command.front();
    return who.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string kind_hint(const run_options& o) {
    if (o.type == lock_type::mutex)
        return "if it is shared by readers and writers, say --exclusive or --shared; if it is a semaphore, --semaphore";
    return "`zklock locks " + o.path + "` shows what is there";
}

}  // namespace zklock

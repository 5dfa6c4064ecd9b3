#include <zkasio/locks/detail/lock_spec.hpp>

#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>

#include <utility>

namespace zkasio::lock_detail {

namespace {

bool has_chroot(const client& zk) {
    const std::string& servers = zk.options().servers();
    const std::size_t slash = servers.find('/');
    return slash != std::string::npos && slash + 1 < servers.size();
}

}  // namespace

void check_directory(std::string_view recipe, const client& zk, const std::string& path) {
    require_directory(recipe, path);
    if (belongs_to_servers(path) && !zk.is_rooted() && !has_chroot(zk))
        throw error(errc::invalid_path, recipe, path, "/zookeeper belongs to the server");
}

asio::awaitable<void> make_directory(session on, std::string path, acl entries, bool stays) {
    create_options options;
    options.mode(stays ? create_mode::persistent : create_mode::container)
        .parents(stays ? missing_parents::create_persistent : missing_parents::create_container)
        .acl(std::move(entries));
    return ensure_created(std::move(on), std::move(path), bytes(), std::move(options));
}

asio::awaitable<void> make_directory(session on, lock_spec_ptr of) {
    return make_directory(std::move(on), of->directory, of->node.acl(), of->directory_stays);
}

}  // namespace zkasio::lock_detail

#include <zkasio/recipes/detail/directory.hpp>

namespace zkasio::recipes::detail {

asio::awaitable<void> make_directory(session on, std::string path, acl entries) {
    create_options options;
    options.mode(create_mode::container).parents(missing_parents::create_container).acl(std::move(entries));
    std::error_code ignored;
    try {
        co_await on.create(path, bytes(), options);
    } catch (const error& e) {
        if (e.code() != zk_errc::node_exists && e.code() != condition::retryable) throw;
        ignored = e.code();
    }
}

}  // namespace zkasio::recipes::detail

#include <zkasio/locks/detail/directory.hpp>

namespace zkasio::lock_detail {

asio::awaitable<void> make_directory(session on, std::string path, acl entries) {
    create_options options;
    options.mode(create_mode::container).parents(missing_parents::create_container).acl(std::move(entries));
    back_off pauses = on.make_back_off();
    for (std::error_code failed;; failed.clear()) {
        try {
            co_await on.create(path, bytes(), options);
        } catch (const error& e) {
            if (e.code() == errc::not_connected || (e.code() != zk_errc::node_exists && e.code() != condition::retryable)) throw;
            failed = e.code();
        }
        if (failed != condition::retryable) co_return;
        co_await pauses.pause();
    }
}

}  // namespace zkasio::lock_detail

#include <zkasio/locks/detail/directory.hpp>

#include <zkasio/path.hpp>

namespace zkasio::lock_detail {

void check_directory(std::string_view recipe, const std::string& path) {
    std::string problem = path_problem(path);
    if (problem.empty() && path == "/") problem = "a lock needs a directory of its own";
    if (!problem.empty()) throw error(errc::invalid_path, recipe, path, problem);
}

asio::awaitable<void> make_directory(session on, std::string path, acl entries, bool stays) {
    create_options options;
    options.mode(stays ? create_mode::persistent : create_mode::container)
        .parents(stays ? missing_parents::create_persistent : missing_parents::create_container)
        .acl(std::move(entries));
    back_off pauses = on.make_back_off();
    for (std::error_code failed;; failed.clear()) {
        try {
            co_await on.create(path, bytes(), options);
        } catch (const error& e) {
            if (e.code() == errc::not_connected ||
                (e.code() != zk_errc::node_exists && e.code() != condition::retryable))
                throw;
            failed = e.code();
        }
        if (failed != condition::retryable) co_return;
        co_await pauses.pause();
    }
}

asio::awaitable<void> make_directory(session on, lock_spec_ptr of) {
    return make_directory(std::move(on), of->directory, of->node.acl(), of->directory_stays);
}

}  // namespace zkasio::lock_detail

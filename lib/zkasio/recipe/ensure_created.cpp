#include <zkasio/recipe/ensure_created.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/retry_until_certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <system_error>

namespace zkasio {

asio::awaitable<void> ensure_created(session on, std::string path, bytes data, create_options how) {
    bool maybe_created = false;
    auto create = [&]() -> asio::awaitable<void> {
        try {
            co_await on.create_unless_exists(path, data, how);
        } catch (const error& e) {
            maybe_created = maybe_created || e.outcome_unknown();
            throw;
        }
    };
    try {
        co_await retry_until_certain(toolbox(on).make_back_off(), create);
    } catch (const error& e) {
        if (e.outcome_unknown() == maybe_created) throw;
        throw error(e.code(), e.operation(), e.path(), e.hint(), maybe_created);
    } catch (const std::system_error& e) {  // thrown by a pause that was cancelled
        throw error(e.code(), "create_unless_exists", path, {}, maybe_created);
    }
}

}  // namespace zkasio

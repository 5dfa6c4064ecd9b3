#include <zkasio/recipe/ensure_created.hpp>

#include <zkasio/recipe/retry_until_certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

namespace zkasio {

asio::awaitable<void> ensure_created(session on, std::string path, bytes data, create_options how) {
    auto create = [&]() -> asio::awaitable<void> { co_await on.create_unless_exists(path, data, how); };
    co_await retry_until_certain(toolbox(on).make_back_off(), create);
}

}  // namespace zkasio

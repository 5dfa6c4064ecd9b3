#include <zkasio/locks/detail/unfinished_permits.hpp>

#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <cassert>
#include <optional>

namespace zkasio::lock_detail {

std::shared_ptr<unfinished_permits> unfinished_permits::of(const session& on, const std::string& directory) {
    const auto make = [&] { return std::make_shared<unfinished_permits>(on); };
    return std::static_pointer_cast<unfinished_permits>(toolbox(on).local("unfinished permits " + directory, make));
}

void unfinished_permits::subtract(std::size_t n) {
    assert(n <= count_);
    count_ -= n;
    std::exchange(fewer_, toolbox(on_).make_one_shot_event()).fire();
}

asio::awaitable<unfinished_permits::reading> unfinished_permits::now(session on, std::string directory) {
    const auto found = std::make_shared<std::optional<reading>>();
    const one_shot_event done = toolbox(on).make_one_shot_event();
    asio::dispatch(on.get_executor(), [on, directory, found, done] {
        const auto all = of(on, directory);
        found->emplace(all->count_, all->fewer_);
        done.fire();
    });
    co_await wait_as(done, "acquire", directory);
    co_return **found;
}

}  // namespace zkasio::lock_detail

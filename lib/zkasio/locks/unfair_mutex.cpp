#include <zkasio/locks/unfair_mutex.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/take_slot.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>

#include <utility>

namespace zkasio {

using namespace lock_detail;

unfair_mutex_options& unfair_mutex_options::back_off(any_duration first, any_duration most) {
    const std::chrono::milliseconds one = first, longest = most;
    if (one < one.zero() || longest < one || longest > std::chrono::hours(24))
        throw error(errc::invalid_argument, "unfair_mutex", {},
                    "a back-off is not negative, does not shrink, and ends within a day");
    first_ = one;
    most_ = longest;
    return *this;
}

namespace {

asio::awaitable<std::optional<contender_info>> holder_of(client zk, std::string path) {
    std::optional<node_data> node = co_await if_exists(zk.get(path));
    if (!node) co_return std::nullopt;
    contender_info holder = info_of(std::move(path), std::move(*node));
    holder.holds = true;
    co_return holder;
}

}  // namespace

unfair_mutex::unfair_mutex(client zk, std::string path, unfair_mutex_options options)
    : lockable("unfair_mutex", std::move(zk), std::move(path)), options_(std::move(options)) {}

lock_attempt unfair_mutex::attempts(acquire_options how) const {
    slot_spec spec;
    spec.path = directory();
    spec.is_node = true;
    spec.n = 1;
    spec.data = options_.data();
    spec.entries = options_.acl();
    spec.first_pause = options_.first_back_off();
    spec.most_pause = options_.most_back_off();
    spec.no_owner = "an unfair_mutex knows no lock_owner: use mutex";
    return attempts_at_slot(on(), std::move(spec), std::move(how));
}

asio::awaitable<std::optional<contender_info>> unfair_mutex::holder() const {
    return errors_as("holder", path(), holder_of(view(), path()));
}

}  // namespace zkasio

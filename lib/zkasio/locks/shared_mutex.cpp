#include <zkasio/locks/shared_mutex.hpp>

#include <zkasio/locks/detail/acquire.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/in_view.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue_claim.hpp>

namespace zkasio {

using namespace lock_detail;

lock_attempt shared_mutex_side::attempts(acquire_options how) const {
    return [zk = on(), spec = spec_, kind = kind_, how = std::move(how)](if_contended when_contended) {
        return contend<std::optional<lock_guard>>(zk, acquire_request(spec, kind, when_contended), how);
    };
}

asio::awaitable<lock_guard> shared_mutex_side::wait_for_lock(acquire_options how) const {
    return contend<lock_guard>(on(), acquire_request(spec_, kind_), std::move(how));
}

std::exception_ptr shared_mutex_side::refusal() const { return refusal_without_id(spec_, path()); }

shared_mutex::shared_mutex(client zk, std::string path, shared_mutex_options options)
    : shared_mutex_side(std::move(zk), std::move(path), lock_kind::exclusive) {
    std::string directory = this->directory();
    const name_scheme& scheme = options.names();
    if (scheme.read_marker().empty())
        throw error(errc::invalid_argument, "shared_mutex", this->path(), "this name_scheme has no marker for readers");
    queue_names names(scheme, scheme.write_marker(), scheme.read_marker(), directory);
    spec_ = std::make_shared<const lock_spec>(std::move(directory), std::move(names), options.data(), options.acl(),
                                              scheme.directory_stays());
}

shared_mutex_side shared_mutex::as(lock_kind kind) const {
    shared_mutex_side side = *this;
    side.kind_ = kind;
    return side;
}

namespace {

asio::awaitable<lock_guard> downgraded(client zk, lock_spec_ptr spec, std::string path, lock_guard writing) {
    const auto claim = std::dynamic_pointer_cast<queue_claim>(claim_of_client(writing.claim()));
    const bool writes = claim && claim->asked().kind == lock_kind::exclusive &&
                        claim->on().get_executor() == zk.get_executor();
    // With kazoo's names, a mutex may have the same directory; the names of a mutex have no marker for readers.
    if (!writes || claim->asked().spec->key != spec->key)
        throw error(errc::invalid_argument, "downgrade", path,
                    "not a writer's guard of this lock and this client, or one of a lock_owner");
    if (!writing.held())
        throw error(errc::lock_lost, "downgrade", claim->paths().front(), why_not_held(writing.reason()));
    const lock_spec& asked = *claim->asked().spec;
    if (asked.has_own_data) spec = with_data(spec, asked.data);
    std::shared_ptr<lock_claim> reading = co_await claim->downgrade(spec);
    co_return lock_guard(std::move(reading), zk.keep_open());
}

}  // namespace

asio::awaitable<lock_guard> shared_mutex::downgrade(lock_guard writing) const {
    return in_view(view(), downgraded(on(), spec_, directory(), std::move(writing)));
}

asio::awaitable<std::vector<contender_info>> shared_mutex::contenders() const {
    return lock_detail::contenders(view(), path(), spec_);
}

}  // namespace zkasio

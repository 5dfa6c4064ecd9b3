#include <zkasio/discovery/registry.hpp>

#include <zkasio/discovery/detail/member_list.hpp>
#include <zkasio/discovery/detail/roster.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {
namespace {

asio::awaitable<void> refused_announcement(std::exception_ptr why) {
    std::rethrow_exception(why);
    co_return;
}
asio::awaitable<void> nothing_announced() { co_return; }
error no_announcement(const char* what) {
    return {errc::invalid_argument, what, {}, "nothing was announced by this object, or it was moved from"};
}

}  // namespace

struct announcement::parts {
    persistent_node node;
    service_instance announced;
    instance_format format;
};

announcement::announcement(persistent_node node, std::string path, service_instance announced, instance_format format)
    : is_(std::make_shared<const parts>(parts{std::move(node), std::move(announced), std::move(format)})),
      path_(std::move(path)) {}

asio::awaitable<void> announcement::update(service_instance is) const {
    std::string data;
    try {
        if (!is_) throw no_announcement("update");
        const service_instance& first = is_->announced;
        if (is.name() != first.name() || is.id() != first.id() || is.type() != first.type())
            throw error(errc::invalid_argument, "update", path_, "this is another instance than the one announced");
        data = is_->format.write(is);
    } catch (...) {
        return errors_as("update", path_, refused_announcement(std::current_exception()));
    }
    return errors_as("update", path_, is_->node.set_data(std::move(data)));
}

asio::awaitable<void> announcement::withdraw() const { return is_ ? is_->node.leave() : nothing_announced(); }

asio::awaitable<void> announcement::ended() const {
    if (is_) return is_->node.ended();
    return refused_announcement(std::make_exception_ptr(no_announcement("ended")));
}

persistent_node_state announcement::state() const noexcept {
    return is_ ? is_->node.state() : persistent_node_state::ended;
}

struct discovery_detail::make_announcement {
    static announcement of(persistent_node node, std::string path, service_instance is, instance_format format) {
        return announcement(std::move(node), std::move(path), std::move(is), std::move(format));
    }
};

namespace {

using namespace discovery_detail;

std::string require_valid(std::string base) {
    if (base.empty()) throw error(errc::invalid_argument, "registry", {}, "this registry was moved from");
    return base;
}

create_mode mode_of(service_type type) {
    switch (type) {
        case service_type::dynamic: return create_mode::ephemeral;
        case service_type::dynamic_sequential: return create_mode::ephemeral_sequential;
        case service_type::fixed:
        case service_type::permanent: break;
    }
    return create_mode::persistent;
}

// Only the ephemeral node of another session: all others are taken over, or left behind by nobody who has died.
asio::awaitable<void> remove_dead(client zk, std::string path) {
    back_off pauses = toolbox(zk).make_back_off();
    bool again = true;
    std::int64_t czxid = 0;  // of the dead one's node: a later one may be of somebody who lives
    const auto remove = [&]() -> asio::awaitable<void> {
        again = false;
        const session on = co_await toolbox(zk).current_session("announce", path);
        try {
            co_await on.sync(path);  // a server that lags behind may not know the dead one's last write
            const std::optional<node_stat> seen = co_await on.exists(path);
            if (!seen || !seen->is_ephemeral() || seen->ephemeral_owner == on.id()) co_return;
            if (czxid == 0) czxid = seen->czxid;
            if (czxid != seen->czxid) co_return;
            co_await on.remove(path, seen->version);
        } catch (const error& e) {
            again = e.code() == zk_errc::bad_version || e.code() == errc::session_expired;
            if (!again && e.code() != zk_errc::no_node) throw;
        }
    };
    for (;;) {
        co_await retry_until_certain(toolbox(zk).make_back_off(), remove);
        if (!again) break;
        co_await pauses.pause();
    }
}

asio::awaitable<announcement> announced(client zk, std::string base, registry_options options, service_instance is,
                                        predecessor before) {
    std::string wanted = service_path(service_path(require_valid(std::move(base)), is.name()), is.id());
    persistent_node_options how;
    how.mode(mode_of(is.type())).acl(options.acl());
    std::string text = options.format().write(is);
    if (before == predecessor::is_dead) co_await remove_dead(zk, wanted);
    persistent_node node(std::move(zk), std::move(wanted), std::move(text), how);
    std::string path = co_await node.created();
    co_return make_announcement::of(std::move(node), std::move(path), std::move(is), options.format());
}

asio::awaitable<std::vector<std::string>> sorted_children(client zk, std::string path) {
    std::vector<std::string> names = co_await children_if_any(zk, path);
    std::sort(names.begin(), names.end());
    co_return names;
}

asio::awaitable<std::vector<std::string>> service_names(client zk, std::string base) {
    co_return co_await sorted_children(std::move(zk), require_valid(std::move(base)));
}

// A node that was removed since the listing is left out.
void add(roster& all, const std::string& node, const pending_data& answered) {
    node_data is;
    node_state state;
    try {
        is = answered.get();
        state.data = is.data;
        state.czxid = is.stat.czxid;
        state.mzxid = is.stat.mzxid;
    } catch (const error& e) {
        if (e.code() == zk_errc::no_node) return;
        if (e.code() != zk_errc::no_auth) throw;
        state.readable = false;
    }
    all.set(node, state);
}

asio::awaitable<service_view> listed(client zk, std::string base, instance_format format, std::string name) {
    const std::string path = service_path(require_valid(std::move(base)), name);
    const std::vector<std::string> nodes = co_await sorted_children(zk, path);
    roster all(nullptr, nullptr, ejection_policy(), std::move(format), name);
    std::vector<std::string> paths;
    for (const std::string& node : nodes) paths.push_back(join_path(path, node));
    const std::vector<pending_data> asked = toolbox(zk).start_gets(std::move(paths));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        co_await asked[i].answered();
        add(all, nodes[i], asked[i]);
    }
    auto what = std::make_shared<listing>(all.all());
    what->version = 1;
    what->current = true;
    co_return make_service_view::of(std::move(what));
}

asio::awaitable<std::optional<service_instance>> found(client zk, std::string base, instance_format format,
                                                       std::string name, std::string id) {
    const std::string path = service_path(service_path(require_valid(std::move(base)), name), id);
    const std::optional<node_data> node = co_await if_exists(zk.get(path));
    std::optional<service_instance> is;
    try {
        if (node) is = format.read({name, id, node->data});
    } catch (const error&) {
        rethrow_as("instance", path);
    }
    co_return is;
}

}  // namespace

registry::registry(client zk, std::string base, registry_options options)
    : zk_(std::move(zk)), base_(std::move(base)), options_(std::move(options)) {
    require_path("registry", base_);
}

asio::awaitable<announcement> registry::announce(service_instance is, predecessor before) const {
    return errors_as("announce", base_, announced(zk_, base_, options_, std::move(is), before));
}

asio::awaitable<std::vector<std::string>> registry::names() const {
    return errors_as("names", base_, service_names(zk_, base_));
}
asio::awaitable<service_view> registry::instances(std::string name) const {
    return errors_as("instances", base_, listed(zk_, base_, options_.format(), std::move(name)));
}
asio::awaitable<std::optional<service_instance>> registry::instance(std::string name, std::string id) const {
    return errors_as("instance", base_, found(zk_, base_, options_.format(), std::move(name), std::move(id)));
}

}  // namespace zkasio

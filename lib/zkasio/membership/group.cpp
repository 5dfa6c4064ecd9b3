#include <zkasio/membership/group.hpp>

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/detail/member_names.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>

#include <algorithm>
#include <system_error>
#include <utility>

namespace zkasio {

using namespace membership_detail;

namespace {

std::string checked_group_path(std::string path) {
    require_directory("group", path);
    return path;
}

// An object that was moved from has no path.
void check_there(const std::string& path, std::string_view operation) {
    if (path.empty()) throw error(errc::invalid_argument, operation, {}, "this group was moved from");
}

std::string unique_digits() {
    std::string id = new_protection_id();
    std::erase(id, '-');
    return id;
}

persistent_node_options node_options(const group_options& how) {
    persistent_node_options options;
    options.acl(how.acl());
    // kazoo creates the directory only once: so the directory has to stay.
    if (how.names() != group_names::curator) options.parents(missing_parents::create_persistent);
    return options;
}

asio::awaitable<group_membership> joined(client zk, std::string path, group_options how, std::string id, bytes data) {
    check_there(path, "join");
    const bool has_data = has_member_data(how.names());
    const auto refuse = [&](std::string_view why) { throw error(errc::invalid_argument, "join", path, why); };
    if (!has_data && data.size() > 0) refuse("the members of kazoo's parties have no data");
    // Checked for kazoo's parties, too: with Curator's names the same members may be in another group.
    if (id.empty() || id.find('/') != std::string::npos || !path_problem("/" + id).empty())
        refuse("'" + id + "' is no name of a node");
    const std::string node_path = join_path(path, member_name(how.names(), id, unique_digits()));
    try {
        persistent_node node(zk, node_path, member_data(how.names(), id, std::move(data).take()), node_options(how));
        co_await node.created();
        co_return group_membership(std::move(id), has_data, std::move(node));
    } catch (const std::system_error&) {
        rethrow_request_as("join", path);
    }
}

asio::awaitable<group_view> members_of(client zk, std::string path, group_names names) {
    check_there(path, "members");
    const group_observer observer(zk, path, names);
    co_await requests_as("members", path, observer.ready());
    group_view view = observer.members();
    if (!view.readable) throw error(zk_errc::no_auth, "members", path,
                                     "the ACL of the directory does not allow it to this client: see get_acl()");
    co_return view;
}

asio::awaitable<void> refuse_data(std::string path) {
    throw error(errc::invalid_argument, "set_data", path, "the members of kazoo's parties have no data");
    co_return;
}

}  // namespace

group::group(client zk, std::string path, group_options options)
    : zk_(std::move(zk)), path_(checked_group_path(std::move(path))), options_(std::move(options)) {}

asio::awaitable<group_membership> group::join(std::string id, bytes data) const {
    return joined(zk_, path_, options_, std::move(id), std::move(data));
}

asio::awaitable<group_view> group::members() const { return members_of(zk_, path_, options_.names()); }

group_observer group::observe() const {
    check_there(path_, "observe");
    return {zk_, path_, options_.names()};
}

asio::awaitable<void> group_membership::set_data(bytes data) const {
    return has_data_ ? node_.set_data(std::move(data)) : refuse_data(path());
}

}  // namespace zkasio

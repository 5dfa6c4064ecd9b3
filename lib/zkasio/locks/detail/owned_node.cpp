#include <zkasio/locks/detail/owned_node.hpp>

#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <optional>

namespace zkasio::lock_detail {
namespace {

// Removes the node of an owned_node that was destroyed while its create was under way.
asio::awaitable<void> withdraw(session on, pending_create creating, std::string directory, std::string id) {
    created node;
    bool unknown = false;
    try {
        node = co_await creating.result();
    } catch (const error& e) {
        if (e.code() == condition::session_ended || !e.outcome_unknown()) co_return;  // there is no node, or it is gone
        unknown = true;
    }
    if (unknown) {
        const std::optional<created> left = co_await toolbox(on).find_protected(directory, id);
        if (!left) co_return;
        node = *left;
    }
    const pending_removal removal = toolbox(on).ensure_removed(node.path);
    co_await removal.answered();  // until then there is work in the background, see client::idle()
}

}  // namespace

owned_node::owned_node(session on, std::string directory, const std::string& name, std::string data, acl entries)
    : on_(std::move(on)), directory_(std::move(directory)), id_(new_protection_id()) {
    create_options options;
    options.mode(create_mode::ephemeral_sequential).acl(std::move(entries));
    creating_.emplace(toolbox(on_).start_create(join_path(directory_, protection_prefix(id_) + name),
                                                bytes(std::move(data)), options));
}

owned_node::owned_node(owned_node&& other) noexcept
    : on_(other.on_),
      directory_(std::move(other.directory_)),
      id_(std::move(other.id_)),
      creating_(std::exchange(other.creating_, std::nullopt)),
      node_(std::exchange(other.node_, {})) {}

owned_node::~owned_node() {
    if (!node_.path.empty())
        toolbox(on_).ensure_removed(node_.path);
    else if (creating_)
        toolbox(on_).run_in_background(withdraw(on_, std::move(*creating_), directory_, id_));
}

asio::awaitable<bool> owned_node::created() {
    bool lost = false;
    std::optional<error> hung_up;
    try {
        node_ = co_await creating_->result();
    } catch (const error& e) {
        lost = e.outcome_unknown() && e.code() == condition::retryable;
        if (!lost) {
            if (e.code() != condition::cancelled) creating_.reset();
            throw;
        }
        if (e.hung_up()) hung_up.emplace(e);
    }
    if (lost) {
        const std::optional<zkasio::created> found = co_await toolbox(on_).find_protected(directory_, id_);
        if (found) node_ = *found;
    }
    creating_.reset();
    if (hung_up && node_.path.empty())
        throw hung_up->renamed("create a node below", directory_).not_applied();
    co_return !node_.path.empty();
}

}  // namespace zkasio::lock_detail

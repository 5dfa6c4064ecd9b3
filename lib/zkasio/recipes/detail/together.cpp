#include <zkasio/recipes/detail/together.hpp>

#include <zkasio/path.hpp>
#include <zkasio/recipes/detail/contender.hpp>
#include <zkasio/recipes/detail/directory.hpp>
#include <zkasio/recipes/detail/rethrow.hpp>

#include <asio/this_coro.hpp>

#include <algorithm>

namespace zkasio::recipes::detail {
namespace {

struct protected_name {
    std::string directory, id;
};

asio::awaitable<void> remove_all(session on, std::vector<protected_name> names) {
    for (const protected_name& n : names) {
        const std::optional<created> left = co_await on.find_protected(n.directory, n.id);
        if (left) on.ensure_removed(left->path);
    }
}

// Nodes that a transaction may have created. Whatever happens they are removed, unless they were kept.
class uncertain_nodes {
public:
    explicit uncertain_nodes(session on) : on_(std::move(on)) {}
    uncertain_nodes(const uncertain_nodes&) = delete;
    uncertain_nodes& operator=(const uncertain_nodes&) = delete;
    ~uncertain_nodes() {
        if (names_.empty()) return;
        try {
            on_.run_in_background(remove_all(on_, std::move(names_)));
        } catch (...) {
            // Out of memory: the nodes go with the session.
        }
    }
    void expect(std::string directory, std::string id) { names_.push_back({std::move(directory), std::move(id)}); }
    void settled() { names_.clear(); }

private:
    session on_;
    std::vector<protected_name> names_;
};

// The paths of the new nodes; empty: try again.
asio::awaitable<std::vector<std::string>> create_all(session on, std::vector<wish> wishes) {
    uncertain_nodes nodes(on);
    transaction steps;
    for (const wish& w : wishes) {
        const std::string id = w.spec->names.new_id();
        create_options options;
        options.mode(create_mode::ephemeral_sequential).acl(w.spec->acl);
        steps.create(join_path(w.spec->directory, w.spec->names.prefix(id, w.kind)), bytes(w.spec->data), options);
        nodes.expect(w.spec->directory, id);
    }
    std::vector<std::string> paths;
    bool orphan = false;
    try {
        for (step_result& r : co_await on.multi(steps)) paths.push_back(std::move(r.path));
        nodes.settled();
    } catch (const error& e) {
        if (!e.outcome_unknown()) nodes.settled();
        orphan = e.code() == zk_errc::no_node;
        const bool lost = e.outcome_unknown() && e.code() == condition::retryable;
        if (!orphan && !lost) throw;
    }
    if (orphan)
        for (const wish& w : wishes) co_await make_directory(on, w.spec->directory, w.spec->acl);
    co_return paths;
}

}  // namespace

asio::awaitable<claims_together> contend_together(client zk, std::vector<wish> wishes) {
    const session on = co_await zk.current_session("acquire", wishes.front().spec->directory);
    const asio::any_io_executor from = co_await asio::this_coro::executor;
    for (;;) {
        const std::vector<std::string> paths = co_await create_all(on, wishes);
        if (paths.empty()) continue;
        // From here on each place takes care of itself.
        std::vector<std::shared_ptr<queue_claim>> places;
        for (std::size_t i = 0; i < wishes.size(); ++i) {
            wish what = wishes[i];
            places.push_back(std::make_shared<queue_claim>(on, std::move(what), from, paths[i]));
        }
        claims_together result;
        bool lost = false;
        for (const auto& place : places) {
            try {
                co_await place->decided();
            } catch (...) {
                rethrow_as("acquire", place->asked().spec->directory);
            }
            if (!place->granted()) co_return claims_together();
            result.token = std::max(result.token, place->token());  // known of those who had to queue anew
            lost = lost || place->hold().reason() != loss_reason::none;
            result.claims.push_back(place);
        }
        std::optional<node_stat> first;
        if (!lost) first = co_await on.exists(places.front()->paths().front());
        if (!first) continue;  // somebody has deleted a node
        result.token = std::max(result.token, first->czxid);
        co_return result;
    }
}

}  // namespace zkasio::recipes::detail

// Removing a node with all that is below it.

#include <zkasio/detail/handles/operations_impl.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/handles/view_paths.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <utility>

namespace zkasio {

using namespace detail;

namespace {

constexpr std::size_t window = 256;             // most requests under way
constexpr std::size_t most_steps = 128;         // most steps in a transaction
constexpr std::size_t most_bytes = 128 * 1024;  // most bytes of paths in a transaction
constexpr int most_rounds = 10;      // while another client keeps adding children

}  // namespace

struct operations::impl::tree {
    std::vector<std::string> paths;  // parents before children
    std::string unlisted;            // a node that this client may not list; "": none
};

// Nothing: this client may not list the node. It may still remove the node: the parent's ACL decides.
asio::awaitable<std::optional<node_children>> operations::impl::certain_children(operations on, std::string path,
                                                                                 kept_reply_ptr asked) {
    for (bool again = false;; again = true) {
        std::error_code failed;
        try {
            if (again) co_return co_await on.children(path);
            const wait_end ended = co_await wait_for(on.core_, answer_of(asked));
            if (ended.code) throw error(ended.code, "children", path, {}, true);
            throw_if_failed(asked->reply, "children", path);
            co_return take_children(std::move(asked->reply));
        } catch (const error& e) {
            failed = e.code();
            const bool is_answer = failed == zk_errc::no_node || failed == zk_errc::no_auth;
            if (!is_answer && (again || failed != condition::retryable)) rethrow_as("remove_recursive", path);
        }
        if (failed == zk_errc::no_node) co_return node_children();
        if (failed == zk_errc::no_auth) co_return std::nullopt;
    }
}

asio::awaitable<operations::impl::tree> operations::impl::list_tree(operations on, std::string root) {
    tree t;
    t.paths.push_back(std::move(root));
    for (std::size_t begin = 0; begin < t.paths.size();) {
        const std::size_t end = std::min(t.paths.size(), begin + window);
        std::vector<kept_reply_ptr> listings;
        for (std::size_t i = begin; i < end; ++i)
            listings.push_back(start(on, prepared(on, children_request{t.paths[i]})));
        for (std::size_t i = begin; i < end; ++i) {
            const std::string path = t.paths[i];
            const auto found = co_await certain_children(on, path, listings[i - begin]);
            if (!found) t.unlisted = path;
            if (!found) continue;
            for (const std::string& name : found->names) t.paths.push_back(join_path(path, name));
        }
        begin = end;
    }
    co_return t;
}

namespace {

std::string path_of_step(const multi_op& step) { return std::get<remove_request>(step).path; }

// Takes the last paths out of `paths`, as many as a transaction takes.
multi_request take_last(std::vector<std::string>& paths) {
    multi_request m;
    for (std::size_t bytes = 0; !paths.empty() && m.ops.size() < most_steps; paths.pop_back()) {
        bytes += paths.back().size();
        if (bytes > most_bytes && !m.ops.empty()) break;
        m.ops.emplace_back(remove_request{std::move(paths.back()), any_version});
    }
    return m;
}

}  // namespace

// Removes nodes in transactions, children before parents. Returns the nodes of those transactions that have failed,
// parents before children.
asio::awaitable<std::vector<std::string>> operations::impl::remove_together(operations on,
                                                                            std::vector<std::string> paths) {
    std::vector<std::string> left;
    while (!paths.empty()) {
        std::vector<std::pair<multi_request, kept_reply_ptr>> under_way;
        for (std::size_t steps = 0; !paths.empty() && steps < window; steps += under_way.back().first.ops.size()) {
            multi_request m = take_last(paths);
            command c(m);
            bind(on, c);
            make_whole(on.root_, *c.what);
            under_way.emplace_back(std::move(m), start(on, std::move(c)));
        }
        for (const auto& [asked, answer] : under_way) {
            const wait_end failed = co_await wait_for(on.core_, answer_of(answer));
            if (failed.code) throw error(failed.code, "remove_recursive", path_of_step(asked.ops.front()), {}, true);
            if (!answer->reply.code) continue;
            for (const multi_op& step : asked.ops) left.push_back(path_of_step(step));
        }
    }
    std::reverse(left.begin(), left.end());
    co_return left;
}

// Removes nodes singly, children before parents. False: a node has a child that was not listed.
asio::awaitable<bool> operations::impl::remove_singly(operations on, std::vector<std::string> paths) {
    bool all = true;
    while (!paths.empty()) {
        std::vector<std::pair<std::string, kept_reply_ptr>> under_way;
        for (; !paths.empty() && under_way.size() < window; paths.pop_back()) {
            command c(remove_request{paths.back(), any_version});
            bind(on, c);
            make_whole(on.root_, *c.what);
            under_way.emplace_back(paths.back(), start(on, std::move(c), request_table::repeat::until_certain));
        }
        for (const auto& [path, asked] : under_way) {
            const wait_end failed = co_await wait_for(on.core_, answer_of(asked));
            if (failed.code) throw error(failed.code, "remove_recursive", path, {}, true);
            if (asked->reply.code == zk_errc::not_empty)
                all = false;
            else
                throw_if_failed(asked->reply, "remove_recursive", path);
        }
    }
    co_return all;
}

kept_reply_ptr operations::impl::ensure_removed(const operations& on, std::string path,
                                                std::vector<std::string> must_exist) {
    request what = remove_request{std::move(path), any_version};
    if (!must_exist.empty()) {
        multi_request m;
        for (std::string& node : must_exist) m.ops.emplace_back(check_op{std::move(node), any_version});
        m.ops.emplace_back(std::get<remove_request>(std::move(what)));
        what = std::move(m);
    }
    return start(on, prepared(on, std::move(what)), request_table::repeat::until_gone);
}

asio::awaitable<void> operations::impl::remove_recursive(operations on, std::string path) {
    command checked(remove_request{path, any_version});
    prepare(on, checked, "remove_recursive");
    for (int round = 0;; ++round) {
        tree t = co_await list_tree(on, path);
        const std::string unlisted = std::move(t.unlisted);
        // A transaction costs a server a tenth of single removals. If it fails because of one node, or its outcome is
        // unknown because the connection was lost, its nodes are removed singly.
        std::vector<std::string> left = std::move(t.paths);
        if (left.size() > 1) left = co_await remove_together(on, std::move(left));
        const bool all = co_await remove_singly(on, std::move(left));
        if (all) co_return;
        if (!unlisted.empty())
            throw error(zk_errc::no_auth, "remove_recursive", unlisted, "its children cannot be listed");
        if (round == most_rounds)
            throw error(zk_errc::not_empty, "remove_recursive", path, "somebody keeps adding children");
    }
}

}  // namespace zkasio

#include <zkasio/detail/handles/node_search.hpp>

#include <zkasio/back_off.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/requests/validate.hpp>
#include <zkasio/path.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <set>
#include <string_view>
#include <unordered_map>

namespace zkasio::detail {
namespace {

using wanted_ptr = std::shared_ptr<node_search::wanted>;

void match(const std::vector<wanted_ptr>& round, const std::vector<std::string>& names) {
    std::unordered_map<std::string_view, std::set<node_search::wanted*>> by_id;
    std::set<std::size_t> lengths;
    for (const wanted_ptr& w : round)
        for (const std::string& id : w->ids) {
            by_id[id].insert(w.get());
            lengths.insert(id.size());
        }
    for (const std::string& name : names)
        for (const std::size_t length : lengths)
            for (std::size_t at = 0; at + length <= name.size(); ++at) {
                const auto it = by_id.find(std::string_view(name).substr(at, length));
                if (it == by_id.end()) continue;
                for (node_search::wanted* w : it->second) w->found.emplace(it->first, name);
                break;
            }
}

class search {
public:
    search(core_ptr c, session_record_ptr pinned, std::string directory)
        : core_(std::move(c)), key_(std::move(pinned), std::move(directory)), all_(core_->searches().at(key_)) {}
    search(const search&) = delete;
    search& operator=(const search&) = delete;
    ~search() {
        core_->searches().erase(key_);
        round_.insert(round_.end(), all_->waiting.begin(), all_->waiting.end());
        finish(errc::client_closed);  // there are waiters only if this was cancelled
    }

    // One listing for all waiters that exist when it is sent. False: there was no waiter.
    asio::awaitable<bool> round() {
        co_await asio::post(core_->strand(), asio::use_awaitable);  // one listing for all creates lost in one turn
        for (const wanted_ptr& w : std::exchange(all_->waiting, {}))
            if (w.use_count() > 1) round_.push_back(w);  // otherwise the waiter has left
        if (round_.empty()) co_return false;
        back_off pauses = access::make<back_off>(core_);
        for (;;) {
            // Both travel together; the server carries them out in this order.
            const auto synced = ask(sync_request{key_.second}), listed = ask(children_request{key_.second, false});
            for (const auto* asked : {&synced, &listed}) {
                const wait_end cancelled = co_await wait_for(core_, answer_of(*asked));
                if (cancelled.code) throw error(errc::client_closed, "children", key_.second);
            }
            const std::error_code code = synced->reply.code ? synced->reply.code : listed->reply.code;
            if (code != condition::retryable) {
                if (!code) match(round_, listed->reply.children);
                for (const wanted_ptr& w : round_)
                    for (const auto& [id, name] : w->found)
                        core_->requests().was_applied(join_path(key_.second, name));
                finish(code == zk_errc::no_node ? std::error_code() : code);
                co_return true;
            }
            co_await pauses.pause();
        }
    }

private:
    std::shared_ptr<kept_reply> ask(request what) {
        auto t = std::make_shared<kept_reply>();
        command c(std::move(what));
        c.pinned = key_.first;
        core_->requests().submit(std::move(c), t, request_table::repeat::never);
        return t;
    }
    void finish(std::error_code code) {
        for (const wanted_ptr& w : std::exchange(round_, {})) core_->waits().fire(w->done, code);
    }

    core_ptr core_;
    core::search_key key_;
    std::shared_ptr<node_search> all_;
    std::vector<wanted_ptr> round_;
};

asio::awaitable<void> run(core_ptr c, session_record_ptr pinned, std::string directory) {
    search s(std::move(c), std::move(pinned), std::move(directory));
    for (bool more = true; more;) more = co_await s.round();
}

}  // namespace

asio::awaitable<nodes_by_id> find_nodes(core_ptr c, view_root root, session_record_ptr pinned, std::string directory,
                                        std::vector<std::string> ids) {
    validate(children_request{directory, false}, c->chroot_length() + size_of_root(root));
    for (const std::string& id : ids)
        if (id.size() < 8)
            throw error(errc::invalid_argument, "find_protected", directory,
                        "a protection id of less than 8 characters: \"" + id + '"');
    const auto mine = std::make_shared<node_search::wanted>();
    mine->ids = std::move(ids);
    on_strand(c, [c, pinned, directory = whole_path(root, directory), mine] {
        if (c->is_closing()) return c->waits().fire(mine->done, errc::client_closed);
        auto& search = c->searches()[core::search_key(pinned, directory)];
        const bool begin = !search;
        if (begin) search = std::make_shared<node_search>();
        search->waiting.push_back(mine);
        if (begin) c->run_in_background(run(c, pinned, directory));
    });
    const wait_end end = co_await wait_for(c, mine->done);
    if (end.code) throw error(end.code, "children", directory);
    co_return std::move(mine->found);
}

}  // namespace zkasio::detail

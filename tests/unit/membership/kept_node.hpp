#pragma once

#include "unit/support/rig.hpp"

#include <zkasio/types.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace zkasio::test {

/// At most one node, "/node" or what a sequential create has named it.
class kept_node : public rig {
public:
    static retry_policy short_pauses() {
        return retry_policy::forever(std::chrono::milliseconds(1), std::chrono::milliseconds(1));
    }
    explicit kept_node(bool ephemeral = true, retry_policy pace = short_pauses()) : rig(quick().retry(pace)) {
        server.nodes_are_ours = ephemeral;  // owner 0: the session that asks, or nobody
        server.answer = [this](const detail::request& q) { return answer(q); };
    }

    struct node {
        std::string path;
        std::int64_t owner = 0, czxid = 0;
        std::int32_t version = 0;
        std::string data;
        create_mode mode = create_mode::ephemeral;
    };
    std::optional<node> there;
    bool lags = false;          ///< this server knows of no node until a sync
    bool loses_create = false;  ///< the next one is applied, and its answer is lost
    std::function<std::optional<detail::reply>(const detail::request&)> instead;  ///< nothing: as always

    void put(std::int64_t owner, std::string data = "theirs") {
        there = node();
        there->path = "/node";
        there->owner = owner;
        there->czxid = ++zxid_;
        there->data = std::move(data);
    }
    std::int32_t version_removed = -5;

private:
    std::optional<detail::reply> answer(const detail::request& q) {
        if (instead)
            if (std::optional<detail::reply> other = instead(q)) return other;
        return std::visit([this](const auto& what) { return serve(what); }, q);
    }
    detail::reply stat() const {
        detail::reply r;
        r.path = there->path;
        r.stat.czxid = r.stat.mzxid = there->czxid;
        r.stat.ephemeral_owner = there->owner;
        r.stat.version = there->version;
        r.data = there->data;
        return r;
    }
    std::optional<detail::reply> serve(const detail::create_request& c) {
        const bool sequential =
            c.mode == create_mode::ephemeral_sequential || c.mode == create_mode::persistent_sequential;
        if (there && !sequential) return refusal(zk_errc::node_exists);
        put(0, c.data);
        there->path = c.path + (sequential ? "0000000000" : "");
        there->mode = c.mode;
        if (!std::exchange(loses_create, false)) return stat();
        server.drop();
        return std::nullopt;
    }
    std::optional<detail::reply> serve(const detail::remove_request& r) {
        if (!there || there->path != r.path) return refusal(zk_errc::no_node);
        version_removed = r.version;
        if (r.version != any_version && r.version != there->version) return refusal(zk_errc::bad_version);
        there.reset();
        return detail::reply();
    }
    std::optional<detail::reply> serve(const detail::set_request& s) {
        if (!there || there->path != s.path) return refusal(zk_errc::no_node);
        if (s.version != any_version && s.version != there->version) return refusal(zk_errc::bad_version);
        there->data = s.data;
        ++there->version;
        return stat();
    }
    std::optional<detail::reply> serve(const detail::get_request& g) {
        return there && there->path == g.path ? stat() : refusal(zk_errc::no_node);
    }
    std::optional<detail::reply> serve(const detail::exists_request& e) {
        if (e.path == "/") return detail::reply();
        return there && !lags && there->path == e.path ? stat() : refusal(zk_errc::no_node);
    }
    std::optional<detail::reply> serve(const detail::sync_request&) {
        lags = false;
        return detail::reply();
    }
    std::optional<detail::reply> serve(const detail::children_request&) {
        detail::reply all;
        if (there && !lags) all.children.push_back(there->path.substr(1));
        return all;
    }
    template <class Other>
    std::optional<detail::reply> serve(const Other&) {
        return detail::reply();
    }

    std::int64_t zxid_ = 100;
};

}  // namespace zkasio::test

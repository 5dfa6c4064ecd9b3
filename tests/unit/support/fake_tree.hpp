#pragma once

#include "unit/support/fake_server.hpp"

#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace zkasio::test {

/// Nodes behind a fake_server, as far as locks need them: one directory, sequence numbers, czxids. Answers everything;
/// what a test wants to be different, it does before or instead.
class fake_tree {
public:
    detail::reply operator()(const detail::request& r) {
        return std::visit([this](const auto& what) { return answer(what); }, r);
    }
    void create_as(std::string path, std::int64_t owner) { nodes_[std::move(path)] = {++zxid_, owner}; }
    bool has(const std::string& path) const { return nodes_.contains(path); }
    std::size_t size() const { return nodes_.size(); }
    /// The path that is the n-th in the order of creation.
    std::string nth(std::size_t n) const {
        std::map<std::int64_t, std::string> by_age;
        for (const auto& [path, one] : nodes_) by_age.emplace(one.czxid, path);
        return std::next(by_age.begin(), static_cast<std::ptrdiff_t>(n))->second;
    }

private:
    struct node {
        std::int64_t czxid = 0, owner = 0;  // 0: the session that asks
    };

    detail::reply missing(const std::string& path) const {
        return has(path) ? stat_of(path) : refusal(zk_errc::no_node);
    }
    detail::reply stat_of(const std::string& path) const {
        detail::reply r;
        r.path = path;
        r.stat.czxid = nodes_.at(path).czxid;
        r.stat.ephemeral_owner = nodes_.at(path).owner;
        return r;
    }
    detail::reply answer(const detail::create_request& r) {
        std::string path = r.path;
        if (r.mode == create_mode::ephemeral_sequential || r.mode == create_mode::persistent_sequential) {
            char digits[16];
            std::snprintf(digits, sizeof digits, "%010d", next_++);
            path += digits;
        }
        if (has(path)) return refusal(zk_errc::node_exists);
        create_as(path, 0);
        return stat_of(path);
    }
    detail::reply answer(const detail::remove_request& r) {
        return nodes_.erase(r.path) > 0 ? detail::reply() : refusal(zk_errc::no_node);
    }
    detail::reply answer(const detail::check_op& r) {
        return has(r.path) ? detail::reply() : refusal(zk_errc::no_node);
    }
    detail::reply answer(const detail::get_request& r) { return missing(r.path); }
    detail::reply answer(const detail::exists_request& r) { return missing(r.path); }
    detail::reply answer(const detail::children_request& r) {
        detail::reply all;
        for (auto it = nodes_.lower_bound(r.path + '/'); it != nodes_.end() && it->first.starts_with(r.path + '/');
             ++it)
            all.children.push_back(it->first.substr(r.path.size() + 1));
        all.stat.num_children = static_cast<std::int32_t>(all.children.size());
        return all;
    }
    detail::reply answer(const detail::multi_request& m) {
        detail::reply r;
        r.results.resize(m.ops.size());
        for (std::size_t i = 0; i < m.ops.size(); ++i) {
            const bool refused = std::visit(
                [&](const auto& op) {
                    using op_type = std::decay_t<decltype(op)>;
                    if constexpr (std::is_same_v<op_type, detail::create_request>)
                        return has(op.path);
                    else
                        return !has(op.path);
                },
                m.ops[i]);
            if (!refused) continue;
            r.code = r.results[i].code =
                std::holds_alternative<detail::create_request>(m.ops[i]) ? zk_errc::node_exists : zk_errc::no_node;
            return r;
        }
        for (std::size_t i = 0; i < m.ops.size(); ++i)
            r.results[i].path = std::visit([this](const auto& op) { return answer(op); }, m.ops[i]).path;
        return r;
    }
    template <class Other>
    detail::reply answer(const Other&) {
        return {};
    }
    detail::reply answer(const detail::set_request&) { return {}; }

    std::map<std::string, node> nodes_;
    std::int64_t zxid_ = 100;
    int next_ = 2;
};

}  // namespace zkasio::test

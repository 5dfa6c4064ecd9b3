#pragma once

#include "unit/support/fake_server.hpp"

#include <zkasio/path.hpp>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace zkasio::test {

/// Plays the directory of a lock in which we are the last: a create makes our node, a listing shows `others` and that
/// one.
class directory {
public:
    directory(fake_server& server, std::string our_number) : number_(std::move(our_number)) {
        server.answer = [this](const detail::request& q) -> std::optional<detail::reply> {
            detail::reply r;
            if (const auto* c = std::get_if<detail::create_request>(&q)) {
                ours = r.path = c->path + number_;
                r.stat.czxid = 7;
                if (hold_create) return std::nullopt;
            } else if (std::holds_alternative<detail::children_request>(q)) {
                r.children = others;
                if (!ours.empty()) r.children.emplace_back(node_name(ours));
            }
            return r;
        };
    }

    std::vector<std::string> others;
    std::string ours;
    bool hold_create = false;

    /// Another is created, behind those that there are.
    void next(std::string our_number) { number_ = std::move(our_number); }

private:
    std::string number_;
};

}  // namespace zkasio::test

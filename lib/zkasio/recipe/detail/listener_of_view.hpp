#pragma once

#include <zkasio/detail/base/view_root.hpp>
#include <zkasio/node_feed_listener.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// Stands between the listener of a view, see client::rooted(), and the client: the listener is told, and asked, in
/// paths of the view.
class listener_of_view final : public node_feed_listener {
public:
    listener_of_view(view_root root, std::weak_ptr<node_feed_listener> to) : root_(root), to_(std::move(to)) {}

    bool wants_one_watch() const override {
        const auto to = to_.lock();
        return to && to->wants_one_watch();
    }
    void connected(bool by_one_watch) override {
        if (const auto to = to_.lock()) to->connected(by_one_watch);
    }
    void disconnected() override {
        if (const auto to = to_.lock()) to->disconnected();
    }
    void closed(std::error_code why) override {
        if (const auto to = to_.lock()) to->closed(why);
    }
    void answered(node_read what, const std::string& path, std::error_code code, node_answer answer) override {
        if (const auto to = to_.lock()) to->answered(what, shown(path), code, std::move(answer));
    }
    void changed(node_change what, const std::string& path, std::int64_t zxid) override {
        if (const auto to = to_.lock()) to->changed(what, shown(path), zxid);
    }
    void authenticated() override {
        if (const auto to = to_.lock()) to->authenticated();
    }
    bool watches(node_read what, const std::string& path) const override {
        const auto to = to_.lock();
        return to && to->watches(what, shown(path));
    }
    void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const override {
        const auto to = to_.lock();
        if (!to) return;
        to->for_each_watch([&](node_read what, const std::string& path) { f(what, whole_path(root_, path)); });
    }

private:
    std::string shown(const std::string& path) const { return shown_path(root_, path); }

    const view_root root_;  // of the core, which tells
    const std::weak_ptr<node_feed_listener> to_;
};

}  // namespace zkasio::detail

#include "simulation/tree_writer.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio::test {
namespace {

const std::string top = "/t";

detail::multi_op created_with(const std::string& path, std::string data) {
    detail::create_request r;
    r.path = path;
    r.data = std::move(data);
    return r;
}

std::string name_in_crowd(std::size_t n) { return top + "/n" + std::to_string(100 + n); }

}  // namespace

std::string tree_writer::random_path() {
    if (crowd_ > 0 && s_.chance(40)) return name_in_crowd(s_.pick(crowd_));
    std::string path = top;
    for (std::size_t levels = s_.chance(12) ? 0 : 1 + s_.pick(3); levels > 0; --levels)
        path += '/' + std::string(1, "abc"[s_.pick(3)]);
    return path;
}

// Now and then the same again: a node that is made anew with its old data is another one.
std::string tree_writer::next_data() { return s_.chance(20) ? "same" : std::to_string(++writes_); }

void tree_writer::carry_out(std::vector<detail::multi_op> ops, bool together) {
    if (together && ops.size() > 1) {
        s_.ensemble.operate(ops);
        return;
    }
    for (const detail::multi_op& op : ops) s_.ensemble.operate(op);
}

void tree_writer::create(const std::string& path) {
    std::vector<detail::multi_op> ops;
    for (std::string at = path; at.size() > 1 && !s_.ensemble.tree().find(at); at = std::string(parent_path(at)))
        ops.push_back(created_with(at, next_data()));
    std::reverse(ops.begin(), ops.end());
    carry_out(std::move(ops), s_.chance(30));
}

// Of the node and all below it, those below first.
std::vector<detail::multi_op> tree_writer::removal_of(const std::string& path) const {
    std::vector<detail::multi_op> ops;
    const auto& nodes = s_.ensemble.tree().nodes();
    for (auto node = nodes.lower_bound(path); node != nodes.end() && node->first.starts_with(path); ++node)
        if (node->first.size() == path.size() || node->first[path.size()] == '/')
            ops.push_back(detail::remove_request{node->first, any_version});
    std::reverse(ops.begin(), ops.end());
    return ops;
}

void tree_writer::change() {
    const std::string path = random_path();
    if (!s_.ensemble.tree().find(path)) return create(path);
    const std::size_t what = s_.pick(10);
    if (what < 5) return carry_out({detail::set_request{path, next_data(), any_version}}, false);
    std::vector<detail::multi_op> ops = removal_of(path);
    if (what < 8) return carry_out(std::move(ops), s_.chance(30));
    // Made anew, perhaps with a child, and perhaps in one transaction.
    ops.push_back(created_with(path, next_data()));
    if (s_.chance(40)) ops.push_back(created_with(path + "/a", next_data()));
    carry_out(std::move(ops), what == 8);
}

void tree_writer::make_crowd(std::size_t nodes) {
    crowd_ = nodes;
    for (std::size_t n = 0; n < nodes; ++n) create(name_in_crowd(n));
}

asio::awaitable<void> tree_writer::work(std::size_t changes) {
    for (; changes > 0; --changes) {
        if (s_.chance(50)) co_await s_.pause(1 + s_.pick(s_.chance(70) ? 6 : 40));
        change();
    }
}

asio::awaitable<void> tree_writer::change_as(client zk) {
    const std::string path = random_path(), data = next_data();
    if (s_.chance(30)) {
        co_await zk.set(path, data);
    } else if (s_.chance(30)) {
        co_await zk.remove(path);
    } else {
        create_options options;
        if (s_.chance(70)) options.mode(create_mode::ephemeral);
        co_await zk.create(path, data, options);
    }
}

asio::awaitable<void> tree_writer::work_as(int client, std::size_t changes) {
    for (; changes > 0; --changes) {
        co_await s_.pause(1 + s_.pick(15));
        try {
            co_await change_as(s_.client_number(client));
        } catch (const error& e) {
            s_.note("client ", std::to_string(client), " writes: ", e.what());
        }
    }
}

}  // namespace zkasio::test

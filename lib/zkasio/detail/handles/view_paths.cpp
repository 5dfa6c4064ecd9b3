#include <zkasio/detail/handles/view_paths.hpp>

#include <string>
#include <utility>
#include <variant>

namespace zkasio::detail {
namespace {

class root_adder {
public:
    explicit root_adder(const std::string& root) : root_(root) {}

    void operator()(create_request& r) const {
        // The server appends a number to this path: it names no node, and may end with '/'.
        const bool is_name_a_number = is_sequential(r.mode) && r.path == "/";
        r.path = is_name_a_number ? root_ + "/" : path_below(root_, std::move(r.path));
    }
    void operator()(multi_request& r) const {
        for (multi_op& op : r.ops) std::visit(*this, op);
    }
    void operator()(multi_read_request& r) const {
        for (read_op& op : r.reads) std::visit(*this, op);
    }
    template <class Row>
    void operator()(Row& r) const {
        if constexpr (requires { r.path; }) r.path = path_below(root_, std::move(r.path));
    }

private:
    const std::string& root_;
};

}  // namespace

void put_root_in_front(const std::string& root, request& what) {
    std::visit(root_adder(root), what);
}

void take_root_away(const std::string& root, reply& r) {
    r.path = path_without(root, std::move(r.path));
    for (multi_result& one : r.results) one.path = path_without(root, std::move(one.path));
}

}  // namespace zkasio::detail
